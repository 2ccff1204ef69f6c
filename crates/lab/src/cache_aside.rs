//! Clients of an application that reads rows through a cache: opened for a trial, or once to verify
//! that its stores work.

use model::{CacheAside, Endpoint, ErrorClass, Failure, ROW_BYTES_MIN};
use std::sync::Arc;
use std::time::Duration;
use workloads::cache_aside::{CacheAsideClient, Expiries, RowCache, RowDatabase, User, Users};
use workloads::{Client, Found, StoreError};

use crate::names::unreadable;
use crate::opening::{Opening, Those};
use crate::ready::Ready;

/// The database of a target, and the cache in front of it if there is one.
type Opened = (Box<dyn RowDatabase>, Option<Box<dyn RowCache>>);

fn open(endpoints: &[&Endpoint], ttl_s: u64, timeout: Duration) -> Result<Opened, Failure> {
    // The cache comes first, the database last.
    let Some((database, caches)) = endpoints.split_last() else {
        let message = "the target has no database".into();
        return Err(Failure { class: ErrorClass::Other, message });
    };
    let cache = caches.first().map(|cache| drivers::open_row_cache(cache, ttl_s, timeout));
    Ok((drivers::open_row_database(database, timeout)?, cache.transpose()?))
}

/// Inserts a row and reads it, and does the same with the cache. Errors: the step that failed.
pub(crate) fn verify(ready: &Ready) -> Result<(), Failure> {
    let endpoints: Vec<&Endpoint> = ready.endpoints().collect();
    let (mut database, mut cache) = open(&endpoints, 60, ready.options().timeout)?;
    let mut written = User::default();
    Users::new(0, ROW_BYTES_MIN).user_into(&mut written, 0);
    let mut read = User::default();
    database.insert(std::slice::from_ref(&written))?;
    if database.query(0, &mut read)? == Found::No || read != written {
        return Err(unexpected("a row was inserted, but a query returned something else"));
    }
    let Some(cache) = &mut cache else { return Ok(()) };
    let (mut json, mut value) = (Vec::new(), Vec::new());
    written.json_into(&mut json);
    cache.set("user:0", &json)?;
    if cache.get("user:0", &mut value)? == Found::No || value != json {
        return Err(unexpected("a row was cached, but the cache returned something else"));
    }
    Ok(())
}

fn unexpected(what: &str) -> Failure {
    StoreError::soft(ErrorClass::Protocol, what).into()
}

/// Clients, each with its own connections.
pub(crate) fn connect(
    opening: &Opening<Endpoint>,
    workload: &CacheAside,
    those: Those,
) -> Result<Vec<Box<dyn Client>>, Failure> {
    let endpoints: Vec<&Endpoint> = opening.endpoints.iter().collect();
    let expiries = Arc::new(Expiries::default());
    those
        .numbers()
        .map(|client| {
            let (database, cache) = open(&endpoints, workload.ttl_s, opening.options.timeout)?;
            let share = opening.share(client);
            let (workload, expiries) = (workload.clone(), expiries.clone());
            let opened = CacheAsideClient::new(database, cache, workload, share, expiries);
            Ok(Box::new(opened.map_err(unreadable)?) as Box<dyn Client>)
        })
        .collect()
}
