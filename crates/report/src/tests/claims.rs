//! Claims: each verdict and direction, and claims that cannot be judged.

use model::record::disk_group;
use model::study::claims::{Conditions, Extreme};
use model::study::{Claim, Expectation, Source};
use model::{Condition, DiskLimit, ErrorClass, Failure, Layout, Load};

use crate::fixture::{Rates, ratio, run, sessions, usual};
use crate::recorded::Recorded;
use crate::view::{ClaimVerdict, ClaimView};
use crate::{judge, markdown, text};

fn judged(claim: Claim, blocks: u32, rates: Rates) -> ClaimView {
    let mut recorded = run(&["files", "redis", "mysql"], blocks, rates);
    recorded.header.plan.claims = vec![claim];
    let mut claims = judge(&recorded).claims;
    assert_eq!(claims.len(), 1);
    claims.remove(0)
}

fn lowest(target: &str) -> Claim {
    Claim {
        id: "last".into(),
        text: "is the slowest".into(),
        source: "a test".into(),
        source_value: None,
        profiles: Vec::new(),
        conditions: Conditions::default(),
        expect: Expectation::Lowest(Extreme {
            target: target.into(),
            operations: vec!["read".into(), "write".into()],
            clients: vec![1, 8],
            among: Vec::new(),
        }),
    }
}

#[test]
fn a_ratio_within_the_range_is_confirmed() {
    let claim = judged(ratio("redis", "files", "read", 8, (1.9, 2.3)), 5, usual);
    assert_eq!(claim.verdict.name(), "confirmed");
    assert_eq!(claim.note, "holds: redis is 2.10× as fast as files");
    assert_eq!(claim.expected, "redis / files from 1.90× to 2.30× (read, 8 clients)");
    let value = claim.measured.unwrap();
    assert!(value.lo.unwrap() <= value.center && value.center <= value.hi.unwrap());
    assert_eq!(claim.workload.as_deref(), Some("steady"));
}

#[test]
fn a_ratio_is_of_the_loads_of_its_profile_however_they_send() {
    let sends: [fn(Load) -> Load; 2] = [|load| load.pipelined(50), Load::reconnecting];
    for send in sends {
        let mut recorded = run(&["files", "redis", "mysql"], 5, usual);
        recorded.header.plan.claims = vec![ratio("redis", "files", "read", 8, (1.9, 2.3))];
        for cell in &mut recorded.header.plan.cells {
            cell.load = send(cell.load.clone());
        }
        let claim = judge(&recorded).claims.remove(0);
        assert_eq!(claim.verdict.name(), "confirmed", "{}", claim.note);
    }
}

#[test]
fn an_open_range_and_the_reversed_pair_are_judged_too() {
    let open = judged(ratio("redis", "files", "read", 8, (1.5, f64::INFINITY)), 5, usual);
    assert_eq!(
        (open.verdict.name(), open.expected.contains("at least 1.50×")),
        ("confirmed", true)
    );
    let turned = judged(ratio("files", "redis", "read", 8, (0.4, 0.55)), 5, usual);
    assert_eq!(turned.verdict.name(), "confirmed");
    assert!((turned.measured.unwrap().center - 1.0 / 2.1).abs() < 0.005);
}

#[test]
fn a_refuted_claim_says_what_is_true() {
    let note = |a: &str, b: &str, min: f64, max: f64| {
        let claim = judged(ratio(a, b, "read", 8, (min, max)), 5, usual);
        assert_eq!(claim.verdict.name(), "refuted");
        claim.note
    };
    assert_eq!(
        note("redis", "files", 1.13, 1.53),
        "direction confirmed: redis is faster, but by 2.10× rather than at most 1.53×"
    );
    assert_eq!(
        note("redis", "files", 3.0, f64::INFINITY),
        "direction confirmed: redis is faster, but by 2.10× rather than at least 3.00×"
    );
    assert_eq!(note("files", "redis", 1.2, 3.0), "opposite direction: redis is faster here, 2.10×");
    assert_eq!(
        note("files", "redis", 0.7, 0.9),
        "direction confirmed: redis is faster, but by 2.10× rather than at most 1.43×"
    );
    assert_eq!(note("redis", "files", 0.9, 1.1), "not equal here: redis is 2.10× as fast as files");
}

#[test]
fn an_interval_across_an_edge_or_too_few_blocks_are_undecided() {
    let edge = judged(ratio("redis", "files", "read", 8, (2.1, 3.0)), 5, usual);
    assert_eq!(edge.verdict.name(), "undecided");
    assert_eq!(edge.note, "the interval includes 2.10×: more blocks narrow it");
    for (blocks, doubt) in [(1, "1 block; 3 are needed"), (2, "2 blocks; 3 are needed")] {
        // Nearly equal blocks: only their number matters.
        for claim in [
            ratio("redis", "files", "read", 8, (0.01, 1e6)),
            ratio("redis", "files", "read", 8, (1e5, f64::INFINITY)),
        ] {
            let few = judged(claim, blocks, usual);
            assert_eq!((few.verdict.name(), few.note.as_str()), ("undecided", doubt));
            assert!(few.measured.is_some());
        }
        let last = judged(lowest("mysql"), blocks, apart);
        assert_eq!(last.verdict.name(), "undecided");
        let start = format!("cannot be decided ({doubt}) in all 8 cases; worst case: ");
        assert!(last.note.starts_with(&start), "{}", last.note);
    }
    assert_eq!(judged(lowest("mysql"), 3, apart).verdict.name(), "confirmed");
}

/// Stores so different that even the intervals over two blocks do not overlap.
fn apart(target: &str, operation: &str, clients: u32) -> f64 {
    usual(target, operation, clients) * if target == "mysql" { 1e-4 } else { 1.0 }
}

#[test]
fn a_failed_measurement_is_not_called_unmeasured() {
    let mut recorded = run(&["files", "redis"], 3, usual);
    recorded.header.plan.claims = vec![
        ratio("redis", "files", "read", 8, (1.0, 2.0)),
        ratio("redis", "files", "read", 1, (1.0, 2.0)),
    ];
    let fail = |recorded: &mut Recorded, cells: &[&str]| {
        for trial in recorded.trials.iter_mut().filter(|t| cells.contains(&t.cell.as_str())) {
            let message = "the server died".to_string();
            trial.failure = Some(Failure { class: ErrorClass::Closed, message });
        }
        judge(recorded)
            .claims
            .into_iter()
            .map(|c| (c.verdict.to_string(), c.note))
            .collect::<Vec<_>>()
    };
    let verdicts = fail(&mut recorded, &["redis/steady/8"]);
    let of_load = "read with 8 clients on redis has no result; see the failed trials";
    assert_eq!(verdicts[0], ("not run".into(), of_load.into()));
    assert_ne!(verdicts[1].0, "not run");
    let verdicts = fail(&mut recorded, &["redis/steady/1"]);
    let of_target = "redis has no result; see the failed trials";
    assert_eq!(verdicts[1], ("not run".into(), of_target.into()));
    let verdicts = fail(&mut recorded, &["files/steady/1", "files/steady/8"]);
    let of_profile = "profile steady has no result; see the failed trials";
    let not_run = ("not run".to_string(), of_profile.to_string());
    assert_eq!(verdicts, [not_run.clone(), not_run]);
}

#[test]
fn a_claim_without_measurements_is_not_judged() {
    let why = |claim: Claim| {
        let view = judged(claim, 3, usual);
        assert_eq!((view.verdict.name(), view.measured), ("not run", None));
        view.note
    };
    assert_eq!(why(ratio("valkey", "files", "read", 8, (1.0, 2.0))), "valkey was not measured");
    assert!(why(ratio("redis", "files", "read", 4, (1.0, 2.0))).contains("read with 4 clients"));
    assert!(why(ratio("redis", "files", "delete", 8, (1.0, 2.0))).contains("delete with 8"));
}

#[test]
fn without_a_plain_profile_a_claim_is_listed_as_not_run() {
    let mut recorded = run(&["files", "redis"], 3, usual);
    recorded.header.plan.claims = vec![ratio("redis", "files", "read", 8, (1.0, 2.0))];
    for cell in &mut recorded.header.plan.cells {
        sessions(cell).layout = Layout::Page;
    }
    let claims = judge(&recorded).claims;
    assert_eq!((claims[0].verdict.name(), &claims[0].workload), ("not run", &None));
}

#[test]
fn the_slowest_is_judged_in_every_case_by_the_closest() {
    let holds = judged(lowest("mysql"), 5, usual);
    assert_eq!(holds.verdict.name(), "confirmed");
    assert!(holds.note.starts_with("holds in all 8 cases; closest case: "), "{}", holds.note);
    assert!((holds.measured.unwrap().center - 0.5).abs() < 0.01, "{:?}", holds.measured);
    let fails = judged(lowest("files"), 5, usual);
    assert_eq!(fails.verdict.name(), "refuted");
    assert!((fails.measured.unwrap().center - 4.0).abs() < 0.05, "{:?}", fails.measured);
    let counted = "false in 4 of 8 cases, holds in ";
    assert!(fails.note.starts_with(counted), "{}", fails.note);
    let surest =
        "strongest case: read at 8 concurrent against mysql, where files has 4.00× its rate";
    assert!(fails.note.ends_with(surest), "{}", fails.note);
    assert_eq!(judged(lowest("mysql"), 1, usual).verdict.name(), "undecided");
    assert_eq!(judged(lowest("valkey"), 5, usual).verdict.name(), "not run");
}

/// Redis is ahead of files by slightly more than the equivalence zone.
fn near(target: &str, operation: &str, clients: u32) -> f64 {
    let base = usual("files", operation, clients);
    base * if target == "redis" { 1.05 } else { 1.0 }
}

#[test]
fn a_claim_shows_no_difference_that_the_table_leaves_undecided() {
    let mut recorded = run(&["files", "redis", "mysql"], 3, near);
    let highest = Claim {
        expect: Expectation::Highest(Extreme {
            target: "redis".into(),
            operations: vec!["read".into()],
            clients: vec![8],
            among: Vec::new(),
        }),
        ..lowest("redis")
    };
    recorded.header.plan.claims = vec![
        ratio("redis", "files", "read", 8, (1.0, 2.0)),
        highest,
        ratio("redis", "files", "read", 8, (0.8, 1.25)),
        ratio("redis", "files", "read", 8, (1.5, 2.0)),
        lowest("files"),
    ];
    let view = judge(&recorded);
    let pair = view.comparisons.iter().find(|c| {
        (c.a.as_str(), c.b.as_str(), c.operation.as_str()) == ("files", "redis", "read")
            && c.load.clients == 8
    });
    let pair = pair.unwrap();
    let family = "not significant after correcting for 18 comparisons: run more blocks";
    assert_eq!((pair.verdict.name(), pair.doubt.as_deref()), ("undecided", Some(family)));
    // Claims of equality or of at most 1.5 times do not need a significant difference.
    let verdicts = ["undecided", "undecided", "confirmed", "refuted"];
    for (claim, verdict) in view.claims.iter().zip(verdicts) {
        assert_eq!(claim.verdict.name(), verdict, "{claim:#?}");
        let end = format!(" is undecided: {family}");
        assert!(claim.note.contains("in the table redis against "), "{}", claim.note);
        assert!(claim.note.ends_with(&end), "{}", claim.note);
    }
    assert!(!view.claims[4].note.contains("in the table"), "{:#?}", view.claims[4]);
    for output in [text::render(&view, 140, false), markdown::render(&view)] {
        let words: Vec<&str> = output.split_whitespace().collect();
        let count = words.join(" ").matches(&format!("undecided: {family}")).count();
        assert_eq!(count, 5, "once below the tables, and at four claims: {output}");
    }
}

#[test]
fn the_slowest_measured_target_is_judged_and_missing_ones_are_named() {
    let mut recorded = run(&["files", "redis", "mysql"], 5, usual);
    recorded.header.plan.claims = vec![lowest("mysql")];
    recorded.trials.retain(|t| !t.cell.starts_with("redis"));
    let message = "not on the path".to_string();
    recorded.targets[1].unavailable = Some(Failure { class: ErrorClass::Missing, message });
    let claim = &judge(&recorded).claims[0];
    assert_eq!(claim.verdict.name(), "confirmed");
    assert!(claim.note.ends_with("without redis, which has no result"), "{}", claim.note);
}

#[test]
fn a_claim_is_judged_on_its_profiles_and_shows_the_sources_figure() {
    let mut recorded = run(&["files", "redis", "mysql"], 3, usual);
    let bound = |profile: &str| Claim {
        profiles: vec![profile.into()],
        source_value: Some("33 %".into()),
        ..lowest("mysql")
    };
    recorded.header.plan.claims = vec![bound("steady"), bound("cold")];
    let view = judge(&recorded);
    let [judged, other] = &view.claims[..] else { panic!("{:?}", view.claims) };
    assert_eq!(
        (judged.workload.as_deref(), judged.verdict),
        (Some("steady"), ClaimVerdict::Confirmed)
    );
    assert_eq!((other.workload.as_deref(), other.verdict), (None, ClaimVerdict::NotRun));
    assert_eq!(other.note, "it is about profile `cold`, not measured here: `--set profile=cold`");
    let text = text::render(&view, 200, false);
    assert!(text.contains("(the source's figure: 33 %)"), "{text}");
}

#[test]
fn a_claim_about_disks_needs_two_of_them() {
    let mut recorded = run(&["files", "redis"], 3, usual);
    let conditions = Conditions { different_disks: true, ..Conditions::default() };
    let claim = Claim { conditions, ..ratio("redis", "files", "read", 8, (1.9, 2.3)) };
    recorded.header.plan.claims = vec![claim];
    let disk = |target: &str, device: &str| Condition {
        group: disk_group(target),
        name: "device".into(),
        value: device.into(),
        warning: None,
    };
    recorded.header.conditions.facts.push(disk("files", "/dev/sda1"));
    recorded.header.conditions.facts.push(disk("redis", "/dev/sda1"));
    let note = judge(&recorded).claims[0].note.clone();
    assert!(note.contains("redis and files are both on /dev/sda1"), "{note}");
    let mut slow = recorded.clone();
    slow.header.plan.targets[1].disk_limit = DiskLimit::parse("20MiB/s");
    let claim = &judge(&slow).claims[0];
    assert_ne!(claim.verdict, ClaimVerdict::NotRun, "{}", claim.note);
    assert!(claim.note.contains("the disk of redis is throttled by the kernel"), "{}", claim.note);
    recorded.header.conditions.facts.pop();
    recorded.header.conditions.facts.push(disk("redis", "/dev/sdb1"));
    let claim = &judge(&recorded).claims[0];
    assert_ne!(claim.verdict, ClaimVerdict::NotRun, "{}", claim.note);
    assert!(!claim.note.contains("throttled"), "{}", claim.note);
}

#[test]
fn the_sources_conditions_are_beside_those_of_the_run() {
    let mut recorded = run(&["files", "redis"], 3, usual);
    recorded.header.plan.source = Source {
        publication: "a blog".into(),
        cores: Some("4".into()),
        duration: Some("2 hours".into()),
        unmatched: vec!["the clients were written in PHP".into()],
        ..Source::default()
    };
    recorded.header.conditions.facts.push(Condition {
        group: "cpu".into(),
        name: "CPUs".into(),
        value: "2 online".into(),
        warning: None,
    });
    let text = markdown::render(&judge(&recorded));
    assert!(text.contains("## The source's conditions"), "{text}");
    assert!(text.contains("| cores | 4 | 2 online |"), "{text}");
    assert!(
        text.contains("| duration | 2 hours | 4 min 5 s (standard scale, 3 blocks) |"),
        "{text}"
    );
    assert!(text.contains("- not matched: the clients were written in PHP"), "{text}");
}
