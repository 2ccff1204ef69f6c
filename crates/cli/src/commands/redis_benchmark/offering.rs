//! Runs one test on the wire engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drivers::wire::Dialect;
use load::Unmetered;
use load::wire::pacer::{Arrivals, Stage};
use load::wire::template::Template;
use load::wire::{
    Offer, Operation, Outcome, Pacing, Part, ProgressSnapshot, ThinkTime, Until, Work,
};
use model::{ErrorClass, Failure};
use workloads::kv::{Key, KeyChoice, KeyNames, Mix, Sizes, Values, numbers};

use super::arguments::Options;
use super::catalogue::{RequestContext, TAG_BYTES, Test};
use super::server::Deployment;

/// No timeout for a single request, since it can wait behind a pipeline of any depth.
const NO_TIMEOUT_NS: u64 = u64::MAX >> 1;
/// A server that sends no reply for this long is considered hung. The original waits forever.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Length of a stage at a fixed rate: a century, so that it never ends before the requests do.
const CENTURY_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Number of candidate tags for a cluster's keys, enough to find one for every server.
const TAGS: u64 = 16_384;

/// Runs tests, with the state they share.
pub(super) struct TestRunner {
    values: Arc<Values>,
    seed: u64,
    /// Tests run so far. Each has its own random numbers, so that a test does not read keys in the
    /// order in which the previous one wrote them.
    tests_run: u64,
}

impl TestRunner {
    pub(super) fn new(seed: u64) -> Self {
        Self { values: Arc::new(Values::new(seed)), seed, tests_run: 0 }
    }

    fn work(
        &mut self,
        options: &Options,
        test: &Test,
        deployment: &Deployment,
    ) -> Result<Work, String> {
        self.tests_run += 1;
        let seed = numbers(self.seed, 0, self.tests_run).next_u64();
        let context =
            RequestContext { data: &options.data, is_cluster: options.server.is_cluster, seed };
        let (segments, shape) = test.request(&context).map_err(|e| e.to_string())?;
        let names = KeyNames::with_digits("", TAG_BYTES, TAGS).map_err(|e| e.to_string())?;
        // As in the original, all requests that a client sends at once are for one server.
        let threads = threads(deployment.threads(options), options);
        let at_once = u64::from(options.load.pipeline) * u64::from(threads);
        let keys = KeyChoice::in_turn(&tags(&names, deployment), at_once);
        let keys = keys.map_err(|e| e.to_string())?;
        let operation = Operation {
            name: test.title.clone(),
            template: Template::new(segments, &names, None),
            shape,
            writes: false,
            reads_own: false,
            then: None,
        };
        Ok(Work {
            operations: vec![operation],
            mix: Mix::new(&[1.0]).map_err(|e| e.to_string())?,
            keys,
            names,
            sizes: Sizes::all(0),
            values: self.values.clone(),
            seed,
            verify_one_in: 0,
            inserting: None,
            follows: false,
            keeps_writes: false,
        })
    }

    /// Runs a test, after a warm-up if requested.
    pub(super) fn run_test(
        &mut self,
        options: &Options,
        test: &Test,
        deployment: &Deployment,
        stop: &AtomicBool,
        watcher: &mut dyn FnMut(ProgressSnapshot<'_>),
    ) -> Result<Outcome, String> {
        let offer = offer(options, threads(deployment.threads(options), options));
        if options.load.warmup_s > 0 {
            let until = Until::AfterNs(options.load.warmup_s.saturating_mul(SECOND_NS));
            let warm_up = Offer { until, ..offer.clone() };
            let work = self.work(options, test, deployment)?;
            let mut unwatched = |_: ProgressSnapshot<'_>| ();
            let warmed = run_offer(&warm_up, &work, deployment, stop, &mut unwatched);
            if warmed.failure.is_some() || warmed.interrupted {
                return Ok(warmed);
            }
        }
        let work = self.work(options, test, deployment)?;
        Ok(run_offer(&offer, &work, deployment, stop, watcher))
    }
}

/// One tag per server, as in the original up to version 7 (later versions draw a tag per request).
/// This way a test finds the keys written by another one, and `-r` limits the number of keys.
fn tags(names: &KeyNames, deployment: &Deployment) -> Vec<Key> {
    let mut seen = vec![false; deployment.servers.nodes.len()];
    let mut is_new = |tag: &Key| {
        let mut name = Vec::new();
        names.append(&mut name, *tag);
        let node = deployment.servers.route.node(&name);
        !std::mem::replace(&mut seen[node], true)
    };
    (0..TAGS).map(Key).filter(|tag| is_new(tag)).collect()
}

/// The tags as they appear in key names, with braces.
pub(super) fn tag_names(deployment: &Deployment) -> Vec<Vec<u8>> {
    let Ok(names) = KeyNames::with_digits("", TAG_BYTES, TAGS) else { return Vec::new() };
    let name = |tag| {
        let mut name = b"{".to_vec();
        names.append(&mut name, tag);
        name.push(b'}');
        name
    };
    tags(&names, deployment).into_iter().map(name).collect()
}

fn run_offer(
    offer: &Offer,
    work: &Work,
    deployment: &Deployment,
    stop: &AtomicBool,
    watcher: &mut dyn FnMut(ProgressSnapshot<'_>),
) -> Outcome {
    let (mut last_reply, mut hangs) = (Instant::now(), false);
    let mut listener = |moment: ProgressSnapshot<'_>| {
        if moment.latest.answered_in_all() > 0 {
            last_reply = Instant::now();
        }
        if last_reply.elapsed() > SILENCE_MAX {
            hangs = true;
            stop.store(true, Ordering::Relaxed);
        }
        watcher(moment);
    };
    // From `drivers`, whose instance of the engine is compiled with full optimisation (Cargo.toml).
    let (servers, meter) = (&deployment.servers, &mut Unmetered);
    let mut outcome = Dialect::Redis.run(offer, work, servers, stop, meter, &mut listener);
    if hangs {
        stop.store(false, Ordering::Relaxed);
        outcome.interrupted = false;
        let message = format!("the server has not answered for {} s", SILENCE_MAX.as_secs());
        outcome.failure = Some(Failure { class: ErrorClass::Timeout, message });
    }
    outcome
}

/// Number of threads used: the requested number, but at least 1 and at most one per client.
pub(super) fn threads(requested: u32, options: &Options) -> u32 {
    requested.clamp(1, options.load.clients)
}

fn offer(options: &Options, threads: u32) -> Offer {
    let load = &options.load;
    let until = match (load.requests, load.duration_s) {
        (_, Some(seconds)) => Until::AfterNs(seconds.saturating_mul(SECOND_NS)),
        (requests, None) => Until::Requests(requests.unwrap_or_default()),
    };
    let pacing = match load.rps {
        None => Pacing::Closed { think: ThinkTime::default(), stages: Vec::new() },
        Some(rate) => {
            let (rate_from_per_s, rate_to_per_s) = (rate as f64, rate as f64);
            let stage = Stage { rate_from_per_s, rate_to_per_s, length_ns: CENTURY_NS };
            Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] }
        }
    };
    Offer {
        part: Part::default(),
        threads,
        clients: load.clients,
        pipeline: load.pipeline,
        pacing,
        until,
        warmup_ns: 0,
        timeout_ns: NO_TIMEOUT_NS,
        stall_ns: 0,
        cpus: Vec::new(),
        spin: false,
        reconnects: false,
        stop_on_error_reply: true,
        hangs_up: options.keep_alive == 0,
        limits_ns: Vec::new(),
        number: 0,
    }
}
