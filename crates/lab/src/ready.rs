//! Stores prepared for one trial: a single store, or all stores of a cache backend.

use drivers::{Admin, CacheOptions, CleanupDeadline, Facts, MemoryStats, SessionOptions};
use model::{Backend, Endpoint, ErrorClass, Fact, Failure, Layout, Magento, MemoryUse, Product};
use rig::{GroupMembership, Relay, Role, RunningNeighbour, Server, TrialDirs};
use stats::format_bytes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};
use workloads::kv::{Key, KeyNames};

use crate::address::place;
use crate::fault_command::FaultCommand;
use crate::fleet::RemoteServers;
use crate::groups::Groups;
use crate::machine::Machine;

/// How long to wait for a server's death to show: a killed process closes its connections first.
const DEATH_SEEN_WITHIN: Duration = Duration::from_millis(500);
/// Keys removed by one request.
const REMOVED_AT_ONCE: u64 = 1000;
/// Upper bound of the inserts that a generator sends in a millisecond.
const INSERTS_PER_MS_MAX: u64 = 10_000;

/// Stores prepared for one trial. Dropping it stops their servers and removes their directories.
pub struct Ready {
    /// Never empty. For a backend, in the order of its products.
    pub(crate) stores: Vec<Store>,
    pub(crate) backend: Option<Backend>,
    /// Settings of the `Cm_Cache` backend.
    pub(crate) cm_settings: BTreeMap<String, String>,
    pub(crate) magento: Magento,
    pub(crate) layout: Layout,
    /// True for the key-value workload on a store with such a protocol.
    pub(crate) is_kv: bool,
    /// True for rows of a database, read through a cache if there are two stores.
    pub(crate) has_rows: bool,
    pub(crate) options: SessionOptions,
    /// Prefix of every session name.
    pub(crate) prefix: String,
    /// Directory on the disk with its data; `None` for a server at a URL.
    pub(crate) disk: Option<PathBuf>,
    /// A process that uses their CPU from time to time.
    pub(crate) neighbour: Option<RunningNeighbour>,
    /// The user's command that interrupts service at a URL; `None` for a workload without one.
    pub(crate) fault_command: Option<FaultCommand>,
    /// Control groups of servers and of clients of files. Dropped after the servers.
    pub(crate) groups: Groups,
}

/// One store.
pub(crate) struct Store {
    pub(crate) product: Product,
    pub(crate) endpoint: Endpoint,
    pub(crate) admin: Box<dyn Admin>,
    /// Prefix of this run's keys and tables in an existing store.
    pub(crate) own: String,
    /// Memory status of its servers before the first write, if it is watched.
    pub(crate) rooms: Vec<MemoryStats>,
    /// Free memory and disk before the first write, if the store's data are on this machine.
    pub(crate) machine: Option<Machine>,
    /// Names and number of the keys that the trial fills and reads, and the time from which it
    /// may insert more.
    pub(crate) written: Option<(KeyNames, u64, Instant)>,
    /// Servers started for it, the primary first. Empty for an existing store and for files.
    pub(crate) servers: Vec<(Role, Server)>,
    /// Servers started for it on another machine; `None` without any.
    pub(crate) remote: Option<RemoteServers>,
    /// Distance between clients and its server; `None` without one.
    pub(crate) relay: Option<Relay>,
    /// Directories of a store of files, removed when dropped.
    pub(crate) trial_dirs: Option<Arc<TrialDirs>>,
}

impl Ready {
    /// Endpoint for clients; the first store's if there are several.
    pub fn endpoint(&self) -> &Endpoint {
        &self.stores[0].endpoint
    }

    /// Endpoints of all stores.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.stores.iter().map(|s| &s.endpoint)
    }

    /// Options for session clients.
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Options for clients of an application cache.
    pub fn cache_options(&self) -> CacheOptions {
        CacheOptions {
            endpoints: self.endpoints().cloned().collect(),
            directory: self.options.directory.clone(),
            timeout: self.options.timeout,
            cm_settings: self.cm_settings.clone(),
            magento: self.magento,
        }
    }

    /// Prefix of every session name; empty on a private store.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// True if the store has a protocol of keys and values, which the wire engine speaks.
    pub(crate) fn has_key_protocol(&self) -> bool {
        self.stores[0].product.keeps_keys()
    }

    /// True if no store has a server that needs CPUs.
    pub(crate) fn is_serverless(&self) -> bool {
        self.stores.iter().all(|s| !s.product.has_server())
    }

    /// Products and versions as the servers report them now.
    pub fn version(&mut self) -> Result<String, Failure> {
        Ok(self.facts()?.version)
    }

    /// Facts of all stores. Settings of a backend, and of several stores, are prefixed with the
    /// product's name.
    pub(crate) fn facts(&mut self) -> Result<Facts, Failure> {
        let mut versions = Vec::new();
        let mut all =
            Facts { version: String::new(), empty: Some(true), configuration: Vec::new() };
        let has_several = self.stores.len() > 1;
        for store in &mut self.stores {
            let facts = store.admin.facts()?;
            versions.push(facts.version);
            all.empty = Facts::both_empty(all.empty, facts.empty);
            let product = store.product.name();
            let has_prefix = self.backend.is_some() || has_several;
            all.configuration.extend(facts.configuration.into_iter().map(|(name, value)| {
                (if has_prefix { format!("{product}.{name}") } else { name }, value)
            }));
        }
        all.version = versions.join(" and ");
        Ok(all)
    }

    /// Process ids of proxies before the private servers, which are among those of the servers.
    pub(crate) fn proxy_pids(&self) -> Vec<u32> {
        let proxies = self.servers().filter(|(role, _)| *role == Role::Proxy);
        proxies.map(|(_, proxy)| proxy.pid()).collect()
    }

    /// Process ids of the private servers.
    pub fn server_pids(&self) -> Vec<u32> {
        self.servers().map(|(_, server)| server.pid()).collect()
    }

    /// The private servers with their roles, each store's primary first.
    pub fn servers(&self) -> impl Iterator<Item = (Role, &Server)> {
        self.stores.iter().flat_map(|s| &s.servers).map(|(role, server)| (*role, server))
    }

    /// How the private servers ended, if some store has no server with its data any more.
    pub fn server_died(&self) -> Option<Death> {
        let is_one_of_several = self.stores.len() > 1;
        self.stores.iter().find_map(|store| store.death(is_one_of_several))
    }

    /// Explains a client's failure by the server's death, if it died.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        let lost =
            matches!(failure.class, ErrorClass::Closed | ErrorClass::Refused | ErrorClass::Killed);
        let until = Instant::now() + if lost { DEATH_SEEN_WITHIN } else { Duration::ZERO };
        loop {
            if let Some(death) = self.server_died() {
                return match self.memory_use() {
                    Ok(Some(MemoryUse { limit_bytes, oom_kills: 1.., .. })) => {
                        let limit = format_bytes(limit_bytes);
                        let program = death.program;
                        let fate =
                            format!("{program} used up its memory_limit of {limit} and died");
                        death.failure(ErrorClass::Killed, &fate, Some(&failure))
                    }
                    _ => death.seen(Some(&failure)),
                };
            }
            if self.server_pids().is_empty() || Instant::now() >= until {
                return failure;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs a load with this process in the control groups if clients access files: the kernel
    /// charges the page cache to the process that touches it, and throttles the process that reads.
    pub(crate) fn in_groups<T>(&self, load: impl FnOnce() -> T) -> Result<T, Failure> {
        let has_files = self.stores.iter().any(|s| !s.product.has_server());
        let inside = if has_files { self.groups.enter()? } else { Vec::new() };
        let result = load();
        inside.into_iter().try_for_each(GroupMembership::leave)?;
        Ok(result)
    }

    /// Keys that the stores report as evicted since they started.
    pub(crate) fn evicted(&mut self) -> u64 {
        let counters =
            self.stores.iter_mut().filter_map(|store| store.admin.counters().ok().flatten());
        counters.filter_map(|counters| counters.evicted).sum()
    }

    /// Statistics that the stores report. None of a cache whose rows expire all the time: its
    /// memory says nothing about the size of a key.
    pub(crate) fn numbers(&mut self) -> Vec<Fact> {
        if self.has_rows {
            return Vec::new();
        }
        let numbers = self.stores.iter_mut().filter_map(|store| store.admin.numbers().ok());
        numbers.flatten().collect()
    }

    /// Memory used under the limit so far; `None` if there is no limit.
    pub(crate) fn memory_use(&self) -> Result<Option<MemoryUse>, Failure> {
        self.groups.memory_use()
    }

    /// Removes the trial's data and stops private servers. Continues with the other stores if one
    /// fails. Once `stop` is set, cleanup gets a few more seconds only.
    pub fn finish(self, stop: &AtomicBool) -> Result<(), Failure> {
        let (layout, patience) = (self.layout, &mut CleanupDeadline::new(stop));
        let stores = self.stores.into_iter();
        let finished: Vec<_> = stores.map(|store| store.finish(layout, patience)).collect();
        let removed = self.groups.remove();
        let ended = self.neighbour.map_or(Ok(()), RunningNeighbour::stop);
        finished.into_iter().collect::<Result<(), Failure>>()?;
        removed.and(Ok(ended?))
    }

    /// Reopens the administrative connections to private servers: another one may have taken over,
    /// or it was started again.
    pub(crate) fn reconnect(&mut self) -> Result<(), Failure> {
        for store in self.stores.iter_mut().filter(|store| !store.servers.is_empty()) {
            store.admin = drivers::admin(&store.endpoint, self.options.timeout)?;
        }
        Ok(())
    }

    /// Notes which keys the trial may write, for stores that cannot list them.
    pub(crate) fn will_write(&mut self, names: &KeyNames, keys: u64) {
        let store = &mut self.stores[0];
        let by_name = !store.admin.lists_names() && !store.own.is_empty();
        store.written = by_name.then(|| (names.clone(), keys, Instant::now()));
    }
}

/// How a store's private servers ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Death {
    /// Description: `the server`, `the replica 127.0.0.1:7002, after the primary …`.
    who: String,
    /// Program of the server that matters.
    program: &'static str,
    /// Its signal or exit code, and the end of its log.
    how: String,
}

impl Death {
    /// The failure to report, with the error that a client saw.
    pub(crate) fn seen(&self, failure: Option<&Failure>) -> Failure {
        self.failure(ErrorClass::Closed, &format!("{} died", self.who), failure)
    }

    fn failure(&self, class: ErrorClass, fate: &str, seen: Option<&Failure>) -> Failure {
        let seen = seen.map_or_else(String::new, |f| format!("; a client saw: {}", f.message));
        // The log is long, so it goes last, after the reason.
        let (how, log) = self.how.split_once(Failure::LOG).unwrap_or((&self.how, ""));
        let log = if log.is_empty() { String::new() } else { [Failure::LOG, log].concat() };
        Failure { class, message: format!("{fate} ({how}){seen}{log}") }
    }
}

impl Store {
    /// How its servers ended; `None` while one of them still has its data.
    fn death(&self, is_one_of_several: bool) -> Option<Death> {
        // Without its proxy, a store has no address.
        let is_proxy = |(role, _): &&(Role, Server)| *role == Role::Proxy;
        if let Some((role, proxy)) = self.servers.iter().find(is_proxy)
            && let Some(how) = proxy.died()
        {
            let who = format!("the {} {}", role.name(), place(proxy.endpoint()));
            return Some(Death { who, program: proxy.name(), how });
        }
        let keeps_data = |(role, _): &&(Role, Server)| role.keeps_data();
        let all: Vec<_> = self.servers.iter().filter(keeps_data).collect();
        let deaths: Option<Vec<String>> = all.iter().map(|(_, server)| server.died()).collect();
        let how = deaths?.pop()?;
        // Report the last server, not the primary: the plan may have killed the primary, and the
        // last replica should have taken over.
        let ((role, last), before) = all.split_last()?;
        let name = |role: Role, server: &Server| {
            format!("the {} {}", role.name(), place(server.endpoint()))
        };
        let who = match before {
            [] if is_one_of_several => format!("the {} server", last.name()),
            [] => "the server".into(),
            before => {
                let before: Vec<String> = before.iter().map(|(r, s)| name(*r, s)).collect();
                format!("{}, after {},", name(*role, last), before.join(" and "))
            }
        };
        Some(Death { who, program: last.name(), how })
    }

    fn finish(mut self, layout: Layout, patience: &mut CleanupDeadline<'_>) -> Result<(), Failure> {
        drop(self.relay.take());
        if let Some(remote) = self.remote.take() {
            return remote.stop();
        }
        let stopped: Vec<_> = self.servers.drain(..).map(|(_, server)| server.stop()).collect();
        match stopped.is_empty() {
            false => Ok(stopped.into_iter().collect::<Result<(), _>>()?),
            true if self.trial_dirs.as_ref().is_some_and(|dirs| dirs.has_room()) => Ok(()),
            true if self.own.is_empty() && self.product.has_server() => Ok(()),
            true => {
                let cleaned = self.admin.clean(layout, &self.own, patience);
                let cleaned = cleaned.and_then(|()| self.remove_written(patience));
                cleaned.map_err(|failure| unremoved(&self.own, failure))
            }
        }
    }

    /// Removes the trial's keys by name, then the keys inserted after them until none is found.
    fn remove_written(&mut self, patience: &mut CleanupDeadline<'_>) -> Result<(), Failure> {
        let Some((names, keys, since)) = self.written.take() else { return Ok(()) };
        let inserts_max = since.elapsed().as_millis() as u64 * INSERTS_PER_MS_MAX;
        let most = keys.saturating_add(inserts_max).saturating_add(REMOVED_AT_ONCE);
        // A server that confirms this would make the loop below endless.
        let unwritten = [self.own.as_bytes(), b"never-written"].concat();
        if self.admin.remove_names(&[unwritten])? > 0 {
            let message = "the server confirms the removal of a key that was never written";
            return Err(Failure { class: ErrorClass::Protocol, message: message.into() });
        }
        let mut first = 0;
        loop {
            patience.check()?;
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
            if first >= most {
                let message = format!(
                    "the server confirms the removal of more than {most} keys (expected at most \
                     those that the run can have written)"
                );
                return Err(Failure { class: ErrorClass::Protocol, message });
            }
        }
    }
}

/// The error for data left behind in an existing store.
pub(crate) fn unremoved(own: &str, failure: Failure) -> Failure {
    if own.is_empty() {
        return failure;
    }
    let Failure { class, message } = failure;
    let left =
        format!("this run's data is still in the store, remove all names that start with `{own}`");
    Failure { class, message: format!("{left}: {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Confirms every removal except that of the never-written key.
    struct Yes;

    impl Admin for Yes {
        fn facts(&mut self) -> Result<Facts, Failure> {
            unreachable!()
        }
        fn prepare(&mut self, _: Layout, _: &str, _: usize) -> Result<PathBuf, Failure> {
            unreachable!()
        }
        fn verify(&mut self, _: Layout, _: &SessionOptions, _: &str) -> Result<(), Failure> {
            unreachable!()
        }
        fn clean(
            &mut self,
            _: Layout,
            _: &str,
            _: &mut CleanupDeadline<'_>,
        ) -> Result<(), Failure> {
            Ok(())
        }
        fn counters(&mut self) -> Result<Option<model::StoreCounters>, Failure> {
            unreachable!()
        }
        fn remove_names(&mut self, names: &[Vec<u8>]) -> Result<u64, Failure> {
            let written = names.iter().filter(|name| !name.ends_with(b"never-written"));
            Ok(written.count() as u64)
        }
    }

    #[test]
    fn removal_by_name_ends_where_a_run_cannot_have_written_more() {
        let mut store = Store {
            product: Product::Memcached,
            endpoint: Endpoint::parse("memcached://127.0.0.1:1").unwrap(),
            admin: Box::new(Yes),
            own: "run-1-".into(),
            written: Some((KeyNames::new("run-1-").unwrap(), 10, Instant::now())),
            servers: Vec::new(),
            remote: None,
            relay: None,
            trial_dirs: None,
            rooms: Vec::new(),
            machine: None,
        };
        let stop = AtomicBool::new(false);
        let failure = store.remove_written(&mut CleanupDeadline::new(&stop)).unwrap_err();
        assert_eq!(failure.class, ErrorClass::Protocol, "{failure}");
        assert!(failure.message.contains("more than"), "{failure}");
    }
}
