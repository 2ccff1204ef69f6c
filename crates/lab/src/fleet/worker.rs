//! A worker: joins a driver and offers its part of every load.

use drivers::wire::Access;
use load::wire::Offer;
use load::{Latest, Meter, Reading};
use model::{Condition, ErrorClass, Failure, RecordedOperation};
use rig::StolenCpuReader;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::FleetError;
use super::connecting::connect;
use super::endpoint::SentEndpoint;
use super::link::{Arrived, End, Link};
use super::messages::{
    Hello, PROTOCOL, Requests, SentEnd, SentJob, SentLoad, SentProgress, SentTask, ToDriver,
    ToWorker,
};
use super::own_clients::{self, OwnClients, Place};
use super::token::Token;
use crate::kv_work;
use crate::recorded;

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// How often signals are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long before the start of a load its thread stops sleeping.
const AWAKE_BEFORE: Duration = Duration::from_millis(2);
/// How long a load may take to end after the driver has gone.
const END_WITHIN: Duration = Duration::from_secs(3);

/// What a worker needs.
pub struct Joining<'a> {
    /// `HOST:PORT` of the driver.
    pub address: &'a str,
    /// Token of the fleet.
    pub token: &'a Token,
    /// CPUs for its threads.
    pub cpus: Vec<usize>,
    /// Version of this program.
    pub version: &'a str,
    /// Host name.
    pub host: String,
    /// Facts about this machine.
    pub machine: Vec<Condition>,
    /// A private directory for files of TLS.
    pub directory: &'a Path,
}

/// Joins the driver and offers loads until it says that no more follow. `notice` gets lines for the
/// user. Errors: the driver cannot be reached, refuses the worker, or has gone.
pub fn work(
    joining: &Joining<'_>,
    stop: &AtomicBool,
    notice: &mut dyn FnMut(&str),
) -> Result<(), FleetError> {
    let zero = Instant::now();
    let address = ("--join", joining.address);
    let (link, inbox) = connect(address, joining.token, zero, stop, notice)?;
    let link = Arc::new(link);
    link.send(&ToDriver::Hello(Hello {
        protocol: PROTOCOL,
        version: joining.version.into(),
        secret: joining.token.secret.clone(),
        host: joining.host.clone(),
        id: u64::from(rig::random()) << 32 | u64::from(rig::random()),
        pid: std::process::id(),
        cpus: joining.cpus.clone(),
        machine: joining.machine.clone(),
    }));
    let clients = Arc::default();
    let mut worker = Worker { joining, link, zero, current: None, clients, has_joined: false };
    let ended = worker.serve(&inbox, stop, notice);
    worker.end_current();
    ended
}

/// A load that is prepared or runs.
struct Current {
    stop: Arc<AtomicBool>,
    start: Sender<u64>,
    thread: JoinHandle<()>,
}

struct Worker<'a> {
    joining: &'a Joining<'a>,
    link: Arc<Link>,
    /// Zero of this worker's clock.
    zero: Instant,
    current: Option<Current>,
    /// Its blocking clients, which the thread of the current load uses.
    clients: Arc<Mutex<Option<OwnClients>>>,
    has_joined: bool,
}

impl Worker<'_> {
    fn serve(
        &mut self,
        inbox: &Receiver<Arrived<ToWorker>>,
        stop: &AtomicBool,
        notice: &mut dyn FnMut(&str),
    ) -> Result<(), FleetError> {
        loop {
            let arrived = match inbox.recv_timeout(LOOK_EVERY) {
                Ok(arrived) => arrived,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    self.link.send(&ToDriver::Leaves { why: "it was interrupted".into() });
                    return Err(FleetError("interrupted".into()));
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    Arrived::Gone(End::Other("its thread ended".into()))
                }
            };
            match arrived {
                Arrived::Message(ToWorker::Welcome { number }) => {
                    self.link.trust();
                    self.has_joined = true;
                    let address = self.joining.address;
                    notice(&format!("joined the driver at {address} as worker {number}"));
                }
                Arrived::Message(ToWorker::Refused { why }) => {
                    return Err(FleetError(format!("the driver refused this worker: {why}")));
                }
                Arrived::Message(ToWorker::Load { job }) => {
                    self.end_current();
                    self.current = Some(self.prepare(*job));
                }
                Arrived::Message(ToWorker::Start { at_ns }) => {
                    if let Some(current) = &self.current {
                        // A load that has failed does not wait for its start.
                        let _ = current.start.send(at_ns);
                    }
                }
                Arrived::Message(ToWorker::Stop) => {
                    if let Some(current) = &self.current {
                        current.stop.store(true, Ordering::Relaxed);
                    }
                }
                Arrived::Message(ToWorker::Close) => {
                    self.end_current();
                    if let Ok(mut own) = self.clients.try_lock() {
                        *own = None;
                    }
                }
                Arrived::Message(ToWorker::Goodbye) => {
                    notice("the driver is done");
                    return Ok(());
                }
                Arrived::Clock(_) => {}
                Arrived::Gone(why) => {
                    let address = self.joining.address;
                    let what = if self.has_joined { "lost" } else { "cannot join" };
                    let is_other = !self.has_joined && why == End::Closed;
                    let cure = if is_other {
                        " (expected the address and the token of a driver with --fleet listen: a \
                         `worker --listen` serves drivers with --rig-on)"
                    } else {
                        ""
                    };
                    return Err(FleetError(format!("{what} the driver at {address}: {why}{cure}")));
                }
            }
        }
    }

    /// Starts to prepare a load.
    fn prepare(&self, job: SentJob) -> Current {
        let stop = Arc::new(AtomicBool::new(false));
        let (start, started) = channel();
        let own = std::process::id();
        let siblings: Vec<u32> = job.siblings.iter().copied().filter(|pid| *pid != own).collect();
        let mut meter = WorkerMeter {
            job: job.number,
            link: Arc::clone(&self.link),
            started,
            zero: self.zero,
            begun: None,
            late_ns: 0,
            stolen: StolenCpuReader::beside(&self.joining.cpus, &siblings),
        };
        let clients = Arc::clone(&self.clients);
        let (link, own_stop) = (Arc::clone(&self.link), Arc::clone(&stop));
        let (cpus, directory) = (self.joining.cpus.clone(), self.joining.directory.to_path_buf());
        let thread = thread::spawn(move || {
            let place = Place { cpus: &cpus, directory: &directory };
            let number = job.number;
            let ended = match job.load {
                SentLoad::Requests { endpoint, requests, offer } => {
                    let load = (*endpoint, &*requests, *offer);
                    request(load, place, &own_stop, &mut meter)
                }
                SentLoad::Clients(task) => perform(&clients, task, place, &own_stop, &mut meter),
            };
            let ended = ended
                .unwrap_or_else(|failure| SentEnd { failure: Some(failure), ..SentEnd::default() });
            link.send(&ToDriver::Ended { ended: Box::new(SentEnd { job: number, ..ended }) });
        });
        Current { stop, start, thread }
    }

    /// Ends the current load, and waits for that as long as it may take.
    fn end_current(&mut self) {
        let Some(current) = self.current.take() else { return };
        current.stop.store(true, Ordering::Relaxed);
        let until = Instant::now() + END_WITHIN;
        while !current.thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Prepares requests of event loops and sends them.
fn request(
    (endpoint, requests, offer): (SentEndpoint, &Requests, Offer),
    Place { cpus, directory }: Place<'_>,
    stop: &AtomicBool,
    meter: &mut WorkerMeter,
) -> Result<SentEnd, Failure> {
    let wrong = |FleetError(message)| Failure { class: ErrorClass::Other, message };
    let endpoint = endpoint.received(directory).map_err(wrong)?;
    let access = drivers::wire::access(&endpoint, Duration::from_nanos(offer.timeout_ns))?;
    let Access { dialect, servers } = &access;
    let (work, phase) = kv_work::of_requests(requests, *dialect)?;
    let (spin, cpus) = (offer.spin && !cpus.is_empty(), cpus.to_vec());
    let offer = Offer { spin, cpus, ..offer };
    let names: Vec<&str> = work.operations.iter().map(|o| o.name.as_str()).collect();
    let mut reporter = Reporter::new(meter.job, Arc::clone(&meter.link));
    let mut outcome = dialect.run(&offer, &work, servers, stop, meter, &mut |snapshot| {
        reporter.take(recorded::latest(&snapshot, (&phase, &names), &offer), snapshot.last);
    });
    let before_start = meter.begun.zip(outcome.zero);
    let before_start = before_start.map(|(begun, zero)| begun.saturating_duration_since(zero));
    let (written, failure) = (outcome.written.take(), outcome.failure.clone());
    let record = outcome.into_phase(&phase, &names);
    Ok(SentEnd {
        late_ns: meter.late_ns,
        before_start_ns: before_start.unwrap_or_default().as_nanos() as u64,
        points: record.points,
        series: record.series,
        outages: record.outages,
        written,
        failure,
        ..SentEnd::default()
    })
}

/// Does something with the worker's blocking clients.
fn perform(
    clients: &Mutex<Option<OwnClients>>,
    task: SentTask,
    place: Place<'_>,
    stop: &AtomicBool,
    meter: &mut WorkerMeter,
) -> Result<SentEnd, Failure> {
    let Ok(mut own) = clients.try_lock() else {
        let message = "its clients have not ended their last call".into();
        return Err(Failure { class: ErrorClass::Other, message });
    };
    let mut reporter = Reporter::new(meter.job, Arc::clone(&meter.link));
    let ended = own_clients::perform(&mut own, task, place, stop, meter, &mut |progress| {
        if let Some(latest) = progress.latest {
            reporter.take(latest, false);
        }
    });
    reporter.send();
    ended.map(|ended| SentEnd { late_ns: meter.late_ns, ..ended })
}

/// Reports progress to the driver.
struct Reporter {
    job: u64,
    link: Arc<Link>,
    reported_at: Instant,
    /// Results since the last report, and where they end.
    operations: Vec<RecordedOperation>,
    whole: Vec<RecordedOperation>,
    at_ns: u64,
    stage: Option<u32>,
}

impl Reporter {
    fn new(job: u64, link: Arc<Link>) -> Self {
        let (operations, whole) = (Vec::new(), Vec::new());
        Self { job, link, reported_at: Instant::now(), operations, whole, at_ns: 0, stage: None }
    }

    /// Takes new results, and reports them if it is time to or they are the `last`.
    fn take(&mut self, latest: Latest, last: bool) {
        RecordedOperation::merge_all(&mut self.operations, &latest.operations);
        RecordedOperation::merge_all(&mut self.whole, &[*latest.whole]);
        (self.at_ns, self.stage) = (latest.at_ns, latest.stage);
        if last || self.reported_at.elapsed() >= REPORT_EVERY {
            self.send();
        }
    }

    /// Reports what is not reported yet.
    fn send(&mut self) {
        self.reported_at = Instant::now();
        let Some(whole) = self.whole.pop() else { return };
        let progress = SentProgress {
            job: self.job,
            at_ns: self.at_ns,
            stage: self.stage,
            operations: std::mem::take(&mut self.operations),
            whole,
        };
        self.link.send(&ToDriver::Progress { progress: Box::new(progress) });
    }
}

/// Waits for the start of a load, and reads how much CPU time others took from this worker.
struct WorkerMeter {
    job: u64,
    link: Arc<Link>,
    /// The start on this worker's clock.
    started: Receiver<u64>,
    zero: Instant,
    begun: Option<Instant>,
    late_ns: u64,
    stolen: StolenCpuReader,
}

impl Meter for WorkerMeter {
    fn read(&mut self) -> Reading {
        let stolen = self.stolen.read();
        Reading {
            server_cpu_ns: None,
            taken_from_server_ns: None,
            other_processes_on_generator_ns: stolen.on_generator_ns,
            siblings_on_generator_ns: stolen.by_siblings_ns,
            stolen_from_generator_ns: stolen.stolen_from_generator_ns,
            paused_ns: stolen.paused_ns,
        }
    }

    fn begins(&mut self, stop: &AtomicBool) -> Instant {
        self.link.send(&ToDriver::Ready { job: self.job });
        let at_ns = loop {
            match self.started.recv_timeout(LOOK_EVERY) {
                Ok(at_ns) => break at_ns,
                Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
                Err(_) => return Instant::now(),
            }
        };
        let planned = self.zero + Duration::from_nanos(at_ns);
        let sleep = planned.saturating_duration_since(Instant::now());
        thread::sleep(sleep.saturating_sub(AWAKE_BEFORE));
        while Instant::now() < planned {
            std::hint::spin_loop();
        }
        self.late_ns = planned.elapsed().as_nanos() as u64;
        // A start that came too late begins now; its lateness is part of the skew.
        let begun = if self.late_ns > 1_000_000 { Instant::now() } else { planned };
        self.begun = Some(begun);
        begun
    }
}
