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
}

impl Workload {
    /// Size of the data set of a profile that measures several sizes; `None` for other profiles.
    pub fn data_size(&self) -> Option<SizeOfData<'_>> {
        match self {
            Self::AppCache(cache) => Some(SizeOfData {
                profile: cache.sizes_of.as_deref()?,
                records: cache.keys,
                records_of_tag: Some(cache.records_of_tag()),
            }),
            Self::Kv(kv) => Some(SizeOfData {
                profile: kv.amount_of()?,
                records: kv.keys,
                records_of_tag: None,
            }),
            Self::Sessions(_) | Self::CacheAside(_) => None,
        }
    }
}

impl Kv {
    /// Name of the profile without its amount of data, as in `swap-1.5`; `None` for a profile with
    /// one amount.
    pub(crate) fn amount_of(&self) -> Option<&str> {
        let (profile, amount) = self.profile.rsplit_once('-')?;
        (self.memory.is_some() && amount.parse::<f64>().is_ok()).then_some(profile)
    }
}
