//! Open file limits of this process and of the servers it starts.

use model::Plan;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::exit::CliError;

/// Connections of a private server besides the clients': administration and fill.
pub(crate) const SPARE_CONNECTIONS: u64 = 64;
/// Open files besides the clients' connections: record, logs and pipes in this process; Redis' own
/// 32 files and the spare connections in a private server.
const SPARE_FILES: u64 = 160;

/// Raises the soft limit of open files to the hard limit. If this fails, too many connections give
/// an error later.
pub(crate) fn raise() {
    if let Ok((usual, most)) = getrlimit(Resource::RLIMIT_NOFILE)
        && usual < most
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Raises the limit like [`raise`]. Errors: it is too low for the clients of some cell, each of
/// which has a connection to every store of its target. `flag` sets the number of clients.
pub(crate) fn allow_connections(flag: &str, plan: &Plan) -> Result<(), CliError> {
    raise();
    let wants = plan.cells.iter().map(|cell| {
        let stores = plan.target(&cell.target).map_or(1, |target| target.products().len());
        (u64::from(cell.load.clients) * stores as u64, stores as u64)
    });
    let Some((connections, each)) = wants.max() else { return Ok(()) };
    let (needed, clients) = (connections + SPARE_FILES, connections / each);
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((allowed, _)) if allowed < needed => Err(CliError::usage(format!(
            "{flag} `{clients}` need {needed} open files, {each} each and {SPARE_FILES} \
             more, but this process may open {allowed} (expected at most {} clients; or raise the \
             limit, as root with `ulimit -n {needed}`)",
            allowed.saturating_sub(SPARE_FILES) / each
        ))),
        // If the limit is unknown, connecting reports the error.
        _ => Ok(()),
    }
}
