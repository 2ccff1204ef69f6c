//! `cachedyno clean RUN --target NAME=URL`: removes a killed run's data from an existing store.

use archive::Record;
use clap::Args;
use model::{Endpoint, Header, Plan, PlannedTarget, TargetChoice};
use std::path::Path;
use std::process::ExitCode;

use crate::args::Records;
use crate::exit::CliError;
use crate::signals::watch_signals;
use crate::tls_flags::TlsFlags;
use crate::{output, secrets};

/// Arguments of `clean`.
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Path, id, unique prefix of an id, or `latest`
    run: String,
    /// Existing store to clean, by its name in the run and its URL
    #[arg(long = "target", value_name = "NAME=URL", required = true)]
    targets: Vec<String>,
    /// Read the password of a target from a file
    #[arg(long = "password-file", value_name = "NAME=FILE")]
    password_files: Vec<String>,
    /// Application cache: remove every key with the prefix of such caches, no matter who wrote it
    #[arg(long)]
    i_own_this_server: bool,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    records: Records,
}

pub(crate) fn run(arguments: &Clean) -> Result<ExitCode, CliError> {
    let parsed = arguments.targets.iter().map(|text| TargetChoice::parse(text));
    let mut choices = parsed.collect::<Result<Vec<_>, _>>()?;
    if let Some(choice) = choices.iter().find(|choice| choice.endpoint.is_none()) {
        let name = &choice.name;
        return Err(CliError::usage(format!("--target `{name}` has no URL (expected NAME=URL)")));
    }
    arguments.tls.apply(&mut choices)?;
    let path = archive::find(&arguments.records.out, &arguments.run)?;
    let record = Record::read(&path)?;
    check_record_is_genuine(&path, &record)?;
    let Header { run: id, plan, .. } = record.header;
    if archive::is_in_use(&path) {
        return Err(CliError::usage(format!(
            "run `{id}` is still running and will remove its data itself (expected a run that has \
             ended)"
        )));
    }
    let stop = watch_signals(None)?;
    let endpoints = secrets::endpoints(&choices, &arguments.password_files)?;
    for (name, endpoint) in &endpoints {
        let planned = plan.target(name).filter(|target| is_at(target, endpoint));
        let target = planned.ok_or_else(|| target_mismatch(&id, &plan, name, endpoint))?;
        if target.backend.is_some() && !arguments.i_own_this_server {
            return Err(CliError::usage(format!(
                "target `{name}` is an application cache, whose keys cannot be distinguished from \
                 those of another one (allow it with --i-own-this-server if nobody else has used \
                 the database since the run started)"
            )));
        }
        lab::remove_leftovers((&plan, &id), target, endpoint, &stop)
            .map_err(|failure| CliError::failed(format!("target `{name}`: {failure}")))?;
        let visible = if target.product.keeps_tables() { " visible to this account" } else { "" };
        output::print(&format!("{endpoint} contains no more data of run {id}{visible}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Error for a wrong URL or target name. It contains the target's address in the run, or the names
/// of the run's targets.
fn target_mismatch(run: &str, plan: &Plan, name: &str, endpoint: &Endpoint) -> CliError {
    CliError::usage(match plan.target(name).map(|target| target.address.as_ref()) {
        Some(Some(address)) => {
            format!("target `{name}` of run `{run}` was not {endpoint} (expected {address})")
        }
        Some(None) => format!(
            "target `{name}` of run `{run}` was a private server, which no longer exists \
             (expected an existing store of that run)"
        ),
        None => {
            let names: Vec<String> = plan.targets.iter().map(|t| format!("`{}`", t.name)).collect();
            format!("run `{run}` had no target `{name}` (expected one of {})", names.join(", "))
        }
    })
}

/// Rejects a record that was edited or renamed, since its run id determines the keys to remove.
fn check_record_is_genuine(path: &Path, record: &Record) -> Result<(), CliError> {
    let (run, path) = (&record.header.run, path.canonicalize().unwrap_or_else(|_| path.into()));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let why = if !record.changed.is_empty() {
        format!("it was changed after it was sealed ({})", record.changed.join(", "))
    } else if name.rsplit('-').next() != Some(run) {
        format!("it is of run `{run}`, but its directory is named `{name}`")
    } else {
        return Ok(());
    };
    Err(CliError::usage(format!(
        "this record does not reliably identify the keys of its run: {why} (expected \
         an unmodified record)"
    )))
}

/// Whether the run measured the target at this endpoint.
fn is_at(target: &PlannedTarget, endpoint: &Endpoint) -> bool {
    target.address.as_ref().is_some_and(|address| *address == endpoint.to_string())
}
