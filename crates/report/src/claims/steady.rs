//! Latency that stays low up to some load.

use model::study::claims::Steady;

use super::context::{Context, Kind};
use super::judged::Judged;
use super::ramps::{judged, plain};
use crate::show;

impl Kind for Steady {
    fn expected(&self) -> String {
        let Self { targets, within, .. } = self;
        let (targets, within) = (targets.join(" and "), show::ratio(*within));
        format!("p99 of {targets} within {within} of the lowest stage's {}", range(self))
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let case = |target: &String| {
            let what = match self.cpu {
                Some(cpu) => format!(
                    "a second stage of {target} up to its knee and below {} of a CPU",
                    show::percent(cpu)
                ),
                None => format!("a second stage of {target} up to its knee"),
            };
            let ratio = context.each((target, target), &what, |ladder, _| {
                ladder.knee.held?;
                let below = |used: Option<f64>| match self.cpu {
                    Some(cpu) => used.is_some_and(|used| used < cpu),
                    None => true,
                };
                let stages = ladder.up_to_knee().filter(|stage| below(stage.server_cpus()));
                let times: Vec<f64> = stages.filter_map(|stage| stage.quantile(0.99)).collect();
                let (first, others) = times.split_first()?;
                others.iter().copied().reduce(f64::max).map(|most| most / first)
            });
            Ok(plain(ratio?, target.clone()))
        };
        judged(self.targets.iter().map(case), (0.0, self.within), "target", |case| {
            let ratio = show::ratio(case.ratio.center);
            format!("{}, p99 rises to {ratio} its value at the lowest stage", range(self))
        })
    }
}

/// The compared stages, in words.
fn range(claim: &Steady) -> String {
    match claim.cpu {
        Some(cpu) => format!("while the server uses less than {} of a CPU", show::percent(cpu)),
        None => "up to the knee".into(),
    }
}
