//! Samples resource usage of server and generator ten times a second on a separate thread.
//!
//! Another thread asks the server for its counters on its own connection, so that a slow or hanging
//! server does not delay the other readings. An answer that is late for its sample goes into the
//! next one.

use drivers::Admin;
use load::Progress;
use model::{Endpoint, Event, Failure, ProxyUse, SAMPLE_NS, Sample, StoreCounters, ThreadCpu};
use rig::{
    DeviceReader, InterfaceReader, PressureReader, ServerProcess, UsageReader, anonymous_bytes,
    cpu_throttled_ns, pin_current_thread, process_cpu_ns,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::address::{address, place};
use crate::ready::Ready;
use crate::recorded;

const EVERY: Duration = Duration::from_nanos(SAMPLE_NS);
/// How long a sample waits for the server's answer; a late answer goes into the next sample.
const ANSWERED_WITHIN: Duration = Duration::from_millis(40);
/// Timeout of the connection for counters.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Delay before it is reopened.
const RETRY: Duration = Duration::from_secs(1);
/// Queue of samples for live reports; further ones are kept but not reported live.
const LIVE_MAX: usize = 100;
/// Maximum number of samples kept per trial, enough for over two hours. Longer trials keep every
/// second sample, then every fourth, and so on.
const KEPT_MAX: usize = 100_000;
/// Threads kept per side: those that used the most CPU time in the trial.
const THREADS_MAX: usize = 16;

/// Samples from its start until [`Sampler::stop`]. Dropping it also ends its thread.
pub(crate) struct Sampler {
    /// Dropped to end the thread.
    stop: Option<mpsc::Sender<()>>,
    live: Receiver<Sample>,
    /// `None` if no thread could be started, and after its end.
    thread: Option<JoinHandle<Vec<Sample>>>,
}

impl Sampler {
    /// Starts sampling prepared stores on the clock that starts at `zero`. Its threads run on the
    /// CPUs in `generator`, or on any CPU if that is empty.
    pub(crate) fn start(ready: &Ready, generator: &[usize], zero: Instant) -> Self {
        let endpoints: Vec<Endpoint> = ready.endpoints().cloned().collect();
        // Between clients and a distant server is a relay, so its own address leads to it.
        let of_servers = ready.servers().map(|(_, server)| server.endpoint());
        let server = of_servers.chain(ready.endpoints()).find_map(address);
        let cpus = generator.to_vec();
        let servers =
            ready.servers().map(|(_, server)| (place(server.endpoint()), server.process()));
        let servers: Vec<(String, ServerProcess)> = servers.collect();
        let proxies = ready.proxy_pids();
        let (group, quota_group) = (ready.groups.memory_path(), ready.groups.quota_path());
        let disk = ready.disk.clone();
        let (stop, stopped) = mpsc::channel();
        let (live_sender, live) = mpsc::sync_channel(LIVE_MAX);
        let run = move || {
            // If pinning is refused, the thread runs on any CPU.
            let _ = pin_current_thread(&cpus);
            let device = disk.as_deref().and_then(DeviceReader::of);
            let group_pressure = group.as_deref().and_then(PressureReader::of_group);
            let own = Readers::new(servers, endpoints, server);
            let proxy = (!proxies.is_empty()).then(|| UsageReader::new(&proxies));
            let readers = Readers { proxy, group, quota_group, device, group_pressure, ..own };
            sample(readers, zero, &stopped, &live_sender)
        };
        let thread = thread::Builder::new().name("sampler".into()).spawn(run).ok();
        Self { stop: Some(stop), live, thread }
    }

    /// Events for a progress report: what the phase recorded and the new samples.
    pub(crate) fn events(&self, cell: &str, progress: Progress<'_>) -> impl Iterator<Item = Event> {
        let sampled = self.live.try_iter().map({
            let cell = cell.to_string();
            move |sample| Event::Sampled { cell: cell.clone(), sample: Box::new(sample) }
        });
        recorded::events(cell, progress).chain(sampled)
    }

    /// Takes the last sample now and returns all of them.
    pub(crate) fn stop(mut self) -> Vec<Sample> {
        self.end()
    }

    fn end(&mut self) -> Vec<Sample> {
        drop(self.stop.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

fn sample(
    mut readers: Readers,
    zero: Instant,
    stopped: &Receiver<()>,
    live: &SyncSender<Sample>,
) -> Vec<Sample> {
    let mut kept = Kept { samples: Vec::new(), every: 1, taken: 0 };
    let mut due = Instant::now();
    loop {
        let sample = readers.sample(zero);
        // Live reports are optional: ignore a full queue.
        let _ = live.try_send(sample.clone());
        kept.take(sample);
        let now = Instant::now();
        while due <= now {
            due += EVERY;
        }
        if !matches!(stopped.recv_timeout(due - now), Err(RecvTimeoutError::Timeout)) {
            break;
        }
    }
    kept.samples.push(readers.sample(zero));
    keep_busiest(&mut kept.samples, THREADS_MAX);
    kept.samples
}

/// Samples of a trial, thinned out in long trials.
struct Kept {
    samples: Vec<Sample>,
    /// Keeps one sample in `every`.
    every: u64,
    taken: u64,
}

impl Kept {
    fn take(&mut self, sample: Sample) {
        if self.taken.is_multiple_of(self.every) {
            if self.samples.len() == KEPT_MAX {
                let mut is_kept = false;
                self.samples.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
                self.every *= 2;
            }
            self.samples.push(sample);
        }
        self.taken += 1;
    }
}

/// Keeps only the `most` threads of each side that used the most CPU time.
fn keep_busiest(samples: &mut [Sample], most: usize) {
    let sides: [fn(&mut Sample) -> Option<&mut model::ProcessUse>; 2] =
        [|sample| Some(&mut sample.generator), |sample| sample.server.as_mut()];
    for side in sides {
        // First and last CPU time of each thread.
        let mut cpu_ns: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for thread in samples.iter_mut().filter_map(side).flat_map(|used| &used.threads) {
            cpu_ns.entry(thread.id).or_insert((thread.cpu_ns, 0)).1 = thread.cpu_ns;
        }
        if cpu_ns.len() <= most {
            continue;
        }
        let mut ids: Vec<u32> = cpu_ns.keys().copied().collect();
        ids.sort_by_key(|id| std::cmp::Reverse(cpu_ns[id].1.saturating_sub(cpu_ns[id].0)));
        ids.truncate(most);
        for used in samples.iter_mut().filter_map(side) {
            used.threads.retain(|thread| ids.contains(&thread.id));
        }
    }
}

/// Readers for all parts of a sample.
struct Readers {
    /// Address and process of each private server, and the reader of all of them.
    servers: Vec<(String, ServerProcess)>,
    server: UsageReader,
    /// Proxies, which are among the servers too.
    proxy: Option<UsageReader>,
    generator: UsageReader,
    network: Option<InterfaceReader>,
    /// The servers' control group.
    group: Option<PathBuf>,
    /// Their control group with a quota of CPU time.
    quota_group: Option<PathBuf>,
    /// The disk with the target's data.
    device: Option<DeviceReader>,
    pressure: Option<PressureReader>,
    group_pressure: Option<PressureReader>,
    poller: Option<CounterPoller>,
}

impl Readers {
    fn new(
        servers: Vec<(String, ServerProcess)>,
        endpoints: Vec<Endpoint>,
        server: Option<SocketAddr>,
    ) -> Self {
        Self {
            servers,
            server: UsageReader::new(&[]).with_children(),
            proxy: None,
            generator: UsageReader::new(&[std::process::id()]),
            network: server.and_then(InterfaceReader::toward),
            group: None,
            quota_group: None,
            device: None,
            pressure: PressureReader::of_machine(),
            group_pressure: None,
            poller: CounterPoller::start(endpoints),
        }
    }

    fn sample(&mut self, zero: Instant) -> Sample {
        let at_ns = zero.elapsed().as_nanos() as u64;
        let pending = self.poller.as_ref().map(|poller| (poller, poller.ask()));
        // A server that was started again has another process id.
        let pids: Vec<u32> = self.servers.iter().map(|(_, process)| process.pid()).collect();
        self.server.follow(&pids);
        let mut generator = self.generator.read().unwrap_or_default();
        generator.cpu_ns = generator.cpu_ns.saturating_sub(load::watch::spun_ns());
        Sample {
            at_ns,
            server: self.server.read(),
            servers: self.cpu_of_each(&pids),
            proxy: self
                .proxy
                .as_mut()
                .and_then(UsageReader::read)
                .map(|used| ProxyUse { cpu_ns: used.cpu_ns, resident_bytes: used.resident_bytes }),
            generator,
            group_bytes: self.group.as_deref().and_then(anonymous_bytes),
            group_throttled_ns: self.quota_group.as_deref().and_then(cpu_throttled_ns),
            network: self.network.as_mut().and_then(InterfaceReader::read),
            device: self.device.as_mut().and_then(DeviceReader::read),
            pressure: self.pressure.as_mut().and_then(PressureReader::read),
            group_pressure: self.group_pressure.as_mut().and_then(PressureReader::read),
            store: pending.and_then(|(poller, pending)| poller.answer(pending)),
        }
    }
}

impl Readers {
    /// CPU time of each of several servers that run.
    fn cpu_of_each(&self, pids: &[u32]) -> Vec<ThreadCpu> {
        let own = self.servers.iter().zip(pids).filter(|_| pids.len() > 1);
        own.filter_map(|((address, _), pid)| {
            let (id, name) = (*pid, address.clone());
            Some(ThreadCpu { id, name, cpu_ns: process_cpu_ns(*pid)? })
        })
        .collect()
    }
}

/// The thread that asks stores for their counters. It is never joined: after its last request it
/// ends when that is answered or times out.
struct CounterPoller {
    requests: SyncSender<()>,
    answers: Receiver<Option<StoreCounters>>,
}

/// State of one request for counters.
struct PendingAnswer {
    /// False if the thread was still busy, so that no request was made.
    is_in_flight: bool,
    /// Late answer to an earlier request.
    late: Option<StoreCounters>,
}

impl CounterPoller {
    /// `None` if no store has a server, or no thread can be started.
    fn start(mut endpoints: Vec<Endpoint>) -> Option<Self> {
        endpoints.retain(|endpoint| endpoint.directory().is_none());
        if endpoints.is_empty() {
            return None;
        }
        // No queue: while the thread is busy, a request is refused.
        let (requests, incoming) = mpsc::sync_channel(0);
        let (sender, answers) = mpsc::channel();
        let poll = move || poll(&endpoints, &incoming, &sender);
        thread::Builder::new().name("store-counters".into()).spawn(poll).ok()?;
        Some(Self { requests, answers })
    }

    fn ask(&self) -> PendingAnswer {
        let late = self.answers.try_iter().last().flatten();
        let sent: Result<(), TrySendError<()>> = self.requests.try_send(());
        PendingAnswer { is_in_flight: sent.is_ok(), late }
    }

    /// The counters, if they come in time; else a late answer to an earlier request.
    fn answer(&self, pending: PendingAnswer) -> Option<StoreCounters> {
        if !pending.is_in_flight {
            return pending.late;
        }
        self.answers.recv_timeout(ANSWERED_WITHIN).ok().flatten().or(pending.late)
    }
}

/// Serves requests until the sampler ends, or until no store has counters.
fn poll(
    endpoints: &[Endpoint],
    requests: &Receiver<()>,
    answers: &mpsc::Sender<Option<StoreCounters>>,
) {
    let mut stores: Option<Vec<Box<dyn Admin>>> = None;
    let mut connects_from = Instant::now();
    while requests.recv().is_ok() {
        if stores.is_none() && Instant::now() >= connects_from {
            let opened = endpoints.iter().map(|endpoint| drivers::admin(endpoint, TIMEOUT));
            stores = opened.collect::<Result<_, Failure>>().ok();
            connects_from = Instant::now() + RETRY;
        }
        let counters = match stores.as_mut().map(|stores| counters(stores)) {
            Some(Ok(None)) => return,
            Some(Ok(counters)) => counters,
            // Reconnect after an error: the next reply could belong to an earlier request.
            Some(Err(_)) => {
                stores = None;
                None
            }
            None => None,
        };
        if answers.send(counters).is_err() {
            return;
        }
    }
}

/// Combined counters of all stores; `None` if no store has any.
fn counters(stores: &mut [Box<dyn Admin>]) -> Result<Option<StoreCounters>, Failure> {
    let mut all: Option<StoreCounters> = None;
    for store in stores {
        if let Some(counters) = store.counters()? {
            all = Some(all.unwrap_or_default().and(&counters));
        }
    }
    Ok(all)
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
