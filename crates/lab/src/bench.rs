//! The targets made ready: private servers that are started for each trial, or existing stores.

use drivers::{Admin, Facts, Patience, Room, SessionOptions};
use model::leftovers::own_names;
use model::{
    Backend, Connections, Endpoint, ErrorClass, Failure, Layout, MemoryUse, Plan, PlannedTarget,
    Product, Workload,
};
use rig::{
    Guard, MemoryGroup, Pinning, Role, SearchPath, Server, ServerSpec, Started, Templates,
    TrialDirs,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::demand::Demand;
use crate::machine::Machine;
use crate::ready::{Ready, Store, unremoved};
use crate::wall::unix_ms;
use crate::{app_cache, room};

/// What a run needs that is not in its plan: places, and credentials.
pub struct Setup {
    /// Watches over everything that is started.
    pub guard: Guard,
    /// Directory on the disk under test: data of private servers and session files.
    pub disk: PathBuf,
    /// How the CPUs are divided.
    pub pinning: Pinning,
    /// Endpoints of the targets that exist already, by name.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// True when existing stores may hold other people's data.
    pub allow_shared: bool,
    /// True when an earlier process began the run: it may have left something in existing stores.
    pub resumes: bool,
    /// True when the user answers for what happens to existing servers: no data of others
    /// are on them, so that nobody loses what they evict or what a command reaches.
    pub i_own_this_server: bool,
}

/// Turns planned targets into stores that can be measured.
pub struct Bench<'a> {
    /// The plan that is run.
    pub plan: &'a Plan,
    /// Places and credentials.
    pub setup: &'a Setup,
    run: String,
    /// When this process began to work on the run: a run that was killed may have left tables,
    /// and names must not meet them when it is resumed.
    since_unix_ms: u64,
    search: SearchPath,
    /// Made once a run, copied for each server.
    templates: Templates,
    /// Where session files go, by the directory that was given for them.
    shelves: BTreeMap<PathBuf, Arc<TrialDirs>>,
    /// This machine before the run wrote anything, by the directory on its disk.
    machines: BTreeMap<PathBuf, Machine>,
}

/// Where a store is, the servers started for it, and what its files lie on.
type Placed = (Endpoint, Vec<(Role, Server)>, Option<Arc<TrialDirs>>);

impl<'a> Bench<'a> {
    /// Nothing is started yet.
    pub fn new(plan: &'a Plan, run: &str, setup: &'a Setup) -> Self {
        Self {
            plan,
            setup,
            run: run.into(),
            since_unix_ms: unix_ms(),
            search: SearchPath::of_process(),
            templates: Templates::default(),
            shelves: BTreeMap::new(),
            machines: BTreeMap::new(),
        }
    }

    /// Starts or reaches the target, reads its version, writes and reads one session or record in
    /// every layout of the plan, and leaves nothing behind.
    pub fn check(&mut self, target: &PlannedTarget, stop: &AtomicBool) -> Result<Facts, Failure> {
        let mut layouts: Vec<(Layout, &Workload)> = Vec::new();
        let cells = self.plan.cells.iter().filter(|c| c.target == target.name);
        let mut cells: Vec<_> = cells.collect();
        // A limit or swap that cannot be had fails the trials that need it, and no others.
        cells.sort_by_key(|cell| cell.workload.memory().map(|plan| plan.swap_bytes));
        for cell in cells {
            let layout = cell.workload.layout();
            if !layouts.iter().any(|(l, _)| *l == layout) {
                layouts.push((layout, &cell.workload));
            }
        }
        // What a killed run left of a cache's records has no name of its own: it is for its owner.
        let existing = self.setup.endpoints.get(&target.name).filter(|_| self.setup.resumes);
        if let Some(endpoint) = existing.filter(|_| target.backend.is_none()) {
            remove_leftovers((self.plan, &self.run), target, endpoint, stop)?;
        }
        let mut facts = None;
        for (number, (_, workload)) in layouts.into_iter().enumerate() {
            let mut ready = self.ready(target, workload, &format!("check{number}"))?;
            let checked = checked(&mut ready);
            // Also after a fault: what is left in an existing store is ours to remove.
            let finished = ready.finish(stop);
            facts = Some(checked?);
            finished?;
        }
        facts.ok_or_else(|| Failure {
            class: ErrorClass::Other,
            message: format!("target `{}` has no cell in this plan", target.name),
        })
    }

    /// Fresh stores for one trial; `label` makes their names unique in the run.
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
            Workload::Kv(_) | Workload::AppCache(_) => (0, Connections::Persistent),
        };
        let layout = workload.layout();
        let Setup { guard, disk, .. } = self.setup;
        let group =
            workload.memory().map(|plan| MemoryGroup::new(guard, plan, disk)).transpose()?;
        let (mut stores, mut directory) = (Vec::new(), PathBuf::new());
        for product in target.products() {
            let store = self.store(target, *product, group.as_ref());
            let mut store = store.map_err(|failure| starved(failure, group.as_ref()))?;
            match target.backend {
                Some(backend) if product.has_server() => {
                    store.admin.prepare_cache(backend)?;
                }
                _ => {
                    if shared && !self.setup.i_own_this_server {
                        store.admin.check_commands(&commands(workload))?;
                    }
                    let made = store.admin.prepare(layout, &name, value_bytes)?;
                    directory = if made.as_os_str().is_empty() { directory } else { made };
                }
            }
            stores.push(store);
        }
        let own = stores.first().map(|s| s.own.clone()).unwrap_or_default();
        Ok(Ready {
            stores,
            backend: target.backend,
            cm_settings: target.cm_settings(),
            layout,
            is_kv: matches!(workload, Workload::Kv(_)),
            group,
            prefix: if target.product.keeps_keys() { own } else { String::new() },
            options: SessionOptions {
                connections,
                ttl_s: workload.ttl_s().max(1),
                timeout: Duration::from_nanos(self.plan.timeout_ns),
                table: name,
                directory,
            },
        })
    }

    /// One store: a private one is started, an existing one must be empty or shared knowingly.
    fn store(
        &mut self,
        target: &PlannedTarget,
        product: Product,
        group: Option<&MemoryGroup>,
    ) -> Result<Store, Failure> {
        let existing = self.setup.endpoints.get(&target.name).cloned();
        let shared = existing.is_some();
        let disk = match &existing {
            Some(endpoint) => endpoint.directory().map(Path::to_path_buf),
            None => Some(self.setup.disk.clone()),
        };
        let machine = disk.map(|disk| self.machine(&disk));
        let (endpoint, servers, lies_on) = if product.has_server() {
            let (endpoint, servers) = match existing {
                Some(endpoint) => (endpoint, Vec::new()),
                None => self.servers(product, target, group)?,
            };
            (endpoint, servers, None)
        } else {
            let parent = existing.as_ref().and_then(Endpoint::directory);
            self.directory(product, parent.unwrap_or(&self.setup.disk))?
        };
        let mut admin = admin(&endpoint, Duration::from_nanos(self.plan.timeout_ns))?;
        let own = match target.backend {
            _ if !shared => String::new(),
            Some(backend) => backend.own_names().unwrap_or_default().into(),
            None => own_names(product, &self.run),
        };
        if let Some(machine) = &machine {
            let limit_bytes =
                group.map_or_else(|| limit(admin.as_mut()), |group| Some(group.plan().limit_bytes));
            if let Some(demand) = Demand::of_target(self.plan, &target.name, &own)? {
                let copies = servers.iter().filter(|(role, _)| *role == Role::Replica).count() + 1;
                machine.fits(product, (&demand, copies), limit_bytes)?;
            }
        }
        let rooms =
            if shared { self.admit(target, &endpoint, admin.as_mut(), &own)? } else { Vec::new() };
        Ok(Store { product, endpoint, admin, own, rooms, machine, written: None, servers, lies_on })
    }

    /// This machine as it was when the run first used a directory.
    fn machine(&mut self, disk: &Path) -> Machine {
        let machine = self.machines.entry(disk.to_path_buf());
        machine.or_insert_with(|| Machine::now(disk)).clone()
    }

    /// Refuses an existing store where data of others could be lost; what its servers tell about
    /// memory where that is to be watched.
    fn admit(
        &self,
        target: &PlannedTarget,
        endpoint: &Endpoint,
        admin: &mut dyn Admin,
        own: &str,
    ) -> Result<Vec<Room>, Failure> {
        let Setup { allow_shared, i_own_this_server, .. } = *self.setup;
        let rooms = admin.room()?;
        let by_size_class = rooms.iter().any(|room| room.by_size_class);
        let is_allowed = if by_size_class { i_own_this_server } else { allow_shared };
        if !is_allowed || target.backend.is_some() {
            let empty = admin.facts()?.empty;
            if empty != Some(true) {
                return Err(not_ours(endpoint, (target.backend, by_size_class), empty));
            }
        }
        if i_own_this_server || by_size_class {
            return Ok(Vec::new());
        }
        if let Some(demand) = Demand::of_target(self.plan, &target.name, own)? {
            room::fits(endpoint, &rooms, demand)?;
        }
        Ok(rooms)
    }

    /// A new directory below `parent`, watched over by the guard.
    fn directory(&mut self, product: Product, parent: &Path) -> Result<Placed, Failure> {
        let place = match self.shelves.entry(parent.to_path_buf()) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => {
                free.insert(Arc::new(TrialDirs::new(&self.setup.guard, parent)?))
            }
        };
        let endpoint = Endpoint::in_directory(product, place.directory()?);
        let endpoint = endpoint.ok_or_else(|| Failure {
            class: ErrorClass::Other,
            message: format!("{} needs a server (expected a store of files)", product.name()),
        })?;
        Ok((endpoint, Vec::new(), Some(place.clone())))
    }

    fn servers(
        &mut self,
        product: Product,
        target: &PlannedTarget,
        group: Option<&MemoryGroup>,
    ) -> Result<Started, Failure> {
        let spec = ServerSpec {
            program: target.program,
            settings: target.settings_of(product),
            cpus: Some(self.setup.pinning.server.clone()),
            group: group.map(|g| g.path().to_path_buf()),
            search: self.search.clone(),
            ..ServerSpec::new(self.setup.disk.clone())
        };
        let guard = &self.setup.guard;
        let started = rig::start_server(product, guard, &mut self.templates, &spec)?;
        started.ok_or_else(|| Failure {
            class: ErrorClass::Other,
            message: format!("{} has no server (expected a product with one)", product.name()),
        })
    }

    /// Ends the bench; what its trials left on the disk stays as long as what is returned.
    pub fn into_files(self) -> Vec<Arc<TrialDirs>> {
        self.shelves.into_values().collect()
    }

    /// CPUs of the client threads: a store without a server has the whole machine's share that
    /// the others divide between clients and server.
    pub fn client_cpus(&self, ready: &Ready) -> Vec<usize> {
        let pinning = &self.setup.pinning;
        let mut cpus = pinning.generator.clone();
        if ready.is_serverless() {
            cpus.extend(pinning.server.iter().filter(|c| !pinning.generator.contains(c)));
        }
        cpus
    }
}

/// Removes from an existing server what the run `run` left there when it was killed: the keys and
/// tables that carry its name, or all that have the names of an application cache.
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
    let patience = &mut Patience::new(stop);
    let mut layouts = plan.layouts(&target.name).into_iter();
    let swept = layouts.try_for_each(|layout| admin.sweep(layout, &own, patience));
    swept.map_err(|failure| unremoved(&own, failure))
}

/// Facts, after one session or record was written and read.
fn checked(ready: &mut Ready) -> Result<Facts, Failure> {
    let facts = ready.facts()?;
    if let Some(backend) = ready.backend {
        app_cache::verify(backend, &ready.cache_options())?;
    } else if ready.is_kv {
        ready.stores[0].admin.probe(&format!("{}verify", ready.prefix))?;
    } else {
        let id = format!("{}verify", ready.prefix);
        ready.stores[0].admin.verify(ready.layout, &ready.options, &id)?;
    }
    Ok(facts)
}

/// Connects for administration, and says what to look at where TLS is in the way.
fn admin(endpoint: &Endpoint, timeout: Duration) -> Result<Box<dyn Admin>, Failure> {
    drivers::admin(endpoint, timeout).map_err(|failure| {
        let speaks_tls = endpoint.clone().tls_mut().is_some();
        let cure = match failure.class {
            _ if failure.message.contains("certificate") => {
                " (see --cacert, --sni and --tls-insecure)"
            }
            ErrorClass::Timeout if speaks_tls => " (does it speak TLS there?)",
            _ => return failure,
        };
        Failure { message: failure.message + cure, ..failure }
    })
}

/// Memory that a private server takes at most by its own settings; `None` where it sets no limit.
fn limit(admin: &mut dyn Admin) -> Option<u64> {
    let rooms = admin.room().unwrap_or_default();
    rooms.iter().filter_map(|room| room.limit_bytes).filter(|limit| *limit > 0).max()
}

/// Says that a server needs more than its memory limit to start.
fn starved(failure: Failure, group: Option<&MemoryGroup>) -> Failure {
    match group.map(MemoryGroup::usage) {
        Some(Ok(MemoryUse { limit_bytes, oom_kills: 1.., .. })) => {
            let limit = stats::format_bytes(limit_bytes);
            let message = format!("more than memory_limit of {limit}: {}", failure.message);
            Failure { class: ErrorClass::Full, message }
        }
        _ => failure,
    }
}

/// Says that an existing store holds data, or that it does not tell whether it does.
fn not_ours(
    endpoint: &Endpoint,
    (backend, by_size_class): (Option<Backend>, bool),
    empty: Option<bool>,
) -> Failure {
    let cure = if backend.is_some() {
        "use an empty one that nobody else uses meanwhile; --allow-shared is of no use here: the \
         names that a shop's cache has cannot be told from those of another. If a run that was \
         killed left them, `cachedyno show RUN` says how to remove them"
    } else if by_size_class {
        "use an empty one, or --i-own-this-server if its items may be lost; --allow-shared is not \
         enough here: the server evicts items by their size, so free memory protects none of them"
    } else {
        "use an empty one, or allow it with --allow-shared: keys and tables of this run then \
         carry its name, and only those are removed"
    };
    let state = match empty {
        None => "does not tell whether it is empty",
        Some(_) => "is not empty",
    };
    let message = format!("{endpoint} {state} ({cure})");
    Failure { class: ErrorClass::NotOurs, message }
}

/// The commands of a user's own among a workload's operations.
fn commands(workload: &Workload) -> Vec<&str> {
    match workload {
        Workload::Kv(kv) => kv.operations.iter().filter_map(|o| o.command.as_deref()).collect(),
        Workload::Sessions(_) | Workload::AppCache(_) => Vec::new(),
    }
}
