//! What an operation costs near the answer of a search.

use model::Trial;
use stats::search::{Purpose, Seen};
use std::collections::BTreeMap;

use super::Judged;
use crate::rows::over_blocks;
use crate::view::Value;

/// How far from the answer probes may be, as a share of it.
const NEAR: f64 = 0.1;

type Read = fn(&Trial) -> Option<f64>;

impl Judged<'_> {
    /// CPUs that the server used, and CPU time of server and generator by operation: over the
    /// probes of the confirmation near a rate. Empty without any.
    pub(super) fn costs(&self, rate_per_s: f64) -> BTreeMap<String, Value> {
        let near = |seen: &Seen| {
            seen.purpose == Purpose::Confirm
                && !seen.broke
                && (seen.rate_per_s as f64 / rate_per_s - 1.0).abs() <= NEAR
        };
        let trials: Vec<&Trial> = self.pairs().filter(|(s, _)| near(s)).map(|(_, t)| t).collect();
        let reads: [(&str, Read); 3] = [
            ("server_cpus", |t| {
                let point = t.points.first()?;
                Some(point.server_cpu_ns? as f64 / point.length_ns.max(1) as f64)
            }),
            ("server_cpu_ns_per_op", |t| by_operation(t, t.points.first()?.server_cpu_ns?)),
            ("generator_cpu_ns_per_op", |t| by_operation(t, t.points.first()?.generator_cpu_ns)),
        ];
        let seed = self.recorded.header.plan.seed;
        let over = |(name, read): (&str, Read)| {
            let values = trials.iter().filter_map(|trial| read(trial));
            Some((name.to_string(), over_blocks(values, seed)?.0))
        };
        reads.into_iter().filter_map(over).collect()
    }
}

fn by_operation(trial: &Trial, cpu_ns: u64) -> Option<f64> {
    let answered = trial.points.first()?.whole()?.counts.total();
    (answered > 0).then(|| cpu_ns as f64 / answered as f64)
}
