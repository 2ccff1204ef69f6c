//! Redis and compatible servers such as Valkey, with RESP2 over TCP or a unix socket.
//!
//! - `resp`: the codec, pure.
//! - `wire`: one connection with reusable buffers; a request is one write and usually one read.
//! - `control`: a connection for queries around a load.
//! - `plain`, `page`: the session layouts; `admin`, `server`: administration around a run;
//!   `counters`: server statistics during a run; `version`: product and version.
//! - `rows`: cached rows of a database; `lock`: locks of sessions and rows.
//! - [`cm`], `symfony`, `laravel`: layouts of application caches, on the counting connection of
//!   `counted`; `gathered` fills their sets.
//! - `replies`, [`requests`], [`cluster`], [`chosen`]: requests, replies and routing for the event
//!   loop of `load`; `survey` refreshes the routing, and [`sentinel`] finds the primary;
//!   `own_keys`: commands that are safe on a shared server; [`operator`]: what an operator does.

mod admin;
pub mod chosen;
pub mod cluster;
pub mod cm;
mod control;
mod counted;
mod counters;
mod errors;
mod gathered;
pub mod hello;
mod judge;
mod laravel;
mod lock;
pub mod operator;
pub(crate) mod own_keys;
mod page;
mod plain;
mod replies;
pub mod requests;
mod resp;
#[cfg(test)]
mod resp_tests;
mod rows;
pub mod sentinel;
mod server;
mod stale;
pub(crate) mod survey;
mod symfony;
mod version;
mod wire;

use std::time::Duration;

use load::wire::route::{Route, Single};
use model::{Backend, Endpoint, ErrorClass, Failure, NetAddress, RedisOptions};
use workloads::app_cache::TaggedCache;
use workloads::cache_aside::RowCache;
use workloads::store::{PageStore, SessionStore, StoreError};

use crate::rows::waiting::Waiting;
use crate::{CacheOptions, SessionOptions};
use chosen::{ReadFrom, SelectedNodes};
use cluster::SlotMap;
use cm::{CmOptions, CmRedis};
use wire::Wire;

pub(crate) use admin::open_admin;
pub use control::{ClusterDeadline, Control};
pub use replies::Replies;
pub use resp::Tree;

pub(crate) fn open_plain(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn SessionStore>, StoreError> {
    let wire = Wire::connect(endpoint, options.timeout)?;
    Ok(Box::new(plain::Plain::new(wire, options.ttl_s)))
}

pub(crate) fn open_page(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn PageStore>, StoreError> {
    let wire = Wire::connect(endpoint, options.timeout)?;
    Ok(Box::new(page::Page::new(wire, options.ttl_s)))
}

/// Opens one client of a cache in front of a database.
pub(crate) fn open_rows(
    endpoint: &Endpoint,
    ttl_s: u64,
    timeout: Duration,
) -> Result<Box<dyn RowCache>, StoreError> {
    let rows = rows::Rows::new(Wire::connect(endpoint, timeout)?, ttl_s);
    Ok(Box::new(Waiting::new(rows, timeout)))
}

/// Opens one client of an application cache that uses only Redis.
pub(crate) fn open_cache(
    backend: Backend,
    options: &CacheOptions,
) -> Result<Box<dyn TaggedCache>, Failure> {
    let endpoint = options.only_endpoint("Redis")?;
    let timeout = options.timeout;
    let cm = |defaults: CmOptions| {
        let chosen = defaults.with(&options.cm_settings)?;
        Ok(Box::new(CmRedis::open(endpoint, chosen, timeout)?) as Box<_>)
    };
    match backend {
        Backend::CmRedis => cm(CmOptions::as_2019()),
        Backend::CmRedisLua => cm(CmOptions::today()),
        Backend::SymfonyRedis => {
            let cache = symfony::Symfony::open(endpoint, timeout)?;
            Ok(Box::new(cache))
        }
        Backend::LaravelRedis => {
            let cache = laravel::Laravel::open(endpoint, timeout)?;
            Ok(Box::new(cache))
        }
        other => {
            let message = format!("backend `{other:?}` does not keep its records on Redis");
            Err(Failure { class: ErrorClass::Other, message })
        }
    }
}

/// Opens the last of a backend's stores as its slow level: `Cm_Cache_Backend_Redis` of 2019.
pub(crate) fn open_slow_level(options: &CacheOptions) -> Result<CmRedis, Failure> {
    let endpoint = options.last_endpoint()?;
    let chosen = CmOptions::as_2019().with(&options.cm_settings)?;
    CmRedis::open(endpoint, chosen, options.timeout)
}

/// The servers that a load goes to (the primaries of a cluster, the current primary of a Sentinel
/// setup, a proxy), each as its own endpoint, and the route from keys to servers. Connects only to
/// a cluster and to Sentinels.
pub(crate) fn members(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<(Box<dyn Route>, Vec<Endpoint>), StoreError> {
    if let Some(primary) = sentinel::current_primary(endpoint, timeout) {
        return Ok((Box::new(sentinel::Only(0)), vec![primary?]));
    }
    if !is_cluster(endpoint) {
        return Ok((Box::new(Single), vec![endpoint.clone()]));
    }
    cluster_members(endpoint, endpoint, timeout)
}

/// The servers with the data of a proxy, each as its own endpoint; empty without a proxy.
pub(crate) fn behind(endpoint: &Endpoint) -> Vec<Endpoint> {
    let one = |address: &NetAddress| {
        let mut one = endpoint.clone();
        if let Endpoint::Redis { address: own, options, .. } = &mut one {
            *own = address.clone();
            options.behind.clear();
        }
        one
    };
    endpoint.behind().iter().map(one).collect()
}

/// Like [`members`] for a `cluster`, whose servers are queried from the one in `contact`.
pub(crate) fn cluster_members(
    cluster: &Endpoint,
    contact: &Endpoint,
    timeout: Duration,
) -> Result<(Box<dyn Route>, Vec<Endpoint>), StoreError> {
    let [(host, _), (contact_host, contact_port)] =
        [host_and_port(cluster)?, host_and_port(contact)?];
    let wrong = |problem: &dyn std::fmt::Display| {
        let message =
            format!("{contact_host}:{contact_port} does not report a usable cluster: {problem}");
        StoreError::fatal(ErrorClass::Other, message)
    };
    let answer = Wire::connect(contact, timeout)?.exchange(&[b"CLUSTER", b"SLOTS"]);
    let answer = answer.map_err(|e| match e.class {
        ErrorClass::Closed => StoreError { message: no_member(contact_host, contact_port), ..e },
        _ => e,
    })?;
    let map = SlotMap::from_slots(&answer, contact_host).map_err(|e| wrong(&e))?;
    if map.uncovered() > 0 {
        return Err(wrong(&lacking(map.uncovered())));
    }
    let (route, numbers) = SelectedNodes::new(map, ReadFrom::Primaries).map_err(|e| wrong(&e))?;
    let nodes = numbers.iter().map(|number| {
        let node = &route.map().nodes()[*number];
        with_address(cluster, host, NetAddress::Tcp(node.host.clone(), node.port))
    });
    let nodes = nodes.collect();
    Ok((Box::new(route), nodes))
}

/// The error for a server that closes the connection when it is asked for a cluster's slots.
fn no_member(host: &str, port: u16) -> String {
    format!(
        "{host}:{port} closes the connection on `CLUSTER SLOTS`, as a proxy does that refuses the \
         command (expected a member of a cluster, or a proxy with the servers behind it in its \
         URL: redis://HOST:PORT?behind=HOST:PORT,HOST:PORT)"
    )
}

/// What a cluster lacks some of whose slots no server owns.
fn lacking(slots: u16) -> String {
    let have = if slots == 1 { "has" } else { "have" };
    format!(
        "{slots} of its slots {have} no server (expected none without: `redis-cli --cluster fix` \
         assigns them)"
    )
}

/// True for a cluster reached over TCP, as all clusters are.
fn is_cluster(endpoint: &Endpoint) -> bool {
    let Endpoint::Redis { address, options, .. } = endpoint else { return false };
    options.is_cluster && matches!(address, NetAddress::Tcp(..))
}

/// Host and port.
fn host_and_port(endpoint: &Endpoint) -> Result<(&str, u16), StoreError> {
    match endpoint {
        Endpoint::Redis { address: NetAddress::Tcp(host, port), .. } => Ok((host, *port)),
        _ => Err(StoreError::fatal(ErrorClass::Other, "not a TCP address")),
    }
}

/// The endpoint of one server of a cluster. Its certificate must match the host name by which the
/// user addresses the cluster.
fn with_address(cluster: &Endpoint, host: &str, address: NetAddress) -> Endpoint {
    let mut one = cluster.clone();
    if let Endpoint::Redis { address: own, options, .. } = &mut one {
        *own = address;
        *options = RedisOptions { is_cluster: false, ..options.clone() };
        if let Some(tls) = &mut options.tls {
            tls.name.get_or_insert_with(|| host.into());
        }
    }
    one
}
