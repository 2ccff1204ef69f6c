//! Statements of a study against what was measured. A statement about another machine that is
//! refuted here is a result, not a failure.

use model::study::{Claim, Expectation};
use model::{Load, Plan, Workload};

use crate::pairs::against;
use crate::show;
use crate::view::{ClaimView, Comparison, Row, Value};

/// What the judgement of a claim looks at.
struct Ground<'a> {
    plan: &'a Plan,
    rows: &'a [Row],
    comparisons: &'a [Comparison],
    profile: &'a str,
}

/// Verdict, measured ratio and note.
struct Judged(&'static str, Option<Value>, String);

fn not_run(why: String) -> Judged {
    Judged("not run", None, why)
}

/// Every claim on every profile of plain operations that was measured.
pub(crate) fn claims(plan: &Plan, rows: &[Row], comparisons: &[Comparison]) -> Vec<ClaimView> {
    let profiles = plain_profiles(plan, rows);
    let mut views = Vec::new();
    for claim in &plan.claims {
        for profile in &profiles {
            let ground = Ground { plan, rows, comparisons, profile };
            views.push(view(claim, Some(profile), judge(&claim.expect, &ground)));
        }
        if profiles.is_empty() {
            let why = "no profile of plain operations was measured".to_string();
            views.push(view(claim, None, not_run(why)));
        }
    }
    views
}

/// Profiles with the plain layout that have results, `steady` first, else in the plan's order.
pub(crate) fn plain_profiles<'a>(plan: &'a Plan, rows: &[Row]) -> Vec<&'a str> {
    let mut profiles: Vec<&str> = Vec::new();
    for cell in plan.cells.iter().filter(|c| !c.workload.is_page()) {
        let profile = cell.workload.profile();
        if !profiles.contains(&profile) && rows.iter().any(|r| r.workload == profile) {
            profiles.push(profile);
        }
    }
    profiles.sort_by_key(|p| *p != "steady");
    profiles
}

fn view(claim: &Claim, profile: Option<&str>, judged: Judged) -> ClaimView {
    let Judged(verdict, measured, note) = judged;
    ClaimView {
        id: claim.id.clone(),
        text: claim.text.clone(),
        source: claim.source.clone(),
        workload: profile.map(Into::into),
        expected: expected(&claim.expect),
        measured,
        verdict: verdict.into(),
        note,
    }
}

/// The expectation for people.
fn expected(expectation: &Expectation) -> String {
    match expectation {
        Expectation::Ratio { a, b, operation, clients, min, max } => {
            let load = Load::closed(*clients);
            let range = match max {
                Some(max) => format!("from {} to {}", show::ratio(*min), show::ratio(*max)),
                None => format!("at least {}", show::ratio(*min)),
            };
            format!("{a} / {b} {range} ({operation}, {load})")
        }
        Expectation::Lowest { target, operations, clients } => {
            format!("{target} slowest {}", cases(operations, clients))
        }
        Expectation::Highest { target, operations, clients } => {
            format!("{target} fastest {}", cases(operations, clients))
        }
        Expectation::Narrowest { operation, than, clients } => {
            let load = Load::closed(*clients);
            format!("fastest / slowest nearer to 1 at {operation} than at {} ({load})", and(than))
        }
    }
}

fn cases(operations: &[String], clients: &[u32]) -> String {
    let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
    format!("({} at {} clients)", operations.join(", "), clients.join(" and "))
}

fn and(names: &[String]) -> String {
    names.join(" and ")
}

fn judge(expectation: &Expectation, ground: &Ground<'_>) -> Judged {
    match expectation {
        Expectation::Ratio { a, b, operation, clients, min, max } => {
            let max = max.unwrap_or(f64::INFINITY);
            match ground.ratio(operation, *clients, a, b) {
                Ok(ratio) => judge_ratio(ratio, (a, b), *min, max),
                Err(missing) => not_run(missing),
            }
        }
        Expectation::Lowest { target, operations, clients } => {
            judge_end(target, (operations, clients), End::Last, ground)
        }
        Expectation::Highest { target, operations, clients } => {
            judge_end(target, (operations, clients), End::First, ground)
        }
        Expectation::Narrowest { operation, than, clients } => {
            judge_narrowest(operation, than, *clients, ground)
        }
    }
}

impl Ground<'_> {
    /// The rate of `a` by that of `b`, or what is missing.
    fn ratio(&self, operation: &str, clients: u32, a: &str, b: &str) -> Result<Value, String> {
        let load = Load::closed(clients);
        let row = self.row_of(operation);
        for target in [a, b] {
            let measured = |r: &&Row| r.workload == self.profile && r.target == target;
            if !self.rows.iter().any(|r| measured(&r)) {
                return Err(format!("{target} was not measured"));
            }
            let here = |r: &Row| r.operation == row && r.load == load;
            if !self.rows.iter().any(|r| measured(&r) && here(r)) {
                return Err(format!("{operation} with {load} was not measured on {target}"));
            }
        }
        against(self.comparisons, (self.profile, &row, &load), a, b)
            .map(|c| c.ratio)
            .ok_or_else(|| format!("{a} and {b} have no block in common"))
    }

    /// Name of an operation's rows: of a profile that runs a list, the operation is a part of it.
    fn row_of(&self, operation: &str) -> String {
        let workloads = self.plan.cells.iter().map(|c| &c.workload);
        let mut own = workloads.filter(|w| w.profile() == self.profile).flat_map(Workload::phases);
        match own.find(|phase| phase.mix.is_empty()) {
            Some(list) => format!("{}.{operation}", list.name),
            None => operation.into(),
        }
    }

    /// How many times as fast the fastest target is as the slowest, with their names.
    fn spread(&self, operation: &str, clients: u32) -> Result<(Value, String), String> {
        let targets = self.others("");
        let mut widest: Option<(Value, String)> = None;
        for a in &targets {
            for b in targets.iter().filter(|b| *b != a) {
                let ratio = self.ratio(operation, clients, a, b)?;
                if widest.as_ref().is_none_or(|(w, _)| w.center < ratio.center) {
                    widest = Some((ratio, format!("{a} against {b}")));
                }
            }
        }
        widest.ok_or_else(|| "fewer than two targets were measured".into())
    }

    /// Targets other than `target` that it can be compared with; controls are not among them.
    fn others(&self, target: &str) -> Vec<&str> {
        self.plan
            .targets
            .iter()
            .filter(|t| t.name != target && t.control_of.is_none())
            .map(|t| t.name.as_str())
            .filter(|t| self.rows.iter().any(|r| r.workload == self.profile && r.target == *t))
            .collect()
    }
}

fn judge_ratio(ratio: Value, (a, b): (&str, &str), min: f64, max: f64) -> Judged {
    let Value { center, lo: Some(lo), hi: Some(hi) } = ratio else {
        return Judged("undecided", Some(ratio), "one block gives no interval".into());
    };
    let times = show::ratio(center);
    if min <= lo && hi <= max {
        let note = if center >= 1.0 {
            format!("holds: {a} is {times} as fast as {b}")
        } else {
            format!("holds: {a} has {times} the rate of {b}")
        };
        return Judged("confirmed", Some(ratio), note);
    }
    if hi < min || max < lo {
        return Judged("refuted", Some(ratio), refuted(center, (lo, hi), (a, b), (min, max)));
    }
    let edge = if lo < min { min } else { max };
    let note = format!("the interval reaches over {}: more blocks narrow it", show::ratio(edge));
    Judged("undecided", Some(ratio), note)
}

/// What still holds of a ratio statement whose range is missed.
fn refuted(center: f64, ends: (f64, f64), names: (&str, &str), range: (f64, f64)) -> String {
    let ((lo, hi), (a, b), (min, max)) = (ends, names, range);
    if min < 1.0 && 1.0 < max {
        let (first, second, by) = if center > 1.0 { (a, b, center) } else { (b, a, 1.0 / center) };
        return format!("not alike here: {first} is {} as fast as {second}", show::ratio(by));
    }
    // Which of the two the statement holds to be faster, and the ratios seen from there.
    let a_first = min >= 1.0;
    let turn = |x: f64| if a_first { x } else { 1.0 / x };
    let (first, second) = if a_first { (a, b) } else { (b, a) };
    let (low, high) = if a_first { (lo, hi) } else { (turn(hi), turn(lo)) };
    let (least, most) = if a_first { (min, max) } else { (turn(max), turn(min)) };
    let by = show::ratio(turn(center));
    if low > 1.0 {
        let limit = if low > most {
            format!("at most {}", show::ratio(most))
        } else {
            format!("at least {}", show::ratio(least))
        };
        return format!("direction holds: {first} is faster, but by {by} rather than {limit}");
    }
    if high < 1.0 {
        let turned = show::ratio(1.0 / turn(center));
        return format!("direction does not hold: {second} is faster here, {turned}");
    }
    format!("no difference is shown here: {first} is {by} as fast as {second}")
}

/// Which end of the order a target is said to stand at.
#[derive(Clone, Copy, PartialEq)]
enum End {
    First,
    Last,
}

/// One case of such a statement: the target's ratio against another one.
struct Case {
    ratio: Value,
    place: String,
}

fn judge_end(
    target: &str,
    (operations, clients): (&[String], &[u32]),
    end: End,
    ground: &Ground<'_>,
) -> Judged {
    let others = ground.others(target);
    let mut cases = Vec::new();
    for other in &others {
        for operation in operations {
            for clients in clients {
                match ground.ratio(operation, *clients, target, other) {
                    Ok(ratio) => cases.push(Case {
                        ratio,
                        place: format!("{operation} at {clients} concurrent against {other}"),
                    }),
                    Err(missing) => return not_run(missing),
                }
            }
        }
    }
    // Seen so that above 1 speaks against the statement.
    let against = |ratio: &Value| match end {
        End::Last => *ratio,
        End::First => Value {
            center: 1.0 / ratio.center,
            lo: ratio.hi.map(f64::recip),
            hi: ratio.lo.map(f64::recip),
        },
    };
    let center = |case: &Case| against(&case.ratio).center;
    let closest = cases.iter().max_by(|a, b| center(a).total_cmp(&center(b)));
    let Some(Case { ratio, place }) = closest else {
        return not_run(format!("{target} has no other target to be compared with"));
    };
    let (verdict, word) = if cases.iter().any(|c| against(&c.ratio).lo.is_some_and(|lo| lo > 1.0)) {
        ("refuted", "does not hold")
    } else if cases.iter().all(|c| against(&c.ratio).hi.is_some_and(|hi| hi < 1.0)) {
        ("confirmed", "holds")
    } else {
        ("undecided", "cannot be decided")
    };
    let left_out: Vec<&str> = ground
        .plan
        .targets
        .iter()
        .filter(|t| t.name != target && t.control_of.is_none())
        .map(|t| t.name.as_str())
        .filter(|t| !others.contains(t))
        .collect();
    let missing = if left_out.is_empty() {
        String::new()
    } else {
        format!("; without {}, which was not measured", left_out.join(" and "))
    };
    let note = format!(
        "{word} in {} cases; closest is {place}, where {target} has {} its rate{missing}",
        cases.len(),
        show::ratio(ratio.center)
    );
    Judged(verdict, Some(*ratio), note)
}

fn judge_narrowest(operation: &str, than: &[String], clients: u32, ground: &Ground<'_>) -> Judged {
    let spread = |operation: &str| ground.spread(operation, clients);
    let (own, pair) = match spread(operation) {
        Ok(own) => own,
        Err(missing) => return not_run(missing),
    };
    let mut note = format!("{operation}: {} ({pair})", show::ratio(own.center));
    let (mut all_wider, mut one_narrower) = (true, false);
    for other in than {
        let (theirs, pair) = match spread(other) {
            Ok(theirs) => theirs,
            Err(missing) => return not_run(missing),
        };
        note += &format!("; {other}: {} ({pair})", show::ratio(theirs.center));
        let below = |a: Option<f64>, b: Option<f64>| a.zip(b).is_some_and(|(a, b)| a < b);
        all_wider &= below(own.hi, theirs.lo);
        one_narrower |= below(theirs.hi, own.lo);
    }
    let (verdict, word) = match (all_wider, one_narrower) {
        (true, _) => ("confirmed", "holds"),
        (_, true) => ("refuted", "does not hold"),
        _ => ("undecided", "cannot be decided"),
    };
    Judged(verdict, Some(own), format!("{word}; fastest against slowest at {note}"))
}
