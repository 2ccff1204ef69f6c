//! `cachedyno worker`: offers a part of the loads of a driver on another machine, or starts servers
//! for one.

use archive::{RECORDS, read_calibration};
use clap::{ArgGroup, Args, value_parser};
use lab::calibrate::machine::host;
use lab::fleet::lending::{Lending, lend};
use lab::fleet::worker::{Joining, work};
use lab::fleet::{FleetError, Token};
use model::Condition;
use model::calibration::ShapeCost;
use rig::{Guard, OwnCpus, Pinning, Scratch};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use crate::exit::{CliError, DONE, INTERRUPTED};
use crate::fleet_flags::{FLEET_TOKEN, RIG_TOKEN, check_address};
use crate::signals::watch_signals;
use crate::{limits, output, studies};

const AFTER_HELP: &str = "Examples:\n  \
    cachedyno worker --join 10.0.0.1:7000\n  \
    for host in a b c; do scp -q cachedyno-fleet.token $host: && ssh $host cachedyno worker \
    --join 10.0.0.1:7000 & done\n  \
    cachedyno worker --listen 10.0.0.7:7000\n\n\
    With --join, the worker needs the token file that its driver writes: a `run`, `bench`, \
    `find-max` or `redis-benchmark` with --fleet listen:10.0.0.1:7000,3. It tries to connect for \
    30 s, and ends with the driver, at most 5 s after the driver is gone.\n\n\
    With --listen, the worker writes the token file that drivers need for --rig-on and \
    --rig-token. It serves one driver after the other until it is interrupted.\n\n\
    Connections use TLS with the certificate in the token file. Exit codes: 0 the driver is done, \
    or a worker with --listen was interrupted; 1 the driver was lost or refused the worker; \
    2 wrong arguments; 130 a worker with --join was interrupted.";

/// Arguments of `worker`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(group(ArgGroup::new("place").required(true).args(["join", "listen"])))]
pub(crate) struct WorkerArguments {
    /// Offer a part of the load of the driver at this address
    #[arg(long, value_name = "HOST:PORT")]
    join: Option<String>,
    /// Start servers for a driver with --rig-on, which connects to this address of this machine
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Token file: with --join that of the driver [default: cachedyno-fleet.token], with --listen
    /// the one to write [default: cachedyno-rig.token]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// CPUs for its threads or servers, such as 2,3 [default: all that it may use]
    #[arg(long, value_name = "CPU,...", value_delimiter = ',', value_parser = cpu)]
    cpus: Vec<usize>,
    /// With --join: use only this number of CPUs, and not those of other workers with this flag;
    /// all if too few are left, or in a container
    #[arg(long, value_name = "N", conflicts_with_all = ["cpus", "listen"])]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    own_cpus: Option<u32>,
    /// With --listen: directory for the data of servers
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with = "join")]
    disk: PathBuf,
}

pub(crate) fn run(arguments: &WorkerArguments) -> Result<ExitCode, CliError> {
    limits::raise();
    for (flag, address) in [("--join", &arguments.join), ("--listen", &arguments.listen)] {
        let Some(address) = address else { continue };
        check_address(flag, address).map_err(CliError::usage)?;
    }
    let cpus = cpus(&arguments.cpus)?;
    let ended = match (&arguments.join, &arguments.listen) {
        (Some(address), _) => join(arguments, address, cpus)?,
        (None, address) => lend_machine(arguments, address.as_deref().unwrap_or_default(), cpus)?,
    };
    ended.map(ExitCode::from).map_err(|e| CliError::failed(e.to_string()))
}

fn cpu(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected CPU numbers such as 2,3".into())
}

/// The CPUs for threads or servers.
fn cpus(given: &[usize]) -> Result<Vec<usize>, CliError> {
    let Pinning { generator, server, .. } = Pinning::for_this_process();
    let mut all = [generator, server].concat();
    all.sort_unstable();
    all.dedup();
    if let Some(cpu) = given.iter().find(|cpu| !all.contains(cpu)) {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        return Err(CliError::usage(format!(
            "--cpus: this process may not use CPU `{cpu}` (expected some of {})",
            all.join(",")
        )));
    }
    Ok(if given.is_empty() { all } else { given.to_vec() })
}

/// Offers parts of the driver's loads.
fn join(
    arguments: &WorkerArguments,
    address: &str,
    cpus: Vec<usize>,
) -> Result<Result<u8, FleetError>, CliError> {
    let file = arguments.token_file.as_deref().unwrap_or(Path::new(FLEET_TOKEN));
    let token = Token::read("--token-file", file).map_err(|e| CliError::usage(e.to_string()))?;
    let stop = watch_signals(None)?;
    let guard = Guard::start()?;
    let directory = Scratch::for_sockets(&guard)?;
    let own = arguments.own_cpus.and_then(|count| OwnCpus::take(count as usize));
    let cpus = own.as_ref().map_or(cpus, |own| own.cpus.clone());
    let joining = Joining {
        address,
        token: &token,
        cpus,
        version: studies::TOOL_VERSION,
        host: rig::host_name(),
        machine: machine(),
        directory: directory.path(),
    };
    let ended = work(&joining, &stop, &mut |line| output::say(line));
    // An interrupt is not a failure.
    Ok(if stop.load(Ordering::Relaxed) { Ok(INTERRUPTED) } else { ended.map(|()| DONE) })
}

/// Facts about this machine for the record of a driver: the CPU, the kernel, everything with a
/// warning, and what a request costs here if `calibrate` has run in this directory.
fn machine() -> Vec<Condition> {
    let all = rig::conditions(Path::new(".")).facts;
    let calibrated = match read_calibration(Path::new(RECORDS)) {
        Ok(Some(known)) if known.host == host(&all, &Pinning::for_this_process()) => {
            let is_usual = |one: &&ShapeCost| {
                one.socket == "tcp" && one.operation == "get" && one.pipeline == 1
            };
            known.shapes.iter().find(is_usual).map(|one| one.engine.cpu_ns_per_op())
        }
        _ => None,
    };
    let cost = calibrated.map_or_else(|| "not calibrated".into(), stats::format_ns);
    let is_usual = |fact: &Condition| {
        let named = [("host", "kernel"), ("cpu", "model")];
        let is_disk = fact.group == model::record::DISK;
        named.contains(&(&*fact.group, &*fact.name)) || (fact.warning.is_some() && !is_disk)
    };
    let mut facts: Vec<Condition> = all.into_iter().filter(is_usual).collect();
    facts.push(Condition {
        group: "cpu".into(),
        name: "CPU time of a get".into(),
        value: cost,
        warning: None,
    });
    facts
}

/// Starts servers for drivers.
fn lend_machine(
    arguments: &WorkerArguments,
    address: &str,
    cpus: Vec<usize>,
) -> Result<Result<u8, FleetError>, CliError> {
    if !arguments.disk.is_dir() {
        let disk = arguments.disk.display();
        return Err(CliError::usage(format!("--disk `{disk}` is not a directory")));
    }
    let stop = watch_signals(None)?;
    let host = rig::host_name();
    let facts = rig::conditions(&arguments.disk).facts.into_iter();
    let named = |fact: Condition| Condition {
        group: format!("{} of the servers' machine {host}", fact.group),
        warning: fact.warning.map(|warning| format!("servers' machine {host}: {warning}")),
        ..fact
    };
    let lending = Lending {
        address,
        token_file: arguments.token_file.as_deref().unwrap_or(Path::new(RIG_TOKEN)),
        cpus,
        disk: arguments.disk.clone(),
        guard: Guard::start()?,
        version: studies::TOOL_VERSION,
        conditions: facts.map(named).collect(),
        host: host.clone(),
    };
    Ok(lend(&lending, &stop, &mut |line| output::say(line)).map(|()| DONE))
}
