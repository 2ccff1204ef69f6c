//! The recommendation table: what these measurements say for each shop, next to the source.
//!
//! A target's score is the weighted geometric mean of its rates, exp(Σ w·ln rate / Σ w), in each
//! block; scores are compared in pairs by block with the same rules as rates.

use model::study::{Advice, AdviceRow};
use model::{Load, Plan};
use stats::Paired;
use std::collections::BTreeMap;

use crate::pairs::ALPHA;
use crate::series::MeasuredPhase;
use crate::show;
use crate::view::{AdviceView, Value};

/// Scores by block, of each target that has every weighted operation.
type Scores = Vec<(String, BTreeMap<u32, f64>)>;

/// One size of shop, judged.
struct Size {
    clients: u32,
    /// Targets in falling order of score; `None` where nothing can be said.
    ranking: Result<Vec<Ranked>, String>,
}

/// A target at one size.
#[derive(Clone, Debug)]
struct Ranked {
    target: String,
    /// How many times the best target's score is this one's; none for the best itself.
    behind: Option<(Value, &'static str)>,
}

/// The table and the sentence about what it rests on; empty without advice in the study.
pub(crate) fn advice(
    plan: &Plan,
    phases: &[MeasuredPhase<'_>],
    profiles: &[&str],
) -> (Vec<AdviceView>, Option<String>) {
    let Some(advice) = &plan.advice else { return (Vec::new(), None) };
    let mut used = None;
    let sizes = sizes(plan, advice, phases, profiles, &mut used);
    let views = advice.rows.iter().map(|row| view(row, sizes.get(&row.size))).collect();
    (views, Some(basis(advice, used)))
}

/// All sizes; `used` becomes the profile that they rest on.
fn sizes<'a>(
    plan: &Plan,
    advice: &'a Advice,
    phases: &[MeasuredPhase<'_>],
    profiles: &[&str],
    used: &mut Option<String>,
) -> BTreeMap<&'a String, Size> {
    let mut scored = Vec::new();
    for (name, clients) in &advice.sizes {
        let found = profiles
            .iter()
            .map(|p| (*p, scores(plan, advice, phases, p, *clients)))
            .find(|(_, scores)| !scores.is_empty());
        if let Some((profile, _)) = &found {
            used.get_or_insert((*profile).to_string());
        }
        scored.push((name, *clients, found.map(|(_, scores)| scores).unwrap_or_default()));
    }
    let rankings = rank_all(plan.equivalence_zone, scored.iter().map(|(.., s)| s).collect());
    let size = |(name, clients, scores): (_, _, Scores), ranking: Vec<Ranked>| {
        let ranking = match (scores.len(), scores.first()) {
            (0, _) | (_, None) => Err(nothing(advice, clients)),
            (1, Some((only, _))) => {
                Err(format!("only {only} was measured with {}: nothing to compare", load(clients)))
            }
            _ => Ok(ranking),
        };
        (name, Size { clients, ranking })
    };
    scored.into_iter().zip(rankings).map(|(scored, ranking)| size(scored, ranking)).collect()
}

/// So many clients, each with sessions of its own.
fn load(clients: u32) -> Load {
    Load::closed(clients)
}

fn nothing(advice: &Advice, clients: u32) -> String {
    let operations: Vec<&str> = advice.weights.keys().map(String::as_str).collect();
    format!("no profile measured all of {} with {}", operations.join(", "), load(clients))
}

fn scores(
    plan: &Plan,
    advice: &Advice,
    phases: &[MeasuredPhase<'_>],
    profile: &str,
    clients: u32,
) -> Scores {
    let load = load(clients);
    let here: Vec<&MeasuredPhase<'_>> = phases
        .iter()
        .filter(|p| p.cell.workload.profile() == profile && p.cell.load == load)
        .collect();
    let targets = plan.targets.iter().filter(|t| t.control_of.is_none());
    targets
        .map(|t| (t.name.clone(), score(advice, &here, &t.name)))
        .filter(|(_, by_block)| !by_block.is_empty())
        .collect()
}

/// A target's score in every block in which all weighted operations have a rate.
fn score(advice: &Advice, here: &[&MeasuredPhase<'_>], target: &str) -> BTreeMap<u32, f64> {
    let weights: Vec<_> = advice.weights.iter().filter(|(_, w)| **w > 0.0).collect();
    let all: f64 = weights.iter().map(|(_, w)| **w).sum();
    let mut sums: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for (operation, weight) in &weights {
        let mut own = here.iter().filter(|p| p.cell.target == target);
        let found = own.find_map(|p| Some((p, p.operation(operation)?)));
        let Some((phase, found)) = found else { continue };
        for point in found.points.iter().filter(|p| p.usable()) {
            // The list sets the rate of its parts; what the store can do is the rate of its calls.
            let of_calls = point.result.calls_rate_per_s.filter(|_| phase.is_list());
            let (operations, sum) = sums.entry(point.block).or_default();
            *operations += 1;
            *sum += **weight * of_calls.unwrap_or(point.result.rate_per_s).ln();
        }
    }
    let whole = sums.into_iter().filter(|(_, (operations, _))| *operations == weights.len());
    whole.map(|(block, (_, sum))| (block, (sum / all).exp())).collect()
}

/// The rankings of all sizes, their comparisons judged as one family.
fn rank_all(zone: f64, all: Vec<&Scores>) -> Vec<Vec<Ranked>> {
    let ordered: Vec<Vec<&(String, BTreeMap<u32, f64>)>> = all
        .into_iter()
        .map(|scores| {
            let mut ordered: Vec<_> = scores.iter().collect();
            ordered.sort_by(|a, b| mean_log(&b.1).total_cmp(&mean_log(&a.1)));
            ordered
        })
        .collect();
    let mut values = Vec::new();
    for targets in &ordered {
        for other in targets.iter().skip(1) {
            let common = targets[0].1.iter().filter_map(|(k, v)| Some((*v, *other.1.get(k)?)));
            values.push(common.unzip::<f64, f64, Vec<f64>, Vec<f64>>());
        }
    }
    let pairs: Vec<Paired<'_>> = values.iter().map(|(a, b)| Paired { a, b }).collect();
    let mut judged = stats::verdicts(&pairs, zone, ALPHA).into_iter();
    let ranked = |(i, target): (usize, &&(String, BTreeMap<u32, f64>))| Ranked {
        target: target.0.clone(),
        behind: (i > 0).then(|| judged.next()).flatten().and_then(|c| {
            let ratio = c.ratio?;
            let value = Value { center: ratio.center, lo: ratio.lo(), hi: ratio.hi() };
            Some((value, c.verdict.name()))
        }),
    };
    let mut ranked = ranked;
    ordered.iter().map(|targets| targets.iter().enumerate().map(&mut ranked).collect()).collect()
}

fn mean_log(by_block: &BTreeMap<u32, f64>) -> f64 {
    by_block.values().map(|v| v.ln()).sum::<f64>() / by_block.len() as f64
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
    let agreement = if row.source.iter().any(among) { "undecided" } else { "different" };
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
fn basis(advice: &Advice, profile: Option<String>) -> String {
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
