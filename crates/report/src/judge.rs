//! A record's way to its view.

use model::{SealStatus, Search};
use stats::compare::FEWEST_BLOCKS;
use std::collections::BTreeMap;

use crate::advice::advice;
use crate::checks;
use crate::claims::{claims, plain_profiles};
use crate::context;
use crate::data;
use crate::facts::{events, facts};
use crate::growth::growth;
use crate::hits;
use crate::notes::Notes;
use crate::outages;
use crate::pairs::comparisons;
use crate::ramp::{self, Ramp};
use crate::recorded::Recorded;
use crate::rows::rows;
use crate::rules::rules;
use crate::search::{by_rate, search};
use crate::series::{MeasuredPoint, measured};
use crate::validity::{Findings, check_cells, check_phase, check_replication, check_run};
use crate::view::{Comparison, RampView, Row, VIEW_FORMAT, Value, View};

/// Judges a run: validity, comparisons, claims and advice, with the data of all charts.
///
/// Equal records give equal views. A record without trials gives an INVALID view without rows.
pub fn judge(recorded: &Recorded) -> View {
    let mut view = match &recorded.header.plan.search {
        None => judge_cells(recorded, None),
        Some(search) => judge_cells(&by_rate(recorded, search), Some((recorded, search))),
    };
    hits::note(&mut view);
    view
}

/// Judges measured cells; those of a search stand for its rates, and `searched` for what was found.
fn judge_cells(recorded: &Recorded, searched: Option<(&Recorded, &Search)>) -> View {
    let plan = &recorded.header.plan;
    let whole = searched.map_or(recorded, |(whole, _)| whole);
    let (mut findings, mut notes) = (Findings::default(), Notes::default());
    let phases = measured(recorded);
    check_run(whole, &mut findings, &mut notes);
    let found =
        searched.map(|(_, planned)| search(whole, planned, &phases, &mut findings, &mut notes));
    if found.is_none() {
        check_cells(recorded, &mut findings);
    }
    // Stages are told as ramps, by what a store bears and what it does not.
    let phases: Vec<_> = phases.into_iter().filter(|p| !p.cell.load.is_ladder()).collect();
    let cells = cells(recorded, &phases, found.is_none(), (&mut findings, &mut notes));
    let (ramps, ramp_views) = ramp::judged(recorded, &mut findings, &mut notes);
    checks::check(whole, &ramps, &mut findings, &mut notes);
    check_replication(plan, &phases, &ramps, &mut findings);
    let comparisons = compared(recorded, (&phases, &cells), (&ramps, &ramp_views));
    context::notes(recorded, &comparisons, &mut notes);
    let advised = advice(recorded, &phases, &plain_profiles(plan, &cells));
    let unsteady = findings.unsteady.iter().map(ToString::to_string).collect();
    let (validity, reasons) = findings.judgement();
    let (status, stopped_because, took_s, blocks) = ending(whole);
    View {
        format: VIEW_FORMAT,
        run: recorded.header.run.clone(),
        study: plan.study.clone(),
        title: plan.title.clone(),
        question: plan.question.clone(),
        source: plan.source.clone(),
        scale: plan.scale.name().into(),
        profiles: plan.profiles.clone(),
        validity,
        reasons,
        unsteady,
        status,
        stopped_because,
        started_unix_ms: recorded.header.started_unix_ms,
        took_s,
        resumed: whole.seal.as_ref().is_some_and(|seal| seal.resumed),
        blocks,
        seed: plan.seed,
        tool: recorded.header.tool.clone(),
        command: recorded.header.command.clone(),
        equivalence_zone: plan.equivalence_zone,
        fewest_blocks: FEWEST_BLOCKS,
        generation: generation(recorded),
        data: data::by_profile(plan),
        targets: context::targets(recorded),
        growth: growth(&phases, &cells),
        claims: claims(recorded, &cells, &comparisons, (&ramps, &ramp_views)),
        cells,
        comparisons,
        ramps: ramp_views,
        facts: facts(whole),
        events: events(whole),
        advice: advised.rows,
        advice_basis: advised.basis,
        advice_weights: plan.advice.iter().flat_map(|a| a.weights.clone()).collect(),
        rankings: advised.rankings,
        failures: context::failures(whole),
        noise: context::noise(&whole.trials),
        conditions: recorded.header.conditions.clone(),
        calibration: recorded.header.calibration.clone(),
        changed: Vec::new(),
        footnotes: notes.into_texts(),
        rules: rules(),
        search: found,
    }
}

/// All comparisons; ratios of so few blocks that they tell no two targets apart have no interval.
fn compared(
    recorded: &Recorded,
    (phases, cells): (&[MeasuredPoint<'_>], &[Row]),
    (ramps, views): (&[Ramp<'_>], &[RampView]),
) -> Vec<Comparison> {
    let mut comparisons = comparisons(recorded, phases);
    hits::doubt(cells, &mut comparisons);
    comparisons.extend(ramp::comparisons(recorded, ramps, views));
    for comparison in comparisons.iter_mut().filter(|c| (c.blocks as usize) < FEWEST_BLOCKS) {
        comparison.ratio = Value::alone(comparison.ratio.center);
    }
    comparisons
}

/// All rows in the order in which they are shown. A probe may fail, that is what it is for: its
/// phases are not `held` against the rules.
fn cells(
    recorded: &Recorded,
    phases: &[MeasuredPoint<'_>],
    held: bool,
    (findings, notes): (&mut Findings, &mut Notes),
) -> Vec<Row> {
    let mut cells: Vec<Row> = Vec::new();
    for phase in phases {
        let mut carried =
            if held { check_phase(phase, recorded, findings, notes) } else { Vec::new() };
        carried.extend(outages::notes(phase, notes));
        cells.extend(rows(recorded, phase, &carried, notes));
    }
    ordered(cells)
}

/// Rows of one profile, load and operation next to each other, each group where its first row was.
fn ordered(mut rows: Vec<Row>) -> Vec<Row> {
    let key = |r: &Row| (r.workload.clone(), r.load.clone(), r.operation.clone());
    let mut first = BTreeMap::new();
    for (i, row) in rows.iter().enumerate() {
        first.entry(key(row)).or_insert(i);
    }
    rows.sort_by_key(|r| first.get(&key(r)).copied());
    rows
}

/// Status, why no more was measured, wall seconds and whole blocks, of a search its probes. A run
/// without a seal lasted at least until its last trial ended, and its whole blocks are those with
/// a trial of every cell.
fn ending(recorded: &Recorded) -> (String, String, f64, u32) {
    let started = recorded.header.started_unix_ms;
    // A wall clock that was set says nothing of how long it took.
    let steps_ms: i64 = recorded.trials.iter().filter_map(|t| t.clock_step_ms).sum();
    let seconds =
        |end: u64| end.saturating_add_signed(-steps_ms).saturating_sub(started) as f64 / 1e3;
    if let Some(seal) = &recorded.seal {
        let status = match seal.status {
            SealStatus::Complete => "complete",
            SealStatus::Interrupted => "interrupted",
        };
        let took = if seal.resumed {
            // Between its trials it may have lain for hours.
            recorded.trials.iter().map(|t| t.took_ns as f64 / 1e9).sum()
        } else {
            seconds(seal.finished_unix_ms)
        };
        return (status.into(), seal.stopped_because.clone(), took, seal.blocks);
    }
    let ends = recorded.trials.iter().map(|t| t.started_unix_ms + t.took_ns / 1_000_000);
    let took = ends.max().map_or(0.0, seconds);
    let is_search = recorded.header.plan.search.is_some();
    let blocks = if is_search { recorded.trials.len() as u32 } else { whole_blocks(recorded) };
    let status = if recorded.running { "running" } else { "unsealed" };
    (status.into(), unsealed(recorded).into(), took, blocks)
}

/// Why a record has no end.
pub(crate) fn unsealed(recorded: &Recorded) -> &'static str {
    if recorded.running {
        "the run is under way"
    } else {
        "the run was killed, or its record could not be written to the end"
    }
}

/// Blocks in which every cell of every target that answered was measured.
pub(crate) fn whole_blocks(recorded: &Recorded) -> u32 {
    let plan = &recorded.header.plan;
    let available = |target: &str| recorded.unavailable(target).is_none();
    let cells: Vec<_> = plan.cells.iter().filter(|c| available(&c.target)).collect();
    let blocks: std::collections::BTreeSet<u32> = recorded.trials.iter().map(|t| t.block).collect();
    let whole = |block: &&u32| {
        let measured =
            |cell: &str| recorded.trials.iter().any(|t| t.block == **block && t.cell == cell);
        cells.iter().all(|c| measured(&c.id))
    };
    blocks.iter().filter(whole).count() as u32
}

fn generation(recorded: &Recorded) -> BTreeMap<String, String> {
    let cells = &recorded.header.plan.cells;
    let word = |generation| match generation {
        model::Generation::Outside => "outside",
        model::Generation::Inside => "inside",
    };
    cells
        .iter()
        .map(|c| {
            (c.workload.study_profile().to_string(), word(c.workload.generation()).to_string())
        })
        .collect()
}
