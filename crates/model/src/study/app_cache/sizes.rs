//! Lists of data-set sizes, over which a run measures how costs grow.

use std::collections::BTreeMap;

use super::tables::{COUNT, Defaults, Profile, RECORD};
use crate::app_cache::DataSize;
use crate::plan::Scale;
use crate::study::planning::{Run, WorkloadTables};
use crate::study::{Fault, StudyError, quoted_list};

/// Tolerance within which the records per tag of two sizes count as equal.
const SAME_WITHIN: f64 = 0.1;

/// Expected format, for errors.
pub(super) const EXPECTED: &str = "numbers of records and tags, as in `2000x200,20000x2000`";

/// Parses `2000x200,20000x2000`: records and tags of each size.
pub(super) fn parse(text: &str) -> Option<Vec<DataSize>> {
    let size = |part: &str| {
        let (keys, tags) = part.trim().split_once('x')?;
        Some(DataSize { keys: keys.parse().ok()?, tags: tags.parse().ok()? })
    };
    text.split(',').map(size).collect()
}

/// Returns why a list of sizes is invalid, if so; records have at most `max_tags` tags.
fn fault(sizes: &[DataSize], max_tags: u64) -> Option<String> {
    if sizes.len() < 2 {
        return Some("growth needs at least two sizes (expected two or more)".into());
    }
    let of_one = sizes.iter().enumerate().find_map(|(i, size)| {
        if !COUNT.contains(&size.keys) || !COUNT.contains(&size.tags) {
            return Some(format!("size `{size}` (expected 1 to {} records and tags)", COUNT.end()));
        }
        if size.tags < max_tags {
            return Some(format!("size `{size}` has fewer tags than max_tags `{max_tags}`"));
        }
        sizes[..i].contains(size).then(|| format!("duplicate size `{size}`"))
    });
    of_one.or_else(|| {
        let same_keys = sizes.iter().all(|size| size.keys == sizes[0].keys);
        let per_tag = |size: &DataSize| size.keys as f64 / size.tags as f64;
        let per_tags = || sizes.iter().map(per_tag);
        let widest = per_tags().fold(0.0, f64::max) / per_tags().fold(f64::INFINITY, f64::min);
        (!same_keys && widest > 1.0 + SAME_WITHIN).then(|| {
            let names: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            format!(
                "sizes {} vary both the number of records and the records per tag, so their \
                 effects cannot be separated (expected to vary only one of them)",
                quoted_list(names.iter().map(String::as_str))
            )
        })
    })
}

/// The data sets of a profile: the sizes that the user set, or else its own. A profile without
/// sizes has one entry, `None`, which stands for `keys` and `tags`.
pub(super) fn of(profile: &Profile, run: &Run<'_, Defaults>) -> Vec<Option<DataSize>> {
    match (profile.sizes.get(&run.choices.scale), &run.defaults.sizes) {
        (None, _) => vec![None],
        (Some(_), Some(set)) => set.iter().copied().map(Some).collect(),
        (Some(own), None) => own.get_ref().iter().copied().map(Some).collect(),
    }
}

/// Says which scale of the study lacks a value that a profile has for others.
fn missing<T>(
    key: &str,
    by_scale: &BTreeMap<Scale, T>,
    own: &WorkloadTables<Defaults>,
) -> Option<String> {
    let scale = own.scales.keys().find(|scale| !by_scale.contains_key(*scale));
    let scale = scale.filter(|_| !by_scale.is_empty())?;
    Some(format!("has no {key} for scale `{}`", scale.name()))
}

/// Finds a list of sizes that cannot show growth, or a value by scale that lacks one.
pub(super) fn fault_in_file(profile: &Profile, own: &WorkloadTables<Defaults>) -> Option<Fault> {
    let missing = missing("sizes", &profile.sizes, own)
        .or_else(|| missing("keys", &profile.keys, own))
        .or_else(|| missing("memory_limit", &profile.memory_limit, own));
    if let Some(problem) = missing {
        let name = profile.name.get_ref();
        return Some((profile.name.span().start, format!("profile `{name}` {problem}")));
    }
    if let Some(keys) = profile.keys.values().find(|keys| !COUNT.contains(keys.get_ref())) {
        let problem = format!("`keys` is {} (expected 1 to {})", keys.get_ref(), COUNT.end());
        return Some((keys.span().start, problem));
    }
    if let Some(bytes) = &profile.record_bytes {
        let (min, max) = bytes.get_ref();
        if !RECORD.contains(min) || !RECORD.contains(max) || min > max {
            let problem = format!(
                "`record_bytes` is {min} to {max} (expected 1 <= min <= max <= {})",
                RECORD.end()
            );
            return Some((bytes.span().start, problem));
        }
    }
    profile.sizes.values().find_map(|list| {
        let problem = fault(list.get_ref(), own.defaults.max_tags)?;
        Some((list.span().start, problem))
    })
}

/// Rejects choices without effect, and sizes that conflict with other choices.
pub(super) fn check(run: &Run<'_, Defaults>) -> Result<(), StudyError> {
    let names = |profiles: &[&Profile]| {
        quoted_list(profiles.iter().map(|profile| profile.name.get_ref().as_str()))
    };
    let has_sizes = |profile: &&Profile| !profile.sizes.is_empty();
    let (growing, others): (Vec<_>, Vec<_>) = run.chosen().partition(has_sizes);
    if run.defaults.sizes.is_some() && growing.len() != 1 {
        let all: Vec<&Profile> = run.profiles.iter().filter(has_sizes).collect();
        return Err(StudyError::Choice(format!(
            "--set sizes applies to `{}` of the chosen profiles (expected one: choose it with \
             --set profile=NAME; profiles with sizes: {})",
            growing.len(),
            names(&all)
        )));
    }
    let set = ["keys", "tags"].into_iter().find(|key| run.is_set(key));
    if let (Some(key), true) = (set, others.is_empty()) {
        return Err(StudyError::Choice(format!(
            "--set {key} has no effect: {} {} (expected --set sizes=RECORDSxTAGS,…)",
            names(&growing),
            if growing.len() == 1 { "has its own sizes" } else { "have their own sizes" }
        )));
    }
    for profile in growing {
        let sizes: Vec<DataSize> = of(profile, run).into_iter().flatten().collect();
        if let Some(problem) = fault(&sizes, run.defaults.max_tags) {
            let name = profile.name.get_ref();
            return Err(StudyError::Choice(format!("--set: profile `{name}`: {problem}")));
        }
    }
    Ok(())
}
