//! Send times of the wire engine's requests, as a plan has them.

use load::wire::pacer::{self, Arrivals};
use load::wire::{Pacing, ThinkTime};
use model::{Kv, Load, Phase, Schedule, Stage, Stop};

/// Of a phase under a load, from the start of the warm-up.
pub(crate) fn of_phase(kv: &Kv, phase: &Phase, load: &Load) -> Pacing {
    let stages: Vec<Stage> = match &load.schedule {
        // The warm-up runs at the level of the first stage.
        Schedule::Stages(stages) => {
            let warmup = stages.first().map(|s| Stage::level(s.from, phase.warmup_ns));
            warmup.into_iter().chain(stages.iter().copied()).collect()
        }
        Schedule::Steady(rate_per_s) if load.is_planned() => {
            let length_ns = match phase.stop {
                Stop::AfterNs(ns) => phase.warmup_ns + ns,
                Stop::Count(_) => u64::MAX / 2,
            };
            vec![Stage::level(*rate_per_s, length_ns)]
        }
        // All clients are active all the time.
        Schedule::Steady(_) | Schedule::Share(_) | Schedule::Shares(_) | Schedule::Search(_) => {
            Vec::new()
        }
    };
    let arrivals = match load.arrivals {
        model::Arrivals::Constant if !stages.is_empty() => Arrivals::Constant,
        model::Arrivals::Poisson if !stages.is_empty() => Arrivals::Poisson,
        _ => {
            let think = ThinkTime { ns: kv.think_ns, is_drawn: kv.think_is_drawn };
            return Pacing::Closed { think, stages };
        }
    };
    let each = kv.operations_of_one_paced(phase) as f64;
    let paced = |stage: &Stage| pacer::Stage {
        rate_from_per_s: stage.from as f64 / each,
        rate_to_per_s: stage.to as f64 / each,
        length_ns: stage.length_ns,
    };
    Pacing::Open { arrivals, stages: stages.iter().map(paced).collect() }
}

/// Of a fill, which ends after its number of keys.
pub(crate) fn of_fill(kv: &Kv) -> Pacing {
    match kv.fill_per_s {
        0 => Pacing::Closed { think: ThinkTime::default(), stages: Vec::new() },
        per_s => {
            let (rate, length_ns) = (per_s as f64, u64::MAX / 2);
            let stage = pacer::Stage { rate_from_per_s: rate, rate_to_per_s: rate, length_ns };
            Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] }
        }
    }
}
