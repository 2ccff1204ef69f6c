//! The advice table: the recommended target for each shop, next to the source's recommendation.

use model::study::{Advice, AdviceRow};
use model::{AppCache, Plan, Workload};
use stats::{Doubt, Verdict};
use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::ranking::{Place, Ranked, Size, doubt_of, sizes, views};
use crate::recorded::Recorded;
use crate::series::MeasuredPoint;
use crate::show::{self, commas};
use crate::view::{AdviceView, Advised, Agreement, Value};

/// The advice table, its basis, and the ranking of all targets.
pub(crate) fn advice(
    recorded: &Recorded,
    phases: &[MeasuredPoint<'_>],
    profiles: &[&str],
) -> Advised {
    let plan = &recorded.header.plan;
    let Some(advice) = &plan.advice else { return Advised::default() };
    let sizes = sizes(recorded, advice, phases, &largest_first(plan, profiles));
    let mut used: Vec<&str> = sizes.values().filter_map(|s| s.profile.as_deref()).collect();
    used.dedup();
    Advised {
        advice: advice.rows.iter().map(|row| view(row, &sizes, plan.seed)).collect(),
        advice_basis: Some(basis(plan, advice, &used)),
        advice_weights: advice.weights.clone(),
        advice_notes: advice.notes.clone(),
        rankings: views(&sizes),
        ..Advised::default()
    }
}

/// The profiles in their order, except that the sizes of one profile are sorted largest first:
/// shops have more records than most of the measured sizes.
fn largest_first<'a>(plan: &Plan, profiles: &[&'a str]) -> Vec<&'a str> {
    let kind = |profile: &str| sized(plan, profile).and_then(|cache| cache.sizes_of.as_ref());
    let mut ordered = profiles.to_vec();
    ordered.sort_by_key(|profile| {
        let first = profiles.iter().position(|other| match kind(profile) {
            Some(own) => kind(other) == Some(own),
            None => other == profile,
        });
        let size = sized(plan, profile).map(|cache| (Reverse(cache.keys), cache.tags));
        (first, size)
    });
    ordered
}

/// The workload of a profile that is measured at several sizes.
fn sized<'a>(plan: &'a Plan, profile: &str) -> Option<&'a AppCache> {
    plan.cells.iter().find_map(|cell| match &cell.workload {
        Workload::AppCache(cache) if cache.profile == profile && cache.sizes_of.is_some() => {
            Some(cache)
        }
        _ => None,
    })
}

fn view(row: &AdviceRow, sizes: &BTreeMap<Place<'_>, Size>, seed: u64) -> AdviceView {
    let size = sizes.get(&(&row.size, &row.targets[..]));
    let recommendation = match size {
        None => Err(format!("the study gives no number of clients for `{}`", row.size)),
        Some(size) => size.ranking.as_ref().map_err(Clone::clone),
    };
    let (recommended, why, agreement) = match recommendation {
        Ok(ranking) => recommend(row, ranking),
        Err(why) => (None, why, Agreement::Undecided),
    };
    AdviceView {
        shop: row.shop.clone(),
        size: row.size.clone(),
        clients: size.map_or(0, |s| s.clients),
        factory: row.factory.clone(),
        source_recommends: row.source.join(" or "),
        recommended,
        why,
        agreement,
        second: row.second.as_ref().map(|second| {
            let ratio = size.and_then(|size| size.ratio(second, &row.factory, seed));
            second_choice(second, row, ratio)
        }),
    }
}

/// The source's second choice against the default.
fn second_choice(second: &str, row: &AdviceRow, ratio: Option<Value>) -> String {
    let factory = &row.factory;
    let here = match ratio {
        None => "which were not both measured".into(),
        Some(ratio) => {
            let verdict = match ratio.interval() {
                Some((lo, _)) if lo > 1.0 => "confirmed here",
                Some((_, hi)) if hi < 1.0 => "refuted here",
                _ => "undecided here",
            };
            format!("{verdict}: it is {} as fast", show::ratio_value(&ratio))
        }
    };
    let first = row.source.join(" or ");
    format!("without {first}, the source moves from {factory} to {second}; {here}")
}

/// Recommendation, reason and agreement from a ranking of at least two targets.
fn recommend(row: &AdviceRow, ranking: &[Ranked]) -> (Option<String>, String, Agreement) {
    let best = &ranking[0].target;
    let is_tied = |r: &&Ranked| r.behind.is_none_or(|b| b.verdict != Verdict::Faster);
    let tied: Vec<&Ranked> = ranking.iter().filter(is_tied).collect();
    if tied.len() == 1 {
        let agreement =
            if row.source.contains(best) { Agreement::Same } else { Agreement::Different };
        return (Some(best.clone()), clearly_best(row, ranking), agreement);
    }
    let names: Vec<&str> = tied.iter().map(|r| r.target.as_str()).collect();
    let among = |source: &String| names.contains(&source.as_str());
    let was_measured = |source: &String| ranking.iter().any(|r| r.target == *source);
    let is_open = row.source.iter().any(among) || !row.source.iter().any(was_measured);
    let agreement = if is_open { Agreement::Undecided } else { Agreement::Different };
    (Some(names.join(" or ")), no_clear_best(row, &tied, doubt_of(ranking)), agreement)
}

/// Reason for recommending the single best target.
fn clearly_best(row: &AdviceRow, ranking: &[Ranked]) -> String {
    let best = &ranking[0].target;
    let factory = ranking.iter().find(|r| r.target == row.factory);
    let over = |r: &Ranked| r.behind.map(|b| show::ratio_value(&b.ratio));
    let runner_up = over(&ranking[1]).unwrap_or_default();
    let second = &ranking[1].target;
    match factory.and_then(over) {
        Some(ratio) if row.factory != *second => format!(
            "{best} is {ratio} as fast as {}, the default, and {runner_up} as fast as {second}, \
             the next best",
            row.factory
        ),
        Some(ratio) => {
            format!("{best} is {ratio} as fast as {}, the default", row.factory)
        }
        None if *best == row.factory => {
            format!("{best} is the default and {runner_up} as fast as {second}, the next best")
        }
        None => format!(
            "{best} is {runner_up} as fast as {second}, the next best; {}, the default, has no \
             result",
            row.factory
        ),
    }
}

/// Reason for recommending several targets; `doubt` is set if no difference could be decided.
fn no_clear_best(row: &AdviceRow, tied: &[&Ranked], doubt: Option<Doubt>) -> String {
    let best = &tied[0].target;
    let difference = |r: &&Ranked| {
        let behind = r.behind?;
        let (target, ratio) = (&r.target, show::ratio_value(&behind.ratio));
        let verdict = if doubt.is_some() { String::new() } else { format!(", {}", behind.verdict) };
        Some(format!("{best} against {target}: {ratio}{verdict}"))
    };
    let differences: Vec<String> = tied.iter().filter_map(difference).collect();
    let differences = differences.join("; ");
    let stay = if tied.iter().any(|r| r.target == row.factory) {
        let keep = match doubt {
            Some(_) => "keep it unless a longer run shows a difference",
            None => "so there is no reason to change it",
        };
        format!("; {} is the default, {keep}", row.factory)
    } else {
        String::new()
    };
    match doubt {
        Some(doubt) => format!("all differences are undecided ({doubt}): {differences}{stay}"),
        None => format!("no clear difference here ({differences}){stay}"),
    }
}

/// Basis of the advice: profiles, weights and sizes.
fn basis(plan: &Plan, advice: &Advice, profiles: &[&str]) -> String {
    let list = |items: Vec<String>| items.join(", ");
    let place = |operation: &str| {
        let mut phases = plan.cells.iter().flat_map(|c| c.workload.phases());
        phases.position(|p| p.name == operation).unwrap_or(usize::MAX)
    };
    let mut weights: Vec<_> = advice.weights.iter().collect();
    weights.sort_by_key(|(operation, _)| place(operation));
    let weights = list(weights.iter().map(|(o, w)| format!("{o} {w}")).collect());
    let mut sizes: Vec<_> = advice.sizes.iter().collect();
    sizes.sort_by_key(|(_, size)| size.clients());
    let sizes = sizes.iter().map(|(name, size)| {
        let clients = size.clients();
        let plural = if clients == 1 { "" } else { "s" };
        let on = size.profile().map_or_else(String::new, |own| format!(" on profile {own}"));
        format!("{name} = {clients} concurrent request{plural}{on}")
    });
    let profiles: Vec<String> = profiles.iter().map(|p| named(plan, p)).collect();
    let profile = match profiles.as_slice() {
        [] => String::new(),
        [one] => format!(" on profile {one},"),
        names => format!(" on profiles {},", names.join(" and ")),
    };
    format!(
        "Rates{profile} weighted {weights}; {}. Weights and sizes are set under `advice` in the \
         study file. Clients and stores shared one machine: several web servers on one store \
         were not measured.",
        list(sizes.collect())
    )
}

/// A profile's name, with its size if several were measured.
fn named(plan: &Plan, profile: &str) -> String {
    match sized(plan, profile) {
        None => profile.into(),
        Some(cache) => format!(
            "{profile} (the largest size measured: {} records with {} tags)",
            commas(cache.keys),
            commas(cache.tags)
        ),
    }
}
