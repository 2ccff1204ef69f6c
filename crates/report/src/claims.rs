//! A study's claims, judged by the measurements. A claim about another machine that is refuted here
//! is a result, not a failure.

pub(crate) mod judged;

use model::study::{Claim, Expectation};
use model::{Load, Plan, Workload};
use stats::{Doubt, Verdict};
use std::cell::Cell;

use crate::cases::{Case, CombinedVerdict, together};
use crate::hits;
use crate::pairs::against;
use crate::ramp::{self, Ramp};
use crate::recorded::Recorded;
use crate::show;
use crate::view::{ClaimVerdict, ClaimView, Comparison, RampView, Row, Value};
use judged::{Judged, RatioClaim, not_run, undecided};

/// Data needed to judge a claim.
struct ClaimContext<'a> {
    recorded: &'a Recorded,
    plan: &'a Plan,
    rows: &'a [Row],
    comparisons: &'a [Comparison],
    profile: &'a str,
    /// Whether a judged ratio compares misses with hits.
    misses: Cell<bool>,
}

/// A measured ratio. It shows a difference only if the table does, which corrects for the number of
/// comparisons.
#[derive(Clone)]
struct Ratio {
    value: Value,
    blocks: u32,
    /// If the interval alone shows a difference that the table leaves undecided: a note on that,
    /// with the reason.
    open: Option<String>,
}

impl Ratio {
    fn of(found: &Comparison) -> Self {
        let value = found.ratio;
        let is_clear = value.interval().is_some_and(|(lo, hi)| 1.0 < lo || hi < 1.0);
        let is_open = found.verdict == Verdict::Undecided;
        let doubt = found.doubt.as_ref().filter(|_| is_clear && is_open);
        let (a, b) = (&found.a, &found.b);
        let open = |why: &String| format!("in the table {a} against {b} is undecided: {why}");
        Self { value, blocks: found.blocks, open: doubt.map(open) }
    }

    /// Why the ratio cannot decide a claim; `None` if it can.
    fn doubt(&self) -> Option<Doubt> {
        Doubt::about(self.blocks as usize)
    }

    /// Both ends of the interval, if it can decide a claim.
    fn ends(&self) -> Option<(f64, f64)> {
        self.value.interval().filter(|_| self.doubt().is_none())
    }

    /// Both ends of the interval, if it can decide which of two targets is ahead.
    fn ends_of_order(&self) -> Option<(f64, f64)> {
        self.ends().filter(|_| self.open.is_none())
    }
}

/// Judges every claim on every measured profile of plain operations; claims about ramps on every
/// profile with ramps.
pub(crate) fn claims(
    recorded: &Recorded,
    rows: &[Row],
    comparisons: &[Comparison],
    ramps: &[(Ramp<'_>, RampView)],
) -> Vec<ClaimView> {
    let plan = &recorded.header.plan;
    let profiles = plain_profiles(plan, rows);
    let mut views = Vec::new();
    let (of_ramps, of_rows): (Vec<&Claim>, Vec<&Claim>) =
        plan.claims.iter().partition(|claim| claim.expect.is_of_ramps());
    let mut raised: Vec<&str> = ramps.iter().map(|(_, view)| view.workload.as_str()).collect();
    raised.dedup();
    for claim in of_ramps {
        let judge = |profile: &str| ramp::judge_claim(&claim.expect, profile, recorded, ramps);
        views.extend(on_profiles(claim, &raised, || "no ramp was measured".into(), judge));
    }
    for claim in of_rows {
        let judge = |profile: &str| {
            let misses = Cell::new(false);
            let ground = ClaimContext { recorded, plan, rows, comparisons, profile, misses };
            let mut judged = judge(&claim.expect, &ground);
            if ground.misses.get() {
                judged.2 += hits::CLAIMED;
            }
            judged
        };
        views.extend(on_profiles(claim, &profiles, || no_profile(recorded), judge));
    }
    views
}

/// Judges a claim on each measured profile that it is about. If there is none, it is not run;
/// `none_measured` is the reason if no profile was measured at all.
fn on_profiles(
    claim: &Claim,
    measured: &[&str],
    none_measured: impl FnOnce() -> String,
    judge: impl Fn(&str) -> Judged,
) -> Vec<ClaimView> {
    let is_about = |profile: &&&str| {
        claim.profiles.is_empty() || claim.profiles.iter().any(|own| own == **profile)
    };
    let found = measured.iter().filter(is_about);
    let views: Vec<ClaimView> =
        found.map(|profile| view(claim, Some(profile), judge(profile))).collect();
    if !views.is_empty() {
        return views;
    }
    let why = if measured.is_empty() {
        none_measured()
    } else {
        let named: Vec<String> = claim.profiles.iter().map(|name| format!("`{name}`")).collect();
        let plural = if named.len() == 1 { "" } else { "s" };
        format!("it is about profile{plural} {}, not measured here", show::listed(&named))
    };
    vec![view(claim, None, not_run(why))]
}

/// Why no profile of plain operations has a result.
fn no_profile(recorded: &Recorded) -> String {
    let plain: Vec<_> =
        recorded.header.plan.cells.iter().filter(|c| !c.workload.is_page()).collect();
    match plain.iter().find(|c| recorded.has_failed(&c.id)) {
        Some(failed) => {
            format!("profile {} has no result; see the failed trials", failed.workload.profile())
        }
        None => "no profile of plain operations was measured".into(),
    }
}

/// Profiles with the plain layout and results: `steady` first, the others in the plan's order.
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
        source_value: claim.source_value.clone(),
        workload: profile.map(Into::into),
        expected: expected(&claim.expect),
        measured,
        verdict,
        note,
    }
}

/// The expectation in words.
fn expected(expectation: &Expectation) -> String {
    match expectation {
        Expectation::Ratio { a, b, operation, clients, min, max } => {
            let load = Load::closed(*clients);
            let range = range(*min, *max);
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
        of_ramps => expected_of_ramps(of_ramps),
    }
}

fn expected_of_ramps(expectation: &Expectation) -> String {
    let percents =
        |shares: &[f64]| and(&shares.iter().map(|share| show::percent(*share)).collect::<Vec<_>>());
    match expectation {
        Expectation::Capacity { a, b, figure, min, max } => {
            let range = range(*min, *max);
            format!("{a} / {b} {range} (highest rate, {})", figure.name())
        }
        Expectation::Diverges { a, b, low, high, min } => format!(
            "p99 of {a} / {b} at {} of what {a} reached at least {} that at {}",
            show::percent(*high),
            show::ratio(*min),
            show::percent(*low)
        ),
        Expectation::Slower { operation, than, targets, min, max, .. } => {
            let range = range(*min, *max);
            format!(
                "p99 of {operation} / {than} {range} ({}, separately and in both orders)",
                and(targets)
            )
        }
        Expectation::Cpu { a, b, shares, min, max } => format!(
            "server CPU of {a} / {b} from {} to {} (at {} of the lower knee)",
            show::ratio(*min),
            show::ratio(*max),
            percents(shares)
        ),
        Expectation::Steady { targets, cpu, within } => format!(
            "p99 of {} within {} of the lowest stage's while below {} of a CPU",
            and(targets),
            show::ratio(*within),
            show::percent(*cpu)
        ),
        Expectation::Pick { target, over, share } => format!(
            "{target} sustains no less than {over} and is no slower at {} of the lower knee",
            show::percent(*share)
        ),
        _ => String::new(),
    }
}

/// A range of ratios, with or without an upper end.
fn range(min: f64, max: Option<f64>) -> String {
    let min = show::ratio(min);
    max.map_or_else(
        || format!("at least {min}"),
        |max| format!("from {min} to {}", show::ratio(max)),
    )
}

fn cases(operations: &[String], clients: &[u32]) -> String {
    let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
    format!("({} at {} clients)", operations.join(", "), clients.join(" and "))
}

fn and(names: &[String]) -> String {
    names.join(" and ")
}

fn judge(expectation: &Expectation, ground: &ClaimContext<'_>) -> Judged {
    match expectation {
        Expectation::Ratio { a, b, operation, clients, min, max } => {
            let said = RatioClaim { a, b, min: *min, max: max.unwrap_or(f64::INFINITY) };
            ground.ratio(operation, *clients, a, b).map(|ratio| judge_ratio(&ratio, said))
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
        _ => Err("the statement is about ramps".into()),
    }
    .unwrap_or_else(not_run)
}

impl ClaimContext<'_> {
    /// The rate of `a` divided by that of `b`, or an error that names the missing result.
    fn ratio(&self, operation: &str, clients: u32, a: &str, b: &str) -> Result<Ratio, String> {
        let load = Load::closed(clients);
        let row = self.row_of(operation);
        for target in [a, b] {
            let measured = |r: &&Row| r.workload == self.profile && r.target == target;
            if !self.rows.iter().any(|r| measured(&r)) {
                return Err(self.missing(target.into(), target, None));
            }
            let here = |r: &Row| r.operation == row && r.load == load;
            if !self.rows.iter().any(|r| measured(&r) && here(r)) {
                let what = format!("{operation} with {load} on {target}");
                return Err(self.missing(what, target, Some(&load)));
            }
        }
        against(self.comparisons, (self.profile, &row, &load), a, b)
            .inspect(|c| self.misses.set(self.misses.get() || hits::apart(self.rows, c).is_some()))
            .map(|c| Ratio::of(&c))
            .ok_or_else(|| format!("{a} and {b} have no block in common with a rate of both"))
    }

    /// A message that `what` has no result in this profile: its trials failed, or it was not
    /// measured.
    fn missing(&self, what: String, target: &str, load: Option<&Load>) -> String {
        let mut cells = self.plan.cells.iter().filter(|c| {
            c.target == target
                && c.workload.profile() == self.profile
                && load.is_none_or(|load| c.load == *load)
        });
        if cells.any(|c| self.recorded.has_failed(&c.id)) {
            return what + " has no result; see the failed trials";
        }
        what + " was not measured"
    }

    /// Name of an operation's rows; in a profile that runs a list, it starts with the list's name.
    fn row_of(&self, operation: &str) -> String {
        let workloads = self.plan.cells.iter().map(|c| &c.workload);
        let mut own = workloads.filter(|w| w.profile() == self.profile).flat_map(Workload::phases);
        match own.find(|phase| phase.mix.is_empty()) {
            Some(list) => format!("{}.{operation}", list.name),
            None => operation.into(),
        }
    }

    /// The rate of the fastest target divided by that of the slowest, with their names.
    fn spread(&self, operation: &str, clients: u32) -> Result<(Ratio, String), String> {
        let targets = self.others("");
        let mut widest: Option<(Ratio, String)> = None;
        for a in &targets {
            for b in targets.iter().filter(|b| *b != a) {
                let ratio = self.ratio(operation, clients, a, b)?;
                let wider = |(w, _): &(Ratio, _)| w.value.center < ratio.value.center;
                if widest.as_ref().is_none_or(wider) {
                    widest = Some((ratio, format!("{a} against {b}")));
                }
            }
        }
        widest.ok_or_else(|| "fewer than two targets were measured".into())
    }

    /// Targets that `target` can be compared with, without controls.
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

fn judge_ratio(ratio: &Ratio, said: RatioClaim<'_>) -> Judged {
    let Some(ends) = ratio.ends() else {
        let doubt = ratio.doubt().map_or_else(String::new, |doubt| doubt.to_string());
        return undecided(Some(ratio.value), doubt);
    };
    let judge = |ends| said.judge(ratio.value, ends);
    let Judged(verdict, measured, note) = judge(ends);
    let by_free_rate = show::bounds(&ratio.value).map(|ends| judge(ends).0);
    let clear = |verdict: &ClaimVerdict| *verdict != ClaimVerdict::Undecided;
    match (clear(&verdict), by_free_rate.filter(clear)) {
        (true, _) => match &ratio.open {
            // Without a difference in the table, there is none in a claim.
            Some(open) if said.requires_difference(verdict) => undecided(measured, open.as_str()),
            Some(open) if verdict == ClaimVerdict::Refuted => {
                let shown = said.no_difference(ratio.value.center);
                Judged(verdict, measured, format!("{shown}; {open}"))
            }
            Some(open) => Judged(verdict, measured, format!("{note}; {open}")),
            None => Judged(verdict, measured, note),
        },
        (false, Some(free)) => {
            let note = format!(
                "{free} only if the clients' own work between calls, or failures, are excluded"
            );
            Judged(verdict, measured, note)
        }
        (false, None) => Judged(verdict, measured, note),
    }
}

/// The end of the order at which a claim places a target.
#[derive(Clone, Copy, PartialEq)]
enum End {
    First,
    Last,
}

fn judge_end(
    target: &str,
    (operations, clients): (&[String], &[u32]),
    end: End,
    ground: &ClaimContext<'_>,
) -> Result<Judged, String> {
    let others = ground.others(target);
    let (mut cases, mut doubt) = (Vec::new(), None);
    for other in &others {
        for operation in operations {
            for clients in clients {
                let ratio = ground.ratio(operation, *clients, target, other)?;
                let place = format!("{operation} at {clients} concurrent against {other}");
                doubt = doubt.or(ratio.doubt());
                let ends = ratio.ends_of_order();
                let caveat = ratio.open.map_or_else(String::new, |open| format!("; {open}"));
                cases.push(Case { ratio: ratio.value, ends, place, caveat });
            }
        }
    }
    let range = if end == End::First { (1.0, f64::INFINITY) } else { (0.0, 1.0) };
    let Some(CombinedVerdict { verdict, words, case }) = together(&cases, range, doubt) else {
        return Err(format!("there is no other target to compare {target} with"));
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
        format!("; without {}, which has no result", left_out.join(" and "))
    };
    let caveat = &case.caveat;
    let times = show::ratio(case.ratio.center);
    let note = format!("{words}, where {target} has {times} its rate{caveat}{missing}");
    Ok(Judged(verdict, Some(case.ratio), note))
}

/// A statement that the claim cannot be decided, with the reason if it is known.
fn cannot_be_decided(doubt: Option<Doubt>) -> String {
    let why = doubt.map_or_else(String::new, |doubt| format!(" ({doubt})"));
    format!("cannot be decided{why}")
}

fn judge_narrowest(
    operation: &str,
    than: &[String],
    clients: u32,
    ground: &ClaimContext<'_>,
) -> Result<Judged, String> {
    let spread = |operation: &str| ground.spread(operation, clients);
    let (own, pair) = spread(operation)?;
    let mut note = format!("{operation}: {} ({pair})", show::ratio(own.value.center));
    let (mut all_wider, mut one_narrower, mut doubt) = (true, false, own.doubt());
    for other in than {
        let (theirs, pair) = spread(other)?;
        note += &format!("; {other}: {} ({pair})", show::ratio(theirs.value.center));
        let below =
            |a: &Ratio, b: &Ratio| a.ends().zip(b.ends()).is_some_and(|((_, hi), (lo, _))| hi < lo);
        all_wider &= below(&own, &theirs);
        one_narrower |= below(&theirs, &own);
        doubt = doubt.or(theirs.doubt());
    }
    let (verdict, words) = match (all_wider, one_narrower) {
        (true, _) => (ClaimVerdict::Confirmed, "holds".into()),
        (_, true) => (ClaimVerdict::Refuted, "does not hold".into()),
        _ => (ClaimVerdict::Undecided, cannot_be_decided(doubt)),
    };
    // Operations of one sequence are not independent, and nothing controls for that.
    if ground.row_of(operation) != operation {
        note += "; in a list, an operation's time depends on the operation before it";
    }
    Ok(Judged(verdict, Some(own.value), format!("{words}; fastest against slowest at {note}")))
}
