//! Keys of `--set`. Each is declared once, with its values on the command line and in a file.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use toml::Value;
use toml::de::{DeTable, ValueDeserializer};

use super::{Fault, StudyError};

/// A key: its name and the function that sets a value of all scales (`V`) or of one scale (`S`). An
/// error names the expected values.
pub(super) struct Key<V, S>(
    pub(super) &'static str,
    pub(super) fn(&mut V, &mut S, &str) -> Result<(), String>,
);

/// Range of pauses, milliseconds.
pub(super) const THINK_MS: RangeInclusive<f64> = 0.0..=60_000.0;
/// Range of value sizes, bytes.
pub(super) const VALUE_BYTES: RangeInclusive<usize> = 32..=16 << 20;
/// Maximum threads of the generator.
pub(super) const THREADS_MAX: u32 = 1_024;

/// Sets a key; `None` if no key has this name. An error names the expected values.
pub(super) fn set<V, S>(
    keys: &[Key<V, S>],
    (values, size): (&mut V, &mut S),
    (name, text): (&str, &str),
) -> Option<Result<(), String>> {
    keys.iter().find(|key| key.0 == name).map(|key| key.1(values, size, text))
}

/// Finds the first value that `--set` would reject, in the tables at the given paths of a file.
pub(super) fn fault<V, S>(
    keys: &[Key<V, S>],
    (values, size): (&mut V, &mut S),
    document: &DeTable<'_>,
    paths: [&[&str]; 2],
) -> Option<Fault> {
    let inner = |table, name: &&str| DeTable::get(table, *name)?.get_ref().as_table();
    let tables = paths.into_iter().filter_map(|path| path.iter().try_fold(document, inner));
    tables.flatten().find_map(|(name, value)| {
        let at = value.span().start;
        let text = as_typed(&Value::deserialize(ValueDeserializer::from(value.clone())).ok()?);
        let expected = set(keys, (values, size), (name.get_ref(), &text))?.err()?;
        let problem = format!("{name} `{text}` is invalid (expected {expected})");
        Some((at, problem))
    })
}

/// A value in the syntax of `--set`.
fn as_typed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(as_typed).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Stores a value; if it is `None`, the error names the expected values.
pub(super) fn put<T>(place: &mut T, value: Option<T>, expected: &str) -> Result<(), String> {
    *place = value.ok_or(expected)?;
    Ok(())
}

/// Parses and stores a number within a range; an error shows the range with its unit.
pub(super) fn number<T: FromStr + PartialOrd + Display>(
    place: &mut T,
    text: &str,
    range: RangeInclusive<T>,
    unit: &str,
) -> Result<(), String> {
    let expected = format!("{} to {} {unit}", range.start(), range.end());
    put(place, within(text, &range), expected.trim_end())
}

/// Parses a value by its name in files.
pub(super) fn named<T: DeserializeOwned>(text: &str) -> Option<T> {
    Value::from(text).try_into().ok()
}

/// Parses comma-separated numbers.
pub(super) fn list<T: FromStr + PartialOrd>(
    text: &str,
    range: &RangeInclusive<T>,
) -> Option<Vec<T>> {
    text.split(',').map(|number| within(number, range)).collect()
}

/// Parses a number within a range.
pub(super) fn within<T: FromStr + PartialOrd>(text: &str, range: &RangeInclusive<T>) -> Option<T> {
    let text = text.trim();
    let plain = stats::parse_count(text).map_or_else(|_| text.to_string(), |n| n.to_string());
    plain.parse().ok().filter(|number| range.contains(number))
}

pub(super) fn bad(key: &str, value: &str, expected: &str) -> StudyError {
    StudyError::Choice(format!("--set {key}=`{value}` is invalid (expected {expected})"))
}
