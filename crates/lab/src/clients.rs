//! The blocking clients of a trial, by workload.

use model::{Cell, Endpoint, Failure, Layout, Sessions, Workload};
use std::sync::Arc;
use workloads::{Client, PageClient, PlainClient, SharedSession};

use crate::opening::{Opening, Those};
use crate::provision::TargetProvisioner;
use crate::ready::Ready;
use crate::{app_cache, cache_aside, entries};

/// What clients of a cell need on its prepared stores.
pub(crate) fn opening(
    provisioner: &TargetProvisioner<'_>,
    ready: &Ready,
    cell: &Cell,
    seed: u64,
) -> Opening<Endpoint> {
    let generator = &provisioner.setup.pinning.generator;
    let mut more_cpus = provisioner.client_cpus(ready);
    more_cpus.retain(|cpu| !generator.contains(cpu));
    Opening {
        workload: cell.workload.clone(),
        load: cell.load.clone(),
        seed,
        endpoints: ready.endpoints().cloned().collect(),
        backend: ready.backend,
        cm_settings: ready.cm_settings.clone(),
        magento: ready.magento,
        options: ready.options().clone(),
        prefix: ready.prefix().into(),
        stall_ns: provisioner.plan.stall_ns,
        more_cpus,
    }
}

/// Opens clients, each with its own connections.
pub(crate) fn open(
    opening: &Opening<Endpoint>,
    those: Those,
) -> Result<Vec<Box<dyn Client>>, Failure> {
    match &opening.workload {
        Workload::Sessions(sessions) => of_sessions(opening, sessions, those),
        Workload::AppCache(cache) => app_cache::connect(opening, cache, those),
        Workload::CacheAside(aside) => cache_aside::connect(opening, aside, those),
        Workload::Kv(kv) => entries::connect(opening, kv, those),
    }
}

fn of_sessions(
    opening: &Opening<Endpoint>,
    workload: &Sessions,
    those: Those,
) -> Result<Vec<Box<dyn Client>>, Failure> {
    let shared = opening.load.one_session.then(|| Arc::new(SharedSession::default()));
    let (endpoint, options) = (opening.endpoint()?, &opening.options);
    let open = |client| {
        let share = opening.share(client);
        let workload = workload.clone();
        let client: Box<dyn Client> = match workload.layout {
            Layout::Plain => {
                let store = drivers::open_session_store(endpoint, options)?;
                Box::new(PlainClient::new(store, workload, share))
            }
            Layout::Page => {
                let store = drivers::open_page_store(endpoint, options)?;
                Box::new(PageClient::new(store, workload, share, shared.clone()))
            }
        };
        Ok(client)
    };
    those.numbers().map(open).collect()
}
