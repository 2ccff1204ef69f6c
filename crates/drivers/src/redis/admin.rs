//! Administration of a Redis server around a run.

use std::iter;
use std::thread;
use std::time::{Duration, Instant};

use load::wire::route::{Route, Single};
use model::{BackgroundWrite, Endpoint, ErrorClass, Fact, Failure, Layout, StoreCounters};
use workloads::store::StoreError;
use workloads::values;

use super::counters::{counters, facts, info, last_failed, memory_stats};
use super::errors::known;
use super::own_keys;
use super::page::{KEY_PREFIX, LOCK_SUFFIX};
use super::resp::Tree;
use super::server::{Part, Server, check_patience};
use super::version::version;
use super::{ClusterDeadline, behind, cluster_members, is_cluster, members};
use crate::wire::Dialect;
use crate::{Admin, CleanupDeadline, Facts, MemoryStats, SessionOptions, admin, fault};

/// How long cleanup retries while a server is unavailable or busy.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// Keys written to check which servers are behind a proxy: one with a twentieth of the keys is
/// missed twice in a million times.
const KEYS_BEHIND: u32 = 256;
/// Pause between these retries.
const PAUSE: Duration = Duration::from_millis(100);

struct RedisAdmin {
    /// All servers with data, of a cluster every primary.
    servers: Vec<Server>,
    /// The proxy before them, if any: only it knows which of them has a key.
    proxy: Option<Server>,
    route: Box<dyn Route>,
    /// The user's endpoint if it is a cluster.
    cluster: Option<Endpoint>,
    /// Timeout of one request.
    timeout: Duration,
}

pub(crate) fn open_admin(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<Box<dyn Admin>, StoreError> {
    let behind = behind(endpoint);
    let (mut route, mut endpoints): (Box<dyn Route>, _) = (Box::new(Single), behind);
    let proxy = if endpoints.is_empty() {
        (route, endpoints) = members(endpoint, timeout)?;
        None
    } else {
        Some(Server::open(endpoint.clone(), Part::Proxy, timeout)?)
    };
    let cluster = is_cluster(endpoint).then(|| endpoint.clone());
    let part = if cluster.is_some() { Part::Member } else { Part::Alone };
    let in_turn = ClusterDeadline::new(timeout);
    let server = |endpoint: Endpoint| {
        in_turn.check().map_err(|e| StoreError::fatal(e.class, e.message))?;
        let mut server = Server::open(endpoint, part, timeout)?;
        server.answers_info()?;
        Ok(server)
    };
    let servers = endpoints.into_iter().map(server).collect::<Result<_, StoreError>>()?;
    Ok(Box::new(RedisAdmin { servers, proxy, route, cluster, timeout }))
}

impl RedisAdmin {
    /// The server to ask for a key.
    fn at(&mut self, key: &[u8]) -> &mut Server {
        match &mut self.proxy {
            Some(proxy) => proxy,
            None => &mut self.servers[self.route.node(key)],
        }
    }

    /// Updates the owners of a cluster's slots: servers can have joined, and replicas can have
    /// taken over.
    fn follow_cluster(&mut self) -> Result<(), StoreError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let known = self.servers.iter().map(|server| &server.endpoint);
        let mut queried = iter::once(cluster).chain(known);
        let reported = |queried| cluster_members(cluster, queried, self.timeout).ok();
        // If no server answers, the known ones will report the error.
        let Some((route, endpoints)) = queried.find_map(reported) else { return Ok(()) };
        for endpoint in &endpoints {
            if self.servers.iter().all(|server| server.endpoint != *endpoint) {
                self.servers.push(Server::open(endpoint.clone(), Part::Member, self.timeout)?);
            }
        }
        // In the order of the route's numbering.
        self.servers.retain(|server| endpoints.contains(&server.endpoint));
        let place = |server: &Server| endpoints.iter().position(|e| *e == server.endpoint);
        self.servers.sort_by_key(place);
        self.route = route;
        Ok(())
    }

    /// Removes keys from every server that is not yet in `done`, and adds it there.
    fn remove(
        &mut self,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
        done: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        self.follow_cluster()?;
        for server in &mut self.servers {
            let address = server.address();
            if !done.contains(&address) {
                server.remove(prefix, patience)?;
                done.push(address);
            }
        }
        Ok(())
    }
}

/// True for an error that can be temporary: the server restarts or is busy.
fn is_temporary(e: &StoreError) -> bool {
    let temporary = ["`LOADING ", "`BUSY ", "`MASTERDOWN ", "`TRYAGAIN "];
    matches!(e.class, ErrorClass::Timeout | ErrorClass::Closed | ErrorClass::Refused)
        || temporary.iter().any(|code| e.message.contains(code))
}

/// One of the keys that show which servers are behind a proxy. Hashes of a proxy such as FNV-1a put
/// keys that differ only in their last digits next to each other, and thus on one server.
fn key_behind(prefix: &str, n: u32) -> String {
    format!("{prefix}behind-{:016x}", values::mix(&[u64::from(n)]))
}

/// Adds a hint if the given server turned out to be a member of a cluster.
fn with_cluster_hint(failure: Failure) -> Failure {
    if !failure.message.contains("`MOVED ") {
        return failure;
    }
    let message = format!(
        "{}: it is a member of a cluster (expected redis+cluster://HOST:PORT)",
        failure.message
    );
    Failure { message, ..failure }
}

impl Admin for RedisAdmin {
    fn facts(&mut self) -> Result<Facts, Failure> {
        let (mut versions, mut settings, mut empty) = (Vec::new(), Vec::new(), Some(true));
        let in_turn = ClusterDeadline::new(self.timeout);
        for server in &mut self.servers {
            in_turn.check()?;
            versions.push(version(&server.info()?));
            let size = known(server.wire.ask(&[b"DBSIZE"]))?;
            empty = Facts::both_empty(empty, size.map(|size| size == Tree::Integer(0)));
            let configuration = server.configuration()?;
            settings.push((server.address(), configuration));
        }
        Ok(Facts {
            version: admin::versions(versions),
            empty,
            configuration: admin::merge_settings(settings),
        })
    }

    fn check_behind(&mut self, prefix: &str) -> Result<(), Failure> {
        let Some(proxy) = &mut self.proxy else { return Ok(()) };
        let mut elsewhere = 0;
        for n in 0..KEYS_BEHIND {
            let key = key_behind(prefix, n);
            let key = key.as_bytes();
            proxy.wire.ask(&[b"SET", key, b"cachedyno", b"EX", b"60"])?;
            let servers = self.servers.iter_mut();
            let found = servers.map(|server| server.wire.exchange(&[b"EXISTS", key]));
            let found: Result<Vec<Tree>, StoreError> = found.collect();
            proxy.wire.ask(&[b"DEL", key])?;
            elsewhere += u32::from(!found?.contains(&Tree::Integer(1)));
        }
        if elsewhere == 0 {
            return Ok(());
        }
        let message = format!(
            "of {KEYS_BEHIND} keys written through {}, {elsewhere} are on none of the servers \
             that `?behind=` names (expected all servers of the proxy: the others would be \
             neither checked for your data nor cleaned)",
            proxy.address()
        );
        Err(Failure { class: ErrorClass::Refused, message })
    }

    fn probe(&mut self, key: &str) -> Result<(), Failure> {
        let server = self.at(key.as_bytes());
        let probed = server.probe(key).and_then(|()| server.has_every_slot(key));
        probed.map_err(Failure::from).map_err(with_cluster_hint)
    }

    fn read(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut answer = self.at(key).wire.ask(&[b"GET", key]);
        if answer.is_err() && self.cluster.is_some() {
            // A replica can have taken over.
            self.follow_cluster()?;
            answer = self.at(key).wire.ask(&[b"GET", key]);
        }
        match answer.map_err(Failure::from).map_err(with_cluster_hint)? {
            Tree::Text(value) => Ok(Some(value)),
            Tree::Nil => Ok(None),
            _ => {
                let message = format!("`GET {}` did not return a string", fault::printable(key));
                Err(Failure { class: ErrorClass::Protocol, message })
            }
        }
    }

    fn verify(
        &mut self,
        layout: Layout,
        options: &SessionOptions,
        id: &str,
    ) -> Result<(), Failure> {
        let server = self.at(id.as_bytes());
        let result = admin::round_trip(&server.endpoint, layout, options, id);
        let key = match layout {
            Layout::Plain => id.to_string(),
            Layout::Page => format!("{KEY_PREFIX}{id}"),
        };
        let lock = format!("{key}{LOCK_SUFFIX}");
        let mut request: Vec<&[u8]> = vec![b"UNLINK", key.as_bytes()];
        if layout == Layout::Page {
            request.push(lock.as_bytes());
        }
        let result = result.and(server.lists_keys().map_err(Failure::from));
        let result = result.and(server.wire.ask(&request).map(drop).map_err(Failure::from));
        result
            .and_then(|()| server.has_every_slot(id).map_err(Failure::from))
            .map_err(with_cluster_hint)
    }

    fn check_commands(&mut self, commands: &[&str]) -> Result<(), Failure> {
        for command in commands {
            admin::check_own_keys(Dialect::Redis, command)?;
            own_keys::check_with_server(&mut self.servers[0].wire, command)?;
        }
        Ok(())
    }

    fn clean(
        &mut self,
        layout: Layout,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        admin::check_prefix(prefix)?;
        let keys = match layout {
            Layout::Plain => prefix.to_string(),
            Layout::Page => format!("{KEY_PREFIX}{prefix}"),
        };
        // Retries while a server is unavailable or a replica is taking over.
        let (since, mut done) = (Instant::now(), Vec::new());
        loop {
            match self.remove(&keys, patience, &mut done) {
                Err(e) if is_temporary(&e) && since.elapsed() < RETRY_MAX => {
                    check_patience(patience)?;
                    thread::sleep(PAUSE);
                }
                removed => return removed.map_err(Failure::from),
            }
        }
    }

    fn counters(&mut self) -> Result<Option<StoreCounters>, Failure> {
        let of_server = |server: &mut Server| {
            let text = info(&mut server.wire, &mut server.takes_one_section)?;
            Ok(counters(&text))
        };
        admin::merge_counters(self.servers.iter_mut().map(of_server))
    }

    fn numbers(&mut self) -> Result<Vec<Fact>, Failure> {
        let mut all: Vec<Fact> = Vec::new();
        for server in &mut self.servers {
            let text = info(&mut server.wire, &mut server.takes_one_section);
            for fact in facts(&text?) {
                match all.iter_mut().find(|known| known.name == fact.name) {
                    Some(known) if fact.name != Fact::FORK_NS && !fact.about().is_empty() => {
                        known.value += fact.value;
                    }
                    Some(known) => known.value = known.value.max(fact.value),
                    None => all.push(fact),
                }
            }
        }
        Ok(all)
    }

    fn write(&mut self, what: BackgroundWrite) -> Result<(), Failure> {
        let command: &[u8] = match what {
            BackgroundWrite::Save => b"BGSAVE",
            BackgroundWrite::Rewrite => b"BGREWRITEAOF",
        };
        for server in &mut self.servers {
            match server.wire.ask(&[command]) {
                Err(e) if !e.message.contains("already in progress") => {
                    return Err(unsaved(&e.message).unwrap_or_else(|| e.into()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn write_failure(&mut self, what: BackgroundWrite) -> Result<Option<Failure>, Failure> {
        for server in &mut self.servers {
            let text = info(&mut server.wire, &mut server.takes_one_section)?;
            if last_failed(&text, what) {
                let (name, server) = (what.name(), server.address());
                let message = format!(
                    "the {name} of {server} began and failed: its disk was full, or its child \
                     process was killed, for example by a limit of memory"
                );
                return Ok(Some(Failure { class: ErrorClass::Full, message }));
            }
        }
        Ok(None)
    }

    fn memory_stats(&mut self) -> Result<Vec<MemoryStats>, Failure> {
        let of_server = |server: &mut Server| {
            let text = info(&mut server.wire, &mut server.takes_one_section)?;
            Ok(MemoryStats { server: server.address(), ..memory_stats(&text) })
        };
        Ok(self.servers.iter_mut().map(of_server).collect::<Result<_, StoreError>>()?)
    }
}

/// The failure of a save for which the server could not fork, given its error; `None` for another
/// one. Redis answers a bare `ERR` then, and writes to its log why.
fn unsaved(error: &str) -> Option<Failure> {
    let is_fork = error.contains("answered `ERR`") || error.contains("allocate memory");
    let message = format!(
        "the server cannot save: {error}. A save forks, and the kernel refuses that unless all \
         memory of the server fits once more (expected `sysctl vm.overcommit_memory=1`, or more \
         memory and swap)"
    );
    is_fork.then_some(Failure { class: ErrorClass::Full, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a as proxies use it: 32 bits, with the low half of the prime and start of 64 bits.
    fn fnv1a(key: &str) -> u32 {
        let start = 0x8422_2325;
        key.bytes().fold(start, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x1b3))
    }

    #[test]
    fn keys_behind_a_proxy_reach_every_server_of_twenty() {
        for prefix in ["", "cdyno:d57ce9bb:", "cdyno:0123abcd:x:"] {
            let keys = (0..KEYS_BEHIND).map(|n| key_behind(prefix, n));
            let mut reached: Vec<u64> =
                keys.map(|key| values::pick(u64::from(fnv1a(&key)) << 32, 20)).collect();
            reached.sort_unstable();
            reached.dedup();
            assert_eq!(reached, (0..20).collect::<Vec<u64>>(), "{prefix}");
        }
    }

    #[test]
    fn a_save_that_cannot_fork_names_the_setting_of_the_kernel() {
        for reply in ["ERR", "ERR Can't save in background: fork: Cannot allocate memory"] {
            let failure = unsaved(&format!("the server answered `{reply}`")).unwrap();
            assert_eq!(failure.class, ErrorClass::Full);
            assert!(failure.message.contains("`sysctl vm.overcommit_memory=1`"), "{failure}");
        }
        assert_eq!(unsaved("the server answered `NOPERM this user`"), None);
    }
}
