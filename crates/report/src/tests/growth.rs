//! Growth with the size of the data set: curves, slopes and outputs.

use model::study::{Advice, AdviceRow, ShopSize};
use model::{AppCache, Cell, Load, Phase, Stop, Trial, Workload};
use stats::Histogram;
use std::collections::BTreeMap;

use crate::fixture::run;
use crate::recorded::Recorded;
use crate::view::{GrowthView, Value, View};
use crate::{csv, json, judge, markdown, text};

/// Cost of an operation on a target, nanoseconds, by records and records of a tag.
pub(super) type Cost = fn(target: &str, operation: &str, records: f64, of_tag: f64) -> f64;

pub(super) const BY_RECORDS: [(u64, u64); 3] = [(2_000, 200), (5_000, 500), (20_000, 2_000)];
const BY_TAG: [(u64, u64); 3] = [(20_000, 15_000), (20_000, 150), (20_000, 1_500)];

/// Files scan every record, Redis those of the tag; reads cost the same at every size.
pub(super) fn usual(target: &str, operation: &str, records: f64, of_tag: f64) -> f64 {
    match (operation, target) {
        ("read", _) => 20e3,
        (_, "files") => 10e3 * records,
        _ => 4e3 * of_tag,
    }
}

/// Files and Redis with 4 clients, reads and cleans at three sizes.
pub(super) fn grown(sizes: &[(u64, u64)], blocks: u32, cost: Cost) -> Recorded {
    let mut recorded = run(&["files", "redis"], blocks, |_, _, _| 10_000.0);
    let trials = std::mem::take(&mut recorded.trials);
    recorded.header.plan.cells.clear();
    for (keys, tags) in sizes {
        for target in ["files", "redis"] {
            let cache = cache(*keys, *tags);
            let id = format!("{target}/{}/4", cache.profile);
            for block in 0..blocks {
                let is_model = |t: &&Trial| t.block == block && t.cell.starts_with(target);
                let mut trial = trials.iter().find(is_model).unwrap().clone();
                trial.cell.clone_from(&id);
                measure(&mut trial, &cache, |operation| {
                    cost(target, operation, *keys as f64, cache.records_of_tag())
                });
                recorded.trials.push(trial);
            }
            let (target, workload) = (target.into(), Workload::AppCache(cache));
            recorded.header.plan.cells.push(Cell { id, target, workload, load: Load::closed(4) });
        }
    }
    recorded
}

fn cache(keys: u64, tags: u64) -> AppCache {
    let phase = |name: &str| Phase {
        name: name.into(),
        mix: BTreeMap::from([(name.into(), 1.0)]),
        warmup_ns: 0,
        stop: Stop::AfterNs(1_000_000_000),
        control: None,
    };
    AppCache {
        profile: format!("by-size/{keys}x{tags}"),
        sizes_of: Some("by-size".into()),
        keys,
        tags,
        tags_of_record: (0, 15),
        record_bytes: (1, 1024),
        write_chance: 1000,
        clean_chance: 1000,
        as_original: false,
        magento: model::Magento::One,
        page_reads: 40,
        page_writes: 2,
        verify_one_in: 64,
        files: None,
        page_cache: model::PageCache::Warm,
        memory: None,
        fill: model::Fill::Save,
        phases: vec![phase("read"), phase("clean")],
    }
}

/// Sets a trial's phases to those of the workload. Each block is slower by its number,
/// and some sizes are slightly slower.
fn measure(trial: &mut Trial, cache: &AppCache, cost_ns: impl Fn(&str) -> f64) {
    let block = f64::from(trial.block + 1);
    let noise = block * (1.0 + 0.01 * (block * (cache.keys + cache.tags) as f64).sin());
    trial.points.truncate(cache.phases.len());
    trial.series.truncate(cache.phases.len());
    for (series, planned) in trial.series.iter_mut().zip(&cache.phases) {
        series.phase.clone_from(&planned.name);
    }
    for (phase, planned) in trial.points.iter_mut().zip(&cache.phases) {
        phase.phase.clone_from(&planned.name);
        let operation = phase.operations.last_mut().unwrap();
        operation.operation.clone_from(&planned.name);
        let mut service = Histogram::new();
        (0..100).for_each(|_| service.record((cost_ns(&planned.name) * noise) as u64));
        operation.rate_per_s = 4e9 / service.mean_ns();
        (operation.response, operation.service) = (service.clone(), service);
    }
}

fn curve<'a>(view: &'a View, target: &str, operation: &str) -> &'a GrowthView {
    let own = |g: &&GrowthView| (g.target.as_str(), &*g.operation) == (target, operation);
    view.growth.iter().find(own).unwrap()
}

/// Verdicts of files' and Redis' cleans and of files' reads.
fn verdicts(view: &View) -> [&str; 3] {
    let of = |target, operation| curve(view, target, operation).verdict.name();
    [of("files", "clean"), of("redis", "clean"), of("files", "read")]
}

#[test]
fn a_slope_shows_what_a_cost_depends_on() {
    let view = judge(&grown(&BY_RECORDS, 4, usual));
    assert_eq!(verdicts(&view), ["grows in proportion", "does not grow", "does not grow"]);
    let files = curve(&view, "files", "clean");
    assert_eq!((files.workload.as_str(), files.grows.as_str()), ("by-size", "records"));
    let slope = files.slope.unwrap();
    assert!((slope.center - 1.0).abs() < 0.01 && slope.lo < Some(slope.center), "{slope:?}");
    // A point is the row of its size.
    let row = view.cells.iter().find(|r| {
        (r.workload.as_str(), &*r.target, &*r.operation) == ("by-size/5000x500", "files", "clean")
    });
    let point = &files.points[1];
    assert_eq!((point.workload.as_str(), point.records), ("by-size/5000x500", 5_000));
    assert!((point.records_of_tag.unwrap() - 75.0).abs() < 1e-9);
    assert_eq!(Some(&point.cost), row.unwrap().metrics.get("service_ns_mean"));

    let view = judge(&grown(&BY_TAG, 4, usual));
    assert_eq!(verdicts(&view), ["does not grow", "grows in proportion", "does not grow"]);
    let redis = curve(&view, "redis", "clean");
    assert_eq!(redis.grows, "records_of_tag");
    let of_tag: Vec<f64> = redis.points.iter().map(|p| p.records_of_tag.unwrap().round()).collect();
    assert_eq!(of_tag, [10.0, 100.0, 1000.0], "in rising order, whatever the study's");
}

#[test]
fn sizes_are_compared_separately() {
    let view = judge(&grown(&BY_RECORDS, 4, usual));
    let places: Vec<_> =
        view.comparisons.iter().map(|c| (c.workload.as_str(), c.operation.as_str())).collect();
    let sizes = ["by-size/2000x200", "by-size/5000x500", "by-size/20000x2000"];
    let expected: Vec<_> = sizes.iter().flat_map(|s| [(*s, "read"), (*s, "clean")]).collect();
    assert_eq!(places, expected);
    assert_eq!(view.asked.generation.keys().collect::<Vec<_>>(), ["by-size"]);
}

#[test]
fn only_blocks_with_all_sizes_have_a_slope() {
    // A block without the largest size would have a different slope.
    let bent: Cost = |_, _, records, _| if records < 6_000.0 { 1e4 } else { 1e3 * records };
    let whole = judge(&grown(&BY_RECORDS, 3, bent));
    let mut recorded = grown(&BY_RECORDS, 4, bent);
    let is_missing = |t: &Trial| t.block == 3 && t.cell.contains("20000x");
    recorded.trials.retain(|t| !is_missing(t));
    let slope = |view: &View| curve(view, "redis", "read").slope;
    assert_eq!(slope(&judge(&recorded)), slope(&whole));
    // If no block has that size, the curve consists of the others.
    recorded.trials.retain(|t| !t.cell.contains("20000x"));
    let view = judge(&recorded);
    assert_eq!(curve(&view, "redis", "read").points.len(), 2);
    assert_eq!(curve(&view, "redis", "read").verdict.name(), "does not grow");
    recorded.trials.retain(|t| !t.cell.contains("5000x"));
    let view = judge(&recorded);
    let alone = curve(&view, "redis", "read");
    assert_eq!((alone.points.len(), alone.slope, alone.verdict.name()), (1, None, "undecided"));
    let part = part(&text::render(&view, 80, false));
    let is_alone = |l: &str| l.contains(" – ") && l.ends_with("undecided");
    assert_eq!(part.lines().filter(|l| is_alone(l)).count(), 4, "{part}");
}

#[test]
fn fewer_than_three_blocks_have_a_slope_and_decide_nothing() {
    let view = judge(&grown(&BY_RECORDS, 1, usual));
    let files = curve(&view, "files", "clean");
    assert_eq!((files.slope.unwrap().lo, files.verdict.name()), (None, "undecided"));
    let view = judge(&grown(&BY_RECORDS, 2, usual));
    assert!(curve(&view, "files", "clean").slope.unwrap().lo.is_some());
    assert_eq!(verdicts(&view), ["undecided"; 3]);
}

#[test]
fn meaningless_bounds_of_a_slope_have_no_digits() {
    let mut view = judge(&grown(&BY_RECORDS, 4, usual));
    let slope = |center, lo, hi| Some(Value::new(center, Some(lo), Some(hi)));
    view.growth[0].slope = slope(0.5, -3_291.4, 48_129.3);
    view.growth[1].slope = slope(0.5, -12.345, 45.678);
    for output in [text::render(&view, 120, false), markdown::render(&view)] {
        let output = output.replace('\\', "").replace("&lt;", "<").replace("&gt;", ">");
        assert!(
            output.contains("0.50 [<-100, >100]") && output.contains("0.50 [-12, 46]"),
            "{output}"
        );
    }
}

/// With few records files clean faster, with many Redis.
fn crossing(target: &str, operation: &str, records: f64, _: f64) -> f64 {
    match (operation, target) {
        ("read", _) => 20e3,
        (_, "files") => 100.0 * records,
        _ => 3e5,
    }
}

#[test]
fn advice_uses_the_largest_size_and_names_it() {
    let row = AdviceRow {
        shop: "Shopware".into(),
        size: "small".into(),
        factory: "files".into(),
        source: vec!["redis".into()],
        second: None,
        targets: Vec::new(),
    };
    let advice = Advice {
        weights: [("clean", 9.0), ("read", 1.0)].map(|(o, w)| (o.to_string(), w)).into(),
        sizes: [("small".to_string(), ShopSize::Clients(4))].into(),
        rows: vec![row],
        notes: Vec::new(),
    };
    let advised = |sizes: &[(u64, u64)], without: &str| {
        let mut recorded = grown(sizes, 4, crossing);
        recorded.header.plan.advice = Some(advice.clone());
        recorded.trials.retain(|t| without.is_empty() || !t.cell.contains(without));
        let view = judge(&recorded);
        let recommended = view.advised.advice[0].recommended.clone().unwrap();
        (recommended, view.advised.rankings[0].workload.clone(), view.advised.advice_basis.unwrap())
    };
    let (recommended, workload, basis) = advised(&BY_RECORDS, "");
    assert_eq!((&*recommended, &*workload), ("redis", "by-size/20000x2000"));
    let named = "on profile by-size/20000x2000 (the largest size measured: 20,000 records with \
                 2,000 tags), weighted read 1, clean 9;";
    assert!(basis.contains(named), "{basis}");
    let (recommended, workload, basis) = advised(&BY_RECORDS, "/20000x");
    assert_eq!((&*recommended, &*workload), ("redis", "by-size/5000x500"));
    assert!(basis.contains("5,000 records with 500 tags"), "{basis}");
    let (_, workload, _) = advised(&BY_TAG, "");
    assert_eq!(workload, "by-size/20000x150", "the tag with the most records");
}

#[test]
fn growth_is_in_every_output() {
    let view = judge(&grown(&BY_RECORDS, 4, usual));
    insta::assert_snapshot!(part(&text::render(&view, 100, false)));
    insta::assert_snapshot!(part(&text::render(&view, 80, false)));
    for columns in [80, 100] {
        let part = part(&text::render(&view, columns, false));
        assert!(part.lines().all(|line| line.chars().count() <= columns), "{part}");
    }
    let view_by_tag = judge(&grown(&BY_TAG, 4, usual));
    let title = "by-size, 4 clients: 10, 100 and 1000 records of a tag among 20000\n";
    assert!(text::render(&view_by_tag, 100, false).contains(title));
    let markdown = markdown::render(&view);
    assert!(markdown.contains("## Growth of the cost\n\nby-size, 4 clients: 2000, 5000"));
    let line = markdown.lines().find(|l| l.starts_with("| clean | files | 5") && l.contains("→"));
    assert!(line.is_some_and(|l| l.ends_with("| grows in proportion |")), "{markdown}");
    let csv = csv::render(&view);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].contains(",grows,size,slope,slope_lo,slope_hi,growth,"), "{}", lines[0]);
    let of_files = |l: &&&str| l.contains("by-size/5000x500,4,false,clean,files,");
    let line = lines.iter().find(of_files).unwrap();
    assert!(line.contains(",records,5000,") && line.contains(",grows in proportion,"), "{line}");
    let json: serde_json::Value = serde_json::from_str(&json::render(&view)).unwrap();
    assert_eq!(json["growth"][0]["points"][0]["records"], 2_000);
}

/// The section of a terminal's text.
fn part(text: &str) -> String {
    let from = text.find("Growth of the cost").unwrap();
    text[from..].split("\n\n").next().unwrap().into()
}

#[test]
fn without_sizes_there_is_no_growth_section() {
    let view = judge(&run(&["files", "redis"], 3, |_, _, _| 10_000.0));
    assert!(view.growth.is_empty() && !json::render(&view).contains("\"growth\""));
    assert!(!text::render(&view, 100, false).contains("Growth"));
    let table = csv::render(&view);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let at = lines[0].iter().position(|column| *column == "grows").unwrap();
    assert!(lines[1..].iter().all(|line| line[at..at + 6].iter().all(|field| field.is_empty())));
}
