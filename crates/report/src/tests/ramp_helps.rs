//! Up to which load a cache in front of a database helps, on simulated stores.

use model::{Product, Trial};

use super::ramp::{REDIS, exponential, of};
use crate::judge;
use crate::recorded::Recorded;
use crate::view::HelpsView;

const US: f64 = 1_000.0;

/// A database alone, and one behind a cache whose mean response time is `cached_ns` of a stage's
/// place, and in stages from the given place on has reads that fail.
fn measured(cached_ns: fn(u32) -> f64, fails_from: u32) -> Recorded {
    let slow = |trial: &mut Trial| {
        let is_cached = trial.cell.starts_with("cached");
        for point in &mut trial.points {
            let Some(stage) = point.stage else { continue };
            let mean_ns = if is_cached { cached_ns(stage) } else { 100.0 * US };
            if let Some(whole) = point.operations.last_mut() {
                whole.response = exponential(mean_ns, whole.response.count().max(200));
                if is_cached && stage >= fails_from {
                    whole.counts.error += std::mem::take(&mut whole.counts.ok);
                }
            }
        }
    };
    let mut recorded = of(&[("alone", REDIS), ("cached", REDIS)], 3, slow);
    for target in &mut recorded.header.plan.targets {
        target.product = Product::Mysql;
        target.cache = (target.name == "cached").then_some(Product::Redis);
    }
    recorded
}

fn helps(recorded: &Recorded) -> HelpsView {
    let view = judge(recorded);
    let of = |name: &str| view.ramps.iter().find(|ramp| ramp.target == name).unwrap();
    assert!(of("alone").helps.is_none(), "it has no cache");
    of("cached").helps.clone().unwrap()
}

/// Rates of a figure as shares of the peak, in per cent.
fn share(found: &HelpsView, name: &str) -> Option<u64> {
    let value = found.metrics.get(name)?;
    Some((value.center / (REDIS.capacity * 1.005) * 20.0).round() as u64 * 5)
}

#[test]
fn a_cache_helps_from_one_stage_to_another() {
    let found = helps(&measured(|n| if (2..6).contains(&n) { 50.0 * US } else { 300.0 * US }, 99));
    assert_eq!((found.alone.as_str(), found.blocks), ("alone", 3));
    let shares = ["helps_from_per_s", "helps_to_per_s", "stops_helping_per_s"];
    assert_eq!(shares.map(|name| share(&found, name)), [Some(30), Some(60), Some(70)]);
    let words = "cached is on average faster than alone alone from 28,";
    assert!(found.sentence.starts_with(words), "{}", found.sentence);
    assert!(found.sentence.contains(", and not at 6"), "{}", found.sentence);
}

#[test]
fn failed_reads_are_no_help_and_a_limit_may_not_be_reached() {
    let found = helps(&measured(|_| 50.0 * US, 8));
    assert_eq!(share(&found, "stops_helping_per_s"), Some(90));
    let found = helps(&measured(|_| 50.0 * US, 99));
    assert_eq!(share(&found, "stops_helping_per_s"), None);
    assert!(found.sentence.ends_with("the highest rate offered"), "{}", found.sentence);
    let found = helps(&measured(|_| 300.0 * US, 99));
    assert_eq!(found.sentence, "cached is on average never faster than alone alone");
}
