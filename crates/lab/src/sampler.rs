//! What server and generator use in the course of a trial, read ten times a second by a thread of
//! its own.
//!
//! Another thread asks the server for its counters, on a connection of its own: one that is slow to
//! answer, or does not answer any more, delays no other reading. An answer that comes too late for
//! its sample goes into the next one.

use drivers::Admin;
use load::Progress;
use model::{Endpoint, Event, Failure, SAMPLE_NS, Sample, StoreCounters};
use rig::{InterfaceReader, UsageReader, anonymous_bytes, pin_current_thread};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::address::address;
use crate::ready::Ready;
use crate::recorded;

const EVERY: Duration = Duration::from_nanos(SAMPLE_NS);
/// How long a sample waits for the server's answer; a later one counts to the next.
const ANSWERED_WITHIN: Duration = Duration::from_millis(40);
/// Time after which the connection that asks is given up.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How soon another one is made.
const RETRY: Duration = Duration::from_secs(1);
/// Samples that wait to be told live; later ones are not told, but kept.
const LIVE_MAX: usize = 100;
/// Samples that are kept of a trial, well over two hours. Of longer ones every second, then every
/// fourth sample, and so on, is kept.
const KEPT_MAX: usize = 100_000;
/// Threads of a side that are kept: those that used the most CPU time in the trial.
const THREADS_MAX: usize = 16;

/// Samples from its start until [`Sampler::stop`]; dropping it ends its thread as well.
pub(crate) struct Sampler {
    /// Dropped to end the thread.
    stop: Option<mpsc::Sender<()>>,
    live: Receiver<Sample>,
    /// `None` where no thread could be started, and after its end.
    thread: Option<JoinHandle<Vec<Sample>>>,
}

impl Sampler {
    /// Starts sampling stores that were made ready, by the clock that begins at `zero`. Its threads
    /// run on `generator`'s CPUs; anywhere when that is empty.
    pub(crate) fn start(ready: &Ready, generator: &[usize], zero: Instant) -> Self {
        let endpoints: Vec<Endpoint> = ready.endpoints().cloned().collect();
        let (servers, cpus) = (ready.server_pids(), generator.to_vec());
        let group = ready.group.as_ref().map(|group| group.path().to_path_buf());
        let (stop, stopped) = mpsc::channel();
        let (told, live) = mpsc::sync_channel(LIVE_MAX);
        let run = move || {
            // Where it is refused, it runs anywhere.
            let _ = pin_current_thread(&cpus);
            let readers = Readers { group, ..Readers::new(&servers, endpoints) };
            sample(readers, zero, &stopped, &told)
        };
        let thread = thread::Builder::new().name("sampler".into()).spawn(run).ok();
        Self { stop: Some(stop), live, thread }
    }

    /// What a cell's phase recorded, and the samples that were taken since the last time.
    pub(crate) fn events(&self, cell: &str, progress: Progress<'_>) -> impl Iterator<Item = Event> {
        let sampled = self.live.try_iter().map({
            let cell = cell.to_string();
            move |sample| Event::Sampled { cell: cell.clone(), sample: Box::new(sample) }
        });
        recorded::events(cell, progress).chain(sampled)
    }

    /// All of them; the last is taken now.
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
    told: &SyncSender<Sample>,
) -> Vec<Sample> {
    let mut kept = Kept { samples: Vec::new(), every: 1, taken: 0 };
    let mut due = Instant::now();
    loop {
        let sample = readers.sample(zero);
        // Nobody needs to listen.
        let _ = told.try_send(sample.clone());
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

/// The samples of a trial, of a long one the more thinly the longer it is.
struct Kept {
    samples: Vec<Sample>,
    /// One in so many is kept.
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

/// Leaves out threads of either side but those that used the most CPU time.
fn keep_busiest(samples: &mut [Sample], most: usize) {
    let sides: [fn(&mut Sample) -> Option<&mut model::ProcessUse>; 2] =
        [|sample| Some(&mut sample.generator), |sample| sample.server.as_mut()];
    for side in sides {
        // First and last reading of each.
        let mut seen: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for thread in samples.iter_mut().filter_map(side).flat_map(|used| &used.threads) {
            seen.entry(thread.id).or_insert((thread.cpu_ns, 0)).1 = thread.cpu_ns;
        }
        if seen.len() <= most {
            continue;
        }
        let mut ids: Vec<u32> = seen.keys().copied().collect();
        ids.sort_by_key(|id| std::cmp::Reverse(seen[id].1.saturating_sub(seen[id].0)));
        ids.truncate(most);
        for used in samples.iter_mut().filter_map(side) {
            used.threads.retain(|thread| ids.contains(&thread.id));
        }
    }
}

/// Everything that is read for a sample.
struct Readers {
    server: UsageReader,
    generator: UsageReader,
    network: Option<InterfaceReader>,
    /// The servers' control group.
    group: Option<PathBuf>,
    asking: Option<Asking>,
}

impl Readers {
    fn new(servers: &[u32], endpoints: Vec<Endpoint>) -> Self {
        let network = endpoints.iter().find_map(address).and_then(InterfaceReader::toward);
        Self {
            server: UsageReader::new(servers).with_children(),
            generator: UsageReader::new(&[std::process::id()]),
            network,
            group: None,
            asking: Asking::start(endpoints),
        }
    }

    fn sample(&mut self, zero: Instant) -> Sample {
        let at_ns = zero.elapsed().as_nanos() as u64;
        let asked = self.asking.as_ref().map(|asking| (asking, asking.ask()));
        let mut generator = self.generator.read().unwrap_or_default();
        generator.cpu_ns = generator.cpu_ns.saturating_sub(load::watch::spun_ns());
        Sample {
            at_ns,
            server: self.server.read(),
            generator,
            group_bytes: self.group.as_deref().and_then(anonymous_bytes),
            network: self.network.as_mut().and_then(InterfaceReader::read),
            store: asked.and_then(|(asking, asked)| asking.told(asked)),
        }
    }
}

/// The thread that asks stores for their counters. It is not waited for: once nobody asks any more,
/// it ends when its last question is answered, or timed out.
struct Asking {
    questions: SyncSender<()>,
    answers: Receiver<Option<StoreCounters>>,
}

/// A question that was put, or not.
struct Asked {
    is_under_way: bool,
    /// What came since the last time.
    late: Option<StoreCounters>,
}

impl Asking {
    /// `None` where no store is a server, or no thread can be started.
    fn start(mut endpoints: Vec<Endpoint>) -> Option<Self> {
        endpoints.retain(|endpoint| endpoint.directory().is_none());
        if endpoints.is_empty() {
            return None;
        }
        // Without a place to wait in: what is still busy with a question is not asked another.
        let (questions, asked) = mpsc::sync_channel(0);
        let (told, answers) = mpsc::channel();
        let answer = move || answer(&endpoints, &asked, &told);
        thread::Builder::new().name("store-counters".into()).spawn(answer).ok()?;
        Some(Self { questions, answers })
    }

    fn ask(&self) -> Asked {
        let late = self.answers.try_iter().last().flatten();
        let put: Result<(), TrySendError<()>> = self.questions.try_send(());
        Asked { is_under_way: put.is_ok(), late }
    }

    /// What was told in time.
    fn told(&self, asked: Asked) -> Option<StoreCounters> {
        if !asked.is_under_way {
            return asked.late;
        }
        self.answers.recv_timeout(ANSWERED_WITHIN).ok().flatten().or(asked.late)
    }
}

/// Answers questions until nobody asks any more, or no store has anything to tell.
fn answer(
    endpoints: &[Endpoint],
    asked: &Receiver<()>,
    told: &mpsc::Sender<Option<StoreCounters>>,
) {
    let mut stores: Option<Vec<Box<dyn Admin>>> = None;
    let mut connects_from = Instant::now();
    while asked.recv().is_ok() {
        if stores.is_none() && Instant::now() >= connects_from {
            let opened = endpoints.iter().map(|endpoint| drivers::admin(endpoint, TIMEOUT));
            stores = opened.collect::<Result<_, Failure>>().ok();
            connects_from = Instant::now() + RETRY;
        }
        let counters = match stores.as_mut().map(|stores| counters(stores)) {
            Some(Ok(None)) => return,
            Some(Ok(counters)) => counters,
            // What a connection answers after a fault could be the answer to an earlier question.
            Some(Err(_)) => {
                stores = None;
                None
            }
            None => None,
        };
        if told.send(counters).is_err() {
            return;
        }
    }
}

/// What all stores tell together; `None` when none of them has anything to tell.
fn counters(stores: &mut [Box<dyn Admin>]) -> Result<Option<StoreCounters>, Failure> {
    let mut all: Option<StoreCounters> = None;
    for store in stores {
        if let Some(told) = store.counters()? {
            all = Some(all.unwrap_or_default().and(&told));
        }
    }
    Ok(all)
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
