//! Checks of untrusted plans: studies, and records to resume.

use drivers::wire::Dialect;
use lab::Setup;
use model::{Header, Plan, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _};

use crate::exit::CliError;
use crate::output;

/// Checks that private servers can be started with the settings of a plan. Errors: a setting that
/// is not allowed.
pub(crate) fn check_settings(plan: &Plan) -> Result<(), CliError> {
    for target in plan.targets.iter().filter(|target| target.address.is_none()) {
        for product in target.products() {
            rig::check_settings(*product, target.program, &target.settings_of(*product))
                .map_err(|e| CliError::usage(format!("target `{}`: {e}", target.name)))?;
        }
    }
    Ok(())
}

/// This host's signature of a run's plan; `None` if the host has no id.
pub(crate) fn host_mark(run: &str, plan: &Plan) -> Option<String> {
    rig::host_mark(&serde_json::to_vec(&(run, plan)).ok()?)
}

/// Allows resuming a record with a plan made on this host. For any other plan, prints what it would
/// start and asks the user, unless `is_trusted`.
pub(crate) fn consent(header: &Header, setup: &Setup, is_trusted: bool) -> Result<(), CliError> {
    let Header { run, plan, .. } = header;
    if header.host_mark.is_some() && header.host_mark == host_mark(run, plan) {
        return Ok(());
    }
    check_commands(plan)?;
    if is_trusted {
        return Ok(());
    }
    output::say(&format!(
        "run `{run}` was planned on another host, or its plan was changed. Resuming it:"
    ));
    for line in actions(plan, setup) {
        output::say(&format!("  {line}"));
    }
    let asks = io::stdin().is_terminal() && output::stderr_is_terminal();
    if asks && output::confirm("Resume it?")? {
        return Ok(());
    }
    let why =
        if asks { "was not confirmed" } else { "needs your consent, but this is not a terminal" };
    Err(CliError::usage(format!(
        "resuming run `{run}` from another host {why} (check the list above, then add \
         --trust-record)"
    )))
}

/// The commands that a plan sends to a target.
fn commands<'a>(plan: &'a Plan, target: &'a str) -> impl Iterator<Item = &'a str> {
    let cells = plan.cells.iter().filter(move |cell| cell.target == target);
    let kv = cells.filter_map(|cell| match &cell.workload {
        Workload::Kv(kv) => Some(kv),
        Workload::Sessions(_) | Workload::AppCache(_) | Workload::CacheAside(_) => None,
    });
    kv.flat_map(|kv| kv.operations.iter().filter_map(|o| o.command.as_deref()))
}

/// Checks that the commands of a plan from another host only access their own keys, even on private
/// servers, since a command can make a server listen, connect or write files. Errors: any other
/// command.
fn check_commands(plan: &Plan) -> Result<(), CliError> {
    for target in &plan.targets {
        let Some(dialect) = Dialect::of(target.product, None) else { continue };
        for command in commands(plan, &target.name) {
            drivers::kv::check_own_keys(dialect, command).map_err(|e| {
                CliError::usage(format!(
                    "target `{}` of a plan not made on this host sends {e}",
                    target.name
                ))
            })?;
        }
    }
    Ok(())
}

/// One line for each server that a plan starts or measures, each command that it sends and each
/// directory that it uses.
fn actions(plan: &Plan, setup: &Setup) -> Vec<String> {
    let mut lines = Vec::new();
    for target in &plan.targets {
        let (name, disk) = (&target.name, setup.disk_of(target).display());
        let sent: BTreeSet<&str> = commands(plan, name).collect();
        lines.extend(sent.iter().map(|command| format!("sends `{command}` to `{name}`")));
        if let Some(address) = &target.address {
            lines.push(format!("measures `{name}`, the existing store at {address}"));
            continue;
        }
        for product in target.products() {
            lines.push(match rig::server_program(*product, target.program) {
                None => format!("writes files for `{name}` into a new directory in {disk}"),
                Some(program) => {
                    let server = with_settings(program, &target.settings_of(*product));
                    format!("starts {server} for `{name}`, with data in {disk}")
                }
            });
        }
    }
    let swap = plan.swap_dir.as_ref();
    lines.extend(swap.map(|swap| format!("swaps to a new file in {}", swap.display())));
    let files = plan.files();
    lines.extend(files.map(|files| format!("reads records from files in `{}`", files.directory)));
    lines
}

/// A private server with its settings.
fn with_settings(program: &str, settings: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = settings.iter().map(|(n, v)| format!("`{n}={v}`")).collect();
    match &pairs[..] {
        [] => format!("{program} with its defaults"),
        some => format!("{program} with {}", some.join(", ")),
    }
}
