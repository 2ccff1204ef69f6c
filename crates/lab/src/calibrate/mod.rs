//! `calibrate`: limits of this machine, and CPU cost of the generator on it.
//!
//! The null server and the generator run on their usual CPUs. The wire engine offers each kind of
//! request, then the bare loop sends as many requests as the engine sent in its time. The
//! difference is the engine's overhead.
//!
//! - [`bare`]: the bare loop.
//! - [`machine`]: clock, late wake-ups, pauses; the machine's identity.

pub mod bare;
pub mod machine;

use drivers::wire::{Access, Dialect};
use load::Unmetered;
use load::watch::ThreadUse;
use load::wire::pacer::{Arrivals, Stage};
use load::wire::{Address, Offer, Outcome, Pacing, Part, ThinkTime, Until, Work};
use model::calibration::{CALIBRATION_FORMAT, Calibration, Cost, LoadLag, ShapeCost};
use model::{Condition, ErrorClass, Failure};
use rig::reference::{Listen, NullServer, NullSettings};
use rig::{Guard, Pinning, Scratch};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use workloads::kv::{Distribution, KeyChoice, KeyNames, Mix, Sizes, Values};

use crate::null::endpoint;
use crate::wall::unix_ms;
use bare::{Bare, Batch};

/// Clients of every load.
pub const CLIENTS: u32 = 50;
/// Value size, bytes.
pub const VALUE_BYTES: usize = 1024;
/// Pipeline depths.
pub const PIPELINES: [u32; 3] = [1, 16, 50];
const OPERATIONS: [&str; 2] = ["get", "set"];
/// Number of keys that requests choose from.
const KEYS: u64 = 100_000;
/// Maximum requests in flight per client while lag is measured.
const LAG_PIPELINE: u32 = 16;
/// Planned rate while lag is measured, as a share of the null server's rate without pipelining.
const LAG_SHARE: f64 = 0.5;
const TIMEOUT_NS: u64 = 10_000_000_000;

/// Number of measurements, all of equal length, in a calibration.
pub const MEASUREMENTS: u32 = 2 * (2 * OPERATIONS.len() * PIPELINES.len()) as u32 + 3;

/// Parameters of a calibration.
#[derive(Debug)]
pub struct Calibrator<'a> {
    /// Removes the socket's directory should this process die.
    pub guard: &'a Guard,
    /// CPUs of the generator and of the server.
    pub pinning: &'a Pinning,
    /// Conditions of this host.
    pub facts: &'a [Condition],
    /// Version and commit of cachedyno.
    pub tool: String,
    /// Length of each measurement.
    pub length: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    operation: &'static str,
    pipeline: u32,
}

impl Calibrator<'_> {
    /// Runs all [`MEASUREMENTS`] and passes the name of each to `on_start` as it starts.
    pub fn run(&self, on_start: &mut dyn FnMut(&str)) -> Result<Calibration, Failure> {
        let started_unix_ms = unix_ms();
        let scratch = Scratch::for_sockets(self.guard)?;
        let unix = self.serve(Listen::Unix(scratch.socket("null.sock")?))?;
        let tcp = self.serve(Listen::default())?;
        let mut shapes = Vec::new();
        for (socket, server) in [("unix", &unix), ("tcp", &tcp)] {
            for operation in OPERATIONS {
                for pipeline in PIPELINES {
                    let shape = Shape { operation, pipeline };
                    let name = format!("{operation}, {pipeline} at once, by {socket}");
                    on_start(&format!("{name}: the engine"));
                    let engine = self.engine(server, shape)?;
                    on_start(&format!("{name}: the bare loop"));
                    let bare = self.bare(server, shape, engine.rate_per_s)?;
                    shapes.push(ShapeCost {
                        socket: socket.into(),
                        operation: operation.into(),
                        pipeline,
                        engine_to_bare: engine.cpu_ns_per_op() / bare.cpu_ns_per_op(),
                        engine,
                        bare,
                    });
                }
            }
        }
        let reached = shapes.iter().find(|s| s.operation == "get" && s.pipeline == 1);
        on_start("lag under load");
        let load = self.lag(&unix, reached.map_or(0.0, |s| s.engine.rate_per_s))?;
        on_start("late wake-ups");
        let timer = machine::timer(&self.pinning.generator, self.length)?;
        on_start("pauses");
        let pauses = machine::pauses(&self.pinning.generator, self.length)?;
        Ok(Calibration {
            format: CALIBRATION_FORMAT,
            tool: self.tool.clone(),
            started_unix_ms,
            measured_ns: self.length.as_nanos() as u64,
            host: machine::host(self.facts, self.pinning),
            clients: CLIENTS,
            value_bytes: VALUE_BYTES,
            shapes,
            clock: machine::clock(self.facts),
            timer,
            pauses,
            load,
        })
    }

    fn serve(&self, listen: Listen) -> Result<NullServer, Failure> {
        Ok(NullServer::start(&NullSettings {
            listen,
            threads: self.pinning.server.len().max(1),
            cpus: self.pinning.server.clone(),
            value_bytes: VALUE_BYTES,
            ..NullSettings::default()
        })?)
    }

    fn engine(&self, server: &NullServer, shape: Shape) -> Result<Cost, Failure> {
        let done = self.offer(
            server,
            shape,
            Pacing::Closed { think: ThinkTime::default(), stages: Vec::new() },
        )?;
        let used = ThreadUse {
            cpu_ns: done.generator_cpu_ns,
            user_ns: done.generator_user_ns,
            run_delay_ns: done.generator_run_delay_ns,
        };
        let answered = done.recorder.answered_in_all();
        cost(answered, used, Duration::from_nanos(done.wall_ns))
    }

    /// Sends as many requests as take `length` at `rate_per_s`.
    fn bare(&self, server: &NullServer, shape: Shape, rate_per_s: f64) -> Result<Cost, Failure> {
        let requests = rate_per_s * self.length.as_secs_f64();
        let bare = Bare {
            address: match server.address() {
                Listen::Tcp(address) => Address::Tcp(*address),
                Listen::Unix(path) => Address::Unix(path.clone()),
            },
            connections: CLIENTS,
            batch: Batch::redis(shape.operation, VALUE_BYTES, shape.pipeline),
            batches: (requests / f64::from(shape.pipeline)) as u64,
            cpus: self.pinning.generator.clone(),
        };
        let spent = bare.run().map_err(|e| failed(format!("the bare loop: {e}")))?;
        cost(spent.batches * u64::from(shape.pipeline), spent.used, spent.wall)
    }

    fn lag(&self, server: &NullServer, reached_per_s: f64) -> Result<LoadLag, Failure> {
        let rate_per_s = (reached_per_s * LAG_SHARE).max(1.0).round();
        let length_ns = self.warmup_ns() + self.length.as_nanos() as u64;
        let stage = Stage { rate_from_per_s: rate_per_s, rate_to_per_s: rate_per_s, length_ns };
        let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
        let shape = Shape { operation: "get", pipeline: LAG_PIPELINE };
        let done = self.offer(server, shape, pacing)?;
        let whole = done.recorder.whole();
        let lag = whole.lag().ok_or_else(|| failed("an open load recorded no lag"))?;
        Ok(LoadLag { rate_per_s, lag: machine::late(lag) })
    }

    fn warmup_ns(&self) -> u64 {
        self.length.as_nanos() as u64 / 10
    }

    fn offer(&self, server: &NullServer, shape: Shape, pacing: Pacing) -> Result<Outcome, Failure> {
        let endpoint = endpoint(Dialect::Redis, server.address());
        let timeout = Duration::from_nanos(TIMEOUT_NS);
        let Access { dialect, servers } = drivers::wire::access(&endpoint, timeout)?;
        let work = work(dialect, shape.operation)?;
        let offer = Offer {
            part: Part::default(),
            threads: 1,
            clients: CLIENTS,
            pipeline: shape.pipeline,
            pacing,
            until: Until::AfterNs(self.length.as_nanos() as u64),
            warmup_ns: self.warmup_ns(),
            timeout_ns: TIMEOUT_NS,
            stall_ns: 0,
            cpus: self.pinning.generator.clone(),
            spin: true,
            reconnects: false,
            stop_on_error_reply: true,
            hangs_up: false,
            limits_ns: Vec::new(),
            number: 0,
        };
        let stop = AtomicBool::new(false);
        let done = dialect.run(&offer, &work, &servers, &stop, &mut Unmetered, &mut |_| {});
        match &done.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(done),
        }
    }
}

fn work(dialect: Dialect, operation: &str) -> Result<Work, Failure> {
    let (names, sizes) = (KeyNames::default(), Sizes::all(VALUE_BYTES));
    let operation = dialect.operation(operation, None, None, &names, &sizes).map_err(failed)?;
    Ok(Work {
        operations: vec![operation],
        mix: Mix::new(&[1.0]).map_err(failed)?,
        keys: KeyChoice::new(Distribution::Uniform, KEYS).map_err(failed)?,
        names,
        sizes,
        values: Arc::new(Values::new(1)),
        seed: 1,
        verify_one_in: 0,
        inserting: None,
        follows: false,
        keeps_writes: false,
    })
}

fn cost(requests: u64, used: ThreadUse, wall: Duration) -> Result<Cost, Failure> {
    if requests == 0 || used.cpu_ns == 0 {
        return Err(failed("no request was answered in time (measure longer)"));
    }
    let each = requests as f64;
    // The kernel only estimates the split between user and system time; the sum is exact.
    let user_ns = used.user_ns.min(used.cpu_ns);
    Ok(Cost {
        rate_per_s: each / wall.as_secs_f64(),
        user_ns_per_op: user_ns as f64 / each,
        system_ns_per_op: (used.cpu_ns - user_ns) as f64 / each,
    })
}

fn failed(message: impl Display) -> Failure {
    Failure { class: ErrorClass::Other, message: message.to_string() }
}
