//! Formatting of numbers and names: [`stats::units`] for the values of a view.

use model::{Counts, ErrorClass, Silence, Workload};
use stats::interval::blocks_without_assumptions;
use stats::units::{
    Unit, format_bytes, format_ns, format_percent, format_rate, format_ratio,
    format_value_with_interval,
};

use crate::distribution::CONFIDENCE;
use crate::view::Value;

/// `0.1 %`.
pub(crate) fn percent(share: f64) -> String {
    format_percent(share)
}

/// `+12 %`, `−3 %`.
pub(crate) fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

/// `99.9 %`; 100 % only if the share is exactly 1.
pub(crate) fn share_of_all(share: f64) -> String {
    match format_percent(share).as_str() {
        "100 %" if share < 1.0 => "<100 %".into(),
        text => text.into(),
    }
}

/// `12.3 µs`.
pub(crate) fn ns(ns: f64) -> String {
    format_ns(ns)
}

/// The longest time without an answer: `1.41 s`, or `< 100 ms` if none is long enough to be
/// recorded.
pub(crate) fn silence(longest_ns: f64) -> String {
    if longest_ns > 0.0 {
        return ns(longest_ns);
    }
    format!("< {}", ns(Silence::SHORTEST_NS as f64))
}

/// `12.3 µs`, or `≥ 5 s`.
pub(crate) fn time(value: &Value) -> String {
    if value.at_least { format!("≥ {}", ns(value.center)) } else { ns(value.center) }
}

/// `12.3 k/s`.
pub(crate) fn rate(per_s: f64) -> String {
    format_rate(per_s)
}

/// `1.33×`.
pub(crate) fn ratio(ratio: f64) -> String {
    format_ratio(ratio)
}

/// `42 s`, from 90 s on `1 min 30 s`.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 90.0 {
        return format!("{seconds:.0} s");
    }
    let seconds = seconds.round() as u64;
    format!("{} min {} s", seconds / 60, seconds % 60)
}

/// `1.33× [1.21, 1.47]`; without an interval, the ratio alone.
pub(crate) fn ratio_value(value: &Value) -> String {
    format_value_with_interval(Unit::Ratio, value.center, bounds(value))
}

/// `0.98 [0.91, 1.04]`; without an interval, the number alone.
pub(crate) fn exponent_value(value: &Value) -> String {
    with_bounds(value, |exponent| format!("{exponent:.2}"))
}

/// `3.4 clients [2.9, 4.1]`; without an interval, the number alone.
pub(crate) fn clients_value(value: &Value) -> String {
    let shown = format!("{:.1} clients", value.center);
    match (value.lo, value.hi) {
        (Some(lo), Some(hi)) => format!("{shown} [{lo:.1}, {hi:.1}]"),
        (Some(lo), None) => format!("{shown} [{lo:.1}, more]"),
        _ => shown,
    }
}

/// `12.3 k/s [11.9, 12.8]`; without an interval, the rate alone.
pub(crate) fn rate_value(value: &Value) -> String {
    format_value_with_interval(Unit::PerSecond, value.center, bounds(value))
}

/// `12.3 k/s ±4.1 %` by the farther end, or `12.3 k/s −14/+33 %` if the interval is wide and
/// asymmetric; without an interval, the rate alone. Widths above 100 % are not shown exactly.
pub(crate) fn rate_value_short(value: &Value) -> String {
    rate(value.center) + &half_width(value)
}

/// `12.3 µs [11.9, 12.8]`; without an interval, the time alone.
pub(crate) fn ns_value(value: &Value) -> String {
    if value.at_least {
        return time(value);
    }
    format_value_with_interval(Unit::Ns, value.center, bounds(value))
}

/// `12.3 µs ±4.1 %`, as [`rate_value_short`].
pub(crate) fn ns_value_short(value: &Value) -> String {
    time(value) + &half_width(value)
}

fn half_width(value: &Value) -> String {
    let Some((lo, hi)) = bounds(value) else { return String::new() };
    let (down, up) = (1.0 - lo / value.center, hi / value.center - 1.0);
    let side = |share: f64| match share * 100.0 {
        percent if percent > 100.0 => ">100".into(),
        percent => format!("{percent:.0}"),
    };
    match down.max(up) {
        half if half >= WIDE && (down - up).abs() > SYMMETRIC * half => {
            format!(" −{}/+{} %", side(down), side(up))
        }
        half if half > 1.0 => " ±>100 %".into(),
        half => format!(" ±{}", percent(half)),
    }
}

/// Name of the ends with fewer blocks than an interval needs.
pub(crate) const RANGE: &str = "range of blocks";

/// The two sides of an interval are shown separately if the longer one is at least `WIDE` of the
/// centre and they differ by more than `SYMMETRIC` of the longer one.
const WIDE: f64 = 0.1;
const SYMMETRIC: f64 = 0.25;

/// What the printed bounds of a rate are called, given the number of blocks.
pub(crate) fn ends_name(blocks: u32) -> &'static str {
    let need = blocks_without_assumptions(1.0 - CONFIDENCE);
    if (blocks as usize) < need { RANGE } else { "95 % interval" }
}

/// Both displayed ends, if the value has them.
pub(crate) fn bounds(value: &Value) -> Option<(f64, f64)> {
    Some((value.lo?, value.hi?))
}

/// Rounded to three significant digits, with thousands separators: `123,000`; below 10 to two
/// digits: `5.4`, `0.32`.
pub(crate) fn grouped(rate: f64) -> String {
    if rate < 9.95 {
        let scale = if rate < 0.995 { 100.0 } else { 10.0 };
        return ((rate * scale).round() / scale).to_string();
    }
    let step = 10_f64.powi((rate.max(1.0).log10().floor() as i32 - 2).max(0));
    commas(((rate / step).round() * step) as u64)
}

/// With commas as thousands separators.
pub(crate) fn commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 more line`, `7 more lines`.
pub(crate) fn more_lines(count: usize) -> String {
    format!("{count} more line{}", if count == 1 { "" } else { "s" })
}

/// Name of a workload's items.
pub(crate) fn things(workload: &Workload) -> &'static str {
    match workload {
        Workload::Sessions(_) => "sessions",
        Workload::Kv(_) => "keys",
        Workload::AppCache(_) => "records",
        Workload::CacheAside(_) => "rows",
    }
}

/// The classes of failed operations, the most frequent first.
pub(crate) fn classes(counts: &Counts) -> String {
    let mut classes: Vec<(&ErrorClass, &u64)> = counts.errors_by_class.iter().collect();
    if classes.is_empty() {
        return "no error class was recorded".into();
    }
    classes.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let named = |(class, n): &(&ErrorClass, &u64)| match counts.error_examples.get(class) {
        Some(example) => format!("{n} {class} (such as: {example})"),
        None => format!("{n} {class}"),
    };
    classes.iter().map(named).collect::<Vec<_>>().join(", ")
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A number in the unit that its name ends in: `_ns`, `_per_s`, `_share`, `bytes`.
pub(crate) fn named(name: &str, value: f64) -> String {
    match name {
        _ if name.ends_with("_ns") || name.contains("_ns_") => ns(value),
        _ if name.ends_with("_per_s") => rate(value),
        _ if name.ends_with("_share") => percent(value),
        _ if name.contains("bytes") => format_bytes(value.round() as u64),
        _ if name.ends_with("_per_op") => per_operation(value),
        _ => commas(value.round() as u64),
    }
}

/// A value with its bounds, each formatted alike.
pub(crate) fn with_bounds(value: &Value, number: impl Fn(f64) -> String) -> String {
    match bounds(value) {
        Some((lo, hi)) => format!("{} [{}, {}]", number(value.center), number(lo), number(hi)),
        None => number(value.center),
    }
}

/// An amount per operation with two significant digits: `0`, `0.0021`, `3.4`, `32`.
pub(crate) fn per_operation(amount: f64) -> String {
    if amount <= 0.0 {
        return "0".into();
    }
    let decimals = (1 - amount.log10().floor() as i32).clamp(0, 9);
    format!("{amount:.*}", decimals as usize)
}

/// A published figure: `180,000` or `2.5`.
pub(crate) fn published(number: f64) -> String {
    if number.fract() == 0.0 { commas(number as u64) } else { number.to_string() }
}
