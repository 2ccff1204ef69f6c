//! Rates of rows, read for a claim.

use model::study::label;
use model::{Load, Workload};
use stats::{Doubt, Verdict};

use super::context::Context;
use super::judged::{Judged, not_run};
use crate::blocks::strict_ratio_over_blocks;
use crate::hits;
use crate::pairs::against;
use crate::series::{InBlock, Operation};
use crate::view::{Comparison, Row, Value};

/// A measured ratio. It shows a difference only if the table does, which corrects for the number of
/// comparisons.
#[derive(Clone)]
pub(super) struct RatioOfRates {
    pub(super) value: Value,
    blocks: u32,
    /// If the interval alone shows a difference that the table leaves undecided: a note on that,
    /// with the reason.
    pub(super) open: Option<String>,
}

impl RatioOfRates {
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
    pub(super) fn doubt(&self) -> Option<Doubt> {
        Doubt::about(self.blocks as usize)
    }

    /// Both ends of the interval, if it can decide a claim.
    pub(super) fn ends(&self) -> Option<(f64, f64)> {
        self.value.interval().filter(|_| self.doubt().is_none())
    }

    /// Both ends of the interval, if it can decide which of two targets is ahead.
    pub(super) fn ends_of_order(&self) -> Option<(f64, f64)> {
        self.ends().filter(|_| self.open.is_none())
    }
}

impl Context<'_> {
    /// The rate of `a` divided by that of `b`, or an error that names the missing result.
    pub(super) fn ratio_of_rates(
        &self,
        operation: &str,
        clients: u32,
        a: &str,
        b: &str,
    ) -> Result<RatioOfRates, Judged> {
        let load = self.load(clients);
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
            .map(|c| RatioOfRates::of(&c))
            .ok_or_else(|| {
                not_run(format!("{a} and {b} have no block in common with a rate of both"))
            })
    }

    /// The closed load of this profile with this many clients, each with its own session.
    fn load(&self, clients: u32) -> Load {
        let mut own = self.plan.cells.iter().filter(|c| c.workload.profile() == self.profile);
        let is_asked = |load: &Load| {
            load.schedule == Load::closed(clients).schedule
                && !load.is_planned()
                && !load.one_session
        };
        let found = own.find(|cell| is_asked(&cell.load));
        found.map_or_else(|| Load::closed(clients), |cell| cell.load.clone())
    }

    /// That `what` has no result in this profile: its trials failed, or it was not measured.
    fn missing(&self, what: String, target: &str, load: Option<&Load>) -> Judged {
        let mut cells = self.plan.cells.iter().filter(|c| {
            c.target == target
                && c.workload.profile() == self.profile
                && load.is_none_or(|load| c.load == *load)
        });
        if let Some(failed) = cells.find(|c| self.recorded.has_failed(&c.id)) {
            return not_run(match self.recorded.lacking(&failed.id) {
                Some(lacking) => format!("{what} was not run: {}", lacking.reason()),
                None => what + " has no result; see the failed trials",
            });
        }
        // Only the command line says where such a target has its data.
        let is_labelled = self.plan.target(target).is_none() && label(target).is_some();
        let cure = if is_labelled {
            format!(": `--target {target}=DIRECTORY` measures it")
        } else {
            String::new()
        };
        not_run(what + " was not measured" + &cure)
    }

    /// Name of an operation's rows; in a profile that runs a list, it starts with the list's name.
    pub(super) fn row_of(&self, operation: &str) -> String {
        let workloads = self.plan.cells.iter().map(|c| &c.workload);
        let mut own = workloads.filter(|w| w.profile() == self.profile).flat_map(Workload::phases);
        match own.find(|phase| phase.mix.is_empty()) {
            Some(list) => format!("{}.{operation}", list.name),
            None => operation.into(),
        }
    }

    /// Measured targets, without controls: those that a claim names, or all if it names none.
    pub(super) fn targets(&self, named: &[String]) -> Vec<&str> {
        let all = self.plan.targets.iter().filter(|t| t.control_of.is_none());
        let all = all.filter(|t| named.is_empty() || named.contains(&t.name));
        let measured = |target: &&str| {
            self.rows.iter().any(|r| r.workload == self.profile && r.target == **target)
        };
        all.map(|t| t.name.as_str()).filter(measured).collect()
    }

    /// An operation of a target with a number of clients, if targets are compared by its rate.
    fn operation(&self, target: &str, name: &str, clients: u32) -> Result<&Operation<'_>, Judged> {
        let load = self.load(clients);
        let is_here = |cell: &model::Cell| {
            cell.target == target && cell.workload.profile() == self.profile && cell.load == load
        };
        let mut here = self.phases.iter().filter(|phase| is_here(phase.cell));
        let found = here.find_map(|phase| Some((phase, phase.operation(name)?)));
        match found {
            Some((phase, operation)) if phase.compared_by(operation) == "rate_per_s" => {
                Ok(operation)
            }
            Some(_) => {
                Err(not_run(format!("the rate of {name} is that of its list, not of the store")))
            }
            None => {
                let what = format!("{name} with {load} on {target}");
                Err(self.missing(what, target, Some(&load)))
            }
        }
    }

    /// The rate of a target with some clients divided by that with others, by block.
    pub(super) fn growth_of_rate(
        &self,
        (target, operation): (&str, &str),
        (from, to): (u32, u32),
    ) -> Result<(Value, usize), Judged> {
        let few = self.operation(target, operation, from)?;
        let many = self.operation(target, operation, to)?;
        self.ratio_by_block(many, few).ok_or_else(|| {
            not_run(format!("no block of {target} has a rate of {operation} with both loads"))
        })
    }

    /// The rate of one operation of a target divided by that of another, by block.
    pub(super) fn ratio_of_operations(
        &self,
        target: &str,
        (one, other): (&str, &str),
        clients: u32,
    ) -> Result<(Value, usize), Judged> {
        let [a, b] = [one, other].map(|name| self.operation(target, name, clients));
        self.ratio_by_block(a?, b?).ok_or_else(|| {
            not_run(format!("no block of {target} has a rate of both {one} and {other}"))
        })
    }

    /// The rate of an operation of a target divided by that in another profile, by block.
    pub(super) fn ratio_of_profiles(
        &self,
        (target, operation): (&str, &str),
        clients: u32,
        other: &str,
    ) -> Result<(Value, usize), Judged> {
        let there = self.in_profile(other);
        let here = self.operation(target, operation, clients)?;
        let there = there.operation(target, operation, clients).map_err(|mut why| {
            why.2 = format!("profile {other}: {}", why.2);
            why
        })?;
        self.ratio_by_block(here, there).ok_or_else(|| {
            not_run(format!("no block of {target} has a rate of {operation} in both profiles"))
        })
    }

    /// The rate of `a` divided by that of `b` over the blocks that have both, with the number of
    /// these blocks.
    fn ratio_by_block(&self, a: &Operation<'_>, b: &Operation<'_>) -> Option<(Value, usize)> {
        let ratios = |read: &dyn Fn(&InBlock<'_>) -> f64| -> Vec<f64> {
            let of_block = |one: &InBlock<'_>| {
                let twin = b.blocks.iter().find(|f| f.block == one.block && f.usable())?;
                Some(read(one) / read(twin))
            };
            a.blocks.iter().filter(|b| b.usable()).filter_map(of_block).collect()
        };
        let by_rate = ratios(&|b| b.result.rate_per_s);
        let by_wall = ratios(&|block| block.wall_rate_per_s());
        let blocks = by_rate.len();
        Some((strict_ratio_over_blocks(by_rate, by_wall, self.plan.seed)?, blocks))
    }

    /// By block, pairs (clients, rate of `a` divided by that of `b`), for blocks with all of them.
    pub(super) fn ratios_by_clients(
        &self,
        operation: &str,
        (a, b): (&str, &str),
        clients: &[u32],
    ) -> Result<Vec<Vec<(f64, f64)>>, Judged> {
        let mut sides = Vec::new();
        for n in clients {
            let side = |target| self.operation(target, operation, *n);
            sides.push((f64::from(*n), side(a)?, side(b)?));
        }
        let rate = |operation: &Operation<'_>, block: u32| {
            let found = operation.blocks.iter().find(|b| b.block == block && b.usable());
            found.map(|b| b.result.rate_per_s)
        };
        let blocks = sides[0].1.blocks.iter().map(|b| b.block);
        let of_block = |block| {
            let ratio = |(n, a, b): &(f64, &Operation<'_>, &Operation<'_>)| {
                Some((*n, rate(a, block)? / rate(b, block)?))
            };
            sides.iter().map(ratio).collect::<Option<Vec<_>>>()
        };
        Ok(blocks.filter_map(of_block).collect())
    }
}
