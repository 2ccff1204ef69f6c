//! Lists of data sets by their sizes, so that a run shows how a cost grows with them.

use super::choices::{Choices, Resolved};
use super::wire::{Profile, Study};
use super::{StudyError, quoted_list};
use crate::app_cache::DataSize;
use crate::plan::Scale;

/// Most records and tags of a size.
const MOST: u64 = 100_000_000;
/// By how much records of a tag may differ from size to size and count as the same.
const SAME_WITHIN: f64 = 0.1;

/// Reads `2000x200,20000x2000`: of each size its records and its tags.
pub(super) fn parse(text: &str) -> Option<Vec<DataSize>> {
    let size = |part: &str| {
        let (keys, tags) = part.trim().split_once('x')?;
        Some(DataSize { keys: keys.parse().ok()?, tags: tags.parse().ok()? })
    };
    text.split(',').map(size).collect()
}

/// What makes no sense in a list of sizes whose records have at most `max_tags` tags.
pub(super) fn fault(sizes: &[DataSize], max_tags: u64) -> Option<String> {
    if sizes.len() < 2 {
        return Some("fewer than two sizes show no growth (expected two or more)".into());
    }
    let allowed = 1..=MOST;
    let of_one = sizes.iter().enumerate().find_map(|(i, size)| {
        if !allowed.contains(&size.keys) || !allowed.contains(&size.tags) {
            return Some(format!("size `{size}` (expected 1 to {MOST} records and tags)"));
        }
        if size.tags < max_tags {
            return Some(format!("size `{size}` has fewer tags than max_tags `{max_tags}`"));
        }
        sizes[..i].contains(size).then(|| format!("size `{size}` twice"))
    });
    of_one.or_else(|| {
        let same_keys = sizes.iter().all(|size| size.keys == sizes[0].keys);
        let per_tag = |size: &DataSize| size.keys as f64 / size.tags as f64;
        let per_tags = || sizes.iter().map(per_tag);
        let widest = per_tags().fold(0.0, f64::max) / per_tags().fold(f64::INFINITY, f64::min);
        (!same_keys && widest > 1.0 + SAME_WITHIN).then(|| {
            let names: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            format!(
                "sizes {} change both the records and the records of a tag, so that neither's part \
                 can be told (expected the same number of records, or the same share of tags)",
                quoted_list(names.iter().map(String::as_str))
            )
        })
    })
}

impl Resolved {
    /// The data sets of a profile: its own sizes or those that the user set, else `None` for the
    /// one of `keys` and `tags`.
    pub(super) fn data_sizes(&self, profile: &Profile, scale: Scale) -> Vec<Option<DataSize>> {
        match (profile.sizes.get(&scale), &self.sizes) {
            (None, _) => vec![None],
            (Some(_), Some(set)) => set.iter().copied().map(Some).collect(),
            (Some(own), None) => own.get_ref().iter().copied().map(Some).collect(),
        }
    }

    /// Refuses choices that would do nothing, and sizes that do not fit what else was set.
    pub(super) fn agree_on_sizes(
        &self,
        study: &Study,
        choices: &Choices,
    ) -> Result<(), StudyError> {
        let chosen = study.profiles.iter().filter(|p| self.profiles.contains(p.name.get_ref()));
        let (growing, others): (Vec<_>, Vec<_>) = chosen.partition(|p| !p.sizes.is_empty());
        if self.sizes.is_some() && growing.len() != 1 {
            let all = study.profiles.iter().filter(|p| !p.sizes.is_empty());
            return Err(StudyError::Choice(format!(
                "--set sizes fits `{}` of the chosen profiles (expected one, by --set \
                 profile=NAME; with sizes are: {})",
                growing.len(),
                quoted_list(all.map(|p| p.name.get_ref().as_str()))
            )));
        }
        let set = |key: &&str| choices.sets.iter().any(|(k, _)| k == key);
        if let (Some(key), true) = (["keys", "tags"].into_iter().find(set), others.is_empty()) {
            return Err(StudyError::Choice(format!(
                "--set {key} would change nothing: {} {} (expected --set sizes=RECORDSxTAGS,…)",
                quoted_list(growing.iter().map(|p| p.name.get_ref().as_str())),
                if growing.len() == 1 { "has sizes of its own" } else { "have sizes of their own" }
            )));
        }
        for profile in growing {
            let sizes: Vec<DataSize> =
                self.data_sizes(profile, choices.scale).into_iter().flatten().collect();
            if let Some(problem) = fault(&sizes, self.defaults.max_tags) {
                let name = profile.name.get_ref();
                return Err(StudyError::Choice(format!("--set: profile `{name}`: {problem}")));
            }
        }
        Ok(())
    }
}
