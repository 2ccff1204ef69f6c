//! Ranking of all targets by score, for each size of shop.
//!
//! A target's score is the weighted geometric mean of its rates, exp(Σ w·ln rate / Σ w), in each
//! block. Scores are compared in pairs by block with the same rules as rates, also by wall time.
//! The page does the same with a reader's weights (web/src/ranking.ts).

use model::study::{Advice, ShopSize, unlabelled};
use model::{Load, Plan};
use stats::{Doubt, Paired, Stricter, Verdict};
use std::collections::{BTreeMap, BTreeSet};

use crate::blocks::strict_ratio_over_blocks;
use crate::pairs::ALPHA;
use crate::recorded::Recorded;
use crate::series::MeasuredPoint;
use crate::view::{RankedView, RankingView, TargetRates, Value};

/// A target's scores by block: from the displayed rates, and from rates by wall time.
pub(crate) type Scores = BTreeMap<u32, (f64, f64)>;

/// Evaluation of one size of shop.
pub(crate) struct Size {
    pub(crate) clients: u32,
    /// Profile of the scores; `None` if no target has a score.
    pub(crate) profile: Option<String>,
    /// Targets by decreasing score, or why there is no ranking.
    pub(crate) ranking: Result<Vec<Ranked>, String>,
    /// The rates behind the scores.
    rates: Vec<TargetRates>,
    /// The scores of each target.
    scores: Vec<(String, Scores)>,
}

/// A size of shop and the targets that a shop can use; every one if empty.
pub(crate) type Place<'a> = (&'a String, &'a [String]);

impl Size {
    /// The score of `a` divided by that of `b`; `None` without a common block.
    pub(crate) fn ratio(&self, a: &str, b: &str, seed: u64) -> Option<Value> {
        let (free, wall) = ratios(&self.scores, (a, b));
        let blocks = free.len();
        let ratio = strict_ratio_over_blocks(free, wall, seed)?;
        Some(if Doubt::about(blocks).is_some() { Value::alone(ratio.center) } else { ratio })
    }
}

/// A target at one size.
#[derive(Clone, Debug)]
pub(crate) struct Ranked {
    pub(crate) target: String,
    /// The best target against this one; `None` for the best itself.
    pub(crate) behind: Option<Behind>,
}

/// The best target's score against another one's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behind {
    /// The best score divided by the other.
    pub(crate) ratio: Value,
    pub(crate) verdict: Verdict,
    pub(crate) doubt: Option<Doubt>,
}

/// Why a ranking is entirely undecided; `None` if parts of it can be decided.
pub(crate) fn doubt_of(ranking: &[Ranked]) -> Option<Doubt> {
    let mut behind = ranking.iter().filter_map(|r| r.behind);
    let first = behind.next()?.doubt;
    let few = |doubt: &Option<Doubt>| matches!(doubt, Some(Doubt::TooFewBlocks { .. }));
    first.filter(|_| few(&first) && behind.all(|b| few(&b.doubt)))
}

/// All sizes by name and by the targets of the rows of the advice, with their comparisons judged as
/// one family.
pub(crate) fn sizes<'a>(
    recorded: &'a Recorded,
    advice: &'a Advice,
    phases: &[MeasuredPoint<'_>],
    profiles: &[&str],
) -> BTreeMap<Place<'a>, Size> {
    let plan = &recorded.header.plan;
    let mut found = Vec::new();
    for (name, size) in &advice.sizes {
        let clients = size.clients();
        let of_others = |profile: &str| {
            advice.sizes.values().any(|other| other != size && other.profile() == Some(profile))
        };
        let fits = |profile: &&str| match size.profile() {
            Some(own) => own == *profile,
            None => !of_others(profile),
        };
        let own = advice.rows.iter().filter(|row| row.size == *name).map(|row| &row.targets[..]);
        let sets: BTreeSet<&[String]> = [&[][..]].into_iter().chain(own).collect();
        for targets in sets {
            let measured = profiles.iter().copied().filter(fits).find_map(|profile| {
                let mut rates = rates(plan, advice, phases, profile, clients);
                rates.retain(|r| targets.is_empty() || targets.contains(&r.target));
                let scores = scores(&advice.weights, &rates);
                (!scores.is_empty()).then(|| (profile.to_string(), rates, scores))
            });
            found.push(((name, targets), size, measured));
        }
    }
    let of_sizes = found.iter().map(|(.., m)| m.as_ref().map_or(&[][..], |(.., scores)| scores));
    let rankings = rank_all(plan.equivalence_zone, &of_sizes.collect::<Vec<_>>());
    let is_planned = |names: &[String]| {
        let measured = plan.targets.iter().map(|target| unlabelled(&target.name));
        measured.into_iter().any(|target| names.iter().any(|name| name == target))
    };
    let size =
        |((place, size, measured), ranking): ((Place<'a>, &ShopSize, Option<_>), Vec<Ranked>)| {
            let clients = size.clients();
            let ranking = match &ranking[..] {
                [] if !place.1.is_empty() && !is_planned(place.1) => Err(format!(
                    "none of {} was measured: `--target {}` measures them",
                    place.1.join(", "),
                    place.1.join(" --target ")
                )),
                [] => Err(nothing(recorded, advice, size)),
                [only] => Err(format!(
                    "only {} was measured with {}: nothing to compare",
                    only.target,
                    load(clients)
                )),
                _ => Ok(ranking),
            };
            let (profile, rates, scores) = match measured {
                Some((profile, rates, scores)) => (Some(profile), rates, scores),
                None => (None, Vec::new(), Vec::new()),
            };
            (place, Size { clients, profile, ranking, rates, scores })
        };
    found.into_iter().zip(rankings).map(size).collect()
}

/// The score of `a` divided by that of `b` in each block that has both: from the displayed rates,
/// and from rates by wall time.
pub(crate) fn ratios_of_scores(
    plan: &Plan,
    phases: &[MeasuredPoint<'_>],
    (profile, clients): (&str, u32),
    (a, b): (&str, &str),
) -> (Vec<f64>, Vec<f64>) {
    let Some(advice) = &plan.advice else { return Default::default() };
    ratios(&scores(&advice.weights, &rates(plan, advice, phases, profile, clients)), (a, b))
}

/// The same from the scores of all targets.
fn ratios(scores: &[(String, Scores)], (a, b): (&str, &str)) -> (Vec<f64>, Vec<f64>) {
    let of = |target: &str| scores.iter().find(|(name, _)| name == target).map(|(_, s)| s);
    let Some((a, b)) = of(a).zip(of(b)) else { return Default::default() };
    let ratio = |(block, a): (&u32, &(f64, f64))| {
        let b = b.get(block)?;
        Some((a.0 / b.0, a.1 / b.1))
    };
    a.iter().filter_map(ratio).unzip()
}

/// The rankings of all targets for a view; sizes with the same load share one.
pub(crate) fn views(sizes: &BTreeMap<Place<'_>, Size>) -> Vec<RankingView> {
    let mut views: Vec<RankingView> = Vec::new();
    for ((name, _), size) in sizes.iter().filter(|((_, targets), _)| targets.is_empty()) {
        let (Ok(ranking), Some(profile)) = (&size.ranking, &size.profile) else { continue };
        let same = |v: &&mut RankingView| v.clients == size.clients && v.workload == *profile;
        if let Some(known) = views.iter_mut().find(same) {
            known.sizes.push((*name).clone());
            continue;
        }
        views.push(RankingView {
            sizes: vec![(*name).clone()],
            clients: size.clients,
            workload: profile.clone(),
            doubt: doubt_of(ranking).map(|doubt| doubt.to_string()),
            targets: ranking.iter().map(ranked_view).collect(),
            rates: size.rates.clone(),
        });
    }
    views.sort_by_key(|v| v.clients);
    views
}

/// The ranking entry of a target, with its ratio and verdict against the best.
fn ranked_view(ranked: &Ranked) -> RankedView {
    RankedView {
        target: ranked.target.clone(),
        ratio: ranked.behind.map(|b| b.ratio.inverse()),
        verdict: ranked.behind.map(|b| b.verdict.turned()),
    }
}

/// A closed load of clients, each with its own sessions.
fn load(clients: u32) -> Load {
    Load::closed(clients)
}

fn nothing(recorded: &Recorded, advice: &Advice, size: &ShopSize) -> String {
    let measured = &recorded.header.plan.profiles;
    if let Some(own) = size.profile().filter(|own| !measured.iter().any(|p| p == own)) {
        return format!("profile {own} was not measured: `--set profile={own}` measures it");
    }
    let clients = size.clients();
    let operations: Vec<&str> = advice.weights.keys().map(String::as_str).collect();
    let load = load(clients);
    let mut cells = recorded.header.plan.cells.iter().filter(|c| c.load == load);
    let has_failed = cells.any(|c| recorded.has_failed(&c.id));
    let failed = if has_failed { "; see the failed trials" } else { "" };
    format!("no profile measured all of {} with {load}{failed}", operations.join(", "))
}

/// The rates of every target except controls, for each weighted operation.
fn rates(
    plan: &Plan,
    advice: &Advice,
    phases: &[MeasuredPoint<'_>],
    profile: &str,
    clients: u32,
) -> Vec<TargetRates> {
    let load = load(clients);
    let here: Vec<&MeasuredPoint<'_>> = phases
        .iter()
        .filter(|p| p.cell.workload.profile() == profile && p.cell.load == load)
        .collect();
    let targets = plan.targets.iter().filter(|t| t.control_of.is_none());
    let of_target = |name: &String| {
        let own: Vec<_> = here.iter().copied().filter(|p| p.cell.target == *name).collect();
        let mut rates = TargetRates { target: name.clone(), ..Default::default() };
        for operation in advice.weights.keys() {
            let Some((free, wall)) = by_block(&own, operation) else { continue };
            rates.by_operation.insert(operation.clone(), free);
            rates.by_wall.insert(operation.clone(), wall);
        }
        rates
    };
    targets.map(|t| of_target(&t.name)).filter(|rates| !rates.by_operation.is_empty()).collect()
}

/// An operation's rates and its rates by wall time, in every block that has them.
fn by_block(
    own: &[&MeasuredPoint<'_>],
    operation: &str,
) -> Option<(BTreeMap<u32, f64>, BTreeMap<u32, f64>)> {
    let (phase, found) = own.iter().find_map(|p| Some((p, p.operation(operation)?)))?;
    let usable = found.blocks.iter().filter(|p| p.usable());
    let rates = usable.map(|point| {
        // The list determines the rate of its parts. The rate of the calls alone, without the
        // clients' work between them, shows what the store can do.
        let of_calls = point.result.calls_rate_per_s.filter(|_| phase.is_list());
        let free = of_calls.unwrap_or(point.result.rate_per_s);
        let wall = of_calls.unwrap_or(point.wall_rate_per_s());
        ((point.block, free), (point.block, wall))
    });
    Some(rates.unzip())
}

/// The scores of each target that has all operations with a weight above 0 in some block.
pub(crate) fn scores(
    weights: &BTreeMap<String, f64>,
    rates: &[TargetRates],
) -> Vec<(String, Scores)> {
    let all = rates.iter().map(|r| (r.target.clone(), score(weights, r)));
    all.filter(|(_, by_block)| !by_block.is_empty()).collect()
}

/// A target's score in every block in which all weighted operations have a rate.
fn score(weights: &BTreeMap<String, f64>, rates: &TargetRates) -> Scores {
    let weights: Vec<_> = weights.iter().filter(|(_, w)| **w > 0.0).collect();
    let all: f64 = weights.iter().map(|(_, w)| **w).sum();
    let mut sums: BTreeMap<u32, (usize, f64, f64)> = BTreeMap::new();
    for (operation, weight) in &weights {
        let wall = rates.by_wall.get(*operation);
        for (block, rate) in rates.by_operation.get(*operation).into_iter().flatten() {
            let by_wall = wall.and_then(|wall| wall.get(block)).unwrap_or(rate);
            let (operations, sum, wall_sum) = sums.entry(*block).or_default();
            *operations += 1;
            *sum += **weight * rate.ln();
            *wall_sum += **weight * by_wall.ln();
        }
    }
    let whole = sums.into_iter().filter(|(_, (operations, ..))| *operations == weights.len());
    whole.map(|(block, (_, sum, wall))| (block, ((sum / all).exp(), (wall / all).exp()))).collect()
}

/// The rankings of all sizes, with their comparisons judged as one family.
pub(crate) fn rank_all(zone: f64, all: &[&[(String, Scores)]]) -> Vec<Vec<Ranked>> {
    let ordered: Vec<Vec<&(String, Scores)>> = all
        .iter()
        .map(|scores| {
            let mut ordered: Vec<_> = scores.iter().collect();
            ordered.sort_by(|a, b| mean_log(&b.1).total_cmp(&mean_log(&a.1)));
            ordered
        })
        .collect();
    let (mut free, mut wall) = (Vec::new(), Vec::new());
    for targets in &ordered {
        for other in targets.iter().skip(1) {
            let common = targets[0].1.iter().filter_map(|(k, v)| Some((*v, *other.1.get(k)?)));
            let common: Vec<_> = common.collect();
            let one = |(a, b): &((f64, f64), (f64, f64))| (a.0, b.0);
            free.push(common.iter().map(one).unzip::<f64, f64, Vec<f64>, Vec<f64>>());
            let one = |(a, b): &((f64, f64), (f64, f64))| (a.1, b.1);
            wall.push(common.iter().map(one).unzip::<f64, f64, Vec<f64>, Vec<f64>>());
        }
    }
    let free: Vec<Paired<'_>> = free.iter().map(|(a, b)| Paired { a, b }).collect();
    let wall: Vec<_> = wall.iter().map(|(a, b)| (Paired { a, b }, Stricter::WallTime)).collect();
    let mut judged = stats::strict_verdicts(&free, &wall, zone, ALPHA).into_iter();
    let mut ranked = |(i, target): (usize, &&(String, Scores))| Ranked {
        target: target.0.clone(),
        behind: (i > 0).then(|| judged.next()).flatten().and_then(|c| {
            let strict = c.strict.and_then(|strict| Value::of(&strict).interval());
            let ratio = Value::of(&c.ratio?).decided_with(strict);
            Some(Behind { ratio, verdict: c.verdict, doubt: c.doubt })
        }),
    };
    ordered.iter().map(|targets| targets.iter().enumerate().map(&mut ranked).collect()).collect()
}

fn mean_log(by_block: &Scores) -> f64 {
    by_block.values().map(|(v, _)| v.ln()).sum::<f64>() / by_block.len() as f64
}
