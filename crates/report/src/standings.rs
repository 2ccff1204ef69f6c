//! Result rows arranged for display: one table per profile and load, one group per operation, each
//! target compared with the best of its group.

use model::Load;
use stats::Verdict;
use stats::compare::FEWEST_BLOCKS;

use crate::pairs::against;
use crate::show;
use crate::table::Cell;
use crate::view::{Row, Validity, Value, View};

/// All rows of one profile and load.
#[derive(Debug)]
pub(crate) struct Standings<'a> {
    pub(crate) workload: &'a str,
    pub(crate) load: &'a Load,
    pub(crate) groups: Vec<Group<'a>>,
    /// Footnotes common to all rows of the table.
    pub(crate) footnotes: Vec<usize>,
}

/// All targets at one operation.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) operation: &'a str,
    pub(crate) standings: Vec<Standing<'a>>,
    /// Outcome of the group; `None` if no target is the best.
    pub(crate) outcome: Option<Outcome>,
}

/// Outcome of the comparison at one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The best has no other target to be compared with.
    Alone,
    /// All other targets are significantly slower than the best.
    Fastest,
    /// All targets that are not slower are equal to the best.
    Equal,
    /// Some targets are possibly as fast as the best.
    Undecided,
}

/// One row and its place in its group.
#[derive(Debug)]
pub(crate) struct Standing<'a> {
    pub(crate) row: &'a Row,
    pub(crate) against: Against,
    /// Whether it can be the best: it has enough blocks and is not a control.
    pub(crate) is_ranked: bool,
}

/// Comparison of a row with the best of its group.
#[derive(Debug)]
pub(crate) enum Against {
    /// The group has no best target.
    Nobody,
    /// The row is the best.
    Best,
    /// The row is not the best.
    Other {
        verdict: Verdict,
        /// Speed of the row divided by that of the best.
        ratio: Value,
        doubt: Option<String>,
    },
    /// The row is not the best, and no block has results of both.
    NotCompared,
}

impl Standing<'_> {
    /// A metric; a dash if it was not measured.
    pub(crate) fn cell(&self, key: &str, text: impl Fn(&Value) -> String) -> Cell {
        Cell::value(self.row.metrics.get(key), text)
    }

    /// A percentile such as `p99` of the time that users wait.
    pub(crate) fn time(&self, percentile: &str) -> Cell {
        self.cell(&format!("{}_ns_{percentile}", self.row.load.times()), show::time)
    }

    /// Whether it is the best of its group.
    pub(crate) fn is_best(&self) -> bool {
        matches!(self.against, Against::Best)
    }

    /// Why it is undecided, if it is.
    fn doubt(&self) -> Option<&String> {
        match &self.against {
            Against::Other { verdict: Verdict::Undecided, doubt, .. } => doubt.as_ref(),
            _ => None,
        }
    }
}

impl<'a> Group<'a> {
    /// The best target.
    pub(crate) fn best(&self) -> Option<&Standing<'a>> {
        self.standings.iter().find(|standing| standing.is_best())
    }

    /// Whether the best is significantly faster than all other targets.
    pub(crate) fn is_won(&self) -> bool {
        self.outcome == Some(Outcome::Fastest)
    }

    /// The best, and the targets that are not significantly slower.
    pub(crate) fn tied(&self) -> impl Iterator<Item = &Standing<'a>> {
        let is_tied = |s: &&Standing<'_>| {
            let is_slower = matches!(s.against, Against::Other { verdict: Verdict::Slower, .. });
            s.is_ranked && !s.is_best() && !is_slower
        };
        self.best().into_iter().chain(self.standings.iter().filter(is_tied))
    }

    /// Whether the target is the best or possibly as fast.
    pub(crate) fn is_tied(&self, target: &str) -> bool {
        self.tied().any(|standing| standing.row.target == target)
    }

    /// The runner-up among the compared targets, and the speed of the best divided by its speed.
    pub(crate) fn next(&self) -> Option<(&Standing<'a>, Value)> {
        let ratio = |s: &Standing<'_>| match &s.against {
            Against::Other { ratio, .. } if s.is_ranked => Some(*ratio),
            _ => None,
        };
        let others = self.standings.iter().filter_map(|s| Some((s, ratio(s)?)));
        let next = others.max_by(|(_, a), (_, b)| a.center.total_cmp(&b.center));
        next.map(|(standing, ratio)| (standing, ratio.inverse()))
    }

    /// Verdict against the best: `slower 0.47×`; for the best itself, whether its lead is clear.
    pub(crate) fn verdict(&self, standing: &Standing<'_>) -> String {
        match &standing.against {
            Against::Nobody => String::new(),
            Against::NotCompared => "not compared".into(),
            Against::Other { verdict, ratio, .. } => {
                format!("{verdict} {}", show::ratio(ratio.center))
            }
            Against::Best => match self.outcome {
                None | Some(Outcome::Alone) => "alone".into(),
                Some(Outcome::Fastest) => "fastest".into(),
                Some(Outcome::Equal | Outcome::Undecided) => "no clear lead".into(),
            },
        }
    }
}

impl<'a> Standings<'a> {
    /// The groups of whole operations; groups of parts only if there are no others.
    pub(crate) fn whole(&self) -> Vec<&Group<'a>> {
        let whole: Vec<&Group<'_>> =
            self.groups.iter().filter(|group| !is_part(group.operation)).collect();
        if whole.is_empty() { self.groups.iter().collect() } else { whole }
    }

    /// True if some row is compared with the best of its operation.
    pub(crate) fn compares(&self) -> bool {
        let mut all = self.groups.iter().flat_map(|group| &group.standings);
        all.any(|standing| !matches!(standing.against, Against::Nobody))
    }

    /// Name of the ends of its rates.
    pub(crate) fn ends_name(&self) -> &'static str {
        let rows = self.groups.iter().flat_map(|group| &group.standings);
        show::ends_name(rows.map(|standing| standing.row.blocks).min().unwrap_or(0))
    }
}

/// All tables of a view in its order.
pub(crate) fn standings(view: &View) -> Vec<Standings<'_>> {
    let mut tables: Vec<Standings<'_>> = Vec::new();
    for row in &view.cells {
        let same = |t: &Standings<'_>| t.workload == row.workload && *t.load == row.load;
        let at = tables.iter().position(same).unwrap_or_else(|| {
            let (workload, load) = (row.workload.as_str(), &row.load);
            tables.push(Standings { workload, load, groups: vec![], footnotes: vec![] });
            tables.len() - 1
        });
        let groups = &mut tables[at].groups;
        if !groups.iter().any(|g| g.operation == row.operation) {
            groups.push(group(view, row));
        }
    }
    for table in &mut tables {
        table.footnotes = shared_footnotes(&table.groups);
        without_others(table);
    }
    tables
}

/// Removes the comparisons from a table with only one target.
fn without_others(table: &mut Standings<'_>) {
    let rows = || table.groups.iter().flat_map(|group| &group.standings).map(|s| &s.row.target);
    let first = rows().next();
    if rows().any(|target| Some(target) != first) {
        return;
    }
    for group in &mut table.groups {
        group.outcome = None;
        group.standings.iter_mut().for_each(|standing| standing.against = Against::Nobody);
    }
}

fn group<'a>(view: &'a View, first: &'a Row) -> Group<'a> {
    let rows: Vec<&Row> = view.cells.iter().filter(|r| same_place(r, first)).collect();
    let unranked = view.validity == Validity::Unreplicated || is_given(&first.operation);
    let best = if unranked { None } else { best(view, &rows) };
    let against = |row: &Row| match best {
        Some(best) if best == row.target => Against::Best,
        Some(best) => distance(view, row, best),
        None => Against::Nobody,
    };
    let standing =
        |row: &&'a Row| Standing { row, against: against(row), is_ranked: can_be_best(view, row) };
    let standings: Vec<Standing<'_>> = rows.iter().map(standing).collect();
    let outcome = best.map(|_| outcome(&standings));
    Group { operation: &first.operation, standings, outcome }
}

/// Outcome of a group that has a best target.
fn outcome(standings: &[Standing<'_>]) -> Outcome {
    let others = standings.iter().filter(|s| s.is_ranked && !s.is_best());
    let verdicts: Vec<Verdict> = others
        .map(|other| match other.against {
            Against::Other { verdict, .. } => verdict,
            _ => Verdict::Undecided,
        })
        .collect();
    let tied: Vec<_> = verdicts.iter().filter(|v| **v != Verdict::Slower).collect();
    match tied.as_slice() {
        _ if verdicts.is_empty() => Outcome::Alone,
        [] => Outcome::Fastest,
        tied if tied.iter().all(|verdict| **verdict == Verdict::Equal) => Outcome::Equal,
        _ => Outcome::Undecided,
    }
}

/// True for a part of another operation: `mixed.read`.
pub(crate) fn is_part(operation: &str) -> bool {
    operation.contains('.')
}

/// True for a part of a mix: the mix determines its rate, not the store, so no target is the best
/// at it. Parts of a page can be compared.
fn is_given(operation: &str) -> bool {
    operation.split_once('.').is_some_and(|(whole, _)| whole != "page")
}

fn same_place(a: &Row, b: &Row) -> bool {
    a.workload == b.workload && a.load == b.load && a.operation == b.operation
}

/// The target that no other is ahead of, by their ratio. Of several such targets, for example if
/// they have no block in common, the one with the highest rate, or the shortest time if times are
/// compared. `None` if each is behind another, which is possible if not all have the same blocks. A
/// control repeats another target and is never the best.
fn best<'a>(view: &View, rows: &[&'a Row]) -> Option<&'a str> {
    let speed = |row: &Row| {
        let center = row.metrics.get(&row.compared_by)?.center;
        Some(if row.compared_by == "rate_per_s" { center } else { -center })
    };
    let own = rows.iter().filter(|r| can_be_best(view, r));
    let own: Vec<_> = own.filter_map(|r| Some((speed(r)?, *r))).collect();
    let is_ahead = |other: &Row, row: &Row| {
        let place = (row.workload.as_str(), row.operation.as_str(), &row.load);
        against(&view.comparisons, place, &other.target, &row.target)
            .is_some_and(|c| c.ratio.center > 1.0)
    };
    let unbeaten = own.iter().filter(|(_, row)| !own.iter().any(|(_, o)| is_ahead(o, row)));
    let fastest = unbeaten.max_by(|(a, _), (b, _)| a.total_cmp(b));
    fastest.map(|(_, row)| row.target.as_str())
}

/// True for a row with enough blocks to compare that is not a control.
fn can_be_best(view: &View, row: &Row) -> bool {
    let is_control =
        view.setup.targets.iter().any(|t| t.name == row.target && t.control_of.is_some());
    row.blocks as usize >= FEWEST_BLOCKS && !is_control
}

/// Comparison of a row with the best.
fn distance(view: &View, row: &Row, best: &str) -> Against {
    let place = (row.workload.as_str(), row.operation.as_str(), &row.load);
    match against(&view.comparisons, place, &row.target, best) {
        Some(c) => Against::Other { verdict: c.verdict, ratio: c.ratio, doubt: c.doubt },
        None => Against::NotCompared,
    }
}

/// Why rows are undecided, one sentence per reason; the most frequent one does not list its rows.
pub(crate) fn doubts(tables: &[Standings<'_>]) -> Vec<String> {
    let mut found: Vec<(&String, Vec<Undecided<'_>>)> = Vec::new();
    for table in tables {
        for group in &table.groups {
            for standing in &group.standings {
                let Some(doubt) = standing.doubt() else { continue };
                let row = Undecided { table, operation: group.operation, standing };
                match found.iter_mut().find(|(known, _)| *known == doubt) {
                    Some((_, rows)) => rows.push(row),
                    None => found.push((doubt, vec![row])),
                }
            }
        }
    }
    found.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
    let sentence = |(i, (doubt, rows)): (usize, &(&String, Vec<Undecided<'_>>))| match i {
        0 if found.len() == 1 => format!("undecided: {doubt}"),
        0 => format!("undecided, if not named below: {doubt}"),
        _ => format!("undecided at {}: {doubt}", places(rows)),
    };
    found.iter().enumerate().map(sentence).collect()
}

/// An undecided row with its table and operation.
struct Undecided<'a> {
    table: &'a Standings<'a>,
    operation: &'a str,
    standing: &'a Standing<'a>,
}

/// `steady, 8 clients: read of redis, mysql; write of redis`.
fn places(rows: &[Undecided<'_>]) -> String {
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| rows.get(i));
        let same_table = before.is_some_and(|b| std::ptr::eq(b.table, row.table));
        text += &match before {
            Some(b) if same_table && b.operation == row.operation => ", ".into(),
            Some(_) if same_table => format!("; {} of ", row.operation),
            _ => {
                let between = if i == 0 { "" } else { "; " };
                let Standings { workload, load, .. } = row.table;
                format!("{between}{workload}, {load}: {} of ", row.operation)
            }
        };
        text += &row.standing.row.target;
    }
    text
}

fn shared_footnotes(groups: &[Group<'_>]) -> Vec<usize> {
    let mut rows = groups.iter().flat_map(|g| &g.standings).map(|s| s.row);
    let Some(first) = rows.next() else { return Vec::new() };
    let rest: Vec<&Row> = rows.collect();
    let everywhere = |n: &&usize| rest.iter().all(|r| r.footnotes.contains(n));
    first.footnotes.iter().filter(everywhere).copied().collect()
}
