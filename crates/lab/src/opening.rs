//! What the blocking clients of a trial need to be opened, and which of them a process opens.

use drivers::{CacheOptions, SessionOptions};
use load::{Engine, Settings};
use model::{Backend, Endpoint, ErrorClass, Failure, Load, Magento, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use workloads::Share;

/// What the clients of a trial need. `E` is how endpoints are given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Opening<E> {
    pub(crate) workload: Workload,
    pub(crate) load: Load,
    pub(crate) seed: u64,
    /// Endpoints of all stores, never empty.
    pub(crate) endpoints: Vec<E>,
    pub(crate) backend: Option<Backend>,
    /// Settings of the `Cm_Cache` backend.
    pub(crate) cm_settings: BTreeMap<String, String>,
    pub(crate) magento: Magento,
    pub(crate) options: SessionOptions,
    /// Prefix of every session name.
    pub(crate) prefix: String,
    /// Time without any answer after which the trial ends, nanoseconds; 0 for no limit.
    pub(crate) stall_ns: u64,
    /// CPUs besides those of the generator, for clients of a store without a server.
    pub(crate) more_cpus: Vec<usize>,
}

/// The clients of one process among all clients of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Those {
    /// Number of the first, and of them.
    pub(crate) first: u32,
    pub(crate) clients: u32,
    /// Number of this process, from 0, and of all processes with clients.
    pub(crate) process: u32,
    pub(crate) processes: u32,
}

impl Those {
    /// All clients of a load, in one process.
    pub(crate) fn all(clients: u32) -> Self {
        Self { first: 0, clients, process: 0, processes: 1 }
    }

    /// The clients of a process, of which there are at most as many as clients.
    pub(crate) fn of_process(clients: u32, (process, processes): (u32, u32)) -> Self {
        let of = |process: u32| part(clients.into(), (process.into(), processes.into())) as u32;
        let first = (0..process).map(of).sum();
        Self { first, clients: of(process), process, processes }
    }

    /// Numbers of the clients.
    pub(crate) fn numbers(self) -> std::ops::Range<u32> {
        self.first..self.first + self.clients
    }
}

/// The part of `all` things that process `process`, from 0, of `processes` has.
pub(crate) fn part(all: u64, (process, processes): (u64, u64)) -> u64 {
    all / processes + u64::from(process < all % processes)
}

/// Number of a fleet's workers that have clients of a load. Clients that know what others wrote are
/// on one worker.
pub(crate) fn workers(workload: &Workload, load: &Load, workers: u32) -> u32 {
    let is_common = match workload {
        Workload::Sessions(_) => load.one_session,
        Workload::CacheAside(aside) => aside.rows == 1,
        Workload::AppCache(_) | Workload::Kv(_) => false,
    };
    if is_common { 1 } else { workers.min(load.clients).max(1) }
}

impl Opening<Endpoint> {
    /// The only store's endpoint, or the first one's.
    pub(crate) fn endpoint(&self) -> Result<&Endpoint, Failure> {
        let no_store = || Failure { class: ErrorClass::Other, message: "no store is given".into() };
        self.endpoints.first().ok_or_else(no_store)
    }

    /// Options for clients of an application cache.
    pub(crate) fn cache_options(&self) -> CacheOptions {
        CacheOptions {
            endpoints: self.endpoints.clone(),
            directory: self.options.directory.clone(),
            timeout: self.options.timeout,
            cm_settings: self.cm_settings.clone(),
            magento: self.magento,
        }
    }

    /// A client's share of the whole load's data.
    pub(crate) fn share(&self, client: u32) -> Share {
        let (seed, clients, prefix) = (self.seed, self.load.clients, self.prefix.clone());
        Share { seed, client, clients, prefix }
    }
}

impl<E> Opening<E> {
    /// The same with endpoints in another form.
    pub(crate) fn try_map<F, X>(
        self,
        form: impl FnMut(E) -> Result<F, X>,
    ) -> Result<Opening<F>, X> {
        Ok(Opening {
            endpoints: self.endpoints.into_iter().map(form).collect::<Result<_, X>>()?,
            workload: self.workload,
            load: self.load,
            seed: self.seed,
            backend: self.backend,
            cm_settings: self.cm_settings,
            magento: self.magento,
            options: self.options,
            prefix: self.prefix,
            stall_ns: self.stall_ns,
            more_cpus: self.more_cpus,
        })
    }

    /// Settings of the clients.
    pub(crate) fn settings<'a>(&self, cpus: &'a [usize], stop: &'a AtomicBool) -> Settings<'a> {
        Settings {
            generation: self.workload.generation(),
            cpus,
            timeout_ns: self.options.timeout.as_nanos() as u64,
            stall_ns: self.stall_ns,
            stop,
        }
    }

    /// The engine of the whole load.
    pub(crate) fn engine<'a>(&'a self, cpus: &'a [usize], stop: &'a AtomicBool) -> Engine<'a> {
        Engine {
            phases: self.workload.phases(),
            planned: self.load.is_planned().then_some((&self.load, self.seed)),
            settings: self.settings(cpus, stop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_in_one_process() {
        for (clients, processes) in [(1, 1), (8, 3), (3, 3), (1000, 7)] {
            let all = (0..processes)
                .flat_map(|process| Those::of_process(clients, (process, processes)).numbers());
            assert_eq!(all.collect::<Vec<u32>>(), (0..clients).collect::<Vec<u32>>());
        }
        assert_eq!(Those::of_process(5, (0, 1)), Those::all(5));
    }
}
