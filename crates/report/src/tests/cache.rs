//! Application caches: claims about an order, lists, effort, and targets of two stores.

use model::study::claims::{Conditions, Extreme, Spread};
use model::study::{Advice, AdviceRow, Claim, Expectation, ShopSize};
use model::{
    AppCache, Backend, DataFiles, Emptied, Fact, Fill, MemoryPlan, MemoryUse, PageCache, Phase,
    Restored, Stop, Workload,
};
use std::collections::BTreeMap;

use crate::fixture::{Rates, rename, run};
use crate::recorded::Recorded;
use crate::view::{Validity, View};
use crate::{csv, judge, markdown, text};

/// Redis cleans a hundred times as fast as files, and files read twice as fast as Redis.
pub(super) fn rates(target: &str, operation: &str, _: u32) -> f64 {
    match (operation, target) {
        ("clean", "files") => 100.0,
        ("clean", _) | ("write", "files") => 10_000.0,
        ("read", "files") => 40_000.0,
        ("write", _) => 11_000.0,
        _ => 20_000.0,
    }
}

fn phase(name: &str, mix: &[&str]) -> Phase {
    let mix = mix.iter().map(|name| ((*name).to_string(), 1.0)).collect();
    Phase {
        name: name.into(),
        mix,
        warmup_ns: 0,
        stop: Stop::AfterNs(1_000_000_000),
        control: None,
    }
}

/// A run of files and Redis with 8 clients, each operation alone.
pub(super) fn caches(blocks: u32, rates: Rates) -> Recorded {
    let mut recorded = run(&["files", "redis"], blocks, rates);
    let names = ["read", "write", "clean"];
    let plan = &mut recorded.header.plan;
    plan.study = "app-cache".into();
    plan.cells.retain(|c| c.load.clients == 8);
    for cell in &mut plan.cells {
        cell.workload = Workload::AppCache(AppCache {
            profile: "steady".into(),
            sizes_of: None,
            keys: 10_000,
            tags: 2_000,
            tags_of_record: (0, 15),
            record_bytes: (1, 1024),
            write_chance: 1000,
            clean_chance: 1000,
            as_original: false,
            magento: model::Magento::One,
            page_reads: 40,
            page_writes: 2,
            fill: Fill::Save,
            verify_one_in: 64,
            files: None,
            page_cache: PageCache::Warm,
            memory: None,
            phases: names.map(|name| phase(name, &[name])).to_vec(),
        });
    }
    for target in &mut plan.targets {
        let is_redis = target.name == "redis";
        target.backend = Some(if is_redis { Backend::TwoLevelsRedis } else { Backend::ZendFile });
    }
    let is_measured = |cell: &str| plan.cells.iter().any(|c| c.id == cell);
    recorded.trials.retain(|t| is_measured(&t.cell));
    for trial in &mut recorded.trials {
        let is_redis = trial.cell.starts_with("redis");
        let fact = |(name, bytes): (&str, u32)| Fact {
            name: name.into(),
            value: f64::from(bytes),
            source: "host".into(),
        };
        let (of_files, of_servers) = if is_redis { (0, 40 << 20) } else { (80 << 20, 0) };
        let sizes = [(Fact::STORE_BYTES, of_files), (Fact::SERVER_MEMORY_BYTES, of_servers)];
        trial.facts = sizes.map(fact).into();
        // The fixture only has sessions: turn its change into a clean.
        rename(trial, "change", "clean");
        for phase in &mut trial.points {
            let last = phase.operations.last_mut().unwrap();
            last.operation.clone_from(&phase.phase);
            last.rate_per_s = rates(if is_redis { "redis" } else { "files" }, &phase.phase, 8)
                * (1.0 + 0.01 * f64::from(trial.block % 3));
            last.calls_rate_per_s = Some(last.rate_per_s * 1.5);
            last.counts.files = if is_redis { 0 } else { 3 * last.counts.ok };
            last.counts.round_trips = if is_redis { 2 * last.counts.ok } else { 0 };
            last.counts.commands = if is_redis { 5 * last.counts.ok } else { 0 };
        }
    }
    recorded
}

fn claim(expect: Expectation) -> Claim {
    Claim {
        id: "x".into(),
        text: "so it is".into(),
        source: "a test".into(),
        source_value: None,
        profiles: Vec::new(),
        conditions: Conditions::default(),
        expect,
    }
}

fn highest(target: &str, operation: &str) -> Claim {
    let (target, operations, clients) = (target.into(), vec![operation.into()], vec![8]);
    claim(Expectation::Highest(Extreme { target, operations, clients, among: Vec::new() }))
}

fn narrowest(operation: &str, than: &[&str]) -> Claim {
    let than = than.iter().map(ToString::to_string).collect();
    let operation = operation.into();
    claim(Expectation::Narrowest(Spread { operation, than, clients: 8, among: Vec::new() }))
}

#[test]
fn an_order_is_judged_by_both_ends_and_by_its_width() {
    let mut recorded = caches(6, rates);
    recorded.header.plan.claims = vec![
        highest("files", "read"),
        highest("files", "clean"),
        narrowest("write", &["read", "clean"]),
        narrowest("clean", &["read", "write"]),
    ];
    let claims = judge(&recorded).claims;
    let verdicts: Vec<&str> = claims.iter().map(|c| c.verdict.name()).collect();
    assert_eq!(verdicts, ["confirmed", "refuted", "confirmed", "refuted"], "{claims:#?}");
    assert_eq!(claims[0].expected, "files fastest (read at 8 clients)");
    assert!(claims[1].note.contains("false in 1 case;"), "{}", claims[1].note);
    assert_eq!(
        claims[2].note,
        "holds; fastest against slowest at write: 1.10× (redis against files); read: 2.00× \
         (files against redis); clean: 100× (redis against files)"
    );
}

#[test]
fn operations_of_one_list_have_a_note_about_their_order() {
    let mut recorded = caches(4, rates);
    recorded.header.plan.claims = vec![narrowest("write", &["read", "clean"])];
    let apart = "an operation's time depends on the operation before it";
    assert!(!judge(&recorded).claims[0].note.contains(apart));
    for cell in &mut recorded.header.plan.cells {
        let Workload::AppCache(cache) = &mut cell.workload else { panic!("a cache") };
        cache.phases = vec![phase("ops", &[])];
    }
    for trial in &mut recorded.trials {
        let mut whole = trial.points[0].clone();
        whole.operations = trial.points.iter().flat_map(|p| p.operations.clone()).collect();
        let mut all = whole.operations[0].clone();
        all.operation = "ops".into();
        whole.operations.push(all);
        let first = whole.phase.clone();
        trial.points = vec![whole];
        rename(trial, &first, "ops");
    }
    let claim = judge(&recorded).claims.remove(0);
    assert!(claim.note.contains(apart), "{}: {}", claim.verdict, claim.note);
}

#[test]
fn the_data_of_a_profile_is_next_to_its_results() {
    let view = judge(&caches(3, rates));
    let expected = "10,000 records of 1 to 1,024 bytes, each with 0 to 15 of 2,000 tags; names and \
                lifetimes as in Magento, each write checked\n";
    let text = text::render(&view, 140, false);
    let mut lines =
        text.split_inclusive('\n').skip_while(|l| !l.starts_with("steady, 8 clients  "));
    assert_eq!(lines.nth(1), Some(expected), "{text}");
    let markdown = markdown::render(&view);
    let title = markdown.find("## steady, 8 clients").unwrap();
    let below = markdown[title..].lines().nth(2);
    assert_eq!(below, Some(expected.trim_end()), "{markdown}");
    assert_eq!(view.asked.data["steady"], expected.trim_end());
    let sessions = judge(&run(&["files"], 3, crate::fixture::usual));
    assert_eq!(sessions.asked.data["steady"], "1,000 sessions of 1,500 bytes");
}

#[test]
fn two_blocks_decide_no_order() {
    let mut recorded = caches(2, rates);
    recorded.header.plan.claims = vec![
        highest("files", "read"),
        highest("files", "clean"),
        narrowest("write", &["read", "clean"]),
    ];
    for claim in judge(&recorded).claims {
        assert_eq!(claim.verdict.name(), "undecided", "{claim:#?}");
        let start = "cannot be decided (2 blocks; 3 are needed)";
        assert!(claim.note.starts_with(start), "{}", claim.note);
    }
}

#[test]
fn the_hit_ratio_is_100_percent_only_without_misses() {
    let mut recorded = caches(3, rates);
    for trial in &mut recorded.trials {
        let read = trial.points.iter_mut().find(|p| p.phase == "read").unwrap();
        let counts = &mut read.operations.last_mut().unwrap().counts;
        counts.ok = 1_000_000;
        counts.miss = u64::from(trial.cell.starts_with("redis"));
    }
    let view = judge(&recorded);
    for output in [text::render(&view, 140, false), markdown::render(&view)] {
        let effort = &output[output.find("Effort of an operation").unwrap()..];
        let hits = |target: &str| {
            let is_read = |l: &&str| l.contains("steady read") && l.contains(target);
            effort.lines().find(is_read).unwrap().to_string()
        };
        assert!(hits("redis").contains(" <100 %") || hits("redis").contains("&lt;100 %"));
        assert!(hits("files").contains(" 100 %"), "{}", hits("files"));
    }
}

#[test]
fn a_rate_can_be_recomputed_from_the_time_of_restoring() {
    let mut recorded = caches(3, rates);
    for trial in &mut recorded.trials {
        let clean = trial.points.iter_mut().find(|p| p.phase == "clean").unwrap();
        // Clients were free for different times, and at different speeds.
        clean.restored = (1..=8)
            .map(|n| Restored {
                answered: 300,
                free_ns: n * n * 10_000_000,
                restoring_ns: 900_000_000,
            })
            .collect();
        let operation = clean.operations.last_mut().unwrap();
        operation.rate_per_s = Restored::rate_per_s(&clean.restored);
        operation.counts.ok = 2_400;
    }
    let view = judge(&recorded);
    let row = |operation: &str| view.cells.iter().find(|r| r.operation == operation).unwrap();
    let per_op = row("clean").metrics["restoring_ns_per_op"];
    assert!((per_op.center - 8.0 * 9e8 / 2_400.0).abs() < 1.0, "{per_op:?}");
    assert!(!row("read").metrics.contains_key("restoring_ns_per_op"));
    let (table, blocks) = (csv::render(&view), csv::render_blocks(&view));
    assert!(
        table
            .lines()
            .next()
            .unwrap()
            .contains(",growth,restoring_ns_per_op,restoring_ns_per_op_lo,restoring_ns_per_op_hi,")
    );
    let columns: Vec<&str> = blocks.lines().next().unwrap().split(',').collect();
    let at = |name: &str| columns.iter().position(|c| *c == name).unwrap();
    assert_eq!(at("restoring_ns"), at("free_ns") + 1);
    for line in blocks.lines().skip(1).filter(|l| l.contains(",clean,")) {
        let fields: Vec<f64> = line.split(',').map(|f| f.parse().unwrap_or(f64::NAN)).collect();
        let answered = fields[at("ok")] + fields[at("not_ok")];
        let again = answered / (fields[at("free_ns")] / 1e9);
        assert!((again / fields[at("rate_per_s")] - 1.0).abs() < 1e-4, "{line}");
        assert!((fields[at("restoring_ns")] - 8.0 * 9e8).abs() < 0.5, "{line}");
    }
}

#[test]
fn the_method_of_filling_is_noted() {
    let mut recorded = caches(6, rates);
    let filling_note = |recorded: &Recorded| {
        let mut notes = judge(recorded).footnotes.into_iter();
        notes.find(|note| note.starts_with("filled "))
    };
    // As after `--fill fast` on stores without a fast fill.
    let by_saves = "filled by saves, one at a time: files, redis";
    assert_eq!(filling_note(&recorded).as_deref(), Some(by_saves));
    for cell in recorded.header.plan.cells.iter_mut().filter(|c| c.target == "redis") {
        let Workload::AppCache(cache) = &mut cell.workload else { unreachable!() };
        cache.fill = Fill::Fast;
    }
    let note = "filled many records at once: redis; by saves, one at a time: files";
    assert_eq!(filling_note(&recorded).as_deref(), Some(note));
    assert_eq!(filling_note(&run(&["files", "redis"], 3, rates)), None, "sessions");
}

#[test]
fn lists_that_were_not_executed_are_noted() {
    let notes = |as_original, lists, ops_of_longest| {
        let mut recorded = caches(3, rates);
        for cell in &mut recorded.header.plan.cells {
            let Workload::AppCache(cache) = &mut cell.workload else { unreachable!() };
            cache.as_original = as_original;
            let (directory, md5) = ("/data".into(), String::new());
            cache.files = Some(DataFiles {
                directory,
                md5,
                keys: 9,
                tags: 9,
                lists,
                ops: 40,
                ops_of_longest,
            });
        }
        let notes = judge(&recorded).footnotes;
        notes.into_iter().filter(|note| note.contains("`/data`")).collect::<Vec<_>>()
    };
    assert_eq!(notes(true, 8, 40), [""; 0]);
    assert_eq!(notes(false, 9, 70), [""; 0], "nobody follows a list");
    let [lists, lengths] = &notes(true, 9, 70)[..] else { panic!("two notes") };
    assert_eq!(lists, "of the 9 lists in `/data`, 8 clients executed the first 8");
    assert_eq!(
        lengths,
        "the lists in `/data` have 40 to 70 operations; only the first 40 of each were executed, \
         so that all clients did the same number"
    );
}

#[test]
fn effort_and_sizes_are_in_every_output() {
    let view = judge(&caches(6, rates));
    let row = |target: &str, operation: &str| {
        view.cells.iter().find(|r| (r.target.as_str(), &*r.operation) == (target, operation))
    };
    let metric = |target: &str, operation: &str, name: &str| {
        // A geometric mean has rounding errors in its last digits.
        let center = row(target, operation)?.metrics.get(name)?.center;
        Some((center * 1e6).round() / 1e6)
    };
    assert_eq!(metric("redis", "clean", "commands_per_op"), Some(5.0));
    assert_eq!(metric("redis", "clean", "files_per_op"), None);
    assert_eq!(metric("files", "write", "files_per_op"), Some(3.0));
    assert_eq!(metric("files", "read", "hit_ratio"), Some(1.0));
    assert_eq!(metric("files", "write", "hit_ratio"), None);
    assert_eq!(metric("redis", "read", "server_memory_bytes"), Some(41_943_040.0));
    let rate = metric("redis", "read", "rate_per_s").unwrap();
    assert!((metric("redis", "read", "calls_rate_per_s").unwrap() / rate - 1.5).abs() < 1e-9);
    let at_100 = text::render(&view, 100, false);
    for part in ["Effort of an operation", "files 80 MiB on disk; redis 40 MiB of memory"] {
        assert!(at_100.contains(part), "no `{part}` in {at_100}");
    }
    assert!(markdown::render(&view).contains("## Effort of an operation"));
    assert!(csv::render(&view).contains(",server_memory_bytes,"));
    let place = &view.setup.targets.iter().find(|t| t.name == "redis").unwrap().place;
    assert_eq!(place, "private servers, started fresh for each trial");
    assert!(view.footnotes.iter().any(|n| n.contains("saved again before the client's next call")));
}

#[test]
fn a_list_is_judged_by_its_parts() {
    let mut recorded = caches(6, rates);
    for cell in &mut recorded.header.plan.cells {
        let Workload::AppCache(cache) = &mut cell.workload else { panic!("no cache") };
        cache.phases = vec![phase("list", &[])];
    }
    for trial in &mut recorded.trials {
        let mut parts = std::mem::take(&mut trial.points);
        let mut list = parts.remove(0);
        let mut whole = list.operations[0].clone();
        whole.operation = "list".into();
        list.operations.extend(parts.into_iter().flat_map(|p| p.operations));
        list.operations.push(whole);
        let first = list.phase.clone();
        trial.points = vec![list];
        rename(trial, &first, "list");
    }
    let weights = ["read", "write", "clean"].map(|o| (o.to_string(), 1.0));
    recorded.header.plan.advice = Some(Advice {
        weights: BTreeMap::from(weights),
        sizes: BTreeMap::from([("small".into(), ShopSize::Clients(8))]),
        rows: vec![AdviceRow {
            shop: "Magento".into(),
            size: "small".into(),
            factory: "files".into(),
            source: vec!["redis".into(), "files".into()],
            second: None,
            targets: Vec::new(),
        }],
        notes: Vec::new(),
    });
    recorded.header.plan.claims = vec![highest("redis", "clean")];
    let view = judge(&recorded);
    assert!(view.cells.iter().any(|r| r.operation == "list.clean"));
    assert_ne!(view.claims[0].verdict.name(), "not run", "{:?}", view.claims[0]);
    let [advice] = &view.advised.advice[..] else { panic!("one row of advice") };
    assert_eq!(advice.source_recommends, "redis or files");
    assert_eq!((advice.recommended.as_deref(), advice.agreement.name()), (Some("redis"), "same"));
}

#[test]
fn lost_records_are_next_to_misses() {
    let mut recorded = caches(6, rates);
    let none = judge(&recorded);
    assert!(!text::render(&none, 100, false).contains("Not as expected"));
    assert!(!markdown::render(&none).contains("Not as expected"));
    for trial in recorded.trials.iter_mut().filter(|t| t.cell.starts_with("redis")) {
        let write = trial.points.iter_mut().find(|p| p.phase == "write").unwrap();
        let counts = &mut write.operations[0].counts;
        counts.ok -= 5;
        (counts.miss, counts.lost, counts.stale) = (4, 3, 1);
    }
    let view = judge(&recorded);
    let at_100 = text::render(&view, 100, false);
    let table = at_100.split_once("Not as expected\n").unwrap().1;
    let lines: Vec<Vec<&str>> =
        table.lines().take(2).map(|l| l.split_whitespace().collect()).collect();
    let header = ["operation", "target", "load", "of", "missed", "lost", "stale"];
    assert_eq!(lines[0], header, "no column of errors or wrong values");
    assert_eq!(lines[1][..3], ["steady", "write", "redis"]);
    assert_eq!(lines[1][5..], ["12000", "24", "18", "6"], "{table}");
    assert!(markdown::render(&view).contains("| 12000 | 24 | 18 | 6 |"));
    let csv = csv::render(&view);
    let at = csv.lines().next().unwrap().split(',').position(|name| name == "lost").unwrap();
    let lost = csv.lines().skip(1).map(|line| line.split(',').nth(at).unwrap());
    assert_eq!(lost.filter(|lost| *lost == "18").count(), 1, "{csv}");
}

fn cold(how: Option<Emptied>) -> Recorded {
    let mut recorded = caches(6, rates);
    for cell in &mut recorded.header.plan.cells {
        let Workload::AppCache(cache) = &mut cell.workload else { panic!("no cache") };
        cache.page_cache = PageCache::Cold;
    }
    recorded.trials.iter_mut().for_each(|t| t.emptied = how);
    recorded
}

/// The footnote with this text; every row must have it.
fn note_of_all(view: &View, part: &str) -> String {
    let note = view.footnotes.iter().position(|n| n.contains(part));
    let note = note.unwrap_or_else(|| panic!("no `{part}` in {:#?}", view.footnotes));
    assert!(view.cells.iter().all(|r| r.footnotes.contains(&note)), "{part}");
    view.footnotes[note].clone()
}

#[test]
fn a_cold_page_cache_is_noted_with_its_method() {
    let warm = judge(&caches(6, rates));
    assert!(!warm.footnotes.iter().any(|n| n.contains("page cache of the machine")));
    let by_root = judge(&cold(Some(Emptied::Machine)));
    note_of_all(&by_root, "the page cache of the machine was emptied, with names and inodes");
    let by_others = judge(&cold(Some(Emptied::Files)));
    note_of_all(&by_others, "stayed, because only root can empty all of it");
    note_of_all(&judge(&cold(None)), "the record does not state how");
    for text in [text::render(&by_others, 100, false), markdown::render(&by_others)] {
        assert!(
            text.split_whitespace().collect::<Vec<_>>().join(" ").contains("removed from the page")
        );
    }
}

#[test]
fn a_rate_may_rise_while_the_page_cache_fills() {
    let rising = |mut recorded: Recorded| {
        for series in recorded.trials.iter_mut().flat_map(|t| &mut t.series) {
            series.done_per_interval = (0..20).map(|n| 100 + 10 * n).collect();
        }
        judge(&recorded)
    };
    assert_eq!(rising(caches(6, rates)).validity, Validity::NotSteady);
    let view = rising(cold(Some(Emptied::Machine)));
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    assert!(view.footnotes.iter().any(|n| n.contains("as expected while the page cache fills")));
}

#[test]
fn a_memory_limit_is_noted_with_the_usage() {
    let mut recorded = caches(6, rates);
    for cell in &mut recorded.header.plan.cells {
        let Workload::AppCache(cache) = &mut cell.workload else { panic!("no cache") };
        cache.memory = Some(MemoryPlan { limit_bytes: 256 << 20, swap_bytes: 0 });
    }
    for trial in &mut recorded.trials {
        let is_files = trial.cell.starts_with("files");
        trial.memory = Some(MemoryUse {
            limit_bytes: 256 << 20,
            peak_bytes: is_files.then_some((240 << 20) + u64::from(trial.block)),
            page_cache_bytes: 200 << 20,
            oom_kills: u64::from(is_files && trial.block == 1),
            swap: None,
        });
    }
    let view = judge(&recorded);
    let notes = |part: &str| view.footnotes.iter().find(|n| n.contains(part)).cloned();
    assert_eq!(
        notes("`files/").unwrap(),
        "`files/steady/8`: clients and page cache were limited to 256 MiB of memory from before \
         the fill, without swap; they used at most 240 MiB, of which up to 200 MiB was page cache \
         at the end; the kernel killed 1 of its processes because memory ran out; a page is \
         charged to the process that touched it first, so pages that other processes had already \
         loaded, such as code of programs and libraries, count in a server's resident memory but \
         not here"
    );
    let of_redis = notes("`redis/steady/8`: servers were limited to 256 MiB").unwrap();
    assert!(of_redis.contains("they used at most an unknown size"), "{of_redis}");
    let number = view.footnotes.iter().position(|n| *n == of_redis).unwrap();
    for row in &view.cells {
        assert_eq!(row.footnotes.contains(&number), row.target == "redis", "{row:?}");
    }
}
