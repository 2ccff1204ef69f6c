//! What cannot be elsewhere: parts of private servers on another machine, and stores of files with
//! clients on others.

use model::tier::Tier;
use model::{ErrorClass, Failure, PlannedTarget, Workload};

use crate::fleet::Fleet;
use crate::setup::Setup;

/// Refuses a target that the servers' machine cannot start, or that the workers cannot reach.
pub(crate) fn check(
    setup: &Setup,
    target: &PlannedTarget,
    workload: &Workload,
) -> Result<(), Failure> {
    if setup.rig_on.is_some() && !setup.endpoints.contains_key(&target.name) {
        check_servers(target, workload)?;
    }
    let Some(fleet) = &setup.fleet else { return Ok(()) };
    let is_here = setup.rig_on.is_none() && !setup.endpoints.contains_key(&target.name);
    let is_of_files = target.products().iter().any(|product| !product.has_server());
    if let Some(worker) = fleet.elsewhere().filter(|_| is_here || is_of_files) {
        let cure = if is_of_files { "" } else { ", a server by URL, or --rig-on" };
        return Err(missing(format!(
            "`{}` is on this machine only, and {worker} is not (expected workers on this machine, \
             such as --fleet local:2{cure})",
            target.name
        )));
    }
    check_clients(fleet, target, workload, is_of_files)
}

/// Refuses a private server with what only servers on this machine can have.
fn check_servers(target: &PlannedTarget, workload: &Workload) -> Result<(), Failure> {
    let is_interrupted = workload.actions().iter().any(|action| action.what.fault().is_some());
    let what = if target.tier != Tier::default() {
        "a tier"
    } else if workload.memory().is_some() {
        "a memory limit"
    } else if target.disk_limit.is_some() {
        "a disk limit"
    } else if is_interrupted {
        "a fault"
    } else {
        return Ok(());
    };
    Err(missing(format!(
        "`{}` needs {what}, which --rig-on does not put on another machine (run it there without \
         --rig-on, or name a server of your own by URL)",
        target.name
    )))
}

/// Refuses what blocking clients in several processes cannot have.
fn check_clients(
    fleet: &Fleet,
    target: &PlannedTarget,
    workload: &Workload,
    has_files: bool,
) -> Result<(), Failure> {
    let is_limited = workload.memory().is_some()
        || target.disk_limit.is_some()
        || target.tier != Tier::default();
    let workers = fleet.names().count() as u64;
    let what = match workload {
        _ if has_files && is_limited => {
            "limits the clients of its files, which --fleet cannot (expected no --fleet)"
        }
        Workload::AppCache(cache) if cache.files.is_some() => {
            "has records and lists from files, which workers cannot divide (expected no --fleet)"
        }
        Workload::AppCache(cache) if cache.tags / workers.max(1) < cache.tags_of_record.1 => {
            "has too few tags for so many workers: each needs as many as a record can have \
             (expected fewer workers)"
        }
        _ => return Ok(()),
    };
    Err(missing(format!("`{}` {what}", target.name)))
}

fn missing(message: String) -> Failure {
    Failure { class: ErrorClass::Missing, message }
}
