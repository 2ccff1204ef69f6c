//! How many files this process and the servers that it starts may have open.

use model::Plan;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::exit::CliError;

/// Connections of a private server besides those of the clients: our own, and those that fill.
pub(crate) const SPARE_CONNECTIONS: u64 = 64;
/// Files besides the clients' connections: here the record, logs and pipes; in a private Redis its
/// 32 own ones and the spare connections.
const BESIDES: u64 = 160;

/// Allows as many open files as this user may have, where fewer are usual. Where that fails,
/// connecting says so when there are too many.
pub(crate) fn raise() {
    if let Ok((usual, most)) = getrlimit(Resource::RLIMIT_NOFILE)
        && usual < most
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// The same; an error where that is too few for the clients of some cell, who have a connection
/// each to every store of their target. `flag` is how the user says their number.
pub(crate) fn allow(flag: &str, plan: &Plan) -> Result<(), CliError> {
    raise();
    let wants = plan.cells.iter().map(|cell| {
        let stores = plan.target(&cell.target).map_or(1, |target| target.products().len());
        (u64::from(cell.load.clients) * stores as u64, stores as u64)
    });
    let Some((connections, each)) = wants.max() else { return Ok(()) };
    let (needed, clients) = (connections + BESIDES, connections / each);
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((allowed, _)) if allowed < needed => Err(CliError::usage(format!(
            "{flag} `{clients}` need {needed} open files, {each} each and {BESIDES} more, and this \
             process may open {allowed} (expected at most {} clients; or raise the limit, as root \
             with `ulimit -n {needed}`)",
            allowed.saturating_sub(BESIDES) / each
        ))),
        // Where the limit cannot be read, connecting tells.
        _ => Ok(()),
    }
}
