//! Memory and disk space that a session takes: their growth during the fill, by sessions filled.

use drivers::{Admin, SessionOptions};
use model::{Fact, Failure, Load, Sessions};
use rig::ProcessTree;

use crate::ready::Ready;

/// Sizes of a store, bytes; `None` for those that cannot be measured.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    /// Memory in use, as the private servers report it.
    used: Option<u64>,
    /// Resident memory of the private servers.
    resident: Option<u64>,
    /// The run's files, or its table.
    disk: Option<u64>,
}

/// Sizes of a store before its fill.
pub(crate) struct SessionSizes {
    admin: Box<dyn Admin>,
    options: SessionOptions,
    servers: ProcessTree,
    sessions: u64,
    before: Sizes,
}

impl SessionSizes {
    /// Before the fill, with all clients connected; `None` if the phases create the sessions or all
    /// clients share one.
    pub(crate) fn before_fill(
        ready: &Ready,
        servers: &ProcessTree,
        (workload, load): (&Sessions, &Load),
    ) -> Result<Option<Self>, Failure> {
        if workload.filled == 0 || load.one_session {
            return Ok(None);
        }
        let options = ready.options().clone();
        let admin = drivers::admin(ready.endpoint(), options.timeout)?;
        let (servers, sessions) = (servers.clone(), workload.filled);
        let mut sizes = Self { admin, options, servers, sessions, before: Sizes::default() };
        sizes.before = sizes.now()?;
        Ok(Some(sizes))
    }

    fn now(&mut self) -> Result<Sizes, Failure> {
        let resident = self.servers.memory_bytes();
        // The memory of an existing server also grows by what others write.
        let used = if resident.is_some() { self.used()? } else { None };
        let directory = &self.options.directory;
        let disk = if directory.as_os_str().is_empty() {
            self.admin.table_bytes(&self.options.table)?
        } else {
            rig::directory_bytes(directory).ok()
        };
        Ok(Sizes { used, resident, disk })
    }

    fn used(&mut self) -> Result<Option<u64>, Failure> {
        let servers = self.admin.memory_stats()?;
        let used: Option<Vec<u64>> = servers.iter().map(|server| server.used_bytes).collect();
        Ok(used.filter(|used| !used.is_empty()).map(|used| used.iter().sum()))
    }

    /// The facts after the fill; none about sizes that did not grow.
    pub(crate) fn facts(&mut self) -> Result<Vec<Fact>, Failure> {
        let (before, after) = (self.before, self.now()?);
        let of_disk = if self.options.directory.as_os_str().is_empty() { "server" } else { "host" };
        let sizes = [
            (Fact::SESSION_MEMORY_BYTES, before.used, after.used, "INFO"),
            (Fact::SESSION_RESIDENT_BYTES, before.resident, after.resident, "host"),
            (Fact::SESSION_DISK_BYTES, before.disk, after.disk, of_disk),
        ];
        let fact = |(name, before, after, source): (&str, Option<u64>, Option<u64>, &str)| {
            let grown = after?.checked_sub(before?).filter(|grown| *grown > 0)?;
            let value = grown as f64 / self.sessions as f64;
            Some(Fact { name: name.into(), value, source: source.into() })
        };
        Ok(sizes.into_iter().filter_map(fact).collect())
    }
}
