//! Clients of an application cache: opened for a trial, or once to verify that the cache works.

use drivers::CacheOptions;
use model::{AppCache, Backend, Endpoint, ErrorClass, Fact, Failure, Magento, Plan, Workload};
use std::sync::Arc;
use workloads::app_cache::{AppCacheClient, CleanMode, Ledger, Record, TaggedCache};
use workloads::{Client, Found, Share, StoreError};

use crate::data_files;
use crate::opening::{Opening, Those, part};

const ID: &str = "CACHEDYNO_VERIFY";
const TAG: &str = "CACHEDYNO_VERIFY_TAG";
const VALUE: &[u8] = b"cachedyno verifies that what was saved is loaded, and cleaned by its tag";

/// Saves a record, loads it, cleans it by its tag and expects a miss. Errors: the step that failed.
pub(crate) fn verify(backend: Backend, options: &CacheOptions) -> Result<(), Failure> {
    let mut cache = drivers::open_tagged_cache(backend, options)?;
    let steps = steps(cache.as_mut());
    steps.map_err(failure)
}

fn steps(cache: &mut dyn TaggedCache) -> Result<(), StoreError> {
    let tags = [TAG.to_string()];
    let mut value = Vec::new();
    cache.save(Record::new(ID, VALUE, &tags, Some(3600)))?;
    if cache.load(ID, &mut value)? == Found::No || value != VALUE {
        return Err(unexpected("a load returned something else"));
    }
    cache.clean(CleanMode::MatchingAnyTag, &tags)?;
    match cache.load(ID, &mut value)? {
        Found::No => Ok(()),
        Found::Yes => Err(unexpected("it still exists after its tag was cleaned")),
    }
}

/// Number of stale members in a cache's tag indexes after the load; `None` if it has no such index.
pub(crate) fn stale_members(
    backend: Backend,
    options: &CacheOptions,
) -> Result<Option<Fact>, Failure> {
    let counted = drivers::open_tagged_cache(backend, options)?.stale_members();
    let counted = counted.map_err(failure).map_err(|Failure { class, message }| {
        let message = format!("while stale members were counted: {message}");
        Failure { class, message }
    })?;
    let (name, source) = (Fact::STALE_MEMBERS.into(), "store".into());
    Ok(counted.map(|members| Fact { name, value: members as f64, source }))
}

fn failure(StoreError { class, message, .. }: StoreError) -> Failure {
    Failure { class, message }
}

fn unexpected(what: &str) -> StoreError {
    StoreError::soft(ErrorClass::Protocol, format!("record `{ID}` was saved, but {what}"))
}

/// Magento's layer above a target's backend, the same in all of its cells.
pub(crate) fn layer(plan: &Plan, target: &str) -> Magento {
    let cells = plan.cells.iter().filter(|cell| cell.target == target);
    let mut layers = cells.filter_map(|cell| match &cell.workload {
        Workload::AppCache(cache) => Some(cache.magento),
        _ => None,
    });
    layers.next().unwrap_or_default()
}

/// Clients, each with its own connections. Those of several processes are of different shops, which
/// share the cache: each has its part of the records and tags, so that its clients know all writes
/// to them.
pub(crate) fn connect(
    opening: &Opening<Endpoint>,
    workload: &AppCache,
    those: Those,
) -> Result<Vec<Box<dyn Client>>, Failure> {
    let mut clients = of_shop(opening, workload, those)?;
    if let Some(first) = clients.first_mut().filter(|_| those.processes == 1) {
        first.introduce_tags().map_err(failure)?;
    }
    Ok(clients.into_iter().map(|client| Box::new(client) as Box<dyn Client>).collect())
}

/// Introduces the tags of several shops, where clients that did so at the same time would lose
/// records. Called before any of them fills.
pub(crate) fn introduce_tags(
    opening: &Opening<Endpoint>,
    workload: &AppCache,
    processes: u32,
) -> Result<(), Failure> {
    for process in 0..processes {
        let one = Those { process, processes, ..Those::all(1) };
        for mut client in of_shop(opening, workload, one)? {
            client.introduce_tags().map_err(failure)?;
        }
    }
    Ok(())
}

/// Clients of one shop.
fn of_shop(
    opening: &Opening<Endpoint>,
    workload: &AppCache,
    those: Those,
) -> Result<Vec<AppCacheClient>, Failure> {
    let Some(backend) = opening.backend else {
        let message = format!("{} is not an application cache", opening.endpoint()?);
        return Err(Failure { class: ErrorClass::Other, message });
    };
    let Those { clients, process, processes, .. } = those;
    let part = |all| part(all, (process.into(), processes.into())).max(1);
    let (keys, tags) = (part(workload.keys), part(workload.tags));
    let workload = AppCache { keys, tags, ..workload.clone() };
    let seed = opening.seed.wrapping_add(u64::from(process));
    let ledger = Arc::new(ledger(&workload, seed, clients)?);
    let options = opening.cache_options();
    // Only this run uses the store, so only shops need a prefix.
    let prefix = if processes == 1 { String::new() } else { format!("SHOP{}_", process + 1) };
    let open = |client| {
        let store = drivers::open_tagged_cache(backend, &options)?;
        let share = Share { seed, client, clients, prefix: prefix.clone() };
        Ok(AppCacheClient::new(store, workload.clone(), share, Arc::clone(&ledger)))
    };
    (0..clients).map(open).collect()
}

/// State shared by all clients, with records and operation lists drawn or read from files.
fn ledger(workload: &AppCache, seed: u64, clients: u32) -> Result<Ledger, Failure> {
    let Some(files) = &workload.files else { return Ok(Ledger::drawn(workload, seed, clients)) };
    let (data, lists) = data_files::read(files, seed)
        .map_err(|e| Failure { class: ErrorClass::Other, message: e.to_string() })?;
    Ok(Ledger::new(data, lists, workload, clients))
}
