//! Sizes of the data sets of a profile that measures several.

use crate::plan::{Kv, Workload};

/// Size of the data set of one of a profile's workloads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeOfData<'a> {
    /// Name of the profile, without a size.
    pub profile: &'a str,
    /// Records or keys.
    pub records: u64,
    /// Mean number of records of a tag; `None` without tags.
    pub records_of_tag: Option<f64>,
    /// Data as a multiple of the memory; `None` for sizes in records.
    pub of_memory: Option<f64>,
}

impl Workload {
    /// Size of the data set of a profile that measures several sizes; `None` for other profiles.
    pub fn data_size(&self) -> Option<SizeOfData<'_>> {
        match self {
            Self::AppCache(cache) => Some(SizeOfData {
                profile: cache.sizes_of.as_deref()?,
                records: cache.keys,
                records_of_tag: Some(cache.records_of_tag()),
                of_memory: None,
            }),
            Self::Kv(kv) => {
                let (profile, of_memory) = kv.amount_of_data()?;
                Some(SizeOfData {
                    profile,
                    records: kv.keys,
                    records_of_tag: None,
                    of_memory: Some(of_memory),
                })
            }
            Self::Sessions(_) | Self::CacheAside(_) => None,
        }
    }
}

impl Kv {
    /// Name of the study's profile, without the values of its lists, which follow it as in
    /// `swap-1.5` or `grid-1024B-P50`.
    pub(crate) fn study_profile(&self) -> &str {
        let mut name = self.profile.as_str();
        while let Some((rest, last)) = name.rsplit_once('-')
            && is_value(last)
        {
            name = rest;
        }
        name
    }

    /// Name of the study's profile, and its data as a multiple of the memory; `None` for a profile
    /// with one amount.
    fn amount_of_data(&self) -> Option<(&str, f64)> {
        let profile = self.study_profile();
        let values = self.profile.strip_prefix(profile)?.strip_prefix('-')?;
        let first = values.split('-').next()?;
        Some((profile, first.parse().ok().filter(|_| self.memory.is_some())?))
    }
}

/// True for an amount of data, a size of values and a number of requests at once.
fn is_value(part: &str) -> bool {
    let is_whole = |text: &str| text.parse::<u64>().is_ok();
    part.parse::<f64>().is_ok()
        || part.strip_suffix('B').is_some_and(is_whole)
        || part.strip_prefix('P').is_some_and(is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryPlan;

    #[test]
    fn values_of_lists_follow_the_name_of_a_profile() {
        let memory = Some(MemoryPlan { limit_bytes: 1, swap_bytes: 0 });
        let of = |profile: &str| Kv { profile: profile.into(), memory, ..Kv::default() };
        for (profile, own, amount) in [
            ("swap-1.5", "swap", Some(1.5)),
            ("save-swap", "save-swap", None),
            ("grid-1024B-P50", "grid", None),
            ("grid-2-64B", "grid", Some(2.0)),
            ("one-by-one", "one-by-one", None),
        ] {
            let kv = of(profile);
            assert_eq!(kv.study_profile(), own, "{profile}");
            assert_eq!(kv.amount_of_data().map(|(_, amount)| amount), amount, "{profile}");
        }
    }
}
