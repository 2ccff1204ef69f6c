//! Reads what the servers of a trial use.

use load::{Meter, Reading};
use model::{Cell, Emptied, ErrorClass, Fact, Failure, PageCache, Trial, Workload};
use rig::{ProcessTree, RunningNeighbour, StolenCpuReader, killed_by_limit};
use std::path::PathBuf;
use std::sync::Arc;

use crate::fleet::{Fleet, RigOn};
use crate::provision::TargetProvisioner;
use crate::ready::Ready;
use crate::session_size::SessionSizes;

/// Reads CPU time used by private servers and stolen by other processes, and the size of the filled
/// stores. Empties the page cache before cold phases.
pub(crate) struct ServerMeter {
    servers: ProcessTree,
    /// The same with servers of this host that the run did not start.
    pub(crate) measured: ProcessTree,
    taken: StolenCpuReader,
    /// Directory of the stores' files, empty without files; `None` if sizes are not measured.
    directory: Option<PathBuf>,
    filled: Vec<Fact>,
    /// Sizes before sessions were filled.
    sessions: Option<SessionSizes>,
    /// True if memory in huge pages is measured.
    has_huge_pages: bool,
    /// True if the page cache is emptied before each phase.
    cold: bool,
    emptied: Option<Emptied>,
    /// The machine of the servers, if it is another one.
    remote: Option<Arc<RigOn>>,
    /// Control group with the servers' memory limit, and the servers.
    limited: Option<(PathBuf, Vec<u32>)>,
}

impl ServerMeter {
    /// For the servers of prepared stores.
    pub(crate) fn new(provisioner: &TargetProvisioner<'_>, ready: &Ready) -> Self {
        let servers = ProcessTree::new(&ready.server_pids());
        // A measured server that the run did not start takes nothing from itself.
        let measured = ready.endpoints().flat_map(|endpoint| {
            let all = [endpoint.addresses(), endpoint.behind()].concat();
            rig::listeners(&all)
        });
        // Nor does a planned neighbour disturb: it is measured as well.
        let planned = ready.neighbour.as_ref().map(RunningNeighbour::pid);
        // Nor do workers, which offer the load.
        let workers = provisioner.setup.fleet.iter().flat_map(Fleet::pids);
        let measured =
            ready.server_pids().into_iter().chain(measured).chain(planned).chain(workers);
        let measured: Vec<u32> = measured.collect();
        let measured = ProcessTree::new(&measured);
        let (generator, server) =
            (provisioner.client_cpus(ready), &provisioner.setup.pinning.server);
        let taken = StolenCpuReader::new(&generator, server, measured.clone());
        Self {
            servers,
            measured,
            taken,
            directory: None,
            filled: Vec::new(),
            sessions: None,
            has_huge_pages: false,
            cold: false,
            emptied: None,
            remote: ready.stores.iter().find_map(|store| Some(store.remote.as_ref()?.rig())),
            limited: ready.groups.memory_path().zip(Some(ready.server_pids())),
        }
    }

    /// Notes what to measure of a workload's data, before the fill and with all clients connected.
    pub(crate) fn before_fill(&mut self, ready: &Ready, cell: &Cell) -> Result<(), Failure> {
        match &cell.workload {
            Workload::Sessions(sessions) => {
                let of = (sessions, &cell.load);
                self.sessions = SessionSizes::before_fill(ready, &self.servers, of)?;
            }
            Workload::AppCache(cache) => {
                self.directory = Some(ready.options().directory.clone());
                self.cold = cache.page_cache == PageCache::Cold;
            }
            Workload::Kv(kv) => self.has_huge_pages = kv.memory.is_some(),
            Workload::CacheAside(_) => {}
        }
        Ok(())
    }

    /// Adds the sizes after the fill, and how the page cache was emptied.
    pub(crate) fn complete(self, trial: &mut Trial) {
        // The memory of a session is more exact than that of a key at the end.
        if self.filled.iter().any(|fact| fact.name == Fact::SESSION_MEMORY_BYTES) {
            trial.facts.retain(|fact| fact.name != Fact::BYTES_PER_KEY);
        }
        trial.facts.extend(self.filled);
        trial.emptied = self.emptied;
    }
}

impl Meter for ServerMeter {
    fn read(&mut self) -> Reading {
        let taken = self.taken.read();
        let (server_cpu_ns, taken_from_server_ns) = match &self.remote {
            // A machine that does not answer fails the trial in `check`.
            Some(rig) => rig.read().map_or((None, None), |own| (own.cpu_ns, own.taken_ns)),
            None => (self.servers.cpu_ns(), taken.from_servers_ns),
        };
        Reading {
            server_cpu_ns,
            taken_from_server_ns,
            other_processes_on_generator_ns: taken.on_generator_ns,
            siblings_on_generator_ns: taken.by_siblings_ns,
            stolen_from_generator_ns: taken.stolen_from_generator_ns,
            paused_ns: taken.paused_ns,
        }
    }

    fn filled(&mut self) {
        // A server that does not answer any more fails the trial elsewhere.
        let of_sessions = self.sessions.take().and_then(|mut sizes| sizes.facts().ok());
        self.filled.extend(of_sessions.into_iter().flatten());
        let fact = |(name, bytes): (&str, u64)| Fact {
            name: name.into(),
            value: bytes as f64,
            source: "host".into(),
        };
        let huge = self.has_huge_pages.then(|| self.servers.huge_page_bytes()).flatten();
        self.filled.extend(huge.map(|bytes| fact((Fact::HUGE_PAGE_BYTES, bytes))));
        let Some(directory) = &self.directory else { return };
        let in_memory = self.servers.memory_bytes().unwrap_or(0);
        let has_files = !directory.as_os_str().is_empty();
        let files = if has_files { rig::directory_bytes(directory) } else { Ok(0) };
        // If the directory cannot be listed, the trial fails elsewhere.
        let sizes = files
            .ok()
            .map(|on_disk| [(Fact::STORE_BYTES, on_disk), (Fact::SERVER_MEMORY_BYTES, in_memory)]);
        self.filled.extend(sizes.into_iter().flatten().map(fact));
    }

    fn check(&mut self) -> Result<(), Failure> {
        if let Some(rig) = &self.remote {
            rig.read()?;
        }
        match &self.limited {
            Some((group, servers)) if !servers.is_empty() && killed_by_limit(group, servers) => {
                let message = "the kernel killed the server for its memory limit".into();
                Err(Failure { class: ErrorClass::Killed, message })
            }
            _ => Ok(()),
        }
    }

    fn before_phase(&mut self) -> Result<(), Failure> {
        if self.cold {
            let directory = self.directory.as_deref().filter(|d| !d.as_os_str().is_empty());
            self.emptied = Some(rig::empty_page_cache(directory)?);
        }
        Ok(())
    }
}
