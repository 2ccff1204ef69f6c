//! Redis and what speaks its protocol (Valkey and others), by RESP2 over TCP or a unix socket.
//!
//! - `resp`: the codec, pure.
//! - `wire`: one connection with reusable buffers; a request is one write and usually one read.
//! - `control`: such a connection for questions around a load.
//! - `plain`, `page`, `admin`: the layouts and what is done around a run; `counters`: what a server
//!   tells of itself meanwhile, `version`: which one it is.
//! - [`cm`], `symfony`, `laravel`: layouts of application caches, over the counting connection of
//!   `counted`; `gathered` fills their sets.
//! - `replies`, [`requests`], [`cluster`], [`chosen`]: what the event loop of `load` sends and
//!   reads, and where; `survey` learns where anew, and [`sentinel`] which server is the primary;
//!   `own_keys`: which commands are safe on a server
//!   that others use.

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
pub(crate) mod own_keys;
mod page;
mod plain;
mod replies;
pub mod requests;
mod resp;
#[cfg(test)]
mod resp_tests;
pub mod sentinel;
mod stale;
pub(crate) mod survey;
mod symfony;
mod version;
mod wire;

use std::time::Duration;

use load::wire::route::{Route, Single};
use model::{Backend, Endpoint, ErrorClass, Failure, NetAddress, RedisWay};
use workloads::app_cache::TaggedCache;
use workloads::store::{PageStore, SessionStore, StoreError};

use crate::{CacheOptions, SessionOptions};
use chosen::{Chosen, ReadFrom};
use cluster::SlotMap;
use cm::{CmOptions, CmRedis};
use wire::Wire;

pub(crate) use admin::open_admin;
pub use control::{Control, InTurn};
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

/// Opens one client of an application cache that needs Redis alone.
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

/// The servers of an endpoint, of a cluster its primaries, each as an endpoint of its own; and
/// which of them a key lives on; where there are Sentinels, the present primary. Only a cluster and
/// these are connected to.
pub(crate) fn members(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<(Box<dyn Route>, Vec<Endpoint>), StoreError> {
    if let Some(primary) = sentinel::present(endpoint, timeout) {
        return Ok((Box::new(sentinel::Only(0)), vec![primary?]));
    }
    if !is_cluster(endpoint) {
        return Ok((Box::new(Single), vec![endpoint.clone()]));
    }
    cluster_members(endpoint, endpoint, timeout)
}

/// The same of a `cluster`, of whose servers the one `asked` tells.
pub(crate) fn cluster_members(
    cluster: &Endpoint,
    asked: &Endpoint,
    timeout: Duration,
) -> Result<(Box<dyn Route>, Vec<Endpoint>), StoreError> {
    let [(host, _), (asked_host, asked_port)] = [place(cluster)?, place(asked)?];
    let wrong = |problem: &dyn std::fmt::Display| {
        let message = format!("{asked_host}:{asked_port} tells of no usable cluster: {problem}");
        StoreError::fatal(ErrorClass::Other, message)
    };
    let answer = Wire::connect(asked, timeout)?.exchange(&[b"CLUSTER", b"SLOTS"])?;
    let map = SlotMap::from_slots(&answer, asked_host).map_err(|e| wrong(&e))?;
    if map.uncovered() > 0 {
        return Err(wrong(&format!("{} of its slots are served by nobody", map.uncovered())));
    }
    let (route, numbers) = Chosen::new(map, ReadFrom::Primaries).map_err(|e| wrong(&e))?;
    let nodes = numbers.iter().map(|number| {
        let node = &route.map().nodes()[*number];
        with_address(cluster, host, NetAddress::Tcp(node.host.clone(), node.port))
    });
    let nodes = nodes.collect();
    Ok((Box::new(route), nodes))
}

/// True for one that is reached by TCP, as servers of a cluster are, and is one.
fn is_cluster(endpoint: &Endpoint) -> bool {
    let Endpoint::Redis { address, way, .. } = endpoint else { return false };
    way.is_cluster && matches!(address, NetAddress::Tcp(..))
}

/// Host and port.
fn place(endpoint: &Endpoint) -> Result<(&str, u16), StoreError> {
    match endpoint {
        Endpoint::Redis { address: NetAddress::Tcp(host, port), .. } => Ok((host, *port)),
        _ => Err(StoreError::fatal(ErrorClass::Other, "not reached by TCP")),
    }
}

/// One server of a cluster. Its certificate is for the name by which the user knows the cluster.
fn with_address(cluster: &Endpoint, host: &str, address: NetAddress) -> Endpoint {
    let mut one = cluster.clone();
    if let Endpoint::Redis { address: own, way, .. } = &mut one {
        *own = address;
        *way = RedisWay { is_cluster: false, ..way.clone() };
        if let Some(tls) = &mut way.tls {
            tls.name.get_or_insert_with(|| host.into());
        }
    }
    one
}
