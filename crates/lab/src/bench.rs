//! The targets made ready: private servers that are started for each trial, or existing stores.

use drivers::{Admin, Facts, SessionOptions};
use model::{
    Connections, Endpoint, ErrorClass, Failure, Layout, Plan, PlannedTarget, Product, Workload,
};
use rig::{Guard, MariadbTemplate, Pinning, SearchPath, Server, ServerSpec, Shelf};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::time::Duration;
use workloads::kv::{Key, KeyNames};

use crate::unix_ms;

/// Keys whose removal is asked for at once.
const REMOVED_AT_ONCE: u64 = 1000;

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
    template: Option<MariadbTemplate>,
    /// Where session files go, by the directory that was given for them.
    shelves: BTreeMap<PathBuf, Shelf>,
}

/// A store made ready for one trial; dropping it stops its server and removes its directories.
pub struct Ready {
    endpoint: Endpoint,
    admin: Box<dyn Admin>,
    layout: Layout,
    options: SessionOptions,
    /// Put before every session's name.
    prefix: String,
    /// What the names of this run's keys and tables begin with in an existing store.
    own: String,
    /// Names and number of the keys that the trial may have written.
    written: Option<(KeyNames, u64)>,
    server: Option<Server>,
}

impl<'a> Bench<'a> {
    /// Nothing is started yet.
    pub fn new(plan: &'a Plan, run: &str, setup: &'a Setup) -> Self {
        Self {
            plan,
            setup,
            run: run.into(),
            since_unix_ms: unix_ms(),
            search: SearchPath::of_process(),
            template: None,
            shelves: BTreeMap::new(),
        }
    }

    /// Starts or reaches the target, reads its version, writes and reads one session in every
    /// layout of the plan, and leaves nothing behind.
    pub fn check(&mut self, target: &PlannedTarget) -> Result<Facts, Failure> {
        let mut layouts: Vec<(Layout, &Workload)> = Vec::new();
        for cell in self.plan.cells.iter().filter(|c| c.target == target.name) {
            let layout = layout(&cell.workload);
            if !layouts.iter().any(|(l, _)| *l == layout) {
                layouts.push((layout, &cell.workload));
            }
        }
        if let Some(endpoint) = self.setup.endpoints.get(&target.name) {
            self.remove_leftovers(endpoint, layouts.iter().map(|(layout, _)| *layout))?;
        }
        let mut facts = None;
        for (number, (_, workload)) in layouts.into_iter().enumerate() {
            let mut ready = self.ready(target, workload, &format!("check{number}"))?;
            let checked = ready.checked();
            // Also after a fault: what is left in an existing store is ours to remove.
            let finished = ready.finish();
            facts = Some(checked?);
            finished?;
        }
        facts.ok_or_else(|| Failure {
            class: ErrorClass::Other,
            message: format!("target `{}` has no cell in this plan", target.name),
        })
    }

    /// What the names of this run's keys and tables begin with in an existing store.
    fn own_names(&self, product: Product) -> String {
        match product {
            Product::Redis | Product::Memcached => format!("cachedyno-{}-", self.run),
            Product::Mysql => format!("cachedyno_{}_", self.run),
            Product::Files => String::new(),
        }
    }

    /// Removes from an existing server what this run left there when it was killed.
    fn remove_leftovers(
        &self,
        endpoint: &Endpoint,
        layouts: impl Iterator<Item = Layout>,
    ) -> Result<(), Failure> {
        let own = self.own_names(endpoint.product());
        if own.is_empty() {
            return Ok(());
        }
        let timeout = Duration::from_nanos(self.plan.timeout_ns);
        let mut admin = admin(endpoint, timeout)?;
        for layout in layouts {
            admin.clean(layout, &own)?;
        }
        Ok(())
    }

    /// A fresh store for one trial; `label` makes its names unique in the run.
    pub fn ready(
        &mut self,
        target: &PlannedTarget,
        workload: &Workload,
        label: &str,
    ) -> Result<Ready, Failure> {
        let existing = self.setup.endpoints.get(&target.name).cloned();
        let shared = existing.is_some();
        let (endpoint, server) = match (existing, target.product) {
            (Some(Endpoint::Files { directory }), _) => self.directory(&directory)?,
            (Some(endpoint), _) => (endpoint, None),
            (None, Product::Files) => self.directory(&self.setup.disk.clone())?,
            (None, product) => {
                let server = self.server(product, target)?;
                (server.endpoint().clone(), Some(server))
            }
        };
        let timeout = Duration::from_nanos(self.plan.timeout_ns);
        let mut admin = admin(&endpoint, timeout)?;
        if shared && !self.setup.allow_shared && !admin.facts()?.empty {
            return Err(not_ours(&endpoint));
        }
        let own = if shared { self.own_names(target.product) } else { String::new() };
        let name = if shared {
            format!("cachedyno_{}_{:x}_{label}", self.run, self.since_unix_ms)
        } else {
            "sessions".into()
        };
        let (value_bytes, connections) = match workload {
            Workload::Sessions(sessions) => (sessions.value_bytes, sessions.connections),
            Workload::Kv(_) => (0, Connections::Persistent),
        };
        let layout = layout(workload);
        let directory = admin.prepare(layout, &name, value_bytes)?;
        let keys_are_shared = target.product.keeps_keys();
        Ok(Ready {
            prefix: if keys_are_shared { own.clone() } else { String::new() },
            own,
            written: None,
            options: SessionOptions {
                connections,
                ttl_s: workload.ttl_s().max(1),
                timeout,
                table: name,
                directory,
            },
            layout,
            endpoint,
            admin,
            server,
        })
    }

    /// A new directory below `parent`, watched over by the guard.
    fn directory(&mut self, parent: &Path) -> Result<(Endpoint, Option<Server>), Failure> {
        let place = match self.shelves.entry(parent.to_path_buf()) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => free.insert(Shelf::new(&self.setup.guard, parent)?),
        };
        Ok((Endpoint::Files { directory: place.directory()? }, None))
    }

    fn server(&mut self, product: Product, target: &PlannedTarget) -> Result<Server, Failure> {
        let spec = ServerSpec {
            settings: target.settings.clone(),
            cpus: Some(self.setup.pinning.server.clone()),
            search: self.search.clone(),
            ..ServerSpec::new(self.setup.disk.clone())
        };
        let guard = &self.setup.guard;
        match product {
            Product::Redis => return Ok(rig::start_redis(guard, &spec)?),
            Product::Memcached => return Ok(rig::start_memcached(guard, &spec)?),
            Product::Files | Product::Mysql => {}
        }
        let template = match self.template.take() {
            Some(template) => template,
            None => MariadbTemplate::make(guard, &self.setup.disk, &self.search)?,
        };
        let server = rig::start_mariadb(guard, self.template.insert(template), &spec)?;
        Ok(server)
    }

    /// CPUs of the client threads: a store without a server has the whole machine's share that
    /// the others divide between clients and server.
    pub fn client_cpus(&self, ready: &Ready) -> Vec<usize> {
        let pinning = &self.setup.pinning;
        let mut cpus = pinning.generator.clone();
        if matches!(ready.endpoint, Endpoint::Files { .. }) {
            cpus.extend(pinning.server.iter().filter(|c| !pinning.generator.contains(c)));
        }
        cpus
    }
}

impl Ready {
    /// How clients reach it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What clients need to know.
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Put before every session's name; empty on a store of our own.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Facts, after one session was written and read.
    fn checked(&mut self) -> Result<Facts, Failure> {
        let facts = self.admin.facts()?;
        let id = format!("{}verify", self.prefix);
        self.admin.verify(self.layout, &self.options, &id)?;
        Ok(facts)
    }

    /// Product and version as the server reports it now.
    pub fn version(&mut self) -> Result<String, Failure> {
        Ok(self.admin.facts()?.version)
    }

    /// Process of the private server.
    pub fn server_pid(&self) -> Option<u32> {
        self.server.as_ref().map(Server::pid)
    }

    /// Why the private server no longer runs; `None` while it does.
    pub fn server_died(&self) -> Option<String> {
        self.server.as_ref().and_then(Server::died)
    }

    /// Removes what the trial left; stops a private server.
    pub fn finish(mut self) -> Result<(), Failure> {
        match self.server.take() {
            Some(server) => Ok(server.stop()?),
            None if self.own.is_empty() && matches!(self.endpoint, Endpoint::Redis { .. }) => {
                Ok(())
            }
            None => {
                let cleaned = self.admin.clean(self.layout, &self.own);
                let cleaned = cleaned.and_then(|()| self.remove_written());
                cleaned.map_err(|failure| unremoved(&self.own, failure))
            }
        }
    }

    /// Takes note of the keys that the trial may write, for stores that cannot list them.
    pub(crate) fn will_write(&mut self, names: &KeyNames, keys: u64) {
        let lists = !matches!(self.endpoint, Endpoint::Memcached(_));
        self.written = (!lists && !self.own.is_empty()).then(|| (names.clone(), keys));
    }

    /// Removes the trial's keys by name, and those behind them as long as there are any: inserts
    /// go on from the last planned one.
    fn remove_written(&mut self) -> Result<(), Failure> {
        let Some((names, keys)) = self.written.take() else { return Ok(()) };
        let mut first = 0;
        loop {
            let batch: Vec<Vec<u8>> = (first..first + REMOVED_AT_ONCE)
                .map(|key| {
                    let mut name = Vec::new();
                    names.append(&mut name, Key(key));
                    name
                })
                .filter(|name| name.starts_with(self.own.as_bytes()))
                .collect();
            first += REMOVED_AT_ONCE;
            if self.admin.remove_names(&batch)? == 0 && first >= keys {
                return Ok(());
            }
        }
    }
}

/// Keys and values lie as sessions do in the plain layout: each under its name.
fn layout(workload: &Workload) -> Layout {
    match workload {
        Workload::Sessions(sessions) => sessions.layout,
        Workload::Kv(_) => Layout::Plain,
    }
}

/// Says what is left behind in a store that we did not start.
fn unremoved(own: &str, failure: Failure) -> Failure {
    if own.is_empty() {
        return failure;
    }
    let Failure { class, message } = failure;
    let left = format!("what this run wrote is still there, remove what begins with `{own}`");
    Failure { class, message: format!("{left}: {message}") }
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

fn not_ours(endpoint: &Endpoint) -> Failure {
    Failure {
        class: ErrorClass::NotOurs,
        message: format!(
            "{endpoint} is not empty (use an empty one, or allow it with --allow-shared: keys \
             and tables of this run then carry its name, and only those are removed)"
        ),
    }
}
