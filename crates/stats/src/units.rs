//! Formatting of numbers with units, and parsing of durations, sizes and counts.
//!
//! All other code uses base units (nanoseconds, per second, bytes, shares). Numbers have three
//! significant digits and a decimal point; NaN prints as `?`, infinity as `∞`. User input is parsed
//! exactly, without floating point.

use std::fmt;

#[cfg(test)]
mod tests;

/// Unit of a number, which determines its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Nanoseconds: `850 ns`, `12.3 µs`, `4.56 ms`, `7.89 s`.
    Ns,
    /// Events per second: `950 /s`, `12.3 k/s`, `4.56 M/s`.
    PerSecond,
    /// Bytes by powers of 1024: `512 B`, `1.5 KiB`, `20 MiB`.
    Bytes,
    /// A ratio: `1.33×`.
    Ratio,
    /// A share, printed as percent: 0.031 is `3.1 %`.
    Share,
}

/// Common scale of a value and its bounds, so that they are easy to compare.
struct Scale {
    /// Divisor.
    by: f64,
    /// Suffix with its leading space.
    suffix: &'static str,
    /// Digits after the decimal point.
    decimals: u8,
    /// True to drop trailing zeros.
    trim: bool,
}

impl Unit {
    /// Factors and suffixes, from small to large.
    fn prefixes(self) -> &'static [(f64, &'static str)] {
        match self {
            Self::Ns => &[(1.0, " ns"), (1e3, " µs"), (1e6, " ms"), (1e9, " s")],
            Self::PerSecond => &[(1.0, " /s"), (1e3, " k/s"), (1e6, " M/s"), (1e9, " G/s")],
            Self::Bytes => &[
                (1.0, " B"),
                (1024.0, " KiB"),
                (1_048_576.0, " MiB"),
                (1_073_741_824.0, " GiB"),
                (1_099_511_627_776.0, " TiB"),
            ],
            Self::Ratio => &[(1.0, "×")],
            Self::Share => &[(0.01, " %")],
        }
    }

    /// The scale that shows `value` with three significant digits.
    fn scale(self, value: f64) -> Scale {
        let prefixes = self.prefixes();
        let trim = matches!(self, Self::Bytes | Self::Share);
        let mut chosen = 0;
        while let Some((next, _)) = prefixes.get(chosen + 1) {
            let (by, _) = prefixes[chosen];
            let shown = round_to(value.abs() / by, decimals_of(value.abs() / by));
            if shown.is_nan() || shown < next / by {
                break;
            }
            chosen += 1;
        }
        let (by, suffix) = prefixes[chosen];
        let decimals = if self == Self::Bytes && chosen == 0 { 0 } else { decimals_of(value / by) };
        Scale { by, suffix, decimals, trim }
    }

    /// Formats `value`, given in the base unit.
    pub fn format(self, value: f64) -> String {
        let scale = self.scale(value);
        format!("{}{}", scale.number(value), scale.suffix)
    }
}

impl Scale {
    /// The number without its suffix.
    fn number(&self, value: f64) -> String {
        if value.is_nan() {
            return "?".into();
        }
        if value.is_infinite() {
            return if value > 0.0 { "∞" } else { "-∞" }.into();
        }
        if value == 0.0 {
            return "0".into();
        }
        self.digits(value / self.by, self.decimals)
    }

    /// A bound of the interval around `center`.
    fn end(&self, value: f64, center: f64) -> String {
        if center == 0.0 || value == 0.0 {
            return self.number(value);
        }
        let factor = value / center;
        match factor.max(factor.recip()) {
            far if far > BOUNDED && factor > 1.0 => {
                format!(">{}", self.own_digits(center * BOUNDED))
            }
            far if far > BOUNDED => format!("<{}", self.own_digits(center / BOUNDED)),
            far if far > NEAR => self.own_digits(value),
            _ => self.number(value),
        }
    }

    /// A number with its own three significant digits.
    fn own_digits(&self, value: f64) -> String {
        let shown = value / self.by;
        self.digits(three_digits(shown), decimals_of(shown))
    }

    fn digits(&self, shown: f64, decimals: u8) -> String {
        let text = format!("{shown:.*}", usize::from(decimals));
        if self.trim && decimals > 0 {
            return text.trim_end_matches('0').trim_end_matches('.').into();
        }
        text
    }
}

/// Rounds `value`, which is above 0, to three significant digits.
fn three_digits(value: f64) -> f64 {
    let power = 10f64.powf(2.0 - value.log10().floor());
    (value * power).round() / power
}

/// Rounds `value` to `decimals` digits after the decimal point.
fn round_to(value: f64, decimals: u8) -> f64 {
    let power = 10f64.powi(i32::from(decimals));
    (value * power).round() / power
}

/// Digits after the decimal point for three significant digits: none from 100 up, at most eight.
fn decimals_of(value: f64) -> u8 {
    let value = value.abs();
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    // Count digits after rounding: 9.996 needs one decimal less than 9.99.
    let three_digits = |d: &u8| round_to(value, *d) < 10f64.powi(3 - i32::from(*d));
    (0..=8).rev().find(three_digits).unwrap_or(0)
}

/// Nanoseconds: `850 ns`, `12.3 µs`, `4.56 ms`, `7.89 s`.
pub fn format_ns(ns: f64) -> String {
    Unit::Ns.format(ns)
}

/// Events per second: `950 /s`, `12.3 k/s`, `4.56 M/s`.
pub fn format_rate(per_s: f64) -> String {
    Unit::PerSecond.format(per_s)
}

/// Bytes by powers of 1024: `512 B`, `1.5 KiB`, `20 MiB`.
pub fn format_bytes(bytes: u64) -> String {
    Unit::Bytes.format(bytes as f64)
}

/// A ratio: `1.33×`.
pub fn format_ratio(ratio: f64) -> String {
    Unit::Ratio.format(ratio)
}

/// A share as percent: 0.031 is `3.1 %`.
pub fn format_percent(share: f64) -> String {
    Unit::Share.format(share)
}

/// Maximum factor between the center and a printed bound. Beyond it, the blocks do not bound the
/// value on that side.
pub const BOUNDED: f64 = 100.0;

/// Maximum factor at which a bound uses the scale of the center; beyond it, the bound has its own
/// three significant digits.
const NEAR: f64 = 10.0;

/// Formats a center with its bounds (lower, upper) in one scale: `12.3 k/s [11.9, 12.8]`, or the
/// center alone without bounds. A bound beyond a factor of [`BOUNDED`] prints as that factor with
/// `<` or `>`: `33.9× [<0.339, >3390]`.
pub fn format_value_with_interval(unit: Unit, center: f64, bounds: Option<(f64, f64)>) -> String {
    let scale = unit.scale(center);
    let shown = format!("{}{}", scale.number(center), scale.suffix);
    match bounds {
        None => shown,
        Some((lo, hi)) => {
            format!("{shown} [{}, {}]", scale.end(lo, center), scale.end(hi, center))
        }
    }
}

/// Error of parsing a duration, size or count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a duration.
    #[error(
        "`{0}` is not a duration, expected numbers with ns, us, ms, s, m, h or d, the largest \
         first: for example 250ms, 90s or 1h30m"
    )]
    Duration(String),
    /// Not a size.
    #[error(
        "`{0}` is not a size in bytes, expected a number with B, KiB, MiB, GiB or TiB (1024), or \
         kB, MB, GB or TB (1000): for example 1500, 1KiB or 2MB"
    )]
    Bytes(String),
    /// Not a count.
    #[error(
        "`{0}` is not a count, expected a whole number, or a number with k, M or G: for example \
         50000, 20k or 1.5M"
    )]
    Count(String),
    /// Does not fit in 64 bits.
    #[error("`{text}` is too large, expected at most {limit}")]
    TooLarge {
        /// The input.
        text: String,
        /// The limit, with its unit.
        limit: Limit,
    },
}

/// The largest duration or size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// 2⁶⁴ − 1 nanoseconds.
    Duration,
    /// 2⁶⁴ − 1 bytes.
    Bytes,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duration => "213503d",
            Self::Bytes => "16777215TiB",
        })
    }
}

/// Parses a duration such as `250ms`, `5m`, `1.5s` or `1h30m` to nanoseconds.
///
/// Units are `ns`, `us` or `µs`, `ms`, `s`, `m` or `min`, `h`, `d`, in descending order; fractions
/// of a nanosecond are dropped. A number without a unit is an error; `0s` is valid.
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    let wrong = || UnitError::Duration(text.to_owned());
    let too_large = || UnitError::TooLarge { text: text.to_owned(), limit: Limit::Duration };
    let mut rest = text.trim();
    let mut last_unit = u64::MAX;
    let mut total: u64 = 0;
    while !rest.is_empty() || last_unit == u64::MAX {
        let (number, unit, after) = split_part(rest).ok_or_else(wrong)?;
        let unit_ns = ns_of(unit).filter(|ns| *ns < last_unit).ok_or_else(wrong)?;
        let part = number.times(unit_ns).ok_or_else(too_large)?;
        total = total.checked_add(part).ok_or_else(too_large)?;
        (rest, last_unit) = (after, unit_ns);
    }
    Ok(total)
}

/// Parses a size such as `1500`, `1KiB` or `2MB` to bytes; without a unit it is in bytes.
///
/// `KiB`, `MiB`, `GiB`, `TiB` are powers of 1024; `kB`, `MB`, `GB`, `TB` of 1000, in upper or lower
/// case. `1K` is an error because it is ambiguous. Fractions of a byte are dropped.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let wrong = || UnitError::Bytes(text.to_owned());
    let (number, unit, after) = split_part(text.trim()).ok_or_else(wrong)?;
    let unit_bytes = bytes_of(unit).filter(|_| after.is_empty()).ok_or_else(wrong)?;
    number
        .times(unit_bytes)
        .ok_or_else(|| UnitError::TooLarge { text: text.to_owned(), limit: Limit::Bytes })
}

/// Parses a count such as `50000`, `20k` or `1.5M`: of requests, keys, or operations per second.
///
/// `k`, `M` and `G` are powers of 1000. A count is an integer: `1.5` and `0.0001k` are errors.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let wrong = || UnitError::Count(text.to_owned());
    let (number, unit, after) = split_part(text.trim()).ok_or_else(wrong)?;
    let one: u64 = match unit {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let decimals = one.ilog10() as usize;
    if !after.is_empty() || number.fraction.trim_end_matches('0').len() > decimals {
        return Err(wrong());
    }
    number.times(one).ok_or_else(wrong)
}

/// Nanoseconds per unit of time.
fn ns_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    })
}

/// Bytes per unit of size.
fn bytes_of(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    })
}

/// An exact decimal number.
struct Decimal<'a> {
    /// Digits before the decimal point, at least one.
    whole: &'a str,
    /// Digits after the decimal point; empty without a point.
    fraction: &'a str,
}

impl Decimal<'_> {
    /// The number times `unit`, rounded down; `None` if it exceeds 64 bits.
    fn times(&self, unit: u64) -> Option<u64> {
        let whole = self.whole.parse::<u64>().ok()?.checked_mul(unit)?;
        // `unit` is below 2⁴⁷, so digits after the eighteenth do not matter.
        let digits = &self.fraction[..self.fraction.len().min(18)];
        let fraction = digits.parse::<u128>().unwrap_or(0) * u128::from(unit);
        whole.checked_add((fraction / 10u128.pow(digits.len() as u32)) as u64)
    }
}

/// Splits `text` into a number, its unit and the rest; a space between number and unit is allowed.
/// `None` if it does not start with a number, or a decimal point lacks digits on one side.
fn split_part(text: &str) -> Option<(Decimal<'_>, &str, &str)> {
    let digits = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    let (whole, mut rest) = text.split_at(digits(text));
    let mut fraction = "";
    if let Some(after_point) = rest.strip_prefix('.') {
        (fraction, rest) = after_point.split_at(digits(after_point));
        if fraction.is_empty() {
            return None;
        }
    }
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let (unit, after) = rest.split_at(end);
    (!whole.is_empty()).then_some((Decimal { whole, fraction }, unit, after))
}

/// Appends a decimal number without leading zeros.
#[inline]
pub fn append_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
