//! The recommendation table: what these measurements say for each shop, next to the source.

use model::Plan;
use model::study::{Advice, AdviceRow};

use crate::ranking::{Ranked, Size, sizes, views};
use crate::series::MeasuredPhase;
use crate::show;
use crate::view::{AdviceView, RankingView};

/// What the advice of a study comes to; all empty without advice in the study.
#[derive(Default)]
pub(crate) struct Advised {
    pub(crate) rows: Vec<AdviceView>,
    /// The sentence about what it rests on.
    pub(crate) basis: Option<String>,
    pub(crate) rankings: Vec<RankingView>,
}

/// The table, what it rests on, and the order of all targets.
pub(crate) fn advice(plan: &Plan, phases: &[MeasuredPhase<'_>], profiles: &[&str]) -> Advised {
    let Some(advice) = &plan.advice else { return Advised::default() };
    let sizes = sizes(plan, advice, phases, profiles);
    let used = sizes.values().find_map(|size| size.profile.as_deref());
    Advised {
        rows: advice.rows.iter().map(|row| view(row, sizes.get(&row.size))).collect(),
        basis: Some(basis(advice, used)),
        rankings: views(&sizes),
    }
}

fn view(row: &AdviceRow, size: Option<&Size>) -> AdviceView {
    let recommendation = match size {
        None => Err(format!("the study gives no number of clients for `{}`", row.size)),
        Some(size) => size.ranking.as_ref().map_err(Clone::clone),
    };
    let (recommended, why, agreement) = match recommendation {
        Ok(ranking) => recommend(row, ranking),
        Err(why) => (None, why, "undecided"),
    };
    AdviceView {
        shop: row.shop.clone(),
        size: row.size.clone(),
        clients: size.map_or(0, |s| s.clients),
        factory: row.factory.clone(),
        source_recommends: row.source.join(" or "),
        recommended,
        why,
        agreement: agreement.into(),
    }
}

/// Recommendation, reason and agreement from a ranking of at least two targets.
fn recommend(row: &AdviceRow, ranking: &[Ranked]) -> (Option<String>, String, &'static str) {
    let best = &ranking[0].target;
    let level = |r: &&Ranked| r.behind.is_none_or(|(_, verdict)| verdict != "faster");
    let tied: Vec<&Ranked> = ranking.iter().filter(level).collect();
    if tied.len() == 1 {
        let agreement = if row.source.contains(best) { "same" } else { "different" };
        return (Some(best.clone()), clearly_best(row, ranking), agreement);
    }
    let names: Vec<&str> = tied.iter().map(|r| r.target.as_str()).collect();
    let among = |source: &String| names.contains(&source.as_str());
    let was_measured = |source: &String| ranking.iter().any(|r| r.target == *source);
    let cannot_tell = row.source.iter().any(among) || !row.source.iter().any(was_measured);
    let agreement = if cannot_tell { "undecided" } else { "different" };
    (Some(names.join(" or ")), no_clear_best(row, &tied, &names), agreement)
}

/// Why the one best target is recommended.
fn clearly_best(row: &AdviceRow, ranking: &[Ranked]) -> String {
    let best = &ranking[0].target;
    let factory = ranking.iter().find(|r| r.target == row.factory);
    let over = |r: &Ranked| r.behind.map(|(value, _)| show::ratio_value(&value));
    let runner_up = over(&ranking[1]).unwrap_or_default();
    let second = &ranking[1].target;
    match factory.and_then(over) {
        Some(ratio) if row.factory != *second => format!(
            "{best} does {ratio} the work of {}, the state of delivery, and {runner_up} that of \
             {second}, the next best",
            row.factory
        ),
        Some(ratio) => {
            format!("{best} does {ratio} the work of {}, the state of delivery", row.factory)
        }
        None if *best == row.factory => format!(
            "{best} is the state of delivery and does {runner_up} the work of {second}, the next \
             best"
        ),
        None => format!(
            "{best} does {runner_up} the work of {second}, the next best; {}, the state of \
             delivery, was not measured",
            row.factory
        ),
    }
}

/// Why several targets are named.
fn no_clear_best(row: &AdviceRow, tied: &[&Ranked], names: &[&str]) -> String {
    let differences: Vec<String> = tied
        .iter()
        .filter_map(|r| {
            let (value, verdict) = r.behind?;
            let word = if verdict == "equal" { "equal" } else { "undecided" };
            Some(format!(
                "{} against {}: {}, {word}",
                names[0],
                r.target,
                show::ratio_value(&value)
            ))
        })
        .collect();
    let stay = if names.contains(&row.factory.as_str()) {
        format!(
            "; {} is the state of delivery, so nothing shown here speaks for a change",
            row.factory
        )
    } else {
        String::new()
    };
    format!("no clear difference here ({}){stay}", differences.join("; "))
}

/// What the advice rests on.
fn basis(advice: &Advice, profile: Option<&str>) -> String {
    let list = |items: Vec<String>| items.join(", ");
    let weights = list(advice.weights.iter().map(|(o, w)| format!("{o} {w}")).collect());
    let mut sizes: Vec<_> = advice.sizes.iter().collect();
    sizes.sort_by_key(|(_, clients)| **clients);
    let sizes = sizes.iter().map(|(size, clients)| {
        let plural = if **clients == 1 { "" } else { "s" };
        format!("{size} = {clients} concurrent request{plural}")
    });
    let profile = profile.map_or(String::new(), |p| format!(" on profile {p},"));
    format!(
        "Rates{profile} weighted {weights}; {}. Weights and sizes stand in the study file under \
         `advice` and can be changed there. Clients and stores shared one machine: several web \
         servers on one store were not measured.",
        list(sizes.collect())
    )
}
