//! Offers one test to the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drivers::redis::Replies;
use load::Unseen;
use load::wire::pacer::{Arrivals, Stage};
use load::wire::template::Template;
use load::wire::{Offer, Operation, Outcome, Pacing, ProgressSnapshot, Think, Until, Work, run};
use model::{ErrorClass, Failure};
use workloads::kv::{Key, KeyChoice, KeyNames, Mix, Sizes, Values, numbers};

use super::arguments::Options;
use super::catalogue::{Common, TAG_BYTES, Test};
use super::server::Site;

/// One request may take as long as it likes, since pipelines of any depth wait before it.
const PATIENCE_NS: u64 = u64::MAX >> 1;
/// A server from which nothing at all has come for so long is taken to hang. The original waits
/// for ever.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A rate is kept for as long as requests are left: a century.
const CENTURY_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Numbers that tags of a cluster's keys are taken from: enough for one on every server.
const TAGS: u64 = 16_384;

/// What all tests share.
pub(super) struct Stock {
    values: Arc<Values>,
    seed: u64,
    /// Tests offered so far: each has numbers of its own, so that what one writes is not what the
    /// next one reads, in the same order.
    offered: u64,
}

impl Stock {
    pub(super) fn new(seed: u64) -> Self {
        Self { values: Arc::new(Values::new(seed)), seed, offered: 0 }
    }

    fn work(&mut self, options: &Options, test: &Test, site: &Site) -> Result<Work, String> {
        self.offered += 1;
        let seed = numbers(self.seed, 0, self.offered).next_u64();
        let common = Common { data: &options.data, is_cluster: options.server.is_cluster, seed };
        let (segments, shape) = test.request(&common).map_err(|e| e.to_string())?;
        let names = KeyNames::with_digits("", TAG_BYTES, TAGS).map_err(|e| e.to_string())?;
        let keys = KeyChoice::among(&tags(&names, site)).map_err(|e| e.to_string())?;
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

    /// Offers a test: first unrecorded, where that was asked for, then for what is told.
    pub(super) fn offer(
        &mut self,
        options: &Options,
        test: &Test,
        site: &Site,
        stop: &AtomicBool,
        watcher: &mut dyn FnMut(ProgressSnapshot<'_>),
    ) -> Result<Outcome, String> {
        let offer = offer(options, threads(site.threads(options), options));
        if options.offered.warmup_s > 0 {
            let until = Until::AfterNs(options.offered.warmup_s.saturating_mul(SECOND_NS));
            let warm_up = Offer { until, ..offer.clone() };
            let work = self.work(options, test, site)?;
            let mut unwatched = |_: ProgressSnapshot<'_>| ();
            let warmed = go(&warm_up, &work, site, stop, &mut unwatched);
            if warmed.failure.is_some() || warmed.interrupted {
                return Ok(warmed);
            }
        }
        let work = self.work(options, test, site)?;
        Ok(go(&offer, &work, site, stop, watcher))
    }
}

/// One tag for each server, as in the original up to version 7 (later ones draw a tag for each
/// request): so one test finds what another has written, among as many keys as were asked for.
fn tags(names: &KeyNames, site: &Site) -> Vec<Key> {
    let mut seen = vec![false; site.servers.nodes.len()];
    let mut is_new = |tag: &Key| {
        let mut name = Vec::new();
        names.append(&mut name, *tag);
        let node = site.servers.route.node(&name);
        !std::mem::replace(&mut seen[node], true)
    };
    (0..TAGS).map(Key).filter(|tag| is_new(tag)).collect()
}

/// The same tags as the names of keys contain them.
pub(super) fn tag_names(site: &Site) -> Vec<Vec<u8>> {
    let Ok(names) = KeyNames::with_digits("", TAG_BYTES, TAGS) else { return Vec::new() };
    let name = |tag| {
        let mut name = b"{".to_vec();
        names.append(&mut name, tag);
        name.push(b'}');
        name
    };
    tags(&names, site).into_iter().map(name).collect()
}

fn go(
    offer: &Offer,
    work: &Work,
    site: &Site,
    stop: &AtomicBool,
    watcher: &mut dyn FnMut(ProgressSnapshot<'_>),
) -> Outcome {
    let (mut heard, mut hangs) = (Instant::now(), false);
    let mut listener = |moment: ProgressSnapshot<'_>| {
        if moment.latest.answered_in_all() > 0 {
            heard = Instant::now();
        }
        if heard.elapsed() > SILENCE_MAX {
            hangs = true;
            stop.store(true, Ordering::Relaxed);
        }
        watcher(moment);
    };
    let mut outcome = run::<Replies>(offer, work, &site.servers, stop, &mut Unseen, &mut listener);
    if hangs {
        stop.store(false, Ordering::Relaxed);
        outcome.interrupted = false;
        let message = format!("the server has not answered for {} s", SILENCE_MAX.as_secs());
        outcome.failure = Some(Failure { class: ErrorClass::Timeout, message });
    }
    outcome
}

/// Threads at work where `wanted` are: at least one, at most one a client.
pub(super) fn threads(wanted: u32, options: &Options) -> u32 {
    wanted.clamp(1, options.offered.clients)
}

fn offer(options: &Options, threads: u32) -> Offer {
    let offered = &options.offered;
    let until = match (offered.requests, offered.duration_s) {
        (_, Some(seconds)) => Until::AfterNs(seconds.saturating_mul(SECOND_NS)),
        (requests, None) => Until::Requests(requests.unwrap_or_default()),
    };
    let pacing = match offered.rps {
        None => Pacing::Closed { think: Think::default(), stages: Vec::new() },
        Some(rate) => {
            let (rate_from_per_s, rate_to_per_s) = (rate as f64, rate as f64);
            let stage = Stage { rate_from_per_s, rate_to_per_s, length_ns: CENTURY_NS };
            Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] }
        }
    };
    Offer {
        threads,
        clients: offered.clients,
        pipeline: offered.pipeline,
        pacing,
        until,
        warmup_ns: 0,
        timeout_ns: PATIENCE_NS,
        cpus: Vec::new(),
        spin: false,
        reconnects: false,
        errors_end_it: true,
        hangs_up: options.keep_alive == 0,
        limits_ns: Vec::new(),
        number: 0,
    }
}
