//! Plans that somebody else may have made: studies, and records that are resumed.

use drivers::wire::Dialect;
use lab::Setup;
use model::{Header, Plan, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _};

use crate::exit::CliError;
use crate::output;

/// Whether all private servers of a plan may be started with its settings.
pub(crate) fn check_settings(plan: &Plan) -> Result<(), CliError> {
    for target in plan.targets.iter().filter(|target| target.address.is_none()) {
        for product in target.products() {
            rig::check_settings(*product, target.program, &target.settings_of(*product))
                .map_err(|e| CliError::usage(format!("target `{}`: {e}", target.name)))?;
        }
    }
    Ok(())
}

/// The mark of this host under the plan of a run; `None` where the host has no id.
pub(crate) fn host_mark(run: &str, plan: &Plan) -> Option<String> {
    rig::host_mark(&serde_json::to_vec(&(run, plan)).ok()?)
}

/// Lets a record be resumed whose plan this host made. For any other it shows what would be
/// started and where, and asks; `is_trusted` answers instead of the user.
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
        "run `{run}` was planned on another host, or its plan was changed. To resume it:"
    ));
    for line in undertakings(plan, setup) {
        output::say(&format!("  {line}"));
    }
    let asks = io::stdin().is_terminal() && output::says_to_terminal();
    if asks && output::confirm("Resume it?")? {
        return Ok(());
    }
    let why =
        if asks { "was not confirmed" } else { "needs your consent, and this is no terminal" };
    Err(CliError::usage(format!(
        "resuming run `{run}` of another host {why} (read above what it starts, then add \
         --trust-record)"
    )))
}

/// The commands that a plan sends to a target.
fn commands<'a>(plan: &'a Plan, target: &'a str) -> impl Iterator<Item = &'a str> {
    let cells = plan.cells.iter().filter(move |cell| cell.target == target);
    let kv = cells.filter_map(|cell| match &cell.workload {
        Workload::Kv(kv) => Some(kv),
        Workload::Sessions(_) | Workload::AppCache(_) => None,
    });
    kv.flat_map(|kv| kv.operations.iter().filter_map(|o| o.command.as_deref()))
}

/// Whether the commands of somebody else's plan touch nothing but their own keys, also on private
/// servers: a command can make a server listen, connect or write files.
fn check_commands(plan: &Plan) -> Result<(), CliError> {
    for target in &plan.targets {
        let Some(dialect) = Dialect::of(target.product, None) else { continue };
        for command in commands(plan, &target.name) {
            drivers::kv::check_own_keys(dialect, command).map_err(|e| {
                CliError::usage(format!(
                    "target `{}` of a plan that this host did not make sends {e}",
                    target.name
                ))
            })?;
        }
    }
    Ok(())
}

/// What a plan starts, reads, sends and measures, a line each.
fn undertakings(plan: &Plan, setup: &Setup) -> Vec<String> {
    let disk = setup.disk.display();
    let mut lines = Vec::new();
    for target in &plan.targets {
        let name = &target.name;
        let sent: BTreeSet<&str> = commands(plan, name).collect();
        lines.extend(sent.iter().map(|command| format!("`{name}` is sent `{command}`")));
        if let Some(address) = &target.address {
            lines.push(format!("`{name}` measures the store at {address}, whose URL you gave"));
            continue;
        }
        for product in target.products() {
            lines.push(match rig::server_program(*product, target.program) {
                None => format!("`{name}` writes files into a new directory in {disk}"),
                Some(program) => {
                    let server = with_settings(program, &target.settings_of(*product));
                    format!("`{name}` starts {server}, its data in {disk}")
                }
            });
        }
    }
    let files = plan.files();
    lines
        .extend(files.map(|files| format!("records are read from files in `{}`", files.directory)));
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
