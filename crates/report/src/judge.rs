//! Evaluation of a record into a view.

use stats::compare::FEWEST_BLOCKS;
use std::collections::BTreeMap;

use crate::advice::advice;
use crate::alone::alone;
use crate::answer::answer;
use crate::break_even::break_even;
use crate::capabilities::with_capabilities;
use crate::claims::{Results, claims, plain_profiles};
use crate::context;
use crate::data;
use crate::deletions::deletions;
use crate::disk_rate;
use crate::ending::course;
use crate::facts::{events, facts};
use crate::failover::{failovers, survivals};
use crate::findings::Findings;
use crate::footnotes;
use crate::grids::grids;
use crate::growth::growth;
use crate::hits;
use crate::measurement::measurements;
use crate::memory_need::{memory_needs, outgrown};
use crate::miss_cost::miss_costs;
use crate::notes::Notes;
use crate::pairs::comparisons;
use crate::ramp::{self, Ramp};
use crate::recorded::Recorded;
use crate::rows::rows;
use crate::rules::{self, OfPhases, rules};
use crate::search;
use crate::series::{MeasuredPoint, measured};
use crate::shards::shards;
use crate::tiers::tiers;
use crate::view::{
    Advised, Answer, Asked, Comparison, Happened, RampView, Row, Setup, VIEW_FORMAT, Value, View,
};
use crate::workers::workers;

/// Judges a run: validity, comparisons, claims and advice, with the data of all charts.
///
/// Equal records give equal views. A record without trials gives an INVALID view without rows.
pub fn judge(recorded: &Recorded) -> View {
    let mut view = judge_cells(recorded);
    hits::note(&mut view);
    let alone = alone(&recorded.header.plan, &view.cells, &view.happened.facts);
    view.answer = answer(&view, &alone);
    view
}

fn judge_cells(recorded: &Recorded) -> View {
    let plan = &recorded.header.plan;
    let (mut findings, mut notes) = (Findings::default(), Notes::default());
    let mut phases = measured(recorded);
    // Ramps and searches are evaluated separately.
    phases.retain(|phase| !phase.cell.load.is_probing());
    let (ramps, searches) = (ramp::judged(recorded), search::judged(recorded));
    let all = measurements(recorded, &ramps, &searches);
    let carried = rules::apply(recorded, &all, &mut findings, &mut notes);
    let cells = cells(recorded, &phases, &carried, &mut notes);
    ramp::note(&ramps, recorded, &mut notes);
    search::note(&searches, recorded, &mut notes);
    plan.cells.iter().for_each(|cell| footnotes::told_by_samples(&cell.id, recorded, &mut notes));
    let mut comparisons = compared(recorded, (&phases, &cells), &ramps);
    comparisons.extend(search::comparisons(recorded, &searches));
    without_intervals(&mut comparisons);
    context::notes(recorded, &comparisons, &mut notes);
    let unsteady = findings.unsteady.iter().map(ToString::to_string).collect();
    let (validity, reasons) = findings.judgement();
    let growth = growth(&phases, &cells);
    let workers = workers(recorded, &all);
    let happened = Happened { workers, ..happened(recorded, &phases, &cells, &comparisons) };
    for text in &happened.left_behind {
        notes.add(text.as_str());
    }
    View {
        format: VIEW_FORMAT,
        run: recorded.header.run.clone(),
        asked: asked(recorded),
        answer: Answer::default(),
        validity,
        reasons,
        unsteady,
        course: course(recorded),
        setup: setup(recorded),
        claims: claims(Results {
            recorded,
            phases: &phases,
            rows: &cells,
            comparisons: &comparisons,
            growth: &growth,
            facts: &happened.facts,
            ramps: &ramps,
        }),
        growth,
        advised: with_capabilities(
            recorded,
            Advised {
                break_even: break_even(recorded, &phases),
                ..advice(recorded, &phases, &plain_profiles(plan, &cells))
            },
        ),
        cells,
        comparisons,
        ramps: ramps.into_iter().map(|(_, view)| view).collect(),
        searches: searches.into_iter().map(|(_, view)| view).collect(),
        happened,
        failures: context::failures(recorded),
        footnotes: notes.into_texts(),
        rules: rules(),
    }
}

/// Numbers about stores, events, and what follows from several rows.
fn happened(
    recorded: &Recorded,
    phases: &[MeasuredPoint<'_>],
    rows: &[Row],
    comparisons: &[Comparison],
) -> Happened {
    let facts = facts(recorded);
    let failovers = failovers(recorded, &facts);
    Happened {
        survivals: survivals(recorded, &failovers),
        failovers,
        memory_needs: memory_needs(recorded, &facts),
        outgrown: outgrown(recorded, phases),
        tiers: tiers(recorded, rows),
        grids: grids(&recorded.header.plan, rows),
        shards: shards(recorded, rows, comparisons),
        facts,
        events: events(recorded),
        deletions: deletions(recorded, phases, rows),
        miss_costs: miss_costs(recorded, phases),
        left_behind: context::left_behind(recorded),
        workers: Vec::new(),
    }
}

fn asked(recorded: &Recorded) -> Asked {
    let plan = &recorded.header.plan;
    Asked {
        study: plan.study.clone(),
        title: plan.title.clone(),
        question: plan.question.clone(),
        source: plan.source.publication.clone(),
        source_conditions: plan
            .source
            .conditions()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        source_unmatched: plan.source.unmatched.clone(),
        published: plan.tables.clone(),
        scale: plan.scale.name().into(),
        profiles: plan.profiles.clone(),
        seed: plan.seed,
        equivalence_zone: plan.equivalence_zone,
        fewest_blocks: FEWEST_BLOCKS,
        generation: generation(recorded),
        data: data::by_profile(plan),
    }
}

fn setup(recorded: &Recorded) -> Setup {
    let header = &recorded.header;
    Setup {
        tool: header.tool.clone(),
        command: header.command.clone(),
        targets: context::targets(recorded),
        cells_not_run: context::cells_not_run(recorded),
        conditions: header.conditions.clone(),
        calibration: header.calibration.clone(),
        noise: context::noise(&recorded.trials),
    }
}

/// All comparisons of results and ramps.
fn compared(
    recorded: &Recorded,
    (phases, cells): (&[MeasuredPoint<'_>], &[Row]),
    ramps: &[(Ramp<'_>, RampView)],
) -> Vec<Comparison> {
    let mut comparisons = comparisons(recorded, phases);
    hits::doubt(cells, &mut comparisons);
    comparisons.extend(ramp::comparisons(recorded, ramps));
    comparisons
}

/// Removes the interval of ratios with too few blocks to distinguish two targets.
fn without_intervals(comparisons: &mut [Comparison]) {
    for comparison in comparisons.iter_mut().filter(|c| (c.blocks as usize) < FEWEST_BLOCKS) {
        comparison.ratio = Value::alone(comparison.ratio.center);
    }
}

/// All rows in display order; `carried` are footnotes of phases.
fn cells(
    recorded: &Recorded,
    phases: &[MeasuredPoint<'_>],
    carried: &OfPhases<'_>,
    notes: &mut Notes,
) -> Vec<Row> {
    let mut cells: Vec<Row> = Vec::new();
    for phase in phases {
        let of_rules = carried.get(&(phase.cell.id.as_str(), phase.name)).into_iter().flatten();
        let mut own: Vec<usize> = of_rules.copied().collect();
        own.extend(footnotes::of_phase(phase, recorded, notes));
        cells.extend(rows(recorded, phase, &own, notes));
    }
    disk_rate::add(recorded, &mut cells);
    ordered(cells)
}

/// Sorts rows of the same profile, load and operation together, at the position of the first one.
fn ordered(mut rows: Vec<Row>) -> Vec<Row> {
    let key = |r: &Row| (r.workload.clone(), r.load.clone(), r.operation.clone());
    let mut first = BTreeMap::new();
    for (i, row) in rows.iter().enumerate() {
        first.entry(key(row)).or_insert(i);
    }
    rows.sort_by_key(|r| first.get(&key(r)).copied());
    rows
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
