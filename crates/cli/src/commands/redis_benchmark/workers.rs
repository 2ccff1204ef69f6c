//! Tests that several processes run together: their workers, and what each contributed, on standard
//! error.

use std::sync::atomic::AtomicBool;

use lab::fleet::{Fleet, Gathering};
use model::{Contributor, Endpoint, Point};
use rig::{Guard, Pinning};
use stats::{format_ns, format_percent};

use super::arguments::Options;
use super::notes;
use super::server::{self, Deployment};
use crate::exit::CliError;
use crate::fleet_flags;

/// Where the workers come from, with `each` threads; `None` without a fleet. Errors: the place is
/// wrong, or there are fewer clients than threads.
pub(super) fn gathering(options: &Options, each: u32) -> Result<Option<Gathering>, CliError> {
    let Some(place) = options.fleet.place.as_ref().filter(|_| !options.is_idle) else {
        return Ok(None);
    };
    let (file, terms) = (options.fleet.token_file.as_deref(), (options.fleet.wait_ns, each));
    let gathering = fleet_flags::gathering(place, file, terms).map_err(CliError::failed)?;
    let (workers, clients) = (gathering.workers(), options.load.clients);
    let threads = each.saturating_mul(workers);
    if threads > clients {
        let why = fleet_flags::too_few_clients("-c", threads, clients, workers);
        return Err(CliError::failed(why));
    }
    Ok(Some(gathering))
}

/// Waits for the workers, if there are any, with the servers as they connect to them.
pub(super) fn gather(
    options: &Options,
    deployment: &Deployment,
    stop: &AtomicBool,
) -> Result<Option<(Fleet, Endpoint)>, CliError> {
    let Some(gathering) = gathering(options, deployment.threads(options).max(1))? else {
        return Ok(None);
    };
    let endpoint = server::endpoint(&options.server).map_err(CliError::failed)?;
    let machine = (&Guard::start()?, &Pinning::for_this_process());
    let fleet = fleet_flags::gather(&gathering, machine, stop)?;
    Ok(Some((fleet, endpoint)))
}

/// Rows of [`table`] on a test.
pub(super) fn rows(title: &str, point: &Point) -> Vec<Vec<String>> {
    let row = |one: &Contributor| {
        let whole = one.point.whole();
        let time = |q| whole.map_or(0.0, |whole| whole.response.quantile_ns(q) as f64);
        vec![
            format!("{title}, {}", one.name),
            one.point.clients.to_string(),
            format!("{:.0}", rate_per_s(one)),
            notes::time(time(0.5)),
            notes::time(time(0.99)),
            format_percent(busy_share(one)),
            format_ns(one.start_skew_ns as f64),
        ]
    };
    point.contributors.iter().map(row).collect()
}

/// A table of what each worker contributed; empty without rows.
pub(super) fn table(rows: Vec<Vec<String>>) -> String {
    notes::aligned(
        &["per worker", "clients", "per second", "p50", "p99", "own CPU", "start skew"],
        rows,
    )
}

/// Requests that a worker answered per second.
fn rate_per_s(one: &Contributor) -> f64 {
    one.point.whole().map_or(0.0, |whole| whole.rate_per_s)
}

/// Share of the time that the threads of a worker were busy; 0 if it had no request.
fn busy_share(one: &Contributor) -> f64 {
    if rate_per_s(one) <= 0.0 {
        return 0.0;
    }
    let available = one.point.length_ns.max(1) as f64 * f64::from(one.threads.max(1));
    one.busy_ns() as f64 / available
}

/// Workers whose figures may not be those of the server.
pub(super) fn warnings(title: &str, point: &Point) -> Vec<String> {
    let rate_each = |one: &Contributor| rate_per_s(one) / f64::from(one.point.clients.max(1));
    let all = &point.contributors;
    let mut warnings = Vec::new();
    for one in all {
        let mut warn = |what: String| warnings.push(format!("{title}: {} {what}", one.name));
        if one.start_skew_ns > report::limits::START_SKEW_NS_MAX {
            let skew = format_ns(one.start_skew_ns as f64);
            warn(format!("may have started {skew} too early or too late"));
        }
        if busy_share(one) > report::limits::BUSY_SHARE_MAX && all.len() > 1 {
            let share = format_percent(busy_share(one));
            warn(format!("was busy for {share} of the time and may have been the bottleneck"));
        }
        let lost = one.point.disturbance.share_of(one.point.length_ns);
        if lost > model::TAKEN_SHARE_MAX {
            warn(format!("could not use its CPUs for {} of the time", format_percent(lost)));
        }
        let others = all.iter().filter(|other| other.name != one.name).map(rate_each);
        let fastest = others.fold(0.0, f64::max);
        if rate_each(one) > 0.0 && rate_each(one) * report::limits::SLOW_WORKER_FACTOR < fastest {
            let (own, theirs) = (rate_each(one), fastest);
            warn(format!("reached {own:.0}/s per client, another worker {theirs:.0}/s"));
        }
    }
    warnings
}
