//! A synthetic run, event by event.

use model::{
    Counts, DeviceUse, ErrorClass, Event, Failure, Header, NetworkUse, Pressure, ProcessUse,
    Recorded, RecordedOperation, Sample, Seal, SealStatus, StoreCounters, TargetState, ThreadCpu,
    Trial,
};
use serde_json::json;
use stats::{Histogram, Time};

/// The only cell.
pub(crate) const CELL: &str = "redis/get=0.9,set=0.1/8";

/// Requests of the histogram, by their time in nanoseconds.
pub(crate) const TIMES: [(u64, u64); 3] = [(9_000, 100), (152_500, 800), (2_750_000, 100)];

/// A complete run: one target is measured in one trial, which fails; another is not installed.
pub(crate) fn run() -> Vec<Event> {
    let missing =
        Failure { class: ErrorClass::Missing, message: "memcached is not installed".into() };
    vec![
        Event::RunStarted(Box::new(header())),
        Event::TargetChecked(TargetState {
            target: "redis".into(),
            version: Some("Redis 7.0.15".into()),
            ..TargetState::default()
        }),
        Event::TargetChecked(TargetState {
            target: "memcached".into(),
            unavailable: Some(missing),
            ..TargetState::default()
        }),
        Event::TrialStarted {
            block: 0,
            cell: CELL.into(),
            done_share: 0.25,
            left_ns: 3_000_000_000,
        },
        progress(),
        sampled(1),
        recorded(600),
        progress(),
        sampled(2),
        Event::TrialEnded(Box::new(trial())),
        Event::Warning("something".into()),
        Event::RunEnded(Seal {
            null_rates: Vec::new(),
            status: SealStatus::Complete,
            finished_unix_ms: 1_790_000_009_000,
            blocks: 1,
            stopped_because: "enough".into(),
            resumed: false,
            lost: false,
        }),
    ]
}

fn progress() -> Event {
    Event::Progress {
        cell: CELL.into(),
        phase: "mixed".into(),
        rate_per_s: 1.0,
        response_ns_p99: Some(Time::Of(1)),
    }
}

/// How the requests of [`TIMES`] ended, and three more: two timed out, one was refused.
fn counts() -> Counts {
    let mut counts = Counts { ok: 995, miss: 4, wrong: 1, ..Counts::default() };
    (0..2).for_each(|_| counts.fail(ErrorClass::Timeout, ""));
    counts.fail(ErrorClass::Refused, "");
    counts
}

/// A recording at that time, in milliseconds since the start of the phase.
pub(crate) fn recorded(at_ms: u64) -> Event {
    let mut response = Histogram::new();
    let mut service = Histogram::new();
    for (ns, count) in TIMES {
        response.record_many(ns, count);
        service.record_many(ns / 2, count);
    }
    let get = RecordedOperation { operation: "get".into(), counts: counts(), service, response };
    Event::Recorded(Box::new(Recorded {
        cell: CELL.into(),
        phase: "mixed".into(),
        at_ns: at_ms * 1_000_000,
        stage: Some(1),
        planned_per_s: Some(2_000.0),
        operations: vec![get],
    }))
}

/// The sample at that second of a trial; counters grow linearly with time.
pub(crate) fn sampled(second: u64) -> Event {
    let cpu_ns = second * 500_000_000;
    let used = ProcessUse {
        cpu_ns,
        threads: vec![ThreadCpu { id: 7, name: "redis-server".into(), cpu_ns }],
        resident_bytes: 8 << 20,
        swapped_bytes: 0,
        voluntary_switches: second * 10,
        involuntary_switches: second,
        run_delay_ns: second * 20_000_000,
        major_faults: second,
        calls: second * 100,
    };
    let count = Some(second * 30);
    let store = StoreCounters {
        used_bytes: Some(1 << 20),
        limit_bytes: Some(4 << 20),
        fragmentation: Some(1.5),
        keys: Some(500),
        connections: Some(9),
        refused: count,
        commands: count,
        hits: count,
        misses: count,
        evicted: count,
        expired: count,
        saving: None,
        rewriting: None,
        received_bytes: count,
        sent_bytes: count,
        flash_hits: None,
    };
    let network = NetworkUse {
        interface: "eth0".into(),
        received_bytes: second * 100,
        sent_bytes: second * 200,
        received_packets: second,
        sent_packets: second,
    };
    let sample = Sample {
        servers: Vec::new(),
        at_ns: second * 1_000_000_000,
        server: Some(used.clone()),
        proxy: None,
        generator: used,
        store: Some(store),
        group_bytes: None,
        group_throttled_ns: None,
        network: Some(network),
        device: Some(DeviceUse { read_bytes: second * 4096, ..DeviceUse::default() }),
        pressure: Some(Pressure { memory_some_ns: second * 250_000_000, ..Pressure::default() }),
        group_pressure: None,
    };
    Event::Sampled { cell: CELL.into(), sample: Box::new(sample) }
}

fn header() -> Header {
    let target = |name: &str| {
        json!({"name": name, "product": name, "backend": null, "address": null, "settings": {},
               "control_of": null, "named": true})
    };
    let kv = json!({
        "kind": "kv", "profile": "get=0.9,set=0.1",
        "operations": [{"name": "get", "command": null}, {"name": "set", "command": null}],
        "keys": 1000, "distribution": "uniform", "key_prefix": "key:", "key_bytes": null,
        "value_bytes": "1KiB", "ttl_s": 0, "filled_share": 1.0, "verify_one_in": 64,
        "threads": 1, "think_ns": 0, "think_is_drawn": false, "follows": false, "phases": [],
        "actions": [], "deadline_ns": 0,
    });
    let load = json!({
        "arrivals": "poisson", "clients": 8, "pipeline": 1, "one_session": false,
        "schedule": {"stages": [{"length_ns": 300_000_000, "from": 1000, "to": 1000},
                                {"length_ns": 300_000_000, "from": 1000, "to": 4000}]},
    });
    let plan = json!({
        "study": "bench", "title": "Key-value load", "question": "Which rate?",
        "source": "", "scale": "standard", "profiles": ["get=0.9,set=0.1"], "seed": 7,
        "effort": {"budget_ns": 0, "blocks_min": 1, "blocks_max": 1},
        "equivalence_zone": 0.03, "timeout_ns": 1_000_000_000_u64, "stall_ns": 0,
        "targets": [target("redis"), target("memcached")],
        "cells": [{"id": CELL, "target": "redis", "workload": kv, "load": load}],
        "claims": [], "advice": null,
    });
    let header = json!({
        "format": 1, "run": "00c0ffee", "tool": "cachedyno 0.1.0", "command": ["cachedyno"],
        "started_unix_ms": 1_790_000_000_000_u64, "plan": plan, "conditions": {"facts": []},
        "null_rates": [],
    });
    serde_json::from_value(header).expect("a header of this format")
}

fn trial() -> Trial {
    let message = "the server died".into();
    Trial {
        cell: CELL.into(),
        started_unix_ms: 1_790_000_000_000,
        took_ns: 2_000_000_000,
        version: Some("Redis 7.0.15".into()),
        failure: Some(Failure { class: ErrorClass::Closed, message }),
        ..Trial::default()
    }
}
