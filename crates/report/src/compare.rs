//! Two runs next to each other: what both measured, the ratio of what they gave, and every
//! condition in which the runs differ.
//!
//! Runs share no blocks, so nothing is paired. The interval of the ratio is recovered from those
//! of the two values on logarithms (method of variance estimates recovery: Zou and Donner,
//! Statistics in Medicine 27 (2008) 1693, for a difference of independent estimates).
//!
//! - here: ratio, verdict, and how they are shown.
//! - `rows`, `ramps`, `searches`: what the runs have in common of each.
//! - `conditions`: in what they differ besides.

mod conditions;
mod ramps;
mod rows;
mod searches;

use stats::Doubt;

use crate::show;
use crate::text::table::{Line, Paint, Table, paragraph};
use crate::text::{facts, painted};
use crate::view::{Value, View};
use conditions::differences;

/// Two views as text for a terminal of `columns` columns, with or without colours: what differs in
/// the conditions, then rows of results, ramps and searches that both have, each with the ratio by
/// which the second run is the better. What colour says, words say as well.
pub fn render(a: &View, b: &View, columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let mut parts = vec![heading("A", a, columns, paint) + &heading("B", b, columns, paint)];
    let differences = differences(a, b);
    if !differences.is_empty() {
        let lines: String = differences.iter().map(|d| paragraph("  ! ", 4, d, columns)).collect();
        parts.push(paint.title("The runs differ in more than time:", columns) + &lines);
    }
    let kinds = [rows::common(a, b), ramps::common(a, b), searches::common(a, b)];
    let zone = a.equivalence_zone.max(b.equivalence_zone);
    let has_common = kinds.iter().any(|common| !common.groups.is_empty());
    let shown = kinds.iter().filter(|common| !common.groups.is_empty());
    parts.extend(shown.map(|common| common.render(zone, columns, paint)));
    let mut last = if has_common {
        let words = format!(
            "B by A: above 1, B is the better. Within {} of 1 counts as equal. Each line is judged \
             by itself: of 20 without any difference, one may look like one.",
            show::percent(zone)
        );
        paragraph("", 0, &words, columns)
    } else {
        paragraph("", 0, "The runs have nothing in common that can be compared.", columns)
    };
    last.extend(kinds.iter().map(|common| common.left_out(columns)));
    parts.push(last);
    parts.join("\n")
}

fn heading(name: &str, view: &View, columns: usize, paint: Paint) -> String {
    let word = view.validity.heading();
    let text = format!("{word}, {}", facts(view));
    // The paragraph is set without colour, so that its width is that of its words.
    let text = paragraph(&format!("{name}: "), 3, &text, columns);
    text.replacen(word, &painted(view.validity, paint), 1)
}

/// What both runs have of one kind.
struct Common {
    /// One and several of that kind.
    names: [&'static str; 2],
    /// Columns that tell what is compared.
    header: &'static [&'static str],
    /// Empty where the runs have nothing of the kind in common.
    groups: Vec<Group>,
    /// What is to be known of the values.
    notes: Vec<String>,
    /// How many only A has, and only B.
    alone: [usize; 2],
}

/// What is compared under one title.
struct Group {
    title: String,
    lines: Vec<Compared>,
}

/// One quantity of both runs.
struct Compared {
    /// What it is, one text a column.
    names: Vec<String>,
    kind: &'static Kind,
    a: Measured,
    b: Measured,
    /// The same of both by wall time, where the clients' own work is left out of the others: a
    /// difference must be one by both.
    by_wall: Option<[Value; 2]>,
    /// Repetitions of the run that has fewer; 0 where nothing can be decided.
    repeated: u32,
}

/// What one run has of a quantity.
#[derive(Clone, Copy)]
struct Measured {
    /// `None` where it was not found.
    value: Option<Value>,
    /// True where it is only the least that may be.
    at_least: bool,
}

/// How a quantity is shown, and which of two is the better.
struct Kind {
    /// With its interval.
    whole: fn(&Value) -> String,
    /// The same in less space.
    short: fn(&Value) -> String,
    less_is_better: bool,
    /// What B is where it is the better, and the worse.
    words: [&'static str; 2],
}

/// Operations a second at a load that is the same for all.
const RATE: Kind = Kind {
    whole: show::rate_value,
    short: show::rate_value_short,
    less_is_better: false,
    words: ["faster", "slower"],
};

/// Mean time of an operation.
const TIME: Kind = Kind {
    whole: |v| show::ns(v.center),
    short: |v| show::ns(v.center),
    less_is_better: true,
    words: ["faster", "slower"],
};

/// The most that a store bears.
const HIGHEST: Kind = Kind { words: ["higher", "lower"], ..RATE };

/// CPU time of an operation.
const COST: Kind = Kind {
    whole: show::ns_value,
    short: show::ns_value_short,
    less_is_better: true,
    words: ["cheaper", "dearer"],
};

impl Kind {
    /// How many times as good the second is.
    fn ratio(&self, one: &Value, two: &Value) -> Value {
        if self.less_is_better { ratio(one, two) } else { ratio(two, one) }
    }
}

impl Common {
    /// All groups with whole intervals, or where one does not fit all with half-widths.
    fn render(&self, zone: f64, columns: usize, paint: Paint) -> String {
        let tight = |group: &Group| Table { gap: 1, ..group.table(self.header, zone, false) };
        let short = self.groups.iter().any(|group| tight(group).width() > columns);
        let shown = |group: &Group| {
            let table = group.table(self.header, zone, short);
            paint.title(&group.title, columns) + &table.fit(paint, columns)
        };
        let notes = self.notes.iter().map(|note| paragraph("  ", 4, note, columns));
        self.groups.iter().map(shown).collect::<Vec<_>>().join("\n") + &notes.collect::<String>()
    }

    fn left_out(&self, columns: usize) -> String {
        let [one, several] = self.names;
        let words = |(run, count): (&str, &usize)| match count {
            0 => String::new(),
            1 => paragraph("", 0, &format!("1 {one} is in {run} alone."), columns),
            n => paragraph("", 0, &format!("{n} {several} are in {run} alone."), columns),
        };
        ["A", "B"].into_iter().zip(&self.alone).map(words).collect()
    }
}

impl Group {
    fn table(&self, names: &[&'static str], zone: f64, short: bool) -> Table {
        let header = [names, &["A", "B", "B by A", "verdict"]].concat();
        let lines = self.lines.iter().map(|compared| compared.line(zone, short)).collect();
        Table { header, right: &[], gap: 2, lines }
    }
}

impl Compared {
    /// Names, both values, ratio and verdict; emphasised where the runs differ.
    fn line(&self, zone: f64, short: bool) -> Line {
        let text = if short { self.kind.short } else { self.kind.whole };
        let shown = |measured: Measured| {
            let known = |value: Value| {
                if !measured.at_least {
                    return text(&value);
                }
                format!("≥ {}", text(&Value::alone(value.lo.unwrap_or(value.center))))
            };
            measured.value.map_or_else(|| "–".into(), known)
        };
        let mut cells = self.names.clone();
        cells.extend([shown(self.a), shown(self.b)]);
        let (Some(one), Some(two)) = (self.a.value, self.b.value) else {
            cells.extend(["–".into(), "undecided".into()]);
            return Line::Cells(cells, false);
        };
        let ratio = self.kind.ratio(&one, &two);
        let by_wall = self.by_wall.map(|[one, two]| self.kind.ratio(&one, &two));
        let verdict = self.verdict(&ratio, zone);
        let holds = by_wall.is_none_or(|ratio| self.verdict(&ratio, zone) == verdict);
        let [better, worse] = self.kind.words;
        let (word, differs) = match if holds { verdict } else { stats::Verdict::Undecided } {
            stats::Verdict::Faster => (better, true),
            stats::Verdict::Slower => (worse, true),
            same => (same.name(), false),
        };
        cells.extend([show::ratio_value(&ratio), word.into()]);
        Line::Cells(cells, differs)
    }

    /// The verdict of one ratio by itself.
    fn verdict(&self, ratio: &Value, zone: f64) -> stats::Verdict {
        let known = Doubt::about(self.repeated as usize).is_none();
        let bounds = ratio.interval().filter(|_| known);
        let Some((lo, hi)) = bounds.filter(|_| !self.a.at_least && !self.b.at_least) else {
            return stats::Verdict::Undecided;
        };
        let edge = 1.0 + zone;
        if lo > edge {
            stats::Verdict::Faster
        } else if hi < 1.0 / edge {
            stats::Verdict::Slower
        } else if lo >= 1.0 / edge && hi <= edge {
            stats::Verdict::Equal
        } else {
            stats::Verdict::Undecided
        }
    }
}

impl Measured {
    /// What was measured as it is.
    fn of(value: Option<Value>) -> Self {
        Self { value, at_least: false }
    }
}

/// By how much a store's CPU time for the same work may differ on a machine that is as fast.
const AS_FAST: f64 = 1.1;

/// That the machine was not as fast in both runs: the same store with the same settings needed more
/// CPU time for the same operations near its limit, where it is as busy in both. Runs with other
/// arguments may have other keys or values.
fn slower([a, b]: [&View; 2], target: &str, costs: [Option<Value>; 2]) -> Option<String> {
    let [one, two] = [a, b].map(|view| view.targets.iter().find(|t| t.name == target));
    let (one, two) = (one?, two?);
    let alike = one.product == two.product && one.settings == two.settings;
    if !alike || of_measuring(a) != of_measuring(b) {
        return None;
    }
    let [cost, other] = costs;
    let by = ratio(&other?, &cost?);
    let (lo, hi) = by.interval()?;
    let (slower, times) = match (lo, hi) {
        (lo, _) if lo > 1.0 => ("B", by.center),
        (_, hi) if hi < 1.0 => ("A", 1.0 / by.center),
        _ => return None,
    };
    (times >= AS_FAST).then(|| {
        format!(
            "the same {target} needed {} the CPU time for each operation in {slower}: the machine \
             was slower there, if nothing else about it changed, and rates may differ by as much \
             for that alone (measure both again, in turn)",
            show::ratio(times)
        )
    })
}

/// Flags that change nothing of what is measured, those with a value and those without.
const OF_OUTPUT: [&str; 4] = ["--seed", "--out", "--format", "--serve"];
const OF_OUTPUT_ALONE: [&str; 2] = ["--quiet", "-q"];

/// A run's arguments as far as they may change what an operation costs.
fn of_measuring(view: &View) -> Vec<&str> {
    let mut rest = view.command.iter().skip(1).map(String::as_str);
    let mut kept = Vec::new();
    while let Some(argument) = rest.next() {
        let name = argument.split_once('=').map_or(argument, |(name, _)| name);
        if OF_OUTPUT.contains(&argument) {
            rest.next();
        } else if !OF_OUTPUT.contains(&name) && !OF_OUTPUT_ALONE.contains(&argument) {
            kept.push(argument);
        }
    }
    kept
}

/// The ratio of two independent values; without an interval where either has none.
pub(crate) fn ratio(above: &Value, below: &Value) -> Value {
    let center = above.center / below.center;
    let (Some(one), Some(two)) = (above.interval(), below.interval()) else {
        return Value::alone(center);
    };
    let down = (above.center / one.0).ln().hypot((two.1 / below.center).ln());
    let up = (one.1 / above.center).ln().hypot((below.center / two.0).ln());
    Value::new(center, Some(center * (-down).exp()), Some(center * up.exp()))
}

/// Pairs of what is the same in both, in A's order, and how many of each have no twin.
fn paired<'a, T>(
    a: &[&'a T],
    b: &[&'a T],
    same: impl Fn(&T, &T) -> bool,
) -> (Vec<(&'a T, &'a T)>, [usize; 2]) {
    let twin = |one: &&'a T| b.iter().find(|two| same(one, two)).map(|two| (*one, *two));
    let pairs: Vec<(&T, &T)> = a.iter().filter_map(twin).collect();
    let alone = b.iter().filter(|two| !a.iter().any(|one| same(one, two))).count();
    let left = a.len() - pairs.len();
    (pairs, [left, alone])
}
