//! What others took of the CPUs in a search or a ramp, and what is left out for that.

use model::{Cell, Search, Trial};

use crate::notes::Notes;
use crate::ramp::{Climb, Ramp};
use crate::rules::LOST_SHARE_MAX;
use crate::show;
use crate::validity::Findings;

/// What others took in the judged probes of a search or in the stages below a knee, and what was
/// due in them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lost {
    /// Share of the time for which the generator's CPU was gone, mean of its threads.
    generator: f64,
    /// The same of the server's.
    server: f64,
    /// Share of the requests that is left out.
    left_out: f64,
}

impl Lost {
    /// Of probes, which are of a cell.
    pub(crate) fn of_probes<'a>(
        trials: impl Iterator<Item = &'a Trial>,
        cell: Option<&Cell>,
    ) -> Self {
        let (mut whole_ns, mut generator_ns, mut server_ns) = (0, 0, 0);
        let (mut all, mut left_out) = (0, 0);
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        for trial in trials {
            let Some(phase) = trial.phases.first() else { continue };
            whole_ns += phase.wall_ns;
            let Some(due) = &phase.due else { continue };
            all += sum(&due.due_per_interval);
            // Lost time is known also where so much was lost that nothing is left out.
            if let Some(disturbed) = &due.disturbed {
                generator_ns += disturbed.generator_ns;
                server_ns += disturbed.server_ns;
            }
            left_out += Search::left_out(trial).map_or(0, |d| sum(&d.due_per_interval));
        }
        // Each thread of the generator tells what it lost, and what it saw of the server.
        let threads = cell.map_or(1, Cell::threads);
        let all_ns = (whole_ns as f64 * f64::from(threads)).max(1.0);
        Self {
            generator: generator_ns as f64 / all_ns,
            server: server_ns as f64 / all_ns,
            left_out: left_out as f64 / all.max(1) as f64,
        }
    }

    /// Of the stages of a ramp's whole climbs that are no higher than the knee, or the lowest.
    pub(crate) fn of_ramp(ramp: &Ramp<'_>) -> Self {
        let (mut all, mut whole_ns) = (0, 0.0);
        let mut sum = Self::default();
        for stage in ramp.whole().flat_map(Climb::up_to_knee) {
            let (requests, ns) = (stage.whole().map_or(0, |o| o.counts.total()), stage.length_ns());
            all += requests;
            whole_ns += ns;
            sum.generator += stage.lost.0 * ns;
            sum.server += stage.lost.1 * ns;
            sum.left_out += stage.left_out * requests as f64;
        }
        let (all, whole_ns) = ((all as f64).max(1.0), f64::max(whole_ns, 1.0));
        Self {
            generator: sum.generator / whole_ns,
            server: sum.server / whole_ns,
            left_out: sum.left_out / all,
        }
    }

    /// True where what is left no longer stands for the store.
    pub(crate) fn is_too_much(self) -> bool {
        self.generator.max(self.server) > LOST_SHARE_MAX
    }

    /// Notes what is left out for that, and of what, and finds fault where it was too much; each
    /// sentence begins with the place.
    pub(crate) fn check(self, place: &str, of: &str, findings: &mut Findings, notes: &mut Notes) {
        let words = self.words();
        if self.left_out > 0.0 {
            let share = show::percent(self.left_out);
            notes.add(format!(
                "{place}{words}: what that delayed, {share} of the requests, is left out of {of}"
            ));
        }
        if self.is_too_much() {
            let cure = "stop what else runs there, or measure on a quieter machine";
            findings.not_steady("others took the CPUs", format!("{place}{words}: {cure}"));
        }
    }

    /// What was lost, in a clause.
    fn words(self) -> String {
        format!(
            "others took the CPU of the generator for {} of the time and that of the server for {}",
            show::percent(self.generator),
            show::percent(self.server),
        )
    }
}
