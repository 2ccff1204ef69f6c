//! The text of the shipped application-cache study fits the terminal.

use model::{
    Choices, Condition, Emptied, ErrorClass, Fact, Failure, Fill, MemoryUse, Scale, Study, Workload,
};

use crate::fixture::{calibration, recorded};
use crate::recorded::Recorded;
use crate::{judge, text};

const APP_CACHE: &str = include_str!("../../../../studies/app-cache.toml");

/// Rates from a few to hundreds of thousands per second.
fn rates(target: &str, operation: &str, _: u32) -> f64 {
    match (target, operation) {
        ("zend-file", "clean") => 4.7,
        (_, "clean") => 1_310.0,
        ("zend-file", _) => 402_000.0,
        _ => 93_600.0,
    }
}

/// All profiles of the study on all its stores, with every kind of result and note.
pub(super) fn everything() -> Recorded {
    let plan = Study::parse("app-cache", APP_CACHE).unwrap().plan(&Choices {
        sets: vec![
            ("profile".into(), "all".into()),
            ("clients".into(), "4,16".into()),
            ("memory_limit".into(), "256MiB".into()),
        ],
        control: true,
        ..Choices::new(Scale::Quick, 7)
    });
    let mut recorded = recorded(plan.unwrap(), 4, rates);
    for trial in &mut recorded.trials {
        let fact =
            |(name, value): (&str, f64)| Fact { name: name.into(), value, source: "store".into() };
        trial.facts = [
            (Fact::STORE_BYTES, 83_886_080.0),
            (Fact::SERVER_MEMORY_BYTES, 41_943_040.0),
            (Fact::STALE_MEMBERS, 134_217.0),
        ]
        .map(fact)
        .into();
        trial.emptied = Some(Emptied::Files);
        trial.memory = Some(MemoryUse {
            limit_bytes: 256 << 20,
            peak_bytes: Some(240 << 20),
            page_cache_bytes: 200 << 20,
            oom_kills: 0,
            swap: None,
        });
        for phase in &mut trial.points {
            let whole = phase.operations[0].clone();
            let parts: &[&str] = match phase.phase.as_str() {
                "list" | "mixed" => &["read", "write", "clean"],
                _ => &[],
            };
            phase.operations.extend(parts.iter().map(|name| {
                let mut part = whole.clone();
                part.operation = (*name).into();
                part
            }));
            for operation in &mut phase.operations {
                // An interval wider than the rate, as on a noisy machine.
                operation.rate_per_s *= [0.4, 1.0, 2.5, 1.1][trial.block as usize % 4];
                operation.calls_rate_per_s = Some(operation.rate_per_s * 1.5);
                let counts = &mut operation.counts;
                (counts.miss, counts.lost, counts.stale) = (1_234, 123, 12);
                (counts.error, counts.wrong) = (3, 1);
                (counts.round_trips, counts.commands) = (87_654_321, 187_654_321);
                counts.files = 387_654;
            }
        }
    }
    let last = recorded.trials.last_mut().unwrap();
    let message = "the memcached server died (was killed by signal 9 (SIGKILL)); a client saw: \
                   the connection was closed while an answer was waited for";
    last.failure = Some(Failure { class: ErrorClass::Closed, message: message.into() });
    recorded.header.calibration = Some(calibration());
    recorded.header.conditions.facts = vec![Condition {
        group: "memory".into(),
        name: "transparent huge pages".into(),
        value: "always".into(),
        warning: Some("forks stall the server; set `madvise`".into()),
    }];
    for cell in &mut recorded.header.plan.cells {
        if let Workload::AppCache(cache) = &mut cell.workload {
            cache.fill = Fill::Fast;
        }
    }
    recorded
}

/// Lines wider than the terminal, except those with a single long word.
pub(super) fn too_wide(text: &str, columns: usize) -> Vec<&str> {
    let can_break = |line: &str| line.trim_start_matches([' ', '-', '!']).contains(' ');
    text.lines().filter(|l| l.chars().count() > columns && can_break(l)).collect()
}

#[test]
fn every_section_fits_the_terminal() {
    let view = judge(&everything());
    let whole = text::render(&view, 80, false);
    for section in [
        "weighted, 4 clients",
        "by-records/10000x1000, 16 clients",
        "Not as expected",
        "Effort of an operation",
        "Growth of the cost",
        "Failed trials",
        "Claims",
        "Disturbances",
        "Conditions",
        "Notes",
    ] {
        assert!(whole.lines().any(|l| l.starts_with(section)), "no {section}: {whole}");
    }
    for columns in [80, 100, 140] {
        let text = text::render(&view, columns, false);
        let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > columns).collect();
        assert!(wide.is_empty(), "at {columns}: {wide:#?}");
    }
    for columns in [40, 60] {
        let text = text::render(&view, columns, false);
        let wide = too_wide(&text, columns);
        assert!(wide.is_empty(), "at {columns}: {wide:#?}");
    }
}

#[test]
fn a_narrow_table_has_its_first_column_above_the_values() {
    let text = text::render(&judge(&everything()), 80, false);
    let mut effort = text.lines().skip_while(|l| *l != "Effort of an operation").skip(1);
    let header: Vec<&str> = effort.next().unwrap().split_whitespace().collect();
    assert_eq!(header[..2], ["target", "calls/s"], "{text}");
    assert_eq!(effort.next(), Some("weighted read"));
    assert!(effort.next().unwrap().starts_with("  zend-file "), "{text}");
}
