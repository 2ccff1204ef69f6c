//! What a trial puts on the disk of a private server, which is checked before anything is created
//! there: swap, a file of values, and the file of a save.

use model::{ErrorClass, Failure, PlannedTarget, Workload};
use rig::FreeSpace;
use stats::format_bytes;
use std::path::Path;

use crate::demand;
use crate::machine::USABLE_TENTHS;

/// memcached's setting for the size of its file of values, MiB.
const VALUES_MIB: &str = "flash";

/// Bytes that a trial needs on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskDemand {
    swap: u64,
    /// Its file of values.
    values: u64,
    /// The file of a save.
    save: u64,
}

impl DiskDemand {
    /// Of a trial with this workload. Errors: its texts cannot be read.
    pub(crate) fn of(target: &PlannedTarget, workload: &Workload) -> Result<Self, Failure> {
        let mib = target.settings.get(VALUES_MIB).and_then(|mib| mib.parse::<u64>().ok());
        let save = match workload {
            Workload::Kv(kv) if kv.actions.iter().any(|action| action.what.writes().is_some()) => {
                (kv.keys as f64 * demand::key_bytes(kv, "")?) as u64
            }
            _ => 0,
        };
        Ok(Self {
            swap: workload.memory().map_or(0, |memory| memory.swap_bytes),
            values: mib.unwrap_or(0).saturating_mul(1 << 20),
            save,
        })
    }

    /// The same with swap on another disk, which is checked when it is created.
    pub(crate) fn without_swap(self) -> Self {
        Self { swap: 0, ..self }
    }

    /// Refuses what does not fit on the disk of a directory; the error gives the sum and a remedy.
    pub(crate) fn fits(self, disk: &Path) -> Result<(), Failure> {
        let free = FreeSpace::on(disk).disk_bytes;
        free.map_or(Ok(()), |free_bytes| self.fits_into(free_bytes, disk))
    }

    fn fits_into(self, free_bytes: u64, disk: &Path) -> Result<(), Failure> {
        let Self { swap, values, save } = self;
        let sum = swap.saturating_add(values).saturating_add(save);
        let usable = free_bytes / 10 * USABLE_TENTHS;
        if sum <= usable {
            return Ok(());
        }
        let parts = [
            (swap, "of swap"),
            (values, "for the file of values"),
            (save, "for the file of a save"),
        ];
        let parts = parts.iter().filter(|(bytes, _)| *bytes > 0);
        let parts: Vec<_> = parts.map(|(b, what)| format!("{} {what}", format_bytes(*b))).collect();
        let message = format!(
            "the disk of `{}` has no room for this trial: it needs {} ({}), but at most {} may be \
             used, 90 % of the free {} (expected more space: `--disk`, or less data: `--set \
             memory`)",
            disk.display(),
            format_bytes(sum),
            parts.join(" + "),
            format_bytes(usable),
            format_bytes(free_bytes)
        );
        Err(Failure { class: ErrorClass::Full, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_and_data_are_added_before_anything_is_written() {
        let (mib, disk) = (1 << 20, Path::new("/srv"));
        let demand = DiskDemand { swap: 600 * mib, values: 0, save: 350 * mib };
        assert_eq!(demand.fits_into(1100 * mib, disk), Ok(()));
        let refused = demand.fits_into(1000 * mib, disk).unwrap_err();
        assert_eq!(refused.class, ErrorClass::Full);
        let expected = "it needs 950 MiB (600 MiB of swap + 350 MiB for the file of a save), but \
                        at most 900 MiB may be used, 90 % of the free 1000 MiB";
        assert!(refused.message.contains(expected), "{refused}");
        assert_eq!(DiskDemand::default().fits_into(0, disk), Ok(()));
    }
}
