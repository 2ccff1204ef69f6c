//! Common results of two runs, and their table.

use stats::{Doubt, Verdict};
use std::slice;

use crate::show;
use crate::table::{Cell, Column, Line, Table};
use crate::text::table::{Forms, Paint, paragraph};
use crate::view::{Value, View};

/// Common results of one kind.
pub(super) struct Common {
    /// Singular and plural of the kind.
    pub(super) names: [&'static str; 2],
    /// Columns that identify what is compared.
    pub(super) header: &'static [&'static str],
    /// Empty if the runs have nothing of this kind in common.
    pub(super) groups: Vec<Group>,
    /// Notes about the values.
    pub(super) notes: Vec<String>,
    /// Number of results only in A, and only in B.
    pub(super) alone: [usize; 2],
}

/// Results under one title.
pub(super) struct Group {
    pub(super) title: String,
    pub(super) lines: Vec<Compared>,
}

/// A quantity in both runs.
pub(super) struct Compared {
    /// Its name, one text per column.
    pub(super) names: Vec<String>,
    pub(super) kind: &'static Kind,
    pub(super) a: Measured,
    pub(super) b: Measured,
    /// The values by wall time, if the others exclude the clients' own work. A difference must hold
    /// for both.
    pub(super) by_wall: Option<[Value; 2]>,
    /// Repetitions of the run with fewer; 0 if nothing can be decided.
    pub(super) repeated: u32,
}

/// A quantity in one run.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    /// `None` if it was not found.
    pub(super) value: Option<Value>,
    /// True if it is a lower bound.
    pub(super) at_least: bool,
}

/// Format of a quantity, and which of two values is better.
pub(super) struct Kind {
    /// Formats it with its interval.
    whole: fn(&Value) -> String,
    /// Formats it in less space.
    short: fn(&Value) -> String,
    less_is_better: bool,
    /// Words for B if it is better, and if it is worse.
    words: [&'static str; 2],
}

/// Operations per second at the same load.
pub(super) const RATE: Kind = Kind {
    whole: show::rate_value,
    short: show::rate_value_short,
    less_is_better: false,
    words: ["faster", "slower"],
};

/// Mean time of an operation.
pub(super) const TIME: Kind = Kind {
    whole: |v| show::ns(v.center),
    short: |v| show::ns(v.center),
    less_is_better: true,
    words: ["faster", "slower"],
};

/// The highest sustained rate.
pub(super) const HIGHEST: Kind = Kind { words: ["higher", "lower"], ..RATE };

/// CPU time of an operation.
pub(super) const COST: Kind = Kind {
    whole: show::ns_value,
    short: show::ns_value_short,
    less_is_better: true,
    words: ["cheaper", "dearer"],
};

/// Parameters of the judgement.
#[derive(Clone, Copy)]
pub(super) struct Judge {
    /// Ratios within this fraction of 1 are equal.
    pub(super) zone: f64,
    /// Factor that widens intervals for the number of comparisons.
    pub(super) widening: f64,
}

impl Common {
    /// All lines with values in both runs.
    pub(super) fn compared(&self) -> impl Iterator<Item = (&Group, &Compared)> {
        let lines = self.groups.iter().flat_map(|g| g.lines.iter().map(move |line| (g, line)));
        lines.filter(|(_, line)| line.a.value.is_some() && line.b.value.is_some())
    }

    /// Renders all groups with full intervals, or all with half-widths if one does not fit.
    pub(super) fn render(&self, judge: Judge, columns: usize, paint: Paint) -> String {
        let forms =
            |group: &Group| [false, true].map(|is_short| group.table(self.header, judge, is_short));
        let all: Vec<(&Group, [Table; 2])> = self.groups.iter().map(|g| (g, forms(g))).collect();
        let way = |(_, [whole, short]): &(&Group, [Table; 2])| {
            Forms::of(whole, slice::from_ref(short)).fitting(columns).unwrap_or(usize::MAX)
        };
        let common = all.iter().map(way).max().filter(|way| *way != usize::MAX);
        let shown = |(group, [whole, short]): &(&Group, [Table; 2])| {
            let forms = Forms::of(whole, slice::from_ref(short));
            paint.title(&group.title, columns) + &forms.render(common, paint, columns)
        };
        let notes = self.notes.iter().map(|note| paragraph("  ", 4, note, columns));
        all.iter().map(shown).collect::<Vec<_>>().join("\n") + &notes.collect::<String>()
    }

    pub(super) fn left_out(&self, columns: usize) -> String {
        let [one, several] = self.names;
        let words = |(run, count): (&str, &usize)| match count {
            0 => String::new(),
            1 => paragraph("", 0, &format!("1 {one} is only in {run}."), columns),
            n => paragraph("", 0, &format!("{n} {several} are only in {run}."), columns),
        };
        ["A", "B"].into_iter().zip(&self.alone).map(words).collect()
    }
}

impl Group {
    fn table(&self, names: &[&'static str], judge: Judge, short: bool) -> Table {
        let header = [names, &["A", "B", "B/A", "verdict"]].concat();
        let lines = self.lines.iter().map(|compared| compared.line(judge, short)).collect();
        Table::new(header.into_iter().map(Column::words).collect(), lines)
    }
}

impl Compared {
    /// Names, both values, ratio and verdict; emphasized if the runs differ.
    fn line(&self, judge: Judge, short: bool) -> Line {
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
            return Line::plain(cells);
        };
        let [better, worse] = self.kind.words;
        let (word, differs) = match self.verdict(judge) {
            Verdict::Faster => (better, true),
            Verdict::Slower => (worse, true),
            same => (same.name(), false),
        };
        cells.extend([show::ratio_value(&ratio(&two, &one)), word.into()]);
        let cells = cells.into_iter().map(Cell::from).collect();
        Line { cells, is_strong: differs }
    }

    /// B by A with its interval: `0.91× [0.88, 0.94]`.
    pub(super) fn ratio_words(&self) -> String {
        let values = self.a.value.zip(self.b.value);
        values.map_or_else(String::new, |(a, b)| show::ratio_value(&ratio(&b, &a)))
    }

    /// Verdict on B relative to A; `Faster` if it is better by all values.
    pub(super) fn verdict(&self, judge: Judge) -> Verdict {
        let Some(values) = self.a.value.zip(self.b.value) else { return Verdict::Undecided };
        let verdict = self.of_values(values, judge);
        let holds = |[a, b]: [Value; 2]| self.of_values((a, b), judge) == verdict;
        if self.by_wall.is_none_or(holds) { verdict } else { Verdict::Undecided }
    }

    fn of_values(&self, (a, b): (Value, Value), judge: Judge) -> Verdict {
        // Above 1 if B is better.
        let ratio = if self.kind.less_is_better { ratio(&a, &b) } else { ratio(&b, &a) };
        let known = Doubt::about(self.repeated as usize).is_none();
        let bounds = ratio.interval().filter(|_| known);
        let Some((lo, hi)) = bounds.filter(|_| !self.a.at_least && !self.b.at_least) else {
            return Verdict::Undecided;
        };
        let wider = |end: f64| ratio.center * (end / ratio.center).powf(judge.widening);
        let edge = 1.0 + judge.zone;
        if wider(lo) > edge {
            Verdict::Faster
        } else if wider(hi) < 1.0 / edge {
            Verdict::Slower
        } else if lo >= 1.0 / edge && hi <= edge {
            Verdict::Equal
        } else {
            Verdict::Undecided
        }
    }
}

impl Measured {
    /// A measured value.
    pub(super) fn of(value: Option<Value>) -> Self {
        Self { value, at_least: false }
    }
}

/// Maximum ratio of a store's CPU times for the same work on equally fast machines.
const AS_FAST: f64 = 1.1;

/// Ratio of CPU times above which the machine is not the reason, but a change of the store.
const NO_MACHINE: f64 = 2.5;

/// A note that the machine was slower in one run: the same store with the same settings needed more
/// CPU time for the same operations near its limit, where it was equally busy. Not given for runs
/// with different arguments, which may use different keys or values.
pub(super) fn slower(
    [a, b]: [&View; 2],
    target: &str,
    costs: [Option<Value>; 2],
) -> Option<String> {
    let [one, two] = [a, b].map(|view| view.setup.targets.iter().find(|t| t.name == target));
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
    (AS_FAST..NO_MACHINE).contains(&times).then(|| {
        format!(
            "{target} needed {} the CPU time per operation in {slower}: unless {target} itself \
             changed, the machine was slower, and rates may differ by as much for that reason \
             (measure both again, alternately)",
            show::ratio(times)
        )
    })
}

/// Flags that do not affect the measurement, with and without a value.
const OF_OUTPUT: [&str; 4] = ["--seed", "--out", "--format", "--serve"];
const OF_OUTPUT_ALONE: [&str; 2] = ["--quiet", "-q"];

/// The arguments of a run that may affect the cost of an operation.
fn of_measuring(view: &View) -> Vec<&str> {
    let mut rest = view.setup.command.iter().skip(1).map(String::as_str);
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

/// Ratio of two independent values; without an interval if either has none.
pub(crate) fn ratio(above: &Value, below: &Value) -> Value {
    let center = above.center / below.center;
    let (Some(one), Some(two)) = (above.interval(), below.interval()) else {
        return Value::alone(center);
    };
    let down = (above.center / one.0).ln().hypot((two.1 / below.center).ln());
    let up = (one.1 / above.center).ln().hypot((below.center / two.0).ln());
    Value::new(center, Some(center * (-down).exp()), Some(center * up.exp()))
}

/// Matching items of both runs in A's order, and the number of unmatched items of each.
pub(super) fn paired<'a, T>(
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
