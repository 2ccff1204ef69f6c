//! How many files this process and the servers that it starts may have open.

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

/// The same; an error where that is too few for so many clients.
pub(crate) fn allow(clients: u32) -> Result<(), CliError> {
    raise();
    let needed = u64::from(clients) + BESIDES;
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((allowed, _)) if allowed < needed => Err(CliError::usage(format!(
            "--clients `{clients}` need {needed} open files, one each and {BESIDES} more, and \
             this process may open {allowed} (expected at most {} clients; or raise the limit, as \
             root with `ulimit -n {needed}`)",
            allowed.saturating_sub(BESIDES)
        ))),
        // Where the limit cannot be read, connecting tells.
        _ => Ok(()),
    }
}
