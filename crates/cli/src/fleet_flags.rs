//! Options of a load that several processes offer.

use clap::Args;
use lab::Setup;
use lab::fleet::{Fleet, Gathering, RigOn, Token, counted_workers};
use model::{Plan, PlannedTarget, Workload};
use rig::{Guard, Pinning, Scratch};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::exit::CliError;
use crate::signals::watch_signals;
use crate::{output, studies};

/// Usual name of the token file of a fleet.
pub(crate) const FLEET_TOKEN: &str = "cachedyno-fleet.token";
/// Usual name of the token file of a worker that lends its machine.
pub(crate) const RIG_TOKEN: &str = "cachedyno-rig.token";
/// How long to wait for workers, unless set.
const FLEET_WAIT_NS: u64 = 300_000_000_000;
/// Most workers of a fleet.
const WORKERS_MAX: u32 = 4096;

const FLEET_HELP: &str = "Offer the load from several processes\n\n\
    local:3 starts three workers on this machine, each with its share of the generator's CPUs. \
    listen:10.0.0.1:7000,8 waits for eight workers, started by anything: on each machine, with a \
    copy of the token file, `cachedyno worker --join 10.0.0.1:7000 --token-file FILE`. ray:8 \
    places one worker on each of eight nodes of a running Ray cluster, which needs the Python \
    package (pip install 'cachedyno[ray]'). The clients, the rate and the keys of the load are \
    divided between the workers; threads of event loops count for each. All start at one time, \
    their counts and histograms are added up, and percentiles follow from the sum. Connections \
    use TLS with a certificate made for the run, which is in the token file.";

/// Options of a load that several processes offer.
#[derive(Debug, Args)]
pub(crate) struct FleetFlags {
    /// Offer the load from several processes: local:N on this machine, listen:HOST:PORT,N for
    /// `cachedyno worker` on others, or ray:N on the nodes of a Ray cluster
    #[arg(long, value_name = "PLACE", long_help = FLEET_HELP)]
    fleet: Option<String>,
    /// Start private servers on the machine of `cachedyno worker --listen HOST:PORT`, so that
    /// clients and servers do not share CPUs
    #[arg(long, value_name = "HOST:PORT")]
    rig_on: Option<String>,
    /// With --rig-on: token file that the worker wrote
    #[arg(long, value_name = "FILE", default_value = RIG_TOKEN, requires = "rig_on")]
    rig_token: PathBuf,
    /// With --fleet listen: file to write the token to, which workers need [default:
    /// cachedyno-fleet.token]
    #[arg(long, value_name = "FILE", requires = "fleet")]
    token_file: Option<PathBuf>,
    /// With --fleet listen or ray: how long to wait for all workers [default: 5m]
    #[arg(long, value_name = "TIME", requires = "fleet")]
    #[arg(value_parser = stats::parse_duration_ns)]
    fleet_wait: Option<u64>,
}

/// Parses a place of workers, which have `cpus` CPUs each and `wait_ns` to join. Errors: what is
/// wrong, or has no effect there, in words.
pub(crate) fn gathering(
    place: &str,
    token_file: Option<&Path>,
    (wait_ns, cpus): (Option<u64>, u32),
) -> Result<Gathering, String> {
    let wrong = || {
        format!(
            "--fleet `{place}` does not name a place and a number of workers (expected local:N, \
             such as local:3, listen:HOST:PORT,N, such as listen:10.0.0.1:7000,8, or ray:N, such \
             as ray:8)"
        )
    };
    let count = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let workers = digits.then(|| text.parse().unwrap_or(u32::MAX)).ok_or_else(wrong)?;
        let is_allowed = (1..=WORKERS_MAX).contains(&workers);
        let expected = || format!("--fleet: `{text}` workers (expected 1 to {WORKERS_MAX})");
        is_allowed.then_some(workers).ok_or_else(expected)
    };
    let unused = |flag: &str, is_given: bool| {
        let expected = || format!("{flag} has no effect with --fleet `{place}` (omit it)");
        if is_given { Err(expected()) } else { Ok(()) }
    };
    if wait_ns == Some(0) {
        return Err(
            "--fleet-wait `0` gives workers no time to join (expected more than 0, such as 5m)"
                .into(),
        );
    }
    let within = Duration::from_nanos(wait_ns.unwrap_or(FLEET_WAIT_NS));
    match place.split_once(':').ok_or_else(wrong)? {
        ("local", workers) => {
            let workers = count(workers)?;
            unused("--token-file", token_file.is_some())?;
            unused("--fleet-wait", wait_ns.is_some())?;
            Ok(Gathering::Local(workers))
        }
        ("ray", workers) => {
            let workers = count(workers)?;
            unused("--token-file", token_file.is_some())?;
            Ok(Gathering::Ray { workers, cpus, within })
        }
        ("listen", rest) => {
            let (address, workers) = rest.rsplit_once(',').ok_or_else(wrong)?;
            check_address("--fleet listen:", address)?;
            let workers = count(workers)?;
            let token_file = token_file.unwrap_or(Path::new(FLEET_TOKEN)).to_path_buf();
            Ok(Gathering::Listen { address: address.into(), workers, token_file, within })
        }
        _ => Err(wrong()),
    }
}

/// Refuses what cannot be the `HOST:PORT` of a flag.
pub(crate) fn check_address(flag: &str, text: &str) -> Result<(), String> {
    let parts = text.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
    match parts {
        // Output masks text that begins like a password.
        Some(("", Ok(_))) => Err(format!(
            "{flag} names a port without a host (expected HOST:PORT, such as 10.0.0.5:7000)"
        )),
        Some((_, Ok(_))) => Ok(()),
        _ => Err(format!(
            "{flag} `{text}` is not an address (expected HOST:PORT, such as 10.0.0.5:7000)"
        )),
    }
}

/// Waits for workers that use the CPUs of `pinning` if they are on this machine.
pub(crate) fn gather(
    gathering: &Gathering,
    (guard, pinning): (&Guard, &Pinning),
    stop: &AtomicBool,
) -> Result<Fleet, CliError> {
    let (version, notice) = (studies::TOOL_VERSION, &mut |line: &str| output::say(line));
    let fleet = Fleet::gather(gathering, version, (guard, pinning), stop, notice);
    fleet.map_err(|e| {
        let is_interrupted = stop.load(Ordering::Relaxed);
        let error = if is_interrupted { CliError::interrupted } else { CliError::failed };
        error(e.to_string())
    })
}

/// The error of a load with fewer clients than threads.
pub(crate) fn too_few_clients(flag: &str, threads: u32, clients: u32, workers: u32) -> String {
    format!(
        "--fleet: `{clients}` clients for {} with {threads} threads (expected at least one client \
         for each thread: raise {flag}, or use fewer workers or --threads)",
        counted_workers(workers)
    )
}

impl FleetFlags {
    /// Where workers come from, with `cpus` CPUs each; `None` without a fleet.
    fn gathering(&self, cpus: u32) -> Result<Option<Gathering>, CliError> {
        let place = |text| gathering(text, self.token_file.as_deref(), (self.fleet_wait, cpus));
        self.fleet.as_deref().map(place).transpose().map_err(CliError::usage)
    }

    /// Refuses --rig-on for a plan that starts no server.
    pub(crate) fn check_rig(&self, plan: &Plan) -> Result<(), CliError> {
        let starts =
            |target: &PlannedTarget| target.address.is_none() && target.product.has_server();
        if self.has_rig() && !plan.targets.iter().any(starts) {
            return Err(CliError::usage(
                "--rig-on: this run starts no server (expected a target with a private server, \
                 such as `redis` without a URL)",
            ));
        }
        Ok(())
    }

    /// Divides the loads of a plan between the workers. Errors: the flags are wrong, or a load has
    /// too few clients.
    pub(crate) fn divide(&self, plan: &mut Plan) -> Result<(), CliError> {
        let Some(gathering) = self.gathering(1)? else { return Ok(()) };
        plan.places.workers = gathering.workers();
        let blocking = plan.cells.iter().map(|cell| match plan.on_event_loops(cell) {
            Some(_) => u32::MAX,
            None => cell.load.clients,
        });
        let most = blocking.max().unwrap_or(u32::MAX);
        if plan.places.workers > most {
            return Err(CliError::usage(format!(
                "--fleet: `{}` workers for at most {most} clients (expected no more workers than \
                 clients)",
                plan.places.workers
            )));
        }
        for at in 0..plan.cells.len() {
            let (cell, workers) = (&plan.cells[at], plan.places.workers);
            let clients = cell.load.clients;
            if plan.on_event_loops(cell).is_none() {
                // Each client already has its own thread.
                continue;
            }
            let Workload::Kv(kv) = &mut plan.cells[at].workload else { continue };
            kv.threads *= workers;
            if kv.threads > clients {
                return Err(CliError::usage(too_few_clients(
                    "--clients",
                    kv.threads,
                    clients,
                    workers,
                )));
            }
        }
        Ok(())
    }

    /// Number of workers; 0 without a fleet.
    pub(crate) fn workers(&self) -> Result<u32, CliError> {
        Ok(self.gathering(1)?.map_or(0, |gathering| gathering.workers()))
    }

    /// True if private servers run on another machine.
    pub(crate) fn has_rig(&self) -> bool {
        self.rig_on.is_some()
    }

    /// Connects to the machine for private servers; `None` for this one.
    pub(crate) fn rig(&self, guard: &Guard) -> Result<Option<Arc<RigOn>>, CliError> {
        let Some(address) = &self.rig_on else { return Ok(None) };
        check_address("--rig-on", address).map_err(CliError::usage)?;
        let token = Token::read("--rig-token", &self.rig_token)
            .map_err(|e| CliError::usage(e.to_string()))?;
        let directory = Scratch::for_sockets(guard)?;
        let (own, notice) = ((&token, studies::TOOL_VERSION), &mut |line: &str| output::say(line));
        let rig = RigOn::connect(address, own, directory, notice);
        rig.map(|rig| Some(Arc::new(rig))).map_err(|e| CliError::failed(e.to_string()))
    }

    /// Waits for the workers of a plan.
    pub(crate) fn gather(&self, setup: Setup, plan: &Plan) -> Result<Setup, CliError> {
        let threads = plan.cells.iter().map(|cell| cell.threads() / plan.places.workers.max(1));
        let gathering = self.gathering(threads.max().unwrap_or(1).max(1))?;
        let (given, planned) =
            (gathering.as_ref().map_or(0, Gathering::workers), plan.places.workers);
        if given != planned {
            return Err(CliError::usage(match (planned, given) {
                (0, _) => "--fleet: this run has no workers (expected no --fleet)".into(),
                (_, 0) => format!(
                    "this run has {} (expected --fleet local:{planned}, listen:HOST:PORT,{planned} \
                     or ray:{planned})",
                    counted_workers(planned)
                ),
                _ => format!(
                    "--fleet: `{given}` for a run that has {} (expected the same number)",
                    counted_workers(planned)
                ),
            }));
        }
        let Some(gathering) = gathering else { return Ok(setup) };
        // Without this, a signal would end the program and leave the token behind.
        let stop = watch_signals(None)?;
        let fleet = gather(&gathering, (&setup.guard, &setup.pinning), &stop)?;
        Ok(Setup { fleet: Some(fleet), ..setup })
    }
}
