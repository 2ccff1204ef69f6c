use crate::study::planning::tests::choices;
use crate::{Choices, Plan, Study, TargetChoice};

const SIZING: &str = include_str!("../../../../studies/sizing.toml");

fn planned(sets: &[(&str, &str)], targets: &[&str]) -> Result<Plan, String> {
    let sets = sets.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string()));
    let targets = targets.iter().map(|text| TargetChoice::parse(text).unwrap());
    let choices = Choices { sets: sets.collect(), targets: targets.collect(), ..choices() };
    Study::parse("sizing", SIZING).unwrap().plan(&choices).map_err(|error| error.to_string())
}

#[test]
fn targets_get_the_limits_of_their_tier() {
    let plan = planned(&[("profile", "tiers")], &[]).unwrap();
    let small = plan.target("redis-C0").unwrap();
    assert_eq!(small.tier, plan.target("redis-C0-tls").unwrap().tier);
    assert_eq!((small.tier.quota, small.tier.bandwidth_mbit), (Some(0.5), Some(100.0)));
    let setting = |name: &str| small.settings[name].as_str();
    assert_eq!((setting("maxclients"), setting("listen")), ("256", "tcp"));
    assert_eq!(setting("maxmemory"), "200000000", "a share of the tier's memory");
    let (figure, place) = small.published.as_ref().unwrap().find(&plan.tables).unwrap();
    assert!((figure - 15_000.0).abs() < 0.5 && place.starts_with("GET/s without TLS of C0 in "));
}

#[test]
fn a_user_chooses_tiers_and_limits() {
    let latency = ("profile", "latency");
    let plan = planned(
        &[latency, ("tier.redis", "C1"), ("tier.small", "cpus=1")],
        &["redis", "small:redis-tls"],
    )
    .unwrap();
    assert_eq!(plan.target("redis").unwrap().tier.connections, Some(1000));
    assert_eq!(plan.target("small:redis-tls").unwrap().tier.to_string(), "1 CPU");
    // A figure of the source is that of its own limits.
    let plan = planned(&[("profile", "tiers"), ("tier.redis-C0", "memory=1GiB")], &[]).unwrap();
    assert_eq!(plan.target("redis-C0").unwrap().published, None);
    for (sets, targets, problem) in [
        (("tier.redis", "C9"), &["redis"][..], "`C9` is not a limit"),
        (("tier.x", "C0"), &["redis"], "no chosen target has this label or name"),
        (("tier.x", "C0"), &["x=redis://h"], "(expected a private server, without a URL)"),
        (("tier.redis", "distance=1ms"), &["redis-3-shards", "redis"], ""),
        (("tier.redis-3-shards", "distance=1ms"), &["redis-3-shards"], "expected no `shards`"),
    ] {
        match planned(&[("profile", "shards,latency"), sets], targets) {
            Ok(_) => assert_eq!(problem, "", "{sets:?}"),
            Err(error) => assert!(!problem.is_empty() && error.contains(problem), "{error}"),
        }
    }
}

#[test]
fn faults_are_located() {
    for (from, to, problem) in [
        ("tier = \"C0\"", "tier = \"C9\"", "unknown tier `C9` (known: `C0`, "),
        ("name = \"C1\"\nabout", "name = \"C0\"\nabout", "duplicate tier `C0`"),
        ("cpus = 1, quota = 0.5", "cpus = 1, quota = 5", "limit `quota` is `5` (expected at most"),
        ("memory = \"250MB\"", "ram = \"250MB\"", "unknown limit `ram`"),
        ("row = \"C0\"", "row = \"C9\"", "no table `standard` has a figure in row `C9`"),
    ] {
        assert!(SIZING.contains(from), "{from}");
        let error = Study::parse("f", &SIZING.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
