//! `--serve`: a run that is watched while it lasts.

use dash::{Dash, Listener, ServeError};
use lab::Setup;

use crate::args::Serve;
use crate::exit::CliError;
use crate::output;

/// Takes the address, so that a wrong one shows before anything is started.
pub(crate) fn bind(serve: &Serve) -> Result<Option<Listener>, CliError> {
    let listener = serve.serve.as_deref().map(Listener::bind).transpose();
    let listener = listener.map_err(|e| refused(&e))?;
    if let Some(listener) = listener.as_ref().filter(|l| !l.is_private()) {
        let address = listener.address();
        output::say(&format!(
            "warning: --serve `{address}` lets everyone who reaches this machine watch the run \
             (127.0.0.1 lets in nobody else)"
        ));
    }
    Ok(listener)
}

/// Begins to answer, beside the generator: the server's CPUs are for what is measured.
pub(crate) fn start(listener: Listener, setup: &Setup, silent: bool) -> Result<Dash, CliError> {
    let (address, cpus) = (listener.address(), setup.pinning.generator.clone());
    // One that cannot be pinned is served all the same.
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
