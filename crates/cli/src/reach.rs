//! Checks, before anything starts, that existing stores accept connections.

use model::{Endpoint, Plan};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::exit::CliError;

/// Connection timeout.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Refuses a plan if no target can be reached. If at least one can, the result reports why the
/// others were not measured.
pub(crate) fn check(plan: &Plan, endpoints: &BTreeMap<String, Endpoint>) -> Result<(), CliError> {
    let mut unreachable = Vec::new();
    for target in &plan.targets {
        // TLS can fail for other reasons, which the first session reports.
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
