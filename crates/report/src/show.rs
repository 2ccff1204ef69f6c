//! Numbers as people read them: [`stats::units`] for the view's own values.

use stats::units::{
    Unit, format_ns, format_percent, format_rate, format_ratio, format_value_with_interval,
};

use crate::view::{Time, Value};

/// `0.1 %`.
pub(crate) fn percent(share: f64) -> String {
    format_percent(share)
}

/// `+12 %`, `−3 %`.
pub(crate) fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

/// `99.9 %`, and 100 % only where it is all.
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

/// `12.3 µs`, or `≥ 5 s`.
pub(crate) fn time(value: &Value) -> String {
    if value.at_least { at_least(value.center) } else { ns(value.center) }
}

/// The same of a time without an interval.
pub(crate) fn bare_time(time: Time) -> String {
    match time {
        Time::Of(of) => ns(of as f64),
        Time::Bound { at_least } => self::at_least(at_least as f64),
    }
}

fn at_least(bound: f64) -> String {
    format!("≥ {}", ns(bound))
}

/// `12.3 k/s`.
pub(crate) fn rate(per_s: f64) -> String {
    format_rate(per_s)
}

/// `1.33×`.
pub(crate) fn ratio(ratio: f64) -> String {
    format_ratio(ratio)
}

/// `1.33× [1.21, 1.47]`; without an interval, the ratio alone.
pub(crate) fn ratio_value(value: &Value) -> String {
    format_value_with_interval(Unit::Ratio, value.center, bounds(value))
}

/// `12.3 k/s [11.9, 12.8]`; without an interval, the rate alone.
pub(crate) fn rate_value(value: &Value) -> String {
    format_value_with_interval(Unit::PerSecond, value.center, bounds(value))
}

/// `12.3 k/s ±4.1 %`, by the farther end; without an interval, the rate alone. Beyond 100 % the
/// exact width says nothing more.
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
    match (value.center - lo).max(hi - value.center) / value.center {
        half if half > 1.0 => " ±>100 %".into(),
        half => format!(" ±{}", percent(half)),
    }
}

/// Both ends of the interval, where it has them.
pub(crate) fn bounds(value: &Value) -> Option<(f64, f64)> {
    Some((value.lo?, value.hi?))
}
