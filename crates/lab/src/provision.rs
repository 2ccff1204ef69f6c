//! Prepares targets for a trial: starts private servers, or connects to existing stores.

use drivers::{Admin, CleanupDeadline, Facts, MemoryStats, SessionOptions};
use model::leftovers::own_names;
use model::tier::Tier;
use model::{
    Act, Action, Backend, Connections, Endpoint, ErrorClass, Failure, Layout, MemoryPlan,
    MemoryUse, Plan, PlannedTarget, Product, Workload,
};
use rig::{Relay, Role, SearchPath, Server, ServerSpec, StartedServers, Templates, TrialDirs};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::demand::Demand;
use crate::disk_demand::DiskDemand;
use crate::error_hints::OfServer;
use crate::fault_command::FaultCommand;
use crate::groups::{Groups, Limits};
use crate::machine::Machine;
use crate::ready::{Ready, Store, unremoved};
use crate::setup::{Protection, Setup};
use crate::tier::Places;
use crate::transport::admin;
use crate::wall::unix_ms;
use crate::{app_cache, cache_aside, elsewhere, names, room};

/// Turns planned targets into stores that can be measured.
pub struct TargetProvisioner<'a> {
    /// The plan of this run.
    pub plan: &'a Plan,
    /// Directories, CPUs and endpoints.
    pub setup: &'a Setup,
    run: String,
    /// When this process took up the run. Part of table names, so that a resumed run does not
    /// collide with tables that a killed process left behind.
    since_unix_ms: u64,
    search: SearchPath,
    /// Data directories, created once per run and copied for each server.
    templates: Templates,
    /// Trial directories for stores of files, by parent directory.
    trial_dirs: BTreeMap<PathBuf, Arc<TrialDirs>>,
    /// Free memory and disk before the run wrote anything, by directory.
    machines: BTreeMap<PathBuf, Machine>,
}

/// Endpoint of a store, the servers started for it, and the directories of its files.
type Placed = (Endpoint, Vec<(Role, Server)>, Option<Arc<TrialDirs>>);

impl<'a> TargetProvisioner<'a> {
    /// Starts nothing yet.
    pub fn new(plan: &'a Plan, run: &str, setup: &'a Setup) -> Self {
        Self {
            plan,
            setup,
            run: run.into(),
            since_unix_ms: unix_ms(),
            search: SearchPath::of_process(),
            templates: Templates::default(),
            trial_dirs: BTreeMap::new(),
            machines: BTreeMap::new(),
        }
    }

    /// Starts or connects to the target, reads its version, writes and reads one session or record
    /// in every layout of the plan, and removes them.
    pub fn check(&mut self, target: &PlannedTarget, stop: &AtomicBool) -> Result<Facts, Failure> {
        let mut layouts: Vec<(Layout, &Workload)> = Vec::new();
        let cells = self.plan.cells.iter().filter(|c| c.target == target.name);
        let mut cells: Vec<_> = cells.collect();
        // If a memory limit, swap or a network is unavailable, only the trials that need it must
        // fail.
        cells.sort_by_key(|cell| {
            let swap_bytes = cell.workload.memory().map(|plan| plan.swap_bytes);
            (swap_bytes, has_partition(&cell.workload))
        });
        for cell in cells {
            let layout = cell.workload.layout();
            if !layouts.iter().any(|(l, _)| *l == layout) {
                layouts.push((layout, &cell.workload));
            }
        }
        // Cache records of a killed run do not carry its name: only the owner can remove them.
        let existing = self.setup.endpoints.get(&target.name).filter(|_| self.setup.resumes);
        if let Some(endpoint) = existing.filter(|_| target.backend.is_none()) {
            remove_leftovers((self.plan, &self.run), target, endpoint, stop)?;
        }
        let mut facts = None;
        for (number, (_, workload)) in layouts.into_iter().enumerate() {
            let mut ready = self.ready(target, workload, &format!("check{number}"))?;
            let checked = checked(&mut ready);
            // Clean up even after an error: what we wrote to an existing store is ours to remove.
            let finished = ready.finish(stop);
            facts = Some(checked?);
            finished?;
        }
        facts.ok_or_else(|| Failure {
            class: ErrorClass::Other,
            message: format!("target `{}` has no cells in this plan", target.name),
        })
    }

    /// What the errors of a target's server need to be explained.
    pub(crate) fn of_server(&self, target: &str) -> OfServer<'a> {
        OfServer {
            endpoint: self.setup.endpoints.get(target),
            connections: self.plan.target(target).and_then(|planned| planned.tier.connections),
        }
    }

    /// Prepares fresh stores for one trial. `label` makes their names unique within the run.
    pub fn ready(
        &mut self,
        target: &PlannedTarget,
        workload: &Workload,
        label: &str,
    ) -> Result<Ready, Failure> {
        let shared = self.setup.endpoints.contains_key(&target.name);
        let name = if shared {
            format!("cachedyno_{}_{:x}_{label}", self.run, self.since_unix_ms)
        } else {
            "sessions".into()
        };
        let (value_bytes, connections) = match workload {
            Workload::Sessions(sessions) => (sessions.value_bytes, sessions.connections),
            Workload::Kv(kv) => (names::value_bytes_max(kv), Connections::Persistent),
            Workload::AppCache(_) | Workload::CacheAside(_) => (0, Connections::Persistent),
        };
        let layout = workload.layout();
        if !shared {
            self.fits_disk(target, workload)?;
        }
        elsewhere::check(self.setup, target, workload)?;
        let places = Places::new(&target.tier, &self.setup.pinning, rig::memory_bytes())?;
        let groups = self.groups(target, workload)?;
        let most = workload.server_cpus().unwrap_or(usize::MAX).min(places.server.len());
        let cpus = &places.server[..most];
        let (mut stores, mut directory) = (Vec::new(), PathBuf::new());
        for product in target.products() {
            let store = self.store(target, *product, (&groups, cpus));
            let mut store = store.map_err(|failure| starved(failure, &groups))?;
            match target.backend {
                Some(backend) if product.has_server() => {
                    store.admin.prepare_cache(backend)?;
                }
                _ if matches!(workload, Workload::CacheAside(_)) => store.admin.prepare_rows()?,
                _ => {
                    if shared && self.setup.protection != Protection::Off {
                        store.admin.check_commands(&commands(workload))?;
                    }
                    let made = store.admin.prepare(layout, &name, value_bytes)?;
                    directory = if made.as_os_str().is_empty() { directory } else { made };
                }
            }
            stores.push(store);
        }
        let neighbour = places.start_neighbour(&self.setup.guard, &target.tier)?;
        let own = stores.first().map(|s| s.own.clone()).unwrap_or_default();
        Ok(Ready {
            stores,
            backend: target.backend,
            cm_settings: target.cm_settings(),
            magento: app_cache::layer(self.plan, &target.name),
            layout,
            is_kv: matches!(workload, Workload::Kv(_)) && target.product.keeps_keys(),
            has_rows: matches!(workload, Workload::CacheAside(_)),
            groups,
            neighbour,
            disk: self.disk_with_data(target),
            fault_command: self.fault_command(target, workload),
            prefix: if target.product.keeps_keys() { own } else { String::new() },
            options: SessionOptions {
                connections,
                ttl_s: workload.ttl_s().max(1),
                value_bytes,
                timeout: Duration::from_nanos(self.plan.timeout_ns),
                table: name,
                directory,
            },
        })
    }

    /// The user's command for a workload that needs one.
    fn fault_command(&self, target: &PlannedTarget, workload: &Workload) -> Option<FaultCommand> {
        workload.by_command()?;
        Some(FaultCommand {
            text: self.setup.fault_command.clone()?,
            target: target.name.clone(),
            endpoint: self.setup.endpoints.get(&target.name)?.clone(),
            guard: self.setup.guard.clone(),
        })
    }

    /// Refuses a trial whose data do not fit on the disk of its target.
    fn fits_disk(&self, target: &PlannedTarget, workload: &Workload) -> Result<(), Failure> {
        let demand = DiskDemand::of(target, workload)?;
        let is_apart = self.plan.swap_dir.is_some();
        let demand = if is_apart { demand.without_swap() } else { demand };
        demand.fits(self.setup.disk_of(target))
    }

    /// Creates what enforces the limits of a target.
    fn groups(&self, target: &PlannedTarget, workload: &Workload) -> Result<Groups, Failure> {
        let memory = workload.memory().or(target.tier.memory.map(MemoryPlan::limit));
        let Tier { quota, bandwidth_mbit, .. } = target.tier;
        let disk = target.disk_limit;
        let is_partitioned = has_partition(workload);
        let limits = Limits { memory, disk, quota, bandwidth_mbit, is_partitioned };
        let disks = (self.setup.disk_of(target), self.setup.swap_of(self.plan, target));
        Groups::new(&self.setup.guard, &limits, disks, &self.search)
    }

    /// Directory of a target's data on this machine; `None` for a server at a URL.
    fn disk_with_data(&self, target: &PlannedTarget) -> Option<PathBuf> {
        match self.setup.endpoints.get(&target.name) {
            Some(endpoint) => endpoint.directory().map(Path::to_path_buf),
            None if target.product.has_server() && self.setup.rig_on.is_some() => None,
            None => Some(self.setup.disk_of(target).to_path_buf()),
        }
    }

    /// Starts a private store, or admits an existing one: it must be empty unless sharing is
    /// allowed.
    fn store(
        &mut self,
        target: &PlannedTarget,
        product: Product,
        (groups, cpus): (&Groups, &[usize]),
    ) -> Result<Store, Failure> {
        let existing = self.setup.endpoints.get(&target.name).cloned();
        let shared = existing.is_some();
        let mut machine = self.disk_with_data(target).map(|disk| self.machine(&disk));
        let mut remote = None;
        let (endpoint, servers, trial_dirs) = if product.has_server() {
            let (endpoint, servers) = match (existing, &self.setup.rig_on) {
                (Some(endpoint), _) => (endpoint, Vec::new()),
                (None, Some(rig)) => {
                    let (endpoint, servers) = rig.start(product, target, cpus.len())?;
                    remote = Some(servers);
                    machine = Some(Machine::of_servers(rig));
                    (endpoint, Vec::new())
                }
                (None, None) => self.servers(product, target, (groups, cpus))?,
            };
            (endpoint, servers, None)
        } else {
            let parent = existing.as_ref().and_then(Endpoint::directory);
            self.directory(product, parent.unwrap_or_else(|| self.setup.disk_of(target)))?
        };
        let relay = self.relay(target, &endpoint)?;
        let endpoint = match &relay {
            Some(relay) => endpoint.at(relay.address().clone()),
            None => endpoint,
        };
        let mut admin = admin(&endpoint, Duration::from_nanos(self.plan.timeout_ns))?;
        let own = match target.backend {
            _ if !shared => String::new(),
            Some(backend) => backend.own_names().unwrap_or_default().into(),
            None => own_names(product, &self.run),
        };
        if let Some(machine) = &machine {
            let of_group = groups.memory.as_ref().map(|group| group.plan().limit_bytes);
            let limit_bytes = of_group.or_else(|| limit(admin.as_mut()));
            if let Some(demand) = Demand::of_target(self.plan, &target.name, &own)? {
                let replicas = servers.iter().filter(|(role, _)| *role == Role::Replica).count();
                let replicas = if remote.is_some() { target.replicas() as usize } else { replicas };
                let copies = replicas + 1;
                machine.fits(product, (&demand, copies), limit_bytes)?;
            }
        }
        let rooms =
            if shared { self.admit(target, &endpoint, admin.as_mut(), &own)? } else { Vec::new() };
        let written = None;
        Ok(Store {
            product,
            endpoint,
            admin,
            own,
            rooms,
            machine,
            written,
            servers,
            remote,
            relay,
            trial_dirs,
        })
    }

    /// The distance between clients and a private server; `None` without one.
    fn relay(&self, target: &PlannedTarget, endpoint: &Endpoint) -> Result<Option<Relay>, Failure> {
        let Some(ns) = target.tier.distance_ns else { return Ok(None) };
        let Some(server) = endpoint.addresses().first().cloned() else { return Ok(None) };
        let cpus = self.setup.pinning.generator.clone();
        Ok(Some(Relay::start(server, Duration::from_nanos(ns), cpus)?))
    }

    /// Free memory and disk when the run first used this directory.
    fn machine(&mut self, disk: &Path) -> Machine {
        let machine = self.machines.entry(disk.to_path_buf());
        machine.or_insert_with(|| Machine::now(disk)).clone()
    }

    /// Refuses an existing store if other users' data could be lost. Returns the memory status of
    /// its servers if the trial has to watch it.
    fn admit(
        &self,
        target: &PlannedTarget,
        endpoint: &Endpoint,
        admin: &mut dyn Admin,
        own: &str,
    ) -> Result<Vec<MemoryStats>, Failure> {
        let Setup { allow_shared, protection, .. } = *self.setup;
        let rooms = admin.memory_stats()?;
        let by_size_class = rooms.iter().any(|room| room.by_size_class);
        let is_off = protection == Protection::Off;
        let is_allowed = if by_size_class { is_off } else { allow_shared };
        if !is_allowed || target.backend.is_some() {
            let empty = admin.facts()?.empty;
            if empty != Some(true) {
                return Err(not_ours(endpoint, (target.backend, by_size_class), empty));
            }
        }
        // Beyond its memory, a server without keys evicts or refuses only what this run writes. One
        // without a limit would exhaust its machine.
        let may_fill = protection == Protection::EmptyMayFill
            && room::is_empty(&rooms)
            && room::have_own_limit(&rooms);
        if is_off || may_fill {
            return Ok(Vec::new());
        }
        if let Some(demand) = Demand::of_target(self.plan, &target.name, own)? {
            room::fits(endpoint, &rooms, demand)?;
        }
        Ok(if by_size_class { Vec::new() } else { rooms })
    }

    /// Creates a directory below `parent`, which the guard removes should this process die.
    fn directory(&mut self, product: Product, parent: &Path) -> Result<Placed, Failure> {
        let dirs = match self.trial_dirs.entry(parent.to_path_buf()) {
            Entry::Occupied(existing) => existing.into_mut(),
            Entry::Vacant(vacant) => {
                vacant.insert(Arc::new(TrialDirs::new(&self.setup.guard, parent)?))
            }
        };
        let endpoint = Endpoint::in_directory(product, dirs.directory()?);
        let endpoint = endpoint.ok_or_else(|| Failure {
            class: ErrorClass::Other,
            message: format!("{} needs a server (expected a store of files)", product.name()),
        })?;
        Ok((endpoint, Vec::new(), Some(dirs.clone())))
    }

    fn servers(
        &mut self,
        product: Product,
        target: &PlannedTarget,
        (groups, cpus): (&Groups, &[usize]),
    ) -> Result<StartedServers, Failure> {
        let spec = ServerSpec {
            program: target.program,
            settings: target.settings_of(product),
            cpus: Some(cpus.to_vec()),
            group: groups.memory_path(),
            other_groups: groups.other_paths(),
            network: groups.network(),
            network_of_others: groups.network_of_others(),
            search: self.search.clone(),
            ..ServerSpec::new(self.setup.disk_of(target))
        };
        let guard = &self.setup.guard;
        let started = rig::start_server(product, guard, &mut self.templates, &spec)?;
        started.ok_or_else(|| Failure {
            class: ErrorClass::Other,
            message: format!("{} has no server (expected a product with one)", product.name()),
        })
    }

    /// Hands over the trial directories. Dropping them removes the files.
    pub fn into_files(self) -> Vec<Arc<TrialDirs>> {
        self.trial_dirs.into_values().collect()
    }

    /// CPUs of the client threads. Clients of a store without a server also get the server's CPUs.
    pub fn client_cpus(&self, ready: &Ready) -> Vec<usize> {
        let pinning = &self.setup.pinning;
        let mut cpus = pinning.generator.clone();
        if ready.is_serverless() {
            cpus.extend(pinning.server.iter().filter(|c| !pinning.generator.contains(c)));
        }
        cpus
    }
}

/// Removes from an existing server what a killed run `run` left there: keys and tables that carry
/// its name, or, for an application cache, all keys named like the cache's.
pub fn remove_leftovers(
    (plan, run): (&Plan, &str),
    target: &PlannedTarget,
    endpoint: &Endpoint,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let own = match target.backend {
        Some(backend) => backend.own_names().unwrap_or_default().into(),
        None => own_names(endpoint.product(), run),
    };
    if own.is_empty() {
        return Ok(());
    }
    let mut admin = admin(endpoint, Duration::from_nanos(plan.timeout_ns))?;
    let patience = &mut CleanupDeadline::new(stop);
    let mut layouts = plan.layouts(&target.name).into_iter();
    let swept = layouts.try_for_each(|layout| admin.sweep(layout, &own, patience));
    swept.map_err(|failure| unremoved(&own, failure))
}

/// Writes and reads one session or record, and returns the store's facts.
fn checked(ready: &mut Ready) -> Result<Facts, Failure> {
    let facts = ready.facts()?;
    for store in &mut ready.stores {
        store.admin.check_behind(&ready.prefix)?;
    }
    if let Some(backend) = ready.backend {
        app_cache::verify(backend, &ready.cache_options())?;
    } else if ready.has_rows {
        cache_aside::verify(ready)?;
    } else if ready.is_kv {
        ready.stores[0].admin.probe(&format!("{}verify", ready.prefix))?;
    } else {
        let id = format!("{}verify", ready.prefix);
        ready.stores[0].admin.verify(ready.layout, &ready.options, &id)?;
    }
    Ok(facts)
}

/// Memory limit that a private server's settings impose, bytes; `None` if there is none.
fn limit(admin: &mut dyn Admin) -> Option<u64> {
    let rooms = admin.memory_stats().unwrap_or_default();
    rooms.iter().filter_map(|room| room.limit_bytes).filter(|limit| *limit > 0).max()
}

/// Explains a failed start by the memory limit, if the kernel killed the server for it.
fn starved(failure: Failure, groups: &Groups) -> Failure {
    match groups.memory_use() {
        Ok(Some(MemoryUse { limit_bytes, oom_kills: 1.., .. })) => {
            let limit = stats::format_bytes(limit_bytes);
            let message = format!("memory_limit of {limit} exceeded: {}", failure.message);
            Failure { class: ErrorClass::Killed, message }
        }
        _ => failure,
    }
}

/// The error for an existing store that is not empty, or that cannot report whether it is.
fn not_ours(
    endpoint: &Endpoint,
    (backend, by_size_class): (Option<Backend>, bool),
    empty: Option<bool>,
) -> Failure {
    let cure = if backend.is_some() {
        "use an empty one that nobody else uses during the run; --allow-shared does not help: keys \
         of different shop caches have the same names. If a killed run left them, `cachedyno show \
         RUN` says how to remove them"
    } else if by_size_class {
        "use an empty one, or --i-own-this-server if its items may be lost; --allow-shared is not \
         enough: the server evicts items per size class, so free memory does not protect them"
    } else {
        "use an empty one, or pass --allow-shared: keys and tables of this run then carry its \
         name, and only those are removed"
    };
    let state = match empty {
        None => "does not report whether it is empty",
        Some(_) => "is not empty",
    };
    let message = format!("{endpoint} {state} ({cure})");
    Failure { class: ErrorClass::NotOurs, message }
}

/// True if the plan cuts the first server of a private target off from the others.
fn has_partition(workload: &Workload) -> bool {
    let is_partition = |action: &Action| action.what == Act::PartitionPrimary && !action.by_command;
    workload.actions().iter().any(is_partition)
}

/// User-defined commands among a workload's operations.
fn commands(workload: &Workload) -> Vec<&str> {
    match workload {
        Workload::Kv(kv) => kv.operations.iter().filter_map(|o| o.command.as_deref()).collect(),
        Workload::Sessions(_) | Workload::AppCache(_) | Workload::CacheAside(_) => Vec::new(),
    }
}
