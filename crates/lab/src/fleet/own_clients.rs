//! Blocking clients of a worker, which stay connected through the steps of a trial.

use load::{Clients, Crew, Meter, Part, Progress, Threads};
use model::{Endpoint, ErrorClass, Failure};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::FleetError;
use super::messages::{SentEnd, SentTask};
use crate::clients;
use crate::opening::Opening;

/// Clients that are connected, and what they were opened with.
pub(super) struct OwnClients {
    clients: Clients,
    opening: Opening<Endpoint>,
    /// CPUs for their threads.
    cpus: Vec<usize>,
}

/// Where the threads of a worker run.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// CPUs of the worker.
    pub(super) cpus: &'a [usize],
    /// A private directory for files of TLS.
    pub(super) directory: &'a Path,
}

/// Does what a driver asks of a worker's clients, once the meter lets it begin.
pub(super) fn perform(
    own: &mut Option<OwnClients>,
    task: SentTask,
    place: Place<'_>,
    stop: &AtomicBool,
    meter: &mut dyn Meter,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<SentEnd, Failure> {
    let failed = |message: String| Failure { class: ErrorClass::Other, message };
    if let SentTask::Open(opening, those) = task {
        let Place { cpus, directory } = place;
        *own = None;
        let mut number = 0;
        let opening = opening.try_map(|endpoint| {
            number += 1;
            let directory = directory.join(format!("store-{number}"));
            std::fs::create_dir_all(&directory)
                .map_err(|e| FleetError(format!("cannot create `{}`: {e}", directory.display())))?;
            endpoint.received(&directory)
        });
        let opening = opening.map_err(|FleetError(message)| failed(message))?;
        let clients = Clients::new(clients::open(&opening, those)?);
        let cpus = if cpus.is_empty() { Vec::new() } else { [cpus, &opening.more_cpus].concat() };
        *own = Some(OwnClients { clients, opening, cpus });
        meter.begins(stop);
        return Ok(SentEnd::default());
    }
    let Some(OwnClients { clients, opening, cpus }) = own else {
        return Err(failed("its clients are not connected".into()));
    };
    let mut threads = Threads::new(clients, opening.settings(cpus, stop));
    let part = match task {
        SentTask::Fill => threads.fill(meter, progress),
        SentTask::Step(planned) => threads.step(&planned, None, meter, progress),
        SentTask::ReadBack | SentTask::Open(..) => {
            meter.begins(stop);
            return Ok(SentEnd { read_back: threads.read_back(), ..SentEnd::default() });
        }
    };
    let Part { record, failure } = part;
    let record = record.unwrap_or_default();
    let (points, series) = (record.points, record.series);
    Ok(SentEnd { points, series, failure, ..SentEnd::default() })
}
