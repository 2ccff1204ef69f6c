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
    /// Name of the profile, and its data as a multiple of the memory, as in `swap-1.5`; `None` for
    /// a profile with one amount.
    pub(crate) fn amount_of_data(&self) -> Option<(&str, f64)> {
        let (profile, amount) = self.profile.rsplit_once('-')?;
        Some((profile, amount.parse().ok().filter(|_| self.memory.is_some())?))
    }
}
