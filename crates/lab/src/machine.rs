//! Free memory and disk of a machine, this one or that of `--rig-on`. Without memory the kernel
//! kills programs, and on a full disk writes of all programs fail. So the private servers and files
//! of a run may use at most [`USABLE_TENTHS`] of what was free at its start; [`crate::room`] holds
//! existing servers to the same limit.

use model::{ErrorClass, Failure, Product};
use rig::FreeSpace;
use stats::format_bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::demand::Demand;
use crate::fleet::RigOn;

/// Tenths of a server's memory, and of what this machine has free, that may be in use.
pub(crate) const USABLE_TENTHS: u64 = 9;

/// Free memory and disk of a machine before the run wrote anything.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    disk: PathBuf,
    before: FreeSpace,
    /// The worker on it; `None` for this machine.
    elsewhere: Option<Arc<RigOn>>,
}

/// The usable part of what was free before.
fn usable(before: u64) -> u64 {
    before / 10 * USABLE_TENTHS
}

impl Machine {
    /// Reads the current state, with the disk of a directory.
    pub(crate) fn now(disk: &Path) -> Self {
        Self { disk: disk.to_path_buf(), before: FreeSpace::on(disk), elsewhere: None }
    }

    /// The machine of private servers, as it was when the run connected to it.
    pub(crate) fn of_servers(rig: &Arc<RigOn>) -> Self {
        let disk = Path::new("--disk").to_path_buf();
        Self { disk, before: rig.free_at_first(), elsewhere: Some(Arc::clone(rig)) }
    }

    fn memory_name(&self) -> String {
        match &self.elsewhere {
            Some(rig) => format!("the memory of the servers' machine ({rig})"),
            None => "this machine's memory".into(),
        }
    }

    /// Refuses a demand that does not fit; the error gives the estimate and a remedy. `limit_bytes`
    /// is a private server's memory limit.
    pub(crate) fn fits(
        &self,
        product: Product,
        (demand, copies): (&Demand, usize),
        limit_bytes: Option<u64>,
    ) -> Result<(), Failure> {
        let (bytes, sum, before, what) = if product.keeps_keys() {
            let each = demand.bytes_on_one_of(1).min(limit_bytes.unwrap_or(u64::MAX));
            let bytes = each.saturating_mul(copies as u64);
            (bytes, demand.to_string(), self.before.memory_bytes, self.memory_name())
        } else {
            let (bytes, sum) = demand.on_disk();
            (bytes, sum, self.before.disk_bytes, format!("the disk of `{}`", self.disk.display()))
        };
        let Some(before) = before else { return Ok(()) };
        // Data that only the load writes is checked during the load.
        if !demand.is_filled || bytes <= usable(before) {
            return Ok(());
        }
        let message = format!(
            "{what} has no room for this run: it may add {} ({sum}), but at most {} may be \
             used, 90 % of the free {} ({})",
            format_bytes(bytes),
            format_bytes(usable(before)),
            format_bytes(before),
            demand.cure,
        );
        Err(Failure { class: ErrorClass::NotOurs, message })
    }

    /// Bytes that may still be used, of memory or disk, whichever is less. Errors: none are left.
    pub(crate) fn left_bytes(&self) -> Result<u64, Failure> {
        self.left(match &self.elsewhere {
            Some(rig) => rig.read()?.free,
            None => FreeSpace::on(&self.disk),
        })
    }

    fn left(&self, now: FreeSpace) -> Result<u64, Failure> {
        let before = self.before;
        let disk = format!("the disk of `{}`", self.disk.display());
        let memory_bytes = left("memory", before.memory_bytes, now.memory_bytes, format_bytes)?;
        let disk_bytes = left(&disk, before.disk_bytes, now.disk_bytes, format_bytes)?;
        left(&disk, before.files, now.files, |free| format!("{free} inodes"))?;
        Ok(memory_bytes.min(disk_bytes))
    }
}

/// What may still be used, given what was free `before` and is free `now`.
fn left(
    of: &str,
    before: Option<u64>,
    now: Option<u64>,
    shown: impl Fn(u64) -> String,
) -> Result<u64, Failure> {
    let (Some(before), Some(now)) = (before, now) else { return Ok(u64::MAX) };
    usable(before).checked_sub(before.saturating_sub(now)).ok_or_else(|| {
        let message = format!(
            "stopped to leave space for other programs: {of} has {} free, and had {} when the run \
             started (use fewer keys or smaller values, or stop other programs that use it)",
            shown(now),
            shown(before),
        );
        Failure { class: ErrorClass::NotOurs, message }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn machine() -> Machine {
        let free = FreeSpace {
            memory_bytes: Some(10 * GIB),
            disk_bytes: Some(100 * GIB),
            files: Some(1_000_000),
        };
        Machine { disk: "/srv".into(), before: free, elsewhere: None }
    }

    #[test]
    fn nine_tenths_of_what_was_free_may_be_used() {
        let machine = machine();
        let left = |now: FreeSpace| machine.left(now).map_err(|failure| failure.message);
        let before = machine.before;
        assert_eq!(left(before), Ok(machine.before.memory_bytes.map_or(0, usable)));
        assert_eq!(
            left(FreeSpace { disk_bytes: Some(12 * GIB), ..before }),
            Ok(usable(100 * GIB) - 88 * GIB)
        );
        // Another program freed some.
        assert!(left(FreeSpace { memory_bytes: Some(12 * GIB), ..before }).is_ok());
        for (now, part) in [
            (
                FreeSpace { memory_bytes: Some(GIB / 2), ..before },
                "memory has 512 MiB free, and had 10 GiB",
            ),
            (FreeSpace { disk_bytes: Some(GIB), ..before }, "the disk of `/srv` has 1 GiB free"),
            (FreeSpace { files: Some(9), ..before }, "the disk of `/srv` has 9 inodes free"),
        ] {
            let stopped = left(now).unwrap_err();
            assert!(stopped.contains(part), "no `{part}` in {stopped}");
        }
        // Unknown figures impose no limit.
        assert!(left(FreeSpace { memory_bytes: None, disk_bytes: None, files: None }).is_ok());
    }

    #[test]
    fn a_demand_that_does_not_fit_is_refused() {
        let fits = |product, keys, limit| {
            let demand = crate::room::tests::demand(keys);
            machine().fits(product, (&demand, 1), limit).map_err(|failure| failure.message)
        };
        assert_eq!(fits(Product::Redis, 1_000_000, None), Ok(()));
        let refused = fits(Product::Redis, 100_000_000, None).unwrap_err();
        for part in ["this machine's memory", "100000000 keys", "90 % of the free 10 GiB", "--keys"]
        {
            assert!(refused.contains(part), "no `{part}` in {refused}");
        }
        // The server's limit bounds its memory.
        assert_eq!(fits(Product::Redis, 100_000_000, Some(GIB)), Ok(()));
        assert_eq!(fits(Product::Files, 10_000_000, None), Ok(()));
        let refused = fits(Product::Files, 100_000_000, None).unwrap_err();
        assert!(refused.contains("the disk of `/srv`"), "{refused}");
    }
}
