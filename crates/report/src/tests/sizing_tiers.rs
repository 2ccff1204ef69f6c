//! Sizing with targets in tiers: `size` answers for each tier separately, within its memory.

use model::Prices;
use model::tier::Tier;

use super::sizing::{answered, evidence, found, lack, only_deployment, question, rate, set};
use crate::recorded::Recorded;
use crate::sizing::{Amount, Outcome, Question, RateAsked, SizingView, size, text};

const SMALL: &str = "memory=250MB,cpus=1,quota=0.5";
const LARGE: &str = "memory=6GB,cpus=2";
/// [`SMALL`] as a command has it.
const SMALL_SET: &str = "cpus=1,memory=250000000,quota=0.5";

fn in_tier(mut recorded: Recorded, tier: &str) -> Recorded {
    for target in &mut recorded.header.plan.targets {
        target.tier = Tier::parse(tier).unwrap();
    }
    recorded
}

/// A record of a server in a small tier and one in a large tier, which is four times as fast.
fn both() -> Recorded {
    let (mut all, large) = (found("redis-C0", 1024, 1e4), found("redis-C3", 1024, 4e4));
    all = in_tier(all, SMALL);
    let large = in_tier(large, LARGE);
    all.header.plan.targets.extend(large.header.plan.targets);
    all.header.plan.cells.extend(large.header.plan.cells);
    all.trials.extend(large.trials);
    all.trials.sort_by_key(|trial| trial.block);
    all
}

fn names(view: &SizingView) -> Vec<&str> {
    view.deployments.iter().map(|own| own.target.as_str()).collect()
}

#[test]
fn tiers_of_one_record_are_deployments_with_their_own_rates() {
    let view = answered(&question(rate(5_000), 1024), &[both()]);
    assert_eq!(names(&view), ["redis-C3", "redis-C0"], "{view:#?}");
    assert_eq!(names(&answered(&question(rate(20_000), 1024), &[both()])), ["redis-C3"]);
    let of_small = "238 MiB of memory, 1 CPU, 0.5 CPUs of CPU time";
    assert_eq!(view.deployments[1].tier.as_deref(), Some(of_small));
    let sentence = "one server of `redis-C3` (tier: 5.59 GiB of memory, 2 CPUs) carries 5,000/s";
    assert!(view.sentence.starts_with(sentence), "{}", view.sentence);
    let shown = text::render(&view, 200, false);
    assert!(shown.contains(&format!("tier: {of_small}")), "{shown}");
    let prices = "currency = \"EUR\"\n[per_hour]\nredis-C0 = 0.1\nredis-C3 = 1\n";
    let prices = Prices::parse(prices).unwrap();
    let view = size(&question(rate(5_000), 1024), &evidence(&[both()]), Some(&prices), None);
    assert_eq!(names(&view), ["redis-C0", "redis-C3"]);
    assert!(view.deployments.iter().all(|own| own.cost.is_some()), "{view:#?}");
}

#[test]
fn a_tier_does_not_supersede_the_server_without_it() {
    let mut small = in_tier(found("redis", 1024, 1e4), SMALL);
    small.header.run = "0000c0c0".into();
    small.header.started_unix_ms += 1;
    let records = [found("redis", 1024, 1e5), small];
    let view = answered(&question(rate(5_000), 1024), &records);
    let tiers: Vec<bool> = view.deployments.iter().map(|own| own.tier.is_some()).collect();
    assert_eq!((tiers, view.left_out.len()), (vec![false, true], 0), "{view:#?}");
    // The tier is not answered with the rate of the server without limits.
    let view = answered(&question(rate(20_000), 1024), &records);
    assert_eq!(only_deployment(&view).tier, None);
}

#[test]
fn data_must_fit_into_the_memory_of_the_tier() {
    let of =
        |keys: u64| Question { amount: Some(Amount::Keys(keys)), ..question(rate(5_000), 1024) };
    // 1,152 bytes for each key.
    assert_eq!(names(&answered(&of(200_000), &[both()])).len(), 2);
    let view = answered(&of(4_500_000), &[both()]);
    assert_eq!((view.outcome, names(&view)), (Outcome::Covered, vec!["redis-C3"]));
    let small = in_tier(found("redis-C0", 1024, 1e4), SMALL);
    let view = answered(&of(4_500_000), std::slice::from_ref(&small));
    let (text, commands) = lack(&view);
    let start =
        "the tier of `redis-C0` gives each server 238 MiB of memory, and the data need 4.83";
    assert!(text.starts_with(start), "{text}");
    // A quarter more than the data.
    let tier = "--set tier.redis=cpus=1,memory=6480199680,quota=0.5";
    assert!(commands[0].contains(tier) && commands[0].contains("--keys 4500k"), "{commands:?}");
    // Without a rate the same holds.
    let view = answered(&Question { rate: None, ..of(4_500_000) }, std::slice::from_ref(&small));
    assert!(lack(&view).0.starts_with(start), "{view:#?}");
    let view = answered(&Question { rate: None, ..of(4_500_000) }, &[small, found("r", 1024, 1e4)]);
    assert_eq!(names(&view), ["r"]);
    // The `maxmemory` of a private server counts, too.
    let mut own = found("redis", 1024, 1e5);
    set(&mut own, ("maxmemory", "200000000"));
    let view = answered(&of(4_500_000), &[own]);
    assert!(lack(&view).0.contains("keeps 191 MiB in each server"), "{view:#?}");
}

#[test]
fn servers_of_one_target_share_its_tier() {
    let mut cluster = in_tier(found("redis-cluster", 1024, 1e5), LARGE);
    set(&mut cluster, ("shards", "3"));
    let of =
        |keys: u64| Question { amount: Some(Amount::Keys(keys)), ..question(rate(5_000), 1024) };
    let view = answered(&of(4_500_000), std::slice::from_ref(&cluster));
    let notes = &only_deployment(&view).notes;
    let shared = "the limits of the tier are those of all servers together: 5.59 GiB of memory";
    assert!(notes.iter().any(|note| note.starts_with(shared)), "{notes:?}");
    let view = answered(&of(6_000_000), &[cluster]);
    let (text, commands) = lack(&view);
    assert!(
        text.contains("gives each server 1.86 GiB of memory, and the data need 2.15"),
        "{text}"
    );
    assert!(commands[0].contains("--set shards=3 --set tier.redis=cpus=2,memory="), "{commands:?}");
}

#[test]
fn commands_name_the_tier_where_a_run_can_put_it() {
    let mut small = in_tier(found("redis-C0", 1024, 1e4), SMALL);
    let survive = RateAsked { survive: 1, ..rate(5_000) };
    let view = answered(&question(survive.clone(), 1024), &[small.clone()]);
    let named =
        "which rate of `redis-C0` (tier: 238 MiB of memory, 1 CPU, 0.5 CPUs of CPU time) is";
    assert!(view.missing[0].text.starts_with(named), "{view:#?}");
    let command = format!("run failover --set tier.redis={SMALL_SET} --set value_bytes=1024");
    assert!(view.missing[0].commands[0].contains(&command), "{view:#?}");
    // Shards on this machine would share the limits.
    let view = answered(&question(rate(20_000), 1024), &[small.clone()]);
    let (text, commands) = lack(&view);
    assert!(
        text.starts_with("`redis-C0` (Redis 7.0.15, tier: 238 MiB of memory, 1 CPU,"),
        "{text}"
    );
    let url = "cachedyno find-max cluster=redis+cluster://HOST:PORT";
    assert!(commands.len() == 1 && commands[0].starts_with(url), "{commands:?}");
    // A run limits the bandwidth of a single server only.
    small = in_tier(small, "bandwidth_mbit=100");
    let view = answered(&question(survive, 1024), &[small]);
    assert!(view.missing[0].commands.is_empty(), "{view:#?}");
}
