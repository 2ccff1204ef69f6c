//! The searches of a cell and their results.

use model::{Blame, Cell, Plan, Point, Search, Trial};

use stats::search::{Found, Next, ProbeResult, Purpose, Settings};
use stats::tail::Judgement;

use crate::blocks::over_blocks;
use crate::recorded::Recorded;
use crate::view::Value;

/// The searches of a cell.
pub(crate) struct CellSearch<'a> {
    pub(super) recorded: &'a Recorded,
    pub(crate) cell: &'a Cell,
    pub(super) search: &'a Search,
    /// In block order, including incomplete ones.
    pub(crate) blocks: Vec<BlockSearch<'a>>,
}

/// The search of one block.
pub(crate) struct BlockSearch<'a> {
    pub(super) trial: &'a Trial,
    pub(super) settings: Settings,
    pub(super) points: Vec<&'a Point>,
    /// One per point.
    pub(crate) seen: Vec<ProbeResult>,
    /// `None` if it is incomplete.
    pub(super) found: Option<Found>,
}

/// A rate that passed its hold runs.
pub(super) struct HoldResult {
    pub(super) rate_per_s: u64,
    /// Total length of the hold runs.
    pub(super) seconds: f64,
    /// True if each of them decidedly passed.
    pub(super) is_sure: bool,
}

impl<'a> BlockSearch<'a> {
    pub(super) fn of(trial: &'a Trial, search: &Search, plan: &Plan) -> Self {
        let settings = search.settings(plan.seed, trial.block);
        let points: Vec<&Point> = trial.points.iter().filter(|p| p.probe.is_some()).collect();
        let seen = search.probe_results(&trial.points);
        let found = match settings.next(&seen) {
            Next::Done(found) => Some(found),
            Next::Probe(_) => None,
        };
        Self { trial, settings, points, seen, found }
    }

    /// The answer with its interval over the rounds.
    pub(crate) fn rate(&self) -> Option<Value> {
        match self.found {
            Some(Found::Rate { center, lo, hi }) => Some(Value::new(center, Some(lo), Some(hi))),
            _ => None,
        }
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&ProbeResult, &'a Point)> {
        self.seen.iter().zip(self.points.iter().copied())
    }

    /// The judged probes.
    pub(super) fn judged(&self) -> impl Iterator<Item = &ProbeResult> {
        self.seen.iter().filter(|s| s.is_judged())
    }

    /// The rate of the last hold runs, if they passed.
    pub(super) fn hold_result(&self) -> Option<HoldResult> {
        let holds = || self.seen.iter().filter(|s| s.purpose == Purpose::Hold);
        let rate_per_s = holds().next_back()?.rate_per_s;
        let own: Vec<&ProbeResult> = holds().filter(|s| s.rate_per_s == rate_per_s).collect();
        Some(HoldResult {
            rate_per_s,
            seconds: own.iter().map(|s| s.length_ns as f64 / 1e9).sum(),
            is_sure: own.iter().all(|s| self.settings.judge(s) == Judgement::Pass),
        })
    }

    /// Most requests answered per second in any probe, whatever their times.
    pub(super) fn peak_per_s(&self) -> Option<f64> {
        self.seen.iter().map(|s| s.answered_per_s).filter(|r| *r > 0.0).reduce(f64::max)
    }

    /// Number of brackets.
    pub(super) fn brackets(&self) -> usize {
        let judged: Vec<Purpose> = self.judged().map(|s| s.purpose).collect();
        let begins = |pair: &&[Purpose]| pair[0] == Purpose::Confirm && pair[1] == Purpose::Bracket;
        1 + judged.windows(2).filter(begins).count()
    }
}

impl<'a> CellSearch<'a> {
    pub(super) fn of(recorded: &'a Recorded, cell: &'a Cell) -> Option<Self> {
        let search = cell.load.search()?;
        let plan = &recorded.header.plan;
        let trials = recorded.latest(&cell.id).into_iter();
        let blocks = trials.map(|trial| BlockSearch::of(trial, search, plan)).collect();
        Some(Self { recorded, cell, search, blocks })
    }

    /// The blocks used for the answer: the complete ones, or all if none is complete.
    pub(super) fn counted(&self) -> Vec<&BlockSearch<'a>> {
        let over: Vec<&BlockSearch<'_>> =
            self.blocks.iter().filter(|b| b.found.is_some()).collect();
        if over.is_empty() { self.blocks.iter().collect() } else { over }
    }

    /// The answer of a single block, or the estimate over several; `None` if a block found no rate.
    pub(super) fn rate(&self) -> Option<Value> {
        let counted = self.counted();
        let rates: Vec<Value> = counted.iter().map(|b| b.rate()).collect::<Option<_>>()?;
        match &rates[..] {
            [] => None,
            [one] => Some(*one),
            several => {
                let seed = self.recorded.header.plan.seed;
                over_blocks(several.iter().map(|v| v.center), seed).map(|(value, _)| value)
            }
        }
    }

    /// Rates of both searches in the blocks in which both found one.
    pub(super) fn paired(&self, other: &Self) -> (Vec<f64>, Vec<f64>) {
        let twin = |block: &BlockSearch<'_>| {
            let twin = other.blocks.iter().find(|b| b.trial.block == block.trial.block)?;
            Some((block.rate()?.center, twin.rate()?.center))
        };
        self.blocks.iter().filter_map(twin).unzip()
    }

    /// The lowest rate over all blocks that passed its hold runs.
    pub(super) fn hold_result(&self) -> Option<HoldResult> {
        let counted = self.counted();
        let held = counted.iter().filter_map(|block| block.hold_result());
        held.reduce(|a, b| HoldResult {
            rate_per_s: a.rate_per_s.min(b.rate_per_s),
            seconds: a.seconds + b.seconds,
            is_sure: a.is_sure && b.is_sure,
        })
    }

    /// For each probe that exceeded a limit without breaking: a possible cause besides the store.
    pub(crate) fn blamed(&self) -> Vec<Option<Blame>> {
        let of_block = |block: &BlockSearch<'_>| {
            let missed = block.pairs().filter(|(s, _)| s.is_judged() && !s.broke);
            let missed = missed.filter(|(s, _)| !block.settings.keeps_limits(s));
            missed.map(|(_, point)| self.search.blame(point)).collect::<Vec<_>>()
        };
        self.blocks.iter().flat_map(of_block).collect()
    }

    /// Number of probes that contradict others, and number of probes.
    pub(crate) fn contradictions(&self) -> (usize, usize) {
        let counts = self.blocks.iter().map(|block| block.settings.contradictions(&block.seen));
        counts.fold((0, 0), |(a, all_a), (b, all_b)| (a + b, all_a + all_b))
    }

    /// Prefix of findings if several cells are searched.
    pub(crate) fn place(&self) -> String {
        let mut searches = self.recorded.header.plan.cells.iter();
        let is_other = |cell: &Cell| cell.load.search().is_some() && cell.id != self.cell.id;
        if searches.any(is_other) { format!("`{}`: ", self.cell.id) } else { String::new() }
    }
}
