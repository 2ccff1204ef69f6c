//! Lengths of values and names.

use stats::SplitMix64;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use stats::units::{UnitError, parse_bytes};

use super::published::Published;
use super::{Key, KvError, Mix, numbers};

/// Longest value in bytes: the limit of a Redis string, 512 MiB.
pub const VALUE_BYTES_MAX: u64 = 512 << 20;
/// Random stream for lengths.
const STREAM: u64 = 0x7369_7a65;

/// Lengths in bytes; each is a pure function of the seed and the key.
///
/// Written as `1024` or `1KiB` (all the same), `64-4096` (all lengths in the range equally likely),
/// `100:3,1024:1` or `100:3,200-400:1` (lists of either, with a weight after the colon, default 1),
/// or the name of a published distribution: `etc` and `etc-keys` are values and keys of Facebook's
/// pool ETC (Atikoglu et al., SIGMETRICS 2012).
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Fixed(usize),
    /// Shortest and longest length.
    Range(usize, usize),
    List(Arc<List>),
    Published(Published),
}

#[derive(Debug, PartialEq)]
struct List {
    entries: Vec<Entry>,
    mix: Mix,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    least: usize,
    most: usize,
    /// Above 0; the entry's share is proportional to it.
    weight: f64,
}

impl Sizes {
    /// All lengths are `bytes`.
    pub fn all(bytes: usize) -> Self {
        Self { kind: Kind::Fixed(bytes) }
    }

    /// Length of the value or name of `key`.
    #[inline]
    pub fn bytes(&self, seed: u64, key: Key) -> usize {
        match &self.kind {
            Kind::Fixed(bytes) => *bytes,
            other => other.draw(&mut numbers(seed, STREAM, key.0)),
        }
    }

    /// The common length; `None` if lengths differ.
    #[inline]
    pub fn fixed(&self) -> Option<usize> {
        match self.kind {
            Kind::Fixed(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The shortest length.
    pub fn min(&self) -> usize {
        match &self.kind {
            Kind::Fixed(bytes) => *bytes,
            Kind::Range(least, _) => *least,
            Kind::List(list) => list.entries.iter().map(|e| e.least).min().unwrap_or(0),
            Kind::Published(published) => published.min(),
        }
    }

    /// The longest length.
    pub fn max(&self) -> usize {
        match &self.kind {
            Kind::Fixed(bytes) => *bytes,
            Kind::Range(_, most) => *most,
            Kind::List(list) => list.entries.iter().map(|e| e.most).max().unwrap_or(0),
            Kind::Published(published) => published.max(),
        }
    }

    /// Mean length over many keys, in bytes.
    pub fn mean(&self) -> f64 {
        match &self.kind {
            Kind::Fixed(bytes) => *bytes as f64,
            Kind::Range(least, most) => middle(*least, *most),
            Kind::List(list) => {
                let means = list.entries.iter().map(|e| middle(e.least, e.most));
                means.zip(list.mix.shares()).map(|(mean, share)| mean * share).sum()
            }
            Kind::Published(published) => published.mean(),
        }
    }

    /// True for a distribution from a paper, whose range the user did not choose.
    pub(super) fn is_published(&self) -> bool {
        matches!(self.kind, Kind::Published(_))
    }
}

fn middle(least: usize, most: usize) -> f64 {
    f64::midpoint(least as f64, most as f64)
}

impl Kind {
    fn draw(&self, random: &mut SplitMix64) -> usize {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range(least, most) => within(*least, *most, random),
            Self::List(list) => {
                let entry = list.entries[list.mix.pick(random)];
                within(entry.least, entry.most, random)
            }
            Self::Published(published) => published.bytes(random),
        }
    }
}

fn within(least: usize, most: usize, random: &mut SplitMix64) -> usize {
    least + random.below((most - least) as u64 + 1) as usize
}

impl FromStr for Sizes {
    type Err = KvError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if let Some(published) = Published::ALL.into_iter().find(|p| p.name() == text) {
            return Ok(Self { kind: Kind::Published(published) });
        }
        let entries =
            text.split(',').map(|part| entry(text, part)).collect::<Result<Vec<_>, _>>()?;
        let kind = match *entries.as_slice() {
            [Entry { least, most, .. }] if least == most => Kind::Fixed(least),
            [Entry { least, most, .. }] => Kind::Range(least, most),
            _ => {
                let weights: Vec<f64> = entries.iter().map(|e| e.weight).collect();
                let mix = Mix::new(&weights).map_err(|_| invalid_weight(text, text))?;
                Kind::List(Arc::new(List { entries, mix }))
            }
        };
        Ok(Self { kind })
    }
}

/// Parses `SIZE`, `SIZE-SIZE`, `SIZE:WEIGHT` or `SIZE-SIZE:WEIGHT`.
fn entry(text: &str, part: &str) -> Result<Entry, KvError> {
    let (sizes, weight) = part.split_once(':').unwrap_or((part, "1"));
    let above_0 = weight.trim().parse::<f64>().ok().filter(|w| w.is_finite() && *w > 0.0);
    let weight = above_0.ok_or_else(|| invalid_weight(weight.trim(), text))?;
    let (least, most) = sizes.split_once('-').unwrap_or((sizes, sizes));
    let (least, most) = (size(text, sizes, least)?, size(text, sizes, most)?);
    if least > most {
        let problem = "is not a range, expected the smaller size first: for example 64-4096";
        return Err(KvError(format!("`{}` in `{text}` {problem}", sizes.trim())));
    }
    Ok(Entry { least, most, weight })
}

/// Parses one length, which is all or half of `part`.
fn size(text: &str, part: &str, size: &str) -> Result<usize, KvError> {
    let problem = match parse_bytes(size) {
        Ok(bytes) if bytes <= VALUE_BYTES_MAX => return Ok(bytes as usize),
        Ok(_) | Err(UnitError::TooLarge { .. }) => "is too large, expected at most 512MiB",
        Err(_) => {
            "is not a size, expected BYTES or LEAST-MOST, a list of them with weights, etc or \
             etc-keys: for example 1KiB, 64-4096 or 100:3,1024:1"
        }
    };
    Err(KvError(format!("`{}` in `{text}` {problem}", part.trim())))
}

fn invalid_weight(weight: &str, text: &str) -> KvError {
    let expected = "expected a number above 0: for example 100:3,1024:1";
    KvError(format!("`{weight}` in `{text}` is not a weight, {expected}"))
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Fixed(bytes) => write!(f, "{bytes}"),
            Kind::Range(least, most) => write!(f, "{least}-{most}"),
            Kind::Published(published) => f.write_str(published.name()),
            Kind::List(list) => {
                for (i, Entry { least, most, weight }) in list.entries.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    let most = if least == most { String::new() } else { format!("-{most}") };
                    write!(f, "{comma}{least}{most}:{weight}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
#[path = "sizes_tests.rs"]
mod tests;
