//! System calls of a client per operation, by store and layout. Needs strace.
//!
//! A client runs under `strace -f -c` twice, with few and with many operations of one phase. The
//! difference in system calls divided by the difference in operations is the cost of one operation:
//! connecting, filling and the runtime's calls cancel out. The server is not traced. The result is
//! a Markdown table with strace's names of system calls.

#![expect(clippy::print_stdout, reason = "a bench prints its result")]

mod common;
mod sessions;
mod study;

use cachedyno_lab::TargetProvisioner;
use common::{Outcome, arguments, error, number};
use drivers::SessionOptions;
use load::{Engine, Settings, Unmetered};
use model::{Cell, Database, Endpoint, Layout, NetAddress, Plan, PlannedTarget, Sessions, Stop};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use workloads::{Client, PageClient, PlainClient, Share};

const FEW: u64 = 500;
const MANY: u64 = 1_500;
const SESSIONS: u64 = 100;
/// Calls rarer than this per operation belong to the engine's intervals, not to the operation.
const RAREST: f64 = 0.005;
const CLIENT: &str = "traced-client";

/// Calls by name.
type Calls = BTreeMap<String, u64>;

fn main() -> Outcome {
    let arguments = arguments();
    if study::played_guard(&arguments)? {
        return Ok(());
    }
    if arguments.first().map(String::as_str) == Some(CLIENT) {
        return traced_client(&arguments[1..]);
    }
    let seed = number(&arguments, "--seed", 1)?;
    let plan = plan(seed)?;
    let setup = study::setup()?;
    let mut provisioner = study::provisioner(&plan, &setup);
    println!("| store | layout | operation | system calls | which |\n|---|---|---|---|---|");
    for cell in plan.cells.iter().filter(|c| !c.load.one_session) {
        let Some(target) = plan.target(&cell.target) else { continue };
        for phase in sessions::of(cell)?.phases.iter().filter(|p| p.name != "mixed") {
            let few = trace(&mut provisioner, target, cell, &phase.name, FEW)?;
            let many = trace(&mut provisioner, target, cell, &phase.name, MANY)?;
            println!("{}", row(&cell.target, sessions::of(cell)?, &phase.name, &few, &many));
        }
    }
    Ok(())
}

/// Both layouts without think time; the client uses the same plan as its parent.
fn plan(seed: u64) -> Result<Plan, Box<dyn Error>> {
    let sets = [
        ("profile", "steady,page".to_string()),
        ("sessions", SESSIONS.to_string()),
        ("warmup_ms", "0".to_string()),
        ("think_ms", "0".to_string()),
    ];
    sessions::plan(seed, &[], &sets)
}

fn row(store: &str, workload: &Sessions, phase: &str, few: &Calls, many: &Calls) -> String {
    let (mut all, mut which) = (0.0, String::new());
    for (name, count) in many {
        let before = few.get(name).copied().unwrap_or(0);
        let each = count.saturating_sub(before) as f64 / (MANY - FEW) as f64;
        if each >= RAREST {
            all += each;
            let separator = if which.is_empty() { "" } else { ", " };
            // Writing to a String does not fail.
            let _ = write!(which, "{separator}{name} {each:.2}");
        }
    }
    format!("| {store} | {} | {phase} | {all:.2} | {which} |", layout(workload))
}

fn layout(workload: &Sessions) -> &'static str {
    match workload.layout {
        Layout::Plain => "plain",
        Layout::Page => "page",
    }
}

/// System calls of a client that runs `count` operations on a fresh store.
fn trace(
    provisioner: &mut TargetProvisioner<'_>,
    target: &PlannedTarget,
    cell: &Cell,
    phase: &str,
    count: u64,
) -> Result<Calls, Box<dyn Error>> {
    let ready =
        provisioner.ready(target, &cell.workload, &format!("{phase}{count}")).map_err(error)?;
    let table = tempfile::NamedTempFile::new()?;
    let options = ready.options();
    let status = Command::new("strace")
        .args(["-f", "-c", "-U", "name,calls", "-o"])
        .arg(table.path())
        .arg(std::env::current_exe()?)
        .args([CLIENT, &url(ready.endpoint()), &options.table])
        .arg(&options.directory)
        .args([layout(sessions::of(cell)?), phase, &count.to_string()])
        .stdin(Stdio::null())
        .status()
        .map_err(|e| format!("strace cannot be started: {e} (apt-get install strace)"))?;
    ready.finish(&AtomicBool::new(false)).map_err(error)?;
    if !status.success() {
        return Err(format!("the traced client of `{}` ended with {status}", target.name).into());
    }
    Ok(counts(&std::fs::read_to_string(table.path())?))
}

/// Parses strace's table: name and count per line between two rulers, then the total.
fn counts(text: &str) -> Calls {
    let pairs = text.lines().filter_map(|line| {
        let (name, count) = line.trim().split_once(char::is_whitespace)?;
        Some((name.to_string(), count.trim().parse().ok()?))
    });
    pairs.filter(|(name, _)| name != "total").collect()
}

fn url(endpoint: &Endpoint) -> String {
    if let Some(directory) = endpoint.directory() {
        return format!("file://{}", directory.display());
    }
    let [NetAddress::Unix(path)] = endpoint.addresses() else {
        unreachable!("{endpoint} is not on a socket")
    };
    let query = match endpoint {
        Endpoint::Mysql(Database { user, name, .. }) => format!("?database={name}&user={user}"),
        _ => String::new(),
    };
    format!("{}+unix://{}{query}", endpoint.product().name(), path.display())
}

/// The traced process: one client, one phase, a number of operations.
fn traced_client(arguments: &[String]) -> Outcome {
    let [url, table, directory, layout_name, phase, count] = arguments else {
        return Err(format!("`{CLIENT}` takes six arguments, not {}", arguments.len()).into());
    };
    let endpoint = Endpoint::parse(url)?;
    let plan = plan(1)?;
    let cell = plan.cells.iter().find(|c| sessions::of(c).is_ok_and(|s| layout(s) == layout_name));
    let Some(cell) = cell else { return Err(format!("no layout `{layout_name}`").into()) };
    let mut workload = sessions::of(cell)?.clone();
    workload.phases.retain(|p| p.name == *phase);
    for phase in &mut workload.phases {
        phase.stop = Stop::Count(count.parse()?);
    }
    let options = SessionOptions {
        connections: workload.connections,
        ttl_s: workload.ttl_s,
        value_bytes: workload.value_bytes,
        timeout: Duration::from_nanos(plan.timeout_ns),
        table: table.clone(),
        directory: Path::new(directory).to_path_buf(),
    };
    let share = Share { seed: plan.seed, client: 0, clients: 1, prefix: String::new() };
    let client: Box<dyn Client> = match workload.layout {
        Layout::Plain => {
            let store = drivers::open_session_store(&endpoint, &options).map_err(error)?;
            Box::new(PlainClient::new(store, workload.clone(), share))
        }
        Layout::Page => {
            let store = drivers::open_page_store(&endpoint, &options).map_err(error)?;
            Box::new(PageClient::new(store, workload.clone(), share, None))
        }
    };
    let stop = AtomicBool::new(false);
    let engine = Engine {
        phases: &workload.phases,
        planned: None,
        settings: Settings {
            generation: workload.generation,
            cpus: &[],
            timeout_ns: 0,
            stall_ns: 0,
            stop: &stop,
        },
    };
    let finished = engine.run(vec![client], &mut Unmetered, &mut |_| {});
    finished.failure.map_or(Ok(()), |failure| Err(error(failure)))
}
