//! Tiers: what an instance of a provider limits. Put on a private server, they make a small
//! instance of this machine.
//!
//! [`PROPERTIES`] has a row for each limit, for studies, the command line, plans and reports.

use serde::{Deserialize, Serialize};
use stats::{format_bytes, format_ns, parse_duration_ns};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::memory::MemoryLimit;

/// Range of CPUs and of their share.
const CPUS: RangeInclusive<u32> = 1..=1024;
const QUOTA: RangeInclusive<f64> = 0.01..=1024.0;
/// Range of bandwidths: below, a single value takes seconds.
const BANDWIDTH_MBIT: RangeInclusive<f64> = 1.0..=1_000_000.0;
const CONNECTIONS: RangeInclusive<u32> = 1..=1_000_000;
/// Range of round-trip times: up to a second.
const DISTANCE_NS: RangeInclusive<u64> = 1_000..=1_000_000_000;
/// Longest time from one burst of a neighbour to the next.
const EVERY_NS_MAX: u64 = 3_600_000_000_000;

/// Limits of a private server and its surroundings; all are optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Scalar>", into = "BTreeMap<String, String>")]
pub struct Tier {
    /// Memory including page cache, without swap.
    pub memory: Option<MemoryLimit>,
    /// Number of CPUs, which no load generator uses.
    pub cpus: Option<u32>,
    /// CPU time per time, in CPUs.
    pub quota: Option<f64>,
    /// Traffic in each direction, in Mbit/s of 1,000,000 bits.
    pub bandwidth_mbit: Option<f64>,
    /// Connections that the server accepts.
    pub connections: Option<u32>,
    /// Round-trip time between clients and server, added to that of this machine, nanoseconds.
    pub distance_ns: Option<u64>,
    /// A process that uses a CPU from time to time.
    pub neighbour: Option<Neighbour>,
    /// Where it runs; [`NeighbourCpu::Same`] if not given.
    pub neighbour_cpu: Option<NeighbourCpu>,
}

/// When a neighbour is busy: for the first part of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Length of a burst, nanoseconds.
    pub busy_ns: u64,
    /// Time from the start of one burst to that of the next, nanoseconds.
    pub every_ns: u64,
}

/// Which CPU a neighbour uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourCpu {
    /// The first one of the server.
    Same,
    /// One that neither server nor generator uses.
    Other,
}

/// A property of a tier.
pub struct TierProperty {
    /// Its key in studies and on the command line.
    pub key: &'static str,
    /// Expected values, for errors.
    pub expected: &'static str,
    /// Sets it; `None` if the text is not a value.
    put: fn(&mut Tier, &str) -> Option<()>,
    /// Its value as text that can be read again.
    text: fn(&Tier) -> Option<String>,
    /// Its value in words.
    words: fn(&Tier) -> Option<String>,
}

/// All properties.
pub const PROPERTIES: [TierProperty; 8] = [
    TierProperty {
        key: "memory",
        expected: MemoryLimit::EXPECTED,
        put: |tier, text| set(&mut tier.memory, MemoryLimit::parse(text)),
        text: |tier| Some(tier.memory?.bytes().to_string()),
        words: |tier| Some(format!("{} of memory", format_bytes(tier.memory?.bytes()))),
    },
    TierProperty {
        key: "cpus",
        expected: "1 to 1024 CPUs",
        put: |tier, text| set(&mut tier.cpus, within(text, &CPUS)),
        text: |tier| Some(tier.cpus?.to_string()),
        words: |tier| {
            let cpus = tier.cpus?;
            Some(format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" }))
        },
    },
    TierProperty {
        key: "quota",
        expected: "0.01 to 1024 CPUs, as in `0.5`",
        put: |tier, text| set(&mut tier.quota, within(text, &QUOTA)),
        text: |tier| Some(tier.quota?.to_string()),
        words: |tier| Some(format!("{} CPUs of CPU time", tier.quota?)),
    },
    TierProperty {
        key: "bandwidth_mbit",
        expected: "1 to 1000000 Mbit/s",
        put: |tier, text| set(&mut tier.bandwidth_mbit, within(text, &BANDWIDTH_MBIT)),
        text: |tier| Some(tier.bandwidth_mbit?.to_string()),
        words: |tier| Some(format!("{} Mbit/s in each direction", tier.bandwidth_mbit?)),
    },
    TierProperty {
        key: "connections",
        expected: "1 to 1000000 connections",
        put: |tier, text| set(&mut tier.connections, within(text, &CONNECTIONS)),
        text: |tier| Some(tier.connections?.to_string()),
        words: |tier| Some(format!("{} connections", tier.connections?)),
    },
    TierProperty {
        key: "distance",
        expected: "a round-trip time of 1us to 1s, as in `500us`",
        put: |tier, text| {
            let ns = parse_duration_ns(text).ok().filter(|ns| DISTANCE_NS.contains(ns));
            set(&mut tier.distance_ns, ns)
        },
        text: |tier| Some(format!("{}ns", tier.distance_ns?)),
        words: |tier| {
            Some(format!("{} added to each round trip", format_ns(tier.distance_ns? as f64)))
        },
    },
    TierProperty {
        key: "neighbour",
        expected: "busy time and period, as in `2s/10s`, of at most an hour",
        put: |tier, text| set(&mut tier.neighbour, text.parse().ok()),
        text: |tier| tier.neighbour.map(|own| format!("{}ns/{}ns", own.busy_ns, own.every_ns)),
        words: |tier| Some(format!("a neighbour {}", tier.neighbour_words()?)),
    },
    TierProperty {
        key: "neighbour_cpu",
        expected: "`same` as the server's, or `other`",
        put: |tier, text| {
            let cpu = NeighbourCpu::ALL.into_iter().find(|cpu| cpu.name() == text);
            set(&mut tier.neighbour_cpu, cpu)
        },
        text: |tier| Some(tier.neighbour_cpu?.name().into()),
        words: |_| None,
    },
];

impl Tier {
    /// Expected format, for errors.
    pub const EXPECTED: &str =
        "a tier of the study, or limits as in `memory=1GiB,cpus=1,quota=0.5,bandwidth_mbit=100`";

    /// Parses limits as on the command line, `memory=1GiB,cpus=1`. Errors: what is wrong and what
    /// was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pairs = Vec::new();
        for part in text.split(',').map(str::trim) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("`{part}` is not a limit (expected {})", Self::EXPECTED));
            };
            pairs.push((key.trim(), value.trim().to_string()));
        }
        Self::of(pairs.iter().map(|(key, value)| (*key, value.as_str())))
    }

    fn of<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut tier = Self::default();
        for (key, value) in pairs {
            let Some(property) = PROPERTIES.iter().find(|property| property.key == key) else {
                let known: Vec<String> =
                    PROPERTIES.iter().map(|property| format!("`{}`", property.key)).collect();
                return Err(format!("unknown limit `{key}` (known: {})", known.join(", ")));
            };
            if (property.text)(&tier).is_some() {
                return Err(format!("limit `{key}` is given twice"));
            }
            let expected = property.expected;
            (property.put)(&mut tier, value)
                .ok_or_else(|| format!("limit `{key}` is `{value}` (expected {expected})"))?;
        }
        match tier.contradiction() {
            Some(problem) => Err(problem),
            None => Ok(tier),
        }
    }

    fn contradiction(&self) -> Option<String> {
        if self.neighbour_cpu.is_some() && self.neighbour.is_none() {
            return Some(
                "limit `neighbour_cpu` needs `neighbour`, as in `neighbour=2s/10s`".into(),
            );
        }
        let (quota, cpus) = (self.quota?, self.cpus?);
        (quota > f64::from(cpus)).then(|| {
            format!("limit `quota` is `{quota}` (expected at most `cpus`, which are {cpus})")
        })
    }

    /// True if it limits nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if clients reach the server through a network of its own, not by a Unix socket.
    pub fn has_network(&self) -> bool {
        self.bandwidth_mbit.is_some() || self.distance_ns.is_some()
    }

    /// `busy for 2 s of every 10 s on the server's CPU`; `None` without a neighbour.
    fn neighbour_words(&self) -> Option<String> {
        let Neighbour { busy_ns, every_ns } = self.neighbour?;
        let place = match self.neighbour_cpu.unwrap_or(NeighbourCpu::Same) {
            NeighbourCpu::Same => "on the server's CPU",
            NeighbourCpu::Other => "on another CPU",
        };
        let (busy, every) = (format_ns(busy_ns as f64), format_ns(every_ns as f64));
        Some(format!("busy for {busy} of every {every} {place}"))
    }
}

/// For people: `256 MiB of memory, 1 CPU, 100 Mbit/s in each direction`.
impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = PROPERTIES.iter().filter_map(|property| (property.words)(self));
        f.write_str(&words.collect::<Vec<_>>().join(", "))
    }
}

impl NeighbourCpu {
    const ALL: [Self; 2] = [Self::Same, Self::Other];

    fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Other => "other",
        }
    }
}

impl FromStr for Neighbour {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (busy, every) = text.split_once('/').ok_or(())?;
        let [busy_ns, every_ns] = [busy, every].map(|part| parse_duration_ns(part).unwrap_or(0));
        let is_good = (1..=every_ns).contains(&busy_ns) && every_ns <= EVERY_NS_MAX;
        is_good.then_some(Self { busy_ns, every_ns }).ok_or(())
    }
}

fn set<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
    *place = Some(value?);
    Some(())
}

fn within<N: FromStr + PartialOrd>(text: &str, range: &RangeInclusive<N>) -> Option<N> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// A value of a study's table: a text or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Count(u64),
    Number(f64),
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl TryFrom<BTreeMap<String, Scalar>> for Tier {
    type Error = String;

    fn try_from(table: BTreeMap<String, Scalar>) -> Result<Self, String> {
        let table: Vec<_> =
            table.into_iter().map(|(key, value)| (key, value.to_string())).collect();
        Self::of(table.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }
}

impl From<Tier> for BTreeMap<String, String> {
    fn from(tier: Tier) -> Self {
        let text = |property: &TierProperty| Some((property.key.into(), (property.text)(&tier)?));
        PROPERTIES.iter().filter_map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "memory=250MB,cpus=2,quota=0.5,bandwidth_mbit=100,connections=256,\
                       distance=500us,neighbour=2s/10s,neighbour_cpu=other";

    #[test]
    fn every_property_is_parsed_stored_and_told() {
        let tier = Tier::parse(ALL).unwrap();
        assert_eq!(
            tier.to_string(),
            "238 MiB of memory, 2 CPUs, 0.5 CPUs of CPU time, 100 Mbit/s in each direction, 256 \
             connections, 500 µs added to each round trip, a neighbour busy for 2.00 s of every \
             10.0 s on another CPU"
        );
        let stored = serde_json::to_string(&tier).unwrap();
        assert_eq!(serde_json::from_str::<Tier>(&stored).unwrap(), tier, "{stored}");
        let of_study: Tier = toml::from_str(
            "memory = \"250MB\"\ncpus = 2\nquota = 0.5\nbandwidth_mbit = 100\nconnections = 256\n\
             distance = \"500us\"\nneighbour = \"2s/10s\"\nneighbour_cpu = \"other\"",
        )
        .unwrap();
        assert_eq!(of_study, tier);
        assert!(PROPERTIES.iter().all(|property| (property.text)(&tier).is_some()));
    }

    #[test]
    fn wrong_limits_are_named() {
        let refused = |text: &str| Tier::parse(text).unwrap_err();
        for (text, problem) in [
            ("C0", "`C0` is not a limit (expected a tier of the study, or limits as in "),
            ("", "`` is not a limit"),
            ("ram=1GiB", "unknown limit `ram` (known: `memory`, `cpus`, "),
            ("memory=1MiB", "limit `memory` is `1MiB` (expected 64MiB to 1TiB"),
            ("cpus=0", "limit `cpus` is `0` (expected 1 to 1024 CPUs)"),
            ("cpus=1,cpus=2", "limit `cpus` is given twice"),
            ("quota=nan", "limit `quota` is `nan`"),
            ("cpus=1,quota=1.5", "limit `quota` is `1.5` (expected at most `cpus`, which are 1)"),
            ("bandwidth_mbit=0.1", "limit `bandwidth_mbit` is `0.1`"),
            ("distance=2s", "limit `distance` is `2s` (expected a round-trip time of 1us to 1s"),
            ("neighbour=3s/2s", "limit `neighbour` is `3s/2s`"),
            ("neighbour_cpu=same", "limit `neighbour_cpu` needs `neighbour`"),
        ] {
            assert!(refused(text).starts_with(problem), "{text}: {}", refused(text));
        }
    }
}
