//! Private servers on another machine: what they cannot have.

use model::tier::Tier;
use model::{ErrorClass, Failure, PlannedTarget, Workload};

use crate::setup::Setup;

/// Refuses a private server with what only servers on this machine can have, if it would run on
/// another one.
pub(crate) fn check(
    setup: &Setup,
    target: &PlannedTarget,
    workload: &Workload,
) -> Result<(), Failure> {
    if setup.rig_on.is_none() || setup.endpoints.contains_key(&target.name) {
        return Ok(());
    }
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
    let message = format!(
        "`{}` needs {what}, which --rig-on does not put on another machine (run it there without \
         --rig-on, or name a server of your own by URL)",
        target.name
    );
    Err(Failure { class: ErrorClass::Missing, message })
}
