//! A study's claims, judged by the measurements. A claim about another machine that is refuted here
//! is a result, not a failure.
//!
//! - `context`: the data that a claim is judged by; `rates` reads rows of it, `ramps` ramps.
//! - `conditions`: whether a profile meets the conditions of a claim.
//! - `judged`: the result of a claim, and judgement of a ratio.
//! - One module for each kind: `ratio`, `order`, `spread`, `rises`, `gains`, `growth`, `crossover`,
//!   `diverges`, `slower`, `steady`, `ceiling`, `pick`, `within`, `fits` and `monotone`; the last
//!   two check `published` tables.

mod ceiling;
mod conditions;
mod context;
mod crossover;
mod diverges;
mod fits;
mod gains;
mod growth;
mod judged;
mod monotone;
mod operations;
mod order;
mod pick;
mod profiles;
mod published;
mod ramps;
mod rates;
mod ratio;
mod rises;
mod slower;
mod spread;
mod steady;
mod within;

use model::Plan;
use model::study::claims::Within;
use model::study::{Claim, Expectation};
use stats::format_bytes;

use crate::hits;
use crate::recorded::Recorded;
use crate::show;
use crate::view::{ClaimUnit, ClaimView, FactView, Row, Value};
pub(crate) use context::Results;
use context::{Context, Kind};
use judged::{Judged, not_run};
use order::{ByEnd, End};
use spread::{BySpread, Way};

/// Judges every claim on every measured profile of plain operations; claims about ramps on every
/// profile with ramps; claims about published tables once.
pub(crate) fn claims(results: Results<'_>) -> Vec<ClaimView> {
    let Results { recorded, rows, growth, ramps, .. } = results;
    let plan = &recorded.header.plan;
    let measured = plain_profiles(plan, rows);
    let mut raised: Vec<&str> = ramps.iter().map(|(_, view)| view.workload.as_str()).collect();
    raised.dedup();
    let (of_tables, of_runs): (Vec<&Claim>, Vec<&Claim>) =
        plan.claims.iter().partition(|claim| claim.expect.is_of_tables());
    let (of_ramps, of_rows): (Vec<&Claim>, Vec<&Claim>) =
        of_runs.into_iter().partition(|claim| claim.expect.is_of_ramps());
    let mut sized: Vec<&str> = growth.iter().map(|curve| curve.workload.as_str()).collect();
    sized.dedup();
    let known = with_facts(&measured, results.facts);
    let no_ramp = || "no ramp was measured".to_string();
    let no_rows = || no_profile(recorded);
    let of_ramps = of_ramps.into_iter().flat_map(|c| on_profiles(c, &raised, no_ramp, results));
    let no_sizes = || "no profile with several sizes was measured".to_string();
    let of_rows = of_rows.into_iter().flat_map(|claim| match claim.expect {
        Expectation::Within(Within { operation: None, .. }) => {
            on_profiles(claim, &known, no_rows, results)
        }
        Expectation::Growth(_) => on_profiles(claim, &sized, no_sizes, results),
        _ => on_profiles(claim, &measured, no_rows, results),
    });
    let of_tables =
        of_tables.into_iter().map(|claim| view(claim, None, judge(&claim.expect, "", results)));
    of_ramps.chain(of_rows).chain(of_tables).collect()
}

/// Judges a claim on each measured profile that it is about. If there is none, it is not run;
/// `none_measured` is the reason if no profile was measured at all.
fn on_profiles(
    claim: &Claim,
    measured: &[&str],
    none_measured: impl FnOnce() -> String,
    results: Results<'_>,
) -> Vec<ClaimView> {
    let plan = &results.recorded.header.plan;
    let is_about = |profile: &&&str| {
        let of_study = |name: &String| conditions::is_of(plan, profile, name);
        claim.profiles.is_empty() || claim.profiles.iter().any(of_study)
    };
    let about: Vec<&str> = measured.iter().filter(is_about).copied().collect();
    let header = &results.recorded.header;
    let elsewhere =
        conditions::same_disk(claim, header).or_else(|| conditions::few_cpus(claim, header));
    if let Some(why) = elsewhere {
        return vec![view(claim, None, not_run(why))];
    }
    let mut unmet = Vec::new();
    let mut views = Vec::new();
    for profile in &about {
        match conditions::unmet(&claim.conditions, plan, profile) {
            Some(why) => unmet.push(why),
            None => views.push(view(claim, Some(profile), judge(&claim.expect, profile, results))),
        }
    }
    if !views.is_empty() {
        return views;
    }
    unmet.dedup();
    let why = if measured.is_empty() {
        none_measured()
    } else if unmet.is_empty() {
        let named: Vec<String> = claim.profiles.iter().map(|name| format!("`{name}`")).collect();
        let plural = if named.len() == 1 { "" } else { "s" };
        format!(
            "it is about profile{plural} {}, not measured here: `--set profile={}`",
            show::listed(&named),
            claim.profiles[0]
        )
    } else {
        unmet.join("; ")
    };
    vec![view(claim, None, not_run(why))]
}

fn judge(expect: &Expectation, profile: &str, results: Results<'_>) -> Judged {
    let context = Context::new(results, profile);
    let mut judged = kind(expect).judge(&context).unwrap_or_else(|open| open);
    if let Some(throttled) = conditions::throttled(expect, &results.recorded.header.plan) {
        judged.2 += &throttled;
    }
    if context.misses.get() {
        judged.2 += hits::CLAIMED;
    }
    judged
}

/// The module of a kind.
fn kind(expect: &Expectation) -> Box<dyn Kind + '_> {
    match expect {
        Expectation::Ratio(ratio) => Box::new(ratio),
        Expectation::Order(order) => Box::new(order),
        Expectation::Highest(of) => Box::new(ByEnd(of, End::First)),
        Expectation::Lowest(of) => Box::new(ByEnd(of, End::Last)),
        Expectation::Narrowest(of) => Box::new(BySpread(of, Way::Narrowest)),
        Expectation::Widest(of) => Box::new(BySpread(of, Way::Widest)),
        Expectation::Rises(rises) => Box::new(rises),
        Expectation::Operations(operations) => Box::new(operations),
        Expectation::Profiles(profiles) => Box::new(profiles),
        Expectation::Gains(gains) => Box::new(gains),
        Expectation::Growth(growth) => Box::new(growth),
        Expectation::Crossover(crossover) => Box::new(crossover),
        Expectation::Diverges(diverges) => Box::new(diverges),
        Expectation::Slower(slower) => Box::new(slower),
        Expectation::Steady(steady) => Box::new(steady),
        Expectation::Ceiling(ceiling) => Box::new(ceiling),
        Expectation::Pick(pick) => Box::new(pick),
        Expectation::Within(within) => Box::new(within),
        Expectation::Fits(fits) => Box::new(fits),
        Expectation::Monotone(monotone) => Box::new(monotone),
        Expectation::Unknown => Box::new(Unknown),
    }
}

/// A kind that this version does not know.
struct Unknown;

impl Kind for Unknown {
    fn expected(&self) -> String {
        "a relation of a kind that this version does not know".into()
    }

    fn judge(&self, _: &Context<'_>) -> Result<Judged, Judged> {
        Err(not_run("the record was written by another version of cachedyno".into()))
    }
}

fn view(claim: &Claim, profile: Option<&str>, judged: Judged) -> ClaimView {
    let Judged(verdict, measured, note) = judged;
    let kind = kind(&claim.expect);
    ClaimView {
        id: claim.id.clone(),
        text: claim.text.clone(),
        source: claim.source.clone(),
        source_value: claim.source_value.clone(),
        workload: profile.map(Into::into),
        of_tables: claim.expect.is_of_tables(),
        expected: kind.expected(),
        shown: measured.as_ref().map(|value| shown(value, kind.unit())),
        unit: kind.unit(),
        measured,
        verdict,
        note,
    }
}

fn shown(value: &Value, unit: ClaimUnit) -> String {
    match unit {
        ClaimUnit::Ratio => show::ratio_value(value),
        ClaimUnit::Clients => show::clients_value(value),
        ClaimUnit::Ns => show::ns_value(value),
        ClaimUnit::Exponent => show::exponent_value(value),
        ClaimUnit::PerSecond => show::rate_value(value),
        ClaimUnit::Share => show::with_bounds(value, show::percent),
        ClaimUnit::Bytes => show::with_bounds(value, |n| format_bytes(n.round() as u64)),
        ClaimUnit::Count => show::with_bounds(value, show::per_operation),
    }
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

/// These profiles, and others that have no rows but facts, such as those that search a rate.
fn with_facts<'a>(measured: &[&'a str], facts: &'a [FactView]) -> Vec<&'a str> {
    let mut all = measured.to_vec();
    for fact in facts {
        if !all.contains(&fact.workload.as_str()) {
            all.push(&fact.workload);
        }
    }
    all
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
