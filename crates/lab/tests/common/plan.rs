//! A plan on a private Redis.

use model::{Choices, Load, Phase, Plan, Scale, Stop, Study, TargetChoice, Workload};

/// A mixed phase under a load on a private Redis with few keys, all filled. `sets` are additional
/// settings of the study.
pub(crate) fn plan(sets: &[(&str, &str)], load: Load, (warmup_ns, ns): (u64, u64)) -> Plan {
    let clients = load.clients.to_string();
    let own = [("keys", "1000"), ("clients", &clients)];
    let sets = own.iter().chain(sets);
    let choices = Choices {
        sets: sets.map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        targets: vec![TargetChoice::parse("redis").unwrap()],
        timeout_ms: Some(20_000),
        ..Choices::new(Scale::Quick, 1)
    };
    let study = include_str!("../../../../studies/ramp.toml");
    let mut plan = Study::parse("ramp", study).unwrap().plan(&choices).unwrap();
    plan.cells.truncate(1);
    let cell = &mut plan.cells[0];
    cell.load = load;
    let Workload::Kv(kv) = &mut cell.workload else { panic!("{:?}", cell.workload) };
    (kv.filled_share, kv.ttl_s, kv.follows) = (1.0, 0, false);
    kv.phases = vec![Phase {
        name: "mixed".into(),
        mix: kv.operations.iter().map(|o| (o.name.clone(), 1.0)).collect(),
        warmup_ns,
        stop: Stop::AfterNs(ns),
        control: None,
    }];
    plan
}
