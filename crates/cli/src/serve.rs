//! `--serve`: the live page of a run.

use dash::{Dash, Listener, ServeError};
use lab::Setup;

use crate::args::Serve;
use crate::exit::CliError;
use crate::output;

/// Binds the address before anything starts, so that a wrong one is reported early.
pub(crate) fn bind(serve: &Serve) -> Result<Option<Listener>, CliError> {
    let listener = serve.serve.as_deref().map(Listener::bind).transpose();
    let listener = listener.map_err(|e| refused(&e))?;
    if let Some(listener) = listener.as_ref().filter(|l| !l.is_private()) {
        let address = listener.address();
        output::say(&format!(
            "warning: --serve `{address}` lets everyone who can reach this machine watch the run \
             (127.0.0.1 allows only this machine)"
        ));
    }
    Ok(listener)
}

/// Starts serving on the generator's CPUs, since the server's CPUs are for the store under test.
pub(crate) fn start(listener: Listener, setup: &Setup, silent: bool) -> Result<Dash, CliError> {
    let (address, cpus) = (listener.address(), setup.pinning.generator.clone());
    // If pinning fails, serve unpinned.
    let pin = move || drop(rig::pin_current_thread(&cpus));
    let dash = listener.serve(pin).map_err(|e| refused(&e))?;
    if !silent {
        output::say(&format!("watch it live: http://{address}/"));
    }
    Ok(dash)
}

fn refused(error: &ServeError) -> CliError {
    match error {
        ServeError::Start(_) => CliError::failed(format!("--serve: {error}")),
        _ => CliError::usage(format!("--serve: {error}")),
    }
}
