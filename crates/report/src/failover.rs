//! Faults that the plan caused, and the rate that survives them: the highest share of a healthy
//! store's rate at which clients are within their latency limit again after each fault, and stay
//! there while a restored server gets its data.

use model::{Act, Cell, ErrorClass, EventKind, PEAK, Schedule, Trial, Workload};
use std::collections::BTreeMap;

use crate::fault_facts::{self, LOST, P99_BACK, READ_BACK, TWO_PRIMARIES, UNAVAILABLE, UNKNOWN};
use crate::recorded::Recorded;
use crate::show;
use crate::view::{FactView, FailoverView, FaultTrouble, SpreadView, SurvivalView, Value};

/// A line for each cell whose plan causes a fault that happened.
pub(crate) fn failovers(recorded: &Recorded, facts: &[FactView]) -> Vec<FailoverView> {
    let cells = recorded.header.plan.cells.iter().filter(|cell| fault_facts::has_fault(cell));
    let views = cells.map(|cell| view(recorded, cell, facts));
    views.filter(|view| view.faults > 0).collect()
}

fn view(recorded: &Recorded, cell: &Cell, facts: &[FactView]) -> FailoverView {
    let trials = faulty(recorded, cell);
    let of = |name: &str| {
        facts.iter().find(|fact| {
            (&fact.target, fact.workload.as_str(), &fact.load, fact.name.as_str())
                == (&cell.target, cell.workload.profile(), &cell.load, name)
        })
    };
    let spread_of = |name: &str| of(name).and_then(spread);
    let sum = |name: &str| of(name).map_or(0.0, |fact| fact.by_block.values().sum()) as u64;
    let share = match cell.load.schedule {
        Schedule::Share(permille) => Some(f64::from(permille) / 1e3),
        _ => None,
    };
    let peaks = trials.iter().filter_map(|trial| trial.point(PEAK)?.whole());
    let peaks: Vec<f64> = peaks.map(|whole| whole.rate_per_s).collect();
    let planned: Vec<f64> = match share {
        Some(share) => peaks.iter().map(|peak| peak * share).collect(),
        None => cell.load.steady_per_s().map(|rate| rate as f64).into_iter().collect(),
    };
    let limit_ns = recorded.header.plan.limit_ns;
    FailoverView {
        target: cell.target.clone(),
        workload: cell.workload.profile().into(),
        load: cell.load.clone(),
        fault: cell.workload.fault_name().into(),
        by_command: cell.workload.by_command().is_some(),
        share,
        planned_per_s: over_faults(&planned),
        peak_per_s: over_faults(&peaks),
        faults: trials.len() as u32,
        survived: limit_ns
            .map(|limit_ns| trials.iter().filter(|trial| survives(trial, limit_ns)).count() as u32),
        reads_unavailable_ns: spread_of(&format!("get{UNAVAILABLE}")),
        writes_unavailable_ns: spread_of(&format!("set{UNAVAILABLE}")),
        rate_back_ns: spread_of("fault_recovery_ns"),
        p99_back_ns: spread_of(P99_BACK),
        cpu_peak_share: spread_of("cpu_peak_share"),
        two_primaries_ns: spread_of(TWO_PRIMARIES),
        trouble: FaultTrouble {
            failed: trials.iter().filter(|trial| !has_happened(trial)).count() as u32,
            above_limit_before: limit_ns.map(|limit_ns| {
                trials.iter().filter(|trial| was_above(trial, limit_ns)).count() as u32
            }),
            not_promoted: not_promoted(recorded, cell, &trials),
        },
        writes_lost: of(LOST).map(|_| (sum(LOST), sum(READ_BACK))),
        writes_unknown: sum(UNKNOWN),
    }
}

/// The trials of a cell in which the fault happened, or which failed with the load that it belongs
/// to: leaving those out would show only the faults that were survived.
fn faulty<'a>(recorded: &'a Recorded, cell: &Cell) -> Vec<&'a Trial> {
    let needs_peak = matches!(cell.load.schedule, Schedule::Share(_));
    let has_failed = |trial: &Trial| {
        trial.failure.as_ref().is_some_and(|failure| failure.class != ErrorClass::Missing)
            && trial.fill.is_some()
            && (!needs_peak || trial.point(PEAK).is_some())
    };
    let mut trials = recorded.latest(&cell.id);
    trials.retain(|trial| has_happened(trial) || has_failed(trial));
    trials
}

fn has_happened(trial: &Trial) -> bool {
    trial.series.iter().any(|series| fault_facts::fault_in(trial, series).is_some())
}

/// Whether clients were not within the limit even before the fault.
fn was_above(trial: &Trial, limit_ns: u64) -> bool {
    let backs = trial.series.iter().filter_map(|s| fault_facts::back_within(trial, s, limit_ns));
    let mut backs = backs.map(|back| back.was_within);
    backs.any(|was_within| !was_within)
}

/// Whether clients were within the limit before the fault, and again after it until the end.
fn survives(trial: &Trial, limit_ns: u64) -> bool {
    trial.failure.is_none()
        && trial.series.iter().any(|series| {
            let back = fault_facts::back_within(trial, series, limit_ns);
            back.is_some_and(|back| back.was_within && back.after_ns.is_some())
        })
}

/// In how many trials no server was promoted though the primary was gone and a replica was there.
/// `None` where none was to be, or where the roles of the servers are unknown.
fn not_promoted(recorded: &Recorded, cell: &Cell, trials: &[&Trial]) -> Option<u32> {
    let target = recorded.header.plan.target(&cell.target)?;
    let has_replicas = !target.is_at_url() && target.replicas() > 0;
    let is_gone = !matches!(cell.workload.fault_name(), "restart" | "migration");
    let promotes = |trial: &Trial| trial.events.iter().any(|e| e.kind == EventKind::Promoted);
    let lacks = |trial: &&&Trial| has_happened(trial) && !promotes(trial);
    let without = trials.iter().filter(lacks).count() as u32;
    (has_replicas && is_gone).then_some(without)
}

/// The mean with the lowest and highest value; `None` without values.
fn over_faults(values: &[f64]) -> Option<Value> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(if values.len() < 3 {
        Value::alone(mean)
    } else {
        Value::new(mean, Some(least), Some(most))
    })
}

/// A fact over all faults; `None` without any.
fn spread(fact: &FactView) -> Option<SpreadView> {
    let mut all: Vec<f64> = fact.by_block.values().copied().collect();
    all.sort_by(f64::total_cmp);
    let count = all.len() + fact.beyond as usize;
    let middle = count.checked_sub(1)? / 2;
    let worst = if fact.beyond == 0 { all.last().copied() } else { None };
    Some(SpreadView { median: all.get(middle).copied(), worst, all })
}

/// The rate that survives, for each target and profile with shares.
pub(crate) fn survivals(recorded: &Recorded, failovers: &[FailoverView]) -> Vec<SurvivalView> {
    let Some(limit_ns) = recorded.header.plan.limit_ns else { return Vec::new() };
    let mut groups: BTreeMap<(&str, &str, u32), Vec<&FailoverView>> = BTreeMap::new();
    for view in failovers.iter().filter(|view| view.share.is_some()) {
        let mut cells = recorded.header.plan.cells.iter().map(|cell| &cell.workload);
        let own = cells.find(|workload| workload.profile() == view.workload);
        let profile = own.map_or(&*view.workload, Workload::study_profile);
        groups.entry((profile, &view.target, view.load.clients)).or_default().push(view);
    }
    let survival = |((profile, target, _), mut views): ((&str, &str, u32), Vec<&FailoverView>)| {
        views.sort_by(|a, b| a.share.unwrap_or(0.0).total_cmp(&b.share.unwrap_or(0.0)));
        let is_survived = |view: &&&FailoverView| view.survived == Some(view.faults);
        let best = views.iter().take_while(is_survived).last().copied();
        let planned = recorded.header.plan.target(target);
        let on_one_host = planned.is_some_and(|own| !own.is_at_url());
        SurvivalView {
            target: target.into(),
            workload: profile.into(),
            limit_ns,
            share: best.and_then(|view| view.share),
            rate_per_s: best.and_then(|view| view.planned_per_s),
            on_one_host,
            sentence: sentence(target, &views, best, (limit_ns, on_one_host)),
        }
    };
    groups.into_iter().map(survival).collect()
}

/// `redis sustains 21 k/s, 50 % of its highest rate, through a kill of its primary: …`.
fn sentence(
    target: &str,
    views: &[&FailoverView],
    best: Option<&FailoverView>,
    (limit_ns, on_one_host): (u64, bool),
) -> String {
    let limit = show::ns(limit_ns as f64);
    let what = phrase(views[0]);
    let healthy: Vec<f64> = views.iter().filter_map(|v| Some(v.peak_per_s?.center)).collect();
    let healthy = healthy.iter().sum::<f64>() / healthy.len().max(1) as f64;
    let healthy = format!("on a healthy day its highest rate is {}", show::rate(healthy));
    let host = if on_one_host { ", all servers on one host" } else { "" };
    let failed = views.iter().find(|view| view.survived != Some(view.faults));
    let failed = failed.map(|view| not_survived(view, &limit));
    let Some(best) = best else {
        let failed = failed.unwrap_or_default();
        return format!(
            "{target} survives {what} at no measured share of its highest rate: {failed}; \
             {healthy}{host}"
        );
    };
    let rate = best.planned_per_s.as_ref().map_or_else(String::new, show::rate_value);
    let share = show::percent(best.share.unwrap_or(0.0));
    let back = best.p99_back_ns.as_ref().map_or_else(String::new, |back| again(back, &limit));
    let failed = failed.map_or_else(String::new, |failed| format!("; {failed}"));
    let each = match best.faults {
        1 => "the only fault".into(),
        faults => format!("each of {faults} faults"),
    };
    format!(
        "{target} sustains {rate}, {share} of its highest rate, through {what}: {back} after \
         {each}{failed}; {healthy}{host}"
    )
}

/// `p99 was within 10 ms again 4.2 s later, at worst 5.8 s,`.
fn again(back: &SpreadView, limit: &str) -> String {
    let time = |ns: Option<f64>| match ns {
        None => "more".into(),
        Some(ns) if ns > 0.0 => show::ns(ns),
        Some(_) => "0 s".into(),
    };
    match back.worst {
        Some(worst) if worst <= 0.0 => format!("p99 stayed within {limit}"),
        worst => format!(
            "p99 was within {limit} again {} later, at worst {},",
            time(back.median),
            time(worst)
        ),
    }
}

/// `at 75 %, p99 was within 10 ms again after 4 of 7 faults, and was above it before 3 of the
/// faults already`.
fn not_survived(view: &FailoverView, limit: &str) -> String {
    let FailoverView { faults, trouble, .. } = view;
    let survived = view.survived.unwrap_or(0);
    let share = show::percent(view.share.unwrap_or(0.0));
    let plural = |number: u32| if number == 1 { "" } else { "s" };
    let before = trouble.above_limit_before.filter(|number| *number > 0);
    let before = before.map_or_else(String::new, |number| {
        let which = match number {
            _ if *faults == 1 => "the fault".into(),
            1 => "one of the faults".into(),
            _ if number == *faults => "each of the faults".into(),
            _ => format!("{number} of the faults"),
        };
        format!(", and was above it before {which} already")
    });
    let failed = Some(trouble.failed).filter(|number| *number > 0);
    let failed = failed
        .map_or_else(String::new, |number| format!("; {number} trial{} failed", plural(number)));
    format!(
        "at {share}, p99 was within {limit} again after {survived} of {faults} \
         fault{}{before}{failed}",
        plural(*faults)
    )
}

fn phrase(view: &FailoverView) -> &'static str {
    if view.by_command {
        return "what the fault command does to it";
    }
    Act::of_fault(&view.fault).and_then(Act::fault).map_or("", |fault| fault.phrase)
}
