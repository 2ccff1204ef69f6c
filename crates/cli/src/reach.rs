//! Whether anybody listens where a run is to measure, before anything is begun.

use model::{Endpoint, Plan};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::exit::CliError;

/// How long a connection may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Refuses a plan that measures only servers at addresses where none listens. Where one of several
/// can be measured, its result says why the others were not.
pub(crate) fn check(plan: &Plan, endpoints: &BTreeMap<String, Endpoint>) -> Result<(), CliError> {
    let mut unreachable = Vec::new();
    for target in &plan.targets {
        // Of TLS more can be wrong than that nobody listens, and the first session says what.
        let Some(endpoint) = endpoints.get(&target.name).filter(|e| e.tls().is_none()) else {
            return Ok(());
        };
        let mut failed = None;
        for address in endpoint.addresses() {
            match drivers::reach(address, TIMEOUT) {
                Ok(()) => return Ok(()),
                Err(error) => failed = Some(format!("`{}` at {endpoint}: {error}", target.name)),
            }
        }
        // A directory has no address.
        let Some(failed) = failed else { return Ok(()) };
        unreachable.push(failed);
    }
    if unreachable.is_empty() {
        return Ok(());
    }
    Err(CliError::target(format!("cannot connect to {}", unreachable.join("; "))))
}
