//! Stores with more data than memory: what they drop, read from a file, and how erratic they are.

use model::{
    DeviceUse, ErrorClass, EventKind, Fact, Failure, MemoryUse, Pressure, ProcessUse, Sample,
    Silence, StoreCounters, SwapUse, Trial, TrialEvent,
};

use super::quick;
use crate::fixture::recorded;
use crate::recorded::Recorded;
use crate::view::{ClaimUnit, ClaimVerdict, MissCostView};
use crate::{judge, markdown, text};
use stats::Histogram;

/// Profile `stores`: 1,000 operations in each phase of a second.
fn run() -> Recorded {
    run_of("stores", |_| 1_000.0)
}

/// These profiles, with the rate of each cell.
fn run_of(profiles: &str, rate: impl Fn(&str) -> f64) -> Recorded {
    let mut recorded = recorded(quick::plan(quick::BEYOND_RAM, profiles), 3, |_, _, _| 1_000.0);
    let mut samples = Vec::new();
    for trial in &mut recorded.trials {
        let factor = rate(&trial.cell) / 1_000.0;
        for operation in trial.points.iter_mut().flat_map(|point| &mut point.operations) {
            operation.rate_per_s *= factor;
        }
        if trial.points.iter().any(|point| point.phase == "get") {
            samples.push(((trial.block, trial.cell.clone()), sampled(trial)));
        }
    }
    recorded.samples.extend(samples);
    recorded
}

/// Counters of a trial that grow with time; redis swaps and stalls.
fn sampled(trial: &mut Trial) -> Vec<Sample> {
    let swaps = trial.cell.starts_with("redis/");
    if swaps {
        let swap = SwapUse {
            limit_bytes: 512 << 20,
            peak_bytes: Some(300 << 20),
            used_bytes: 300 << 20,
            read_bytes: 4096,
            written_bytes: 8192,
            of_machine: false,
        };
        trial.memory = Some(MemoryUse {
            limit_bytes: 128 << 20,
            peak_bytes: None,
            page_cache_bytes: 0,
            oom_kills: 0,
            swap: Some(swap),
        });
        let point = trial.points.iter_mut().find(|point| point.phase == "get").unwrap();
        let operation = point.phase.clone();
        point.silences = vec![Silence { operation, begun_ns: 0, length_ns: 700_000_000 }];
        let get = trial.series.iter_mut().find(|series| series.phase == "get").unwrap();
        get.interval_ns = 1_000_000_000;
        get.done_per_interval = vec![100, 100, 0, 100, 100];
    } else {
        let get = trial.points.iter_mut().find(|point| point.phase == "get").unwrap();
        let counts = &mut get.operations[0].counts;
        (counts.ok, counts.miss) = (counts.ok / 4, counts.ok - counts.ok / 4);
    }
    let flash = trial.cell.starts_with("memcached");
    (0..60)
        .map(|tenth| Sample {
            at_ns: tenth * 100_000_000,
            server: Some(ProcessUse {
                major_faults: if swaps { tenth * 50 } else { 0 },
                calls: tenth * 200,
                ..ProcessUse::default()
            }),
            store: Some(StoreCounters {
                hits: Some(tenth * 100),
                flash_hits: flash.then_some(tenth * 80),
                evicted: Some(if flash || swaps { 0 } else { tenth * 30 }),
                ..StoreCounters::default()
            }),
            device: Some(DeviceUse { read_bytes: tenth * 409_600, ..DeviceUse::default() }),
            pressure: swaps.then(|| Pressure {
                memory_some_ns: tenth * 34_000_000,
                memory_full_ns: tenth * 12_000_000,
                io_some_ns: tenth * 100_000_000,
                ..Pressure::default()
            }),
            group_bytes: swaps.then_some(tenth << 20),
            group_pressure: (swaps && trial.block == 0)
                .then(|| Pressure { memory_some_ns: tenth * 80_000_000, ..Pressure::default() }),
            ..Sample::default()
        })
        .collect()
}

#[test]
fn what_memory_had_no_room_for_is_shown_by_target() {
    let shown = markdown::render(&judge(&run()));
    let (_, section) = shown.split_once("## Beyond the memory").unwrap();
    let line = |start: &str| {
        let found = section.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{section}")).to_string()
    };
    assert_eq!(
        line("| stores | get | redis |"),
        "| stores | get | redis | 100 % | – | 0 | 0.25 | 2 KiB | 0 B | 1.0 | – |"
    );
    assert_eq!(
        line("| stores | get | redis-lru |"),
        "| stores | get | redis-lru | 25 % | – | 0.15 | 0 | 2 KiB | 0 B | 1.0 | – |"
    );
    assert_eq!(
        line("| stores | get | memcached-flash |"),
        "| stores | get | memcached-flash | 25 % | 80 % | 0 | 0 | 2 KiB | 0 B | 1.0 | – |"
    );
}

#[test]
fn an_erratic_rate_on_swap_is_a_fact() {
    let shown = text::render(&judge(&run()), 100, false);
    for (label, value) in [
        ("get: longest stall", "700 ms"),
        ("get: variation of its rate per second", "55.9 %"),
        ("get: seconds below a tenth of the median rate", "20 %"),
    ] {
        let line = shown.lines().find(|line| line.contains(label)).unwrap_or(&shown);
        assert!(line.contains(value), "{line}");
    }
}

/// Mean times of a get: 100 µs on the store that drops keys, which finds a quarter of them, and
/// `keeps_ns` on redis.
fn miss_cost(keeps_ns: u64) -> MissCostView {
    let mut recorded = run();
    recorded.header.plan.cells.retain(|cell| !cell.target.starts_with("memcached"));
    for trial in &mut recorded.trials {
        let mean_ns = if trial.cell.starts_with("redis/") { keeps_ns } else { 100_000 };
        let get = trial.points.iter_mut().find(|point| point.phase == "get").unwrap();
        for operation in &mut get.operations {
            operation.service = Histogram::new();
            operation.service.record(mean_ns);
        }
    }
    let view = judge(&recorded);
    assert_eq!(view.happened.miss_costs.len(), 1);
    view.happened.miss_costs[0].clone()
}

#[test]
fn the_cost_of_a_miss_weighs_a_store_that_drops_keys() {
    // 100 µs + 0.75 · C = 250 µs.
    let cost = miss_cost(250_000);
    let value = cost.breaks_even_ns.unwrap();
    assert!((value.center / 200_000.0 - 1.0).abs() < 0.01, "{value:?}");
    assert_eq!((cost.drops.as_str(), cost.keeps.as_str()), ("redis-lru", "redis"));
    let start = "redis-lru misses 75 % of the reads; while a miss costs less than 200 µs";
    assert!(cost.sentence.starts_with(start), "{}", cost.sentence);
    let slower = miss_cost(90_000);
    assert!(slower.breaks_even_ns.is_none());
    assert!(slower.sentence.ends_with("whatever a miss costs"), "{}", slower.sentence);
}

#[test]
fn a_claim_is_judged_by_a_metric_or_a_fact() {
    let mut recorded = run();
    for trial in &mut recorded.trials {
        let set = trial.series.iter_mut().find(|series| series.phase == "set").unwrap();
        set.interval_ns = 1_000_000_000;
        set.done_per_interval = vec![100, 100, 90 + u64::from(trial.block), 100];
    }
    let claims = judge(&recorded).claims;
    let claim = |id: &str| claims.iter().find(|claim| claim.id == id).unwrap();
    let faults = claim("swap-waits-for-the-disk");
    assert_eq!(faults.verdict, ClaimVerdict::Refuted);
    let expected = "`server_major_faults_per_op` of redis at set at least 0.40";
    assert_eq!((faults.expected.as_str(), faults.unit), (expected, ClaimUnit::Count));
    let erratic = claim("swap-is-erratic");
    assert_eq!((erratic.verdict, erratic.unit), (ClaimVerdict::Refuted, ClaimUnit::Share));
    let start = "does not hold: `set.variation_share` of redis is 4";
    assert!(erratic.note.starts_with(start), "{}", erratic.note);
    // An amount that is 0 in each block is known.
    assert_eq!(claim("flash-drops-wide-writes").verdict, ClaimVerdict::Refuted);
    let copied = claim("save-copies-most-of-the-data");
    assert_eq!(copied.verdict, ClaimVerdict::NotRun);
}

/// The trials of redis, of which those of block 0 and 1 ended in phase `get`, or all in the fill.
fn ended(class: ErrorClass, in_fill: bool) -> Recorded {
    let mut recorded = run();
    for trial in recorded.trials.iter_mut().filter(|trial| trial.cell.starts_with("redis/")) {
        let failure = Some(Failure { class, message: "its end".into() });
        if in_fill {
            trial.points.clear();
            trial.failure = failure;
        } else if trial.block < 2 {
            trial.points.retain(|point| point.phase == "get");
            trial.points[0].failure = failure;
        }
    }
    recorded
}

#[test]
fn a_store_that_is_killed_or_stalls_is_a_result() {
    for (class, words) in [(ErrorClass::Killed, "killed"), (ErrorClass::Stalled, "stalled")] {
        let view = judge(&ended(class, false));
        let is_told = |reason: &String| reason.contains("redis/") && reason.contains("its end");
        assert!(!view.reasons.iter().any(is_told), "{:?}", view.reasons);
        let note = format!("get: ended early in 2 of 3 blocks: {words}: its end");
        assert!(view.footnotes.iter().any(|text| text.contains(&note)), "{:?}", view.footnotes);
        let failure = &view.failures[0];
        assert_eq!((&*failure.class, failure.phase.as_deref()), (words, Some("get")));
        let shown = markdown::render(&view);
        let line = shown.lines().find(|line| line.starts_with("| stores | get | redis |"));
        assert!(line.unwrap().ends_with(&format!("| {words} in 2 blocks |")), "{shown}");
    }
}

#[test]
fn a_store_killed_before_any_figure_has_a_line() {
    let view = judge(&ended(ErrorClass::Killed, true));
    assert!(!view.reasons.iter().any(|reason| reason.contains("trials failed")));
    let shown = markdown::render(&view);
    let (_, section) = shown.split_once("## Beyond the memory").unwrap();
    let line = section.lines().find(|line| line.starts_with("| stores | – | redis |")).unwrap();
    assert!(line.ends_with("| killed in 3 blocks |"), "{line}");
    // Other failures are not results.
    let view = judge(&ended(ErrorClass::Closed, true));
    assert!(view.reasons.iter().any(|reason| reason.contains("3 of 3 trials failed")));
    let mut nothing = ended(ErrorClass::Killed, true);
    nothing.trials.retain(|trial| trial.cell.starts_with("redis/"));
    let view = judge(&nothing);
    assert!(view.reasons.iter().any(|reason| reason.contains("3 of 3 trials failed")));
}

#[test]
fn pressure_is_shown_where_the_kernel_tells_it() {
    let shown = markdown::render(&judge(&run()));
    let (_, section) = shown.split_once("| profile | operation | target | memory: some |").unwrap();
    let line = |start: &str| section.lines().find(|line| line.starts_with(start));
    // Of the group, if its pressure is known in any block; CPU always of the machine.
    let expected = "| stores | get | redis | 80 % | 0 % | 0 % | 0 % | 0 % |";
    assert_eq!(line("| stores | get | redis |"), Some(expected));
    assert_eq!(line("| stores | get | memcached"), None, "no figure, not zero");
    let mut recorded = run();
    recorded.samples.values_mut().flatten().for_each(|sample| sample.group_pressure = None);
    let view = judge(&recorded);
    let shown = markdown::render(&view);
    let expected = "| stores | get | redis | 34 % | 12 % | 100 % | 0 % | 0 % |";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn memory_and_disk_of_a_limited_target_are_charted_over_time() {
    let view = judge(&run());
    let row = |target: &str| {
        let mut rows = view.cells.iter().filter(|row| row.target == target);
        rows.find(|row| row.operation == "get").unwrap().charts.as_ref().unwrap()
    };
    let charts = row("redis").resources.as_ref().unwrap();
    assert_eq!((charts.memory_bytes.len(), charts.interval_s), (3, 0.1));
    let read = &charts.read_bytes_per_s[0];
    assert!(read.len() == charts.memory_bytes[0].len() && read.len() > 5, "{charts:?}");
    assert!(read.iter().all(|rate| (rate.unwrap() - 4_096_000.0).abs() < 1.0), "{read:?}");
    assert!(charts.memory_bytes[0].windows(2).all(|pair| pair[0] < pair[1]), "{charts:?}");
    assert!(row("redis-lru").resources.is_none());
}

#[test]
fn what_a_store_keeps_of_its_rate_is_told_by_amount_of_data() {
    let view = judge(&run_of("swap", |cell| match cell {
        "redis/swap-0.9/50" => 1_000.0,
        "redis/swap-1.1/50" => 600.0,
        _ => 100.0,
    }));
    let get = view.happened.outgrown.iter().find(|outgrown| outgrown.operation == "get").unwrap();
    assert_eq!((get.workload.as_str(), get.target.as_str()), ("swap", "redis"));
    let shares: Vec<(f64, f64)> = get.steps.iter().map(|s| (s.data, s.share.center)).collect();
    let expected = [(1.1, 0.6), (1.5, 0.1)];
    let is_near = |(a, b): (&(f64, f64), &(f64, f64))| (a.0 - b.0).hypot(a.1 - b.1) < 0.01;
    assert!(shares.len() == 2 && shares.iter().zip(&expected).all(is_near), "{shares:?}");
    assert_eq!(
        get.sentence,
        "redis, get with 50 clients: of its rate with 0.9 times the memory of data it keeps 60.2 % \
         at 1.1 times and 10 % at 1.5 times; at least half of it up to 1.1 times"
    );
    // The response time grows with the number of keys.
    let curve = view.growth.iter().find(|curve| curve.operation == "get").unwrap();
    assert_eq!((curve.workload.as_str(), curve.grows.as_str()), ("swap", "records"));
    assert_eq!(curve.points.len(), 3);
    assert!(curve.points.iter().all(|point| point.records_of_tag.is_none()));
    let markdown = markdown::render(&view);
    assert!(markdown.contains("## How much memory"), "{markdown}");
}

#[test]
fn a_claim_about_data_on_swap_is_not_judged_with_less_data_than_memory() {
    let view = judge(&run_of("swap", |_| 1_000.0));
    let judged = view.claims.iter().filter(|claim| claim.id == "swap-gets-like-sets");
    let profiles: Vec<&str> = judged.filter_map(|claim| claim.workload.as_deref()).collect();
    assert_eq!(profiles, ["swap-1.1", "swap-1.5"]);
}

#[test]
fn p99_over_time_is_charted_for_each_block() {
    let mut recorded = run();
    for trial in recorded.trials.iter_mut().filter(|trial| trial.block > 0) {
        let get = trial.series.iter_mut().find(|series| series.phase == "get").unwrap();
        get.p99 = vec![(200_000_000, 3_000), (450_000_000, 5_000)];
    }
    let view = judge(&recorded);
    let charts = |operation: &str| {
        let mut rows = view.cells.iter().filter(|row| row.target == "redis");
        rows.find(|row| row.operation == operation).unwrap().charts.as_ref().unwrap()
    };
    let measured = vec![(0.2, 3_000.0), (0.45, 5_000.0)];
    // A block without percentiles keeps its place.
    assert_eq!(charts("get").p99_series, [Vec::new(), measured.clone(), measured]);
    assert_eq!(charts("set").p99_series, [Vec::new(), Vec::new(), Vec::new()]);
}

#[test]
fn stores_are_shown_beside_what_their_disk_can_do() {
    let view = judge(&run_of("stores,device", |cell| match cell {
        "disk/device-1/50" => 3_000.0,
        "disk/device-4/50" => 2_000.0,
        _ => 1_000.0,
    }));
    let metric = |target: &str, operation: &str| {
        let mut rows = view.cells.iter();
        let row = rows.find(|r| r.target == target && r.operation == operation).unwrap();
        row.metrics.get("disk_rate_per_s").map(|value| value.center)
    };
    // The widest span counts; the disk is not compared with itself.
    assert!((metric("redis", "get").unwrap() / 2_000.0 - 1.0).abs() < 0.01);
    assert_eq!(metric("disk", "get"), None);
    let shown = markdown::render(&view);
    let line = shown.lines().find(|line| line.starts_with("| stores | set | redis |"));
    assert!(line.unwrap_or(&shown).ends_with("| 0.500× |"), "{line:?}");
}

/// The sentences about memory of a run with these profiles, in which each trial has these facts and
/// 1,000 filled keys.
fn memory_sentences(profiles: &str, facts: &[(&str, f64)]) -> Vec<String> {
    let mut recorded = run_of(profiles, |_| 1_000.0);
    for trial in &mut recorded.trials {
        let source = "INFO".to_string();
        let fact = |&(name, value): &(&str, f64)| Fact {
            name: name.into(),
            value,
            source: source.clone(),
        };
        trial.facts = facts.iter().map(fact).collect();
        let mut fill = trial.points[0].clone();
        fill.operations[0].counts.ok = 1_000;
        trial.fill = Some(fill);
    }
    let needs = judge(&recorded).happened.memory_needs;
    needs.into_iter().map(|need| need.sentence).collect()
}

#[test]
fn memory_for_data_includes_the_copies_of_a_save() {
    let facts = [(Fact::BYTES_PER_KEY, 1_500.0), ("save_copied_bytes", 750_000.0)];
    assert_eq!(
        memory_sentences("save", &facts),
        ["redis keeps a value of 1000 B in 1.46 KiB of memory: 1 GiB of such values needs 1.5 \
          GiB, and 2.25 GiB while it is saved under these writes, which copies 50 %"]
    );
}

#[test]
fn a_rewrite_of_the_log_copies_as_a_save_does() {
    let facts = [(Fact::BYTES_PER_KEY, 1_500.0), ("rewrite_copied_bytes", 750_000.0)];
    let [sentence] = &memory_sentences("rewrite", &facts)[..] else { panic!("one sentence") };
    assert!(sentence.contains("and 2.25 GiB while its log is rewritten under"), "{sentence}");
}

#[test]
fn a_share_that_a_block_did_not_reach_is_not_known() {
    // In one block, the rate is not back before the end.
    let mut recorded = run_of("save", |_| 1_000.0);
    for trial in &mut recorded.trials {
        let set = trial.series.iter_mut().find(|series| series.phase == "set").unwrap();
        set.interval_ns = 100_000_000;
        let low = if trial.block == 0 { 40 } else { 6 };
        set.done_per_interval = [vec![1_000; 20], vec![100; low], vec![1_000; 40 - low]].concat();
        let event = |kind, ms: u64| {
            let subject = String::new();
            TrialEvent { at_ns: set.begun_ns + ms * 1_000_000, kind, subject }
        };
        trial.events = vec![event(EventKind::SaveBegan, 2_000), event(EventKind::SaveEnded, 4_000)];
        let point = trial.points.iter_mut().find(|point| point.phase == "set").unwrap();
        point.length_ns = 6_000_000_000;
    }
    let claims = judge(&recorded).claims;
    let early = claims.iter().find(|claim| claim.id == "save-rate-recovers-early").unwrap();
    assert_eq!(early.verdict, ClaimVerdict::Undecided, "{early:?}");
    let note = "one block ended before it was reached, so it is more there";
    assert!(early.note.contains(note), "{}", early.note);
}

#[test]
fn memory_for_values_in_a_file_is_that_of_their_keys() {
    let [sentence, ..] = &memory_sentences("stores", &[(Fact::FLASH_KEY_BYTES, 80.0)])[..] else {
        panic!("no sentence");
    };
    assert_eq!(
        sentence,
        "redis keeps a value of 1000 B in its file and 80 B for its key in memory: 1 GiB of such \
         values needs 81.9 MiB of memory for keys alone"
    );
}

#[test]
fn a_collection_is_not_called_a_value() {
    let sentences = memory_sentences("hashes", &[(Fact::BYTES_PER_KEY, 1_280.0)]);
    let expected = "redis keeps a collection with 640 B in 1.25 KiB of memory";
    assert!(sentences.iter().all(|sentence| sentence.starts_with(expected)), "{sentences:?}");
}

#[test]
fn a_terminal_draws_the_courses_of_targets_with_limited_memory() {
    let mut recorded = run();
    for trial in &mut recorded.trials {
        let get = trial.series.iter_mut().find(|series| series.phase == "get").unwrap();
        get.p99 = vec![(1_000_000_000, 3_000), (2_000_000_000, 6_000)];
    }
    let shown = text::render(&judge(&recorded), 100, false);
    let (_, courses) = shown.split_once("stores get on redis, 50 clients, block 1").unwrap();
    let lines: Vec<&str> = courses.lines().skip(1).take(4).map(str::trim).collect();
    assert!(lines[0].starts_with("rate "), "{lines:?}");
    assert!(lines[1].starts_with("p99 ") && lines[1].ends_with("3.00 µs to 6.00 µs"), "{lines:?}");
    assert!(lines[2].starts_with("memory ") && lines[3].starts_with("read/s "), "{lines:?}");
    assert!(!shown.contains("stores get on redis-lru, 50 clients, block 1"));
}
