//! Two runs next to each other: the same cells, the ratio of what they gave, and every condition
//! in which the runs differ.
//!
//! Runs share no blocks, so nothing is paired. The interval of the ratio is recovered from those
//! of the two values on logarithms (method of variance estimates recovery: Zou and Donner,
//! Statistics in Medicine 27 (2008) 1693, for a difference of independent estimates).

use stats::Doubt;
use std::collections::BTreeMap;

use crate::show;
use crate::standings::standings;
use crate::text::facts;
use crate::text::table::{Line, Paint, Table, paragraph};
use crate::view::{Row, TargetView, Value, View};

/// Columns of the report's prose.
const COLUMNS: usize = 100;

/// Two views as text: what differs in the conditions, then a line for each row that both have
/// with the ratio of the second run to the first. A page row is compared by its service time.
pub fn render(a: &View, b: &View) -> String {
    let mut text = format!("A: {}, {}\n", a.validity.heading(), facts(a));
    text += &format!("B: {}, {}\n", b.validity.heading(), facts(b));
    let differences = differences(a, b);
    if !differences.is_empty() {
        text += "\nThe runs differ in more than time:\n";
        text.extend(differences.iter().map(|d| paragraph("  ! ", 4, d, COLUMNS)));
    }
    let pairs: Vec<(&Row, &Row)> = ordered(a)
        .into_iter()
        .filter_map(|row| Some((row, b.cells.iter().find(|r| same_row(row, r))?)))
        .collect();
    if pairs.is_empty() {
        return text + "\nThe runs have no cell in common.\n";
    }
    let zone = a.equivalence_zone.max(b.equivalence_zone);
    text.push('\n');
    text += &table(&pairs, zone).render(Paint { on: false });
    text += &format!(
        "\nB by A: above 1, B is the faster. Within {} of 1 counts as equal. Each row is judged \
         by itself: of 20 rows\nwithout any difference, one may look like one.\n",
        show::percent(zone)
    );
    text += &left_out("A", a, b);
    text += &left_out("B", b, a);
    text
}

/// Rows in the order in which they are shown.
fn ordered(view: &View) -> Vec<&Row> {
    let tables = standings(view);
    let groups = tables.iter().flat_map(|t| &t.groups);
    groups.flat_map(|g| &g.standings).map(|s| s.row).collect()
}

fn same_row(a: &Row, b: &Row) -> bool {
    a.target == b.target
        && a.workload == b.workload
        && a.operation == b.operation
        && a.load == b.load
}

fn left_out(name: &str, view: &View, other: &View) -> String {
    let alone = |row: &&Row| !other.cells.iter().any(|r| same_row(row, r));
    match view.cells.iter().filter(alone).count() {
        0 => String::new(),
        1 => format!("1 row is in {name} alone.\n"),
        n => format!("{n} rows are in {name} alone.\n"),
    }
}

fn table(pairs: &[(&Row, &Row)], zone: f64) -> Table {
    let mut lines = Vec::new();
    let mut place = None;
    for (a, b) in pairs {
        if place != Some((&a.workload, &a.load)) {
            place = Some((&a.workload, &a.load));
            lines.push(Line::Heading(format!("{}, {}", a.workload, a.load)));
        }
        lines.push(line(a, b, zone));
    }
    let header = vec!["  operation", "target", "A", "B", "B by A", "verdict"];
    Table { header, right: &[], gap: 2, lines }
}

fn line(a: &Row, b: &Row, zone: f64) -> Line {
    let by_time = a.compared_by != "rate_per_s";
    let (Some(one), Some(two)) = (a.metrics.get(&a.compared_by), b.metrics.get(&a.compared_by))
    else {
        let none = String::from("–");
        let verdict = String::from("undecided");
        let cells = [&a.operation, &a.target, &none, &none, &none, &verdict].map(Clone::clone);
        return Line::Cells(cells.to_vec(), false);
    };
    let shown = |v: &Value| if by_time { show::ns(v.center) } else { show::rate_value(v) };
    let ratio = if by_time { ratio(one, two) } else { ratio(two, one) };
    let verdict = verdict(&ratio, zone, a.blocks.min(b.blocks));
    let cells = vec![
        format!("  {}", a.operation),
        a.target.clone(),
        shown(one),
        shown(two),
        show::ratio_value(&ratio),
        verdict.into(),
    ];
    Line::Cells(cells, matches!(verdict, "faster" | "slower"))
}

/// The ratio of two independent values; without an interval where either has none.
pub(crate) fn ratio(above: &Value, below: &Value) -> Value {
    let center = above.center / below.center;
    let (Some(one), Some(two)) = (show::bounds(above), show::bounds(below)) else {
        return Value { center, lo: None, hi: None };
    };
    let down = (above.center / one.0).ln().hypot((two.1 / below.center).ln());
    let up = (one.1 / above.center).ln().hypot((below.center / two.0).ln());
    Value { center, lo: Some(center * (-down).exp()), hi: Some(center * up.exp()) }
}

/// The verdict of one ratio by itself.
fn verdict(ratio: &Value, zone: f64, blocks: u32) -> &'static str {
    let Some((lo, hi)) = show::bounds(ratio) else { return "undecided" };
    let edge = 1.0 + zone;
    if Doubt::about(blocks as usize).is_some() {
        "undecided"
    } else if lo > edge {
        "faster"
    } else if hi < 1.0 / edge {
        "slower"
    } else if lo >= 1.0 / edge && hi <= edge {
        "equal"
    } else {
        "undecided"
    }
}

/// One sentence for each condition that is not the same.
fn differences(a: &View, b: &View) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |name: &str, one: &str, two: &str| {
        if one != two {
            found.push(format!("{name}: A {}, B {}", named(one), named(two)));
        }
    };
    check("study", &a.study, &b.study);
    check("scale", &a.scale, &b.scale);
    check("cachedyno", &a.tool, &b.tool);
    check("validity", a.validity.heading(), b.validity.heading());
    for target in &a.targets {
        if let Some(twin) = b.targets.iter().find(|t| t.name == target.name) {
            target_differences(target, twin, &mut check);
        }
    }
    let facts = |view: &View| -> BTreeMap<(String, String), String> {
        let facts = view.conditions.facts.iter();
        facts.map(|c| ((c.group.clone(), c.name.clone()), c.value.clone())).collect()
    };
    let (one, two) = (facts(a), facts(b));
    let keys: std::collections::BTreeSet<_> = one.keys().chain(two.keys()).collect();
    for key in keys {
        let value = |facts: &BTreeMap<_, String>| facts.get(key).cloned().unwrap_or_default();
        check(&format!("{} {}", key.0, key.1), &value(&one), &value(&two));
    }
    found
}

fn target_differences(a: &TargetView, b: &TargetView, check: &mut impl FnMut(&str, &str, &str)) {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    check(&format!("version of {}", a.name), &text(&a.product), &text(&b.product));
    check(&format!("place of {}", a.name), &a.place, &b.place);
    let keys: std::collections::BTreeSet<_> = a.settings.keys().chain(b.settings.keys()).collect();
    for key in keys {
        let value = |t: &TargetView| t.settings.get(key).cloned().unwrap_or_default();
        check(&format!("setting {key} of {}", a.name), &value(a), &value(b));
    }
}

/// A value in backticks, or that there is none.
fn named(value: &str) -> String {
    if value.is_empty() { "nothing".into() } else { format!("`{value}`") }
}
