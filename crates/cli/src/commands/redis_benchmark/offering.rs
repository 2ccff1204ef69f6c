//! Runs one test on the wire engine, in this process or on the workers of a fleet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drivers::wire::Dialect;
use lab::RequestForm;
use lab::fleet::{Fleet, Offered};
use load::wire::pacer::{Arrivals, Stage};
use load::wire::{Offer, Pacing, Part, ProgressSnapshot, ThinkTime, Until};
use load::{Progress, Unmetered};
use model::{Endpoint, ErrorClass, Failure, Point};
use workloads::kv::{Key, KeyNames, numbers};

use super::arguments::Options;
use super::catalogue::{RequestContext, Test};
use super::server::Deployment;

/// No timeout for a single request, since it can wait behind a pipeline of any depth.
const NO_TIMEOUT_NS: u64 = u64::MAX >> 1;
/// A server that sends no reply for this long is considered hung. The original waits forever.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Length of a stage at a fixed rate: a century, so that it never ends before the requests do.
const CENTURY_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// A fleet's requests may wait that long: its driver does not see single replies.
const FLEET_TIMEOUT_NS: u64 = 30 * SECOND_NS;

/// What a running test has measured.
pub(super) enum Seen<'a> {
    /// By this process.
    Here(ProgressSnapshot<'a>),
    /// By the workers of a fleet.
    Fleet(Progress<'a>),
}

/// Result of a test.
pub(super) struct Measured {
    /// Operation and contributors.
    pub(super) point: Point,
    pub(super) failure: Option<Failure>,
    pub(super) interrupted: bool,
}

/// Runs tests, with the state they share.
pub(super) struct TestRunner {
    seed: u64,
    /// Tests run so far. Each has its own random numbers, so that a test does not read keys in the
    /// order in which the previous one wrote them.
    tests_run: u64,
    /// The workers that run them instead of this process, and the servers as they connect to them.
    fleet: Option<(Fleet, Endpoint)>,
}

impl TestRunner {
    pub(super) fn new(seed: u64, fleet: Option<(Fleet, Endpoint)>) -> Self {
        Self { seed, tests_run: 0, fleet }
    }

    /// Threads of all processes.
    pub(super) fn threads(&self, options: &Options, deployment: &Deployment) -> u32 {
        let each = deployment.threads(options).clamp(1, options.load.clients);
        self.fleet.as_ref().map_or(each, |(fleet, _)| each * fleet.names().count() as u32)
    }

    fn form(
        &mut self,
        options: &Options,
        test: &Test,
        deployment: &Deployment,
    ) -> Result<RequestForm, String> {
        self.tests_run += 1;
        let seed = numbers(self.seed, 0, self.tests_run).next_u64();
        let context =
            RequestContext { data: &options.data, is_cluster: options.server.is_cluster, seed };
        let (segments, shape) = test.request(&context).map_err(|e| e.to_string())?;
        let names = RequestForm::tag_names().map_err(|e| e.to_string())?;
        // As in the original, all requests that a client sends at once are for one server.
        let threads = self.threads(options, deployment);
        let at_once = u64::from(options.load.pipeline) * u64::from(threads);
        let tags = tags(&names, deployment).into_iter().map(|Key(tag)| tag).collect();
        Ok(RequestForm { name: test.title.clone(), segments, shape, tags, at_once, seed })
    }

    /// Runs a test, after a warm-up if requested.
    pub(super) fn run_test(
        &mut self,
        options: &Options,
        test: &Test,
        deployment: &Deployment,
        stop: &AtomicBool,
        watcher: &mut dyn FnMut(Seen<'_>),
    ) -> Result<Measured, String> {
        let offer = offer(options, self.threads(options, deployment));
        if options.load.warmup_s > 0 {
            let until = Until::AfterNs(options.load.warmup_s.saturating_mul(SECOND_NS));
            let warm_up = Offer { until, ..offer.clone() };
            let form = self.form(options, test, deployment)?;
            let warmed = self.run_offer(&warm_up, &form, deployment, stop, &mut |_| ())?;
            if warmed.failure.is_some() || warmed.interrupted {
                return Ok(warmed);
            }
        }
        let form = self.form(options, test, deployment)?;
        self.run_offer(&offer, &form, deployment, stop, watcher)
    }

    fn run_offer(
        &self,
        offer: &Offer,
        form: &RequestForm,
        deployment: &Deployment,
        stop: &AtomicBool,
        watcher: &mut dyn FnMut(Seen<'_>),
    ) -> Result<Measured, String> {
        let Some((fleet, endpoint)) = &self.fleet else {
            return run_here(offer, form, deployment, stop, watcher);
        };
        let offer = Offer { timeout_ns: FLEET_TIMEOUT_NS, ..offer.clone() };
        let offered =
            fleet.offer_alike((endpoint, form), &offer, stop, &mut |now| watcher(Seen::Fleet(now)));
        let Offered { phase, failure, interrupted, .. } = offered;
        let point = phase.points.into_iter().next().unwrap_or_default();
        Ok(Measured { point, failure, interrupted })
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
    (0..RequestForm::TAGS).map(Key).filter(|tag| is_new(tag)).collect()
}

/// The tags as they appear in key names, with braces.
pub(super) fn tag_names(deployment: &Deployment) -> Vec<Vec<u8>> {
    let Ok(names) = RequestForm::tag_names() else { return Vec::new() };
    let name = |tag| {
        let mut name = b"{".to_vec();
        names.append(&mut name, tag);
        name.push(b'}');
        name
    };
    tags(&names, deployment).into_iter().map(name).collect()
}

fn run_here(
    offer: &Offer,
    form: &RequestForm,
    deployment: &Deployment,
    stop: &AtomicBool,
    watcher: &mut dyn FnMut(Seen<'_>),
) -> Result<Measured, String> {
    let work = form.work().map_err(|e| e.to_string())?;
    let (mut last_reply, mut hangs) = (Instant::now(), false);
    let mut listener = |moment: ProgressSnapshot<'_>| {
        if moment.latest.answered_in_all() > 0 {
            last_reply = Instant::now();
        }
        if last_reply.elapsed() > SILENCE_MAX {
            hangs = true;
            stop.store(true, Ordering::Relaxed);
        }
        watcher(Seen::Here(moment));
    };
    let (servers, meter) = (&deployment.servers, &mut Unmetered);
    let mut outcome = Dialect::Redis.run(offer, &work, servers, stop, meter, &mut listener);
    let (mut failure, mut interrupted) = (outcome.failure.take(), outcome.interrupted);
    if hangs {
        stop.store(false, Ordering::Relaxed);
        interrupted = false;
        let message = format!("the server has not answered for {} s", SILENCE_MAX.as_secs());
        failure = Some(Failure { class: ErrorClass::Timeout, message });
    }
    let points = outcome.into_phase(&form.name, &[&form.name]).points;
    let point = points.into_iter().next().unwrap_or_default();
    Ok(Measured { point, failure, interrupted })
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
