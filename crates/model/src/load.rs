//! How operations are offered: by clients that wait for their replies, or at a rate.

use serde::{Deserialize, Serialize};
use stats::search::{A_ROUND, Purpose, Step};

use crate::search::{Search, Slo};
use crate::stages::{ClientStage, RateStage};

/// Name of the phase in which a ramp learns how much a store answers at most.
pub const PEAK: &str = "peak";

/// Name of what is told and recorded of the filling before the first phase.
pub const FILL: &str = "fill";

/// How operations are offered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Load {
    /// Each client sends its next operations when the last ones are answered.
    Closed {
        /// Clients at work at the same time, at least 1.
        clients: u32,
        /// True when all clients ask for the same session (parallel requests of one visitor).
        one_session: bool,
        /// Operations that a client sends at once, at least 1.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        pipeline: u32,
        /// The clients over time, from the end of the warm-up on; empty where all are at work all
        /// the time, else `clients` are the most of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stages: Vec<ClientStage>,
    },
    /// Operations are sent when they are due, whether or not others were answered.
    Open {
        /// Operations a second, at least 1; where there are stages, the highest rate of them.
        rate_per_s: u64,
        /// True for independent arrivals, false for evenly spaced ones.
        poisson: bool,
        /// Clients that share the operations, at least 1.
        clients: u32,
        /// Operations that a client may have under way, at least 1.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        pipeline: u32,
        /// The rate over time, from the end of the warm-up on; empty where it stays the same.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stages: Vec<RateStage>,
    },
    /// First, in the phase [`PEAK`], as closed; then as open, at rates that go up in steps until
    /// the store cannot follow.
    Ramp {
        /// Clients that share the operations, at least 1; each has one request under way.
        clients: u32,
        /// True for independent arrivals, false for evenly spaced ones.
        poisson: bool,
        /// How long each step lasts, nanoseconds, at least 1.
        stage_ns: u64,
        /// Time between two steps in which nothing is asked, so that the queue of one is no part
        /// of the next, nanoseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        rest_ns: u64,
        /// The rates.
        steps: RampSteps,
    },
    /// Probes that follow from one another until the highest rate within limits is known: the first
    /// as closed, all others as open.
    Search {
        /// Clients that share the operations, at least 1.
        clients: u32,
        /// Operations that a client may have under way, at least 1.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        pipeline: u32,
        /// What is searched for.
        search: Search,
    },
}

/// Rates of a ramp in the order of time; at least one, each above 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RampSteps {
    /// Thousandths of the rate that the same trial reached in its phase [`PEAK`].
    Permille(Vec<u32>),
    /// Operations a second.
    PerS(Vec<u64>),
}

impl RampSteps {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Permille(shares) => shares.len(),
            Self::PerS(rates) => rates.len(),
        }
    }

    /// Operations a second of each, where the peak is that many; at least 1.
    fn rates_per_s(&self, peak_per_s: f64) -> Vec<u64> {
        let share = |permille: &u32| (f64::from(*permille) * peak_per_s / 1e3).round() as u64;
        let rates: Vec<u64> = match self {
            Self::Permille(shares) => shares.iter().map(share).collect(),
            Self::PerS(rates) => rates.clone(),
        };
        rates.into_iter().map(|rate| rate.max(1)).collect()
    }
}

impl std::fmt::Display for RampSteps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.count();
        let plural = if count == 1 { "" } else { "s" };
        match self {
            Self::Permille(shares) => {
                let most = f64::from(shares.iter().max().copied().unwrap_or(0)) / 10.0;
                write!(f, "up to {most} % of the peak in {count} step{plural}")
            }
            Self::PerS(rates) => {
                let most = rates.iter().max().copied().unwrap_or(0);
                write!(f, "up to {most}/s in {count} step{plural}")
            }
        }
    }
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Load {
    /// A closed load of clients that each send one operation at a time.
    pub fn closed(clients: u32) -> Self {
        Self::Closed { clients, one_session: false, pipeline: 1, stages: Vec::new() }
    }

    /// Clients at work at the same time.
    pub fn clients(&self) -> u32 {
        let (Self::Closed { clients, .. }
        | Self::Open { clients, .. }
        | Self::Ramp { clients, .. }
        | Self::Search { clients, .. }) = self;
        *clients
    }

    /// Operations that a client may have under way.
    pub fn pipeline(&self) -> u32 {
        match self {
            Self::Closed { pipeline, .. }
            | Self::Open { pipeline, .. }
            | Self::Search { pipeline, .. } => *pipeline,
            Self::Ramp { .. } => 1,
        }
    }

    /// Which times tell how long users wait: those from the moment at which a request was due,
    /// where that is not the moment at which it was sent. The first word of their metrics' names.
    pub fn times(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "service",
            Self::Open { .. } | Self::Ramp { .. } | Self::Search { .. } => "response",
        }
    }

    /// How a phase is offered: as this says, but for the peak of a ramp.
    #[must_use]
    pub fn in_phase(&self, phase: &str) -> Self {
        match self {
            Self::Ramp { clients, .. } if phase == PEAK => Self::closed(*clients),
            other => other.clone(),
        }
    }

    /// A ramp as the open load that it is where the peak is so many operations a second; any other
    /// load as it is.
    #[must_use]
    pub fn at_peak(self, peak_per_s: f64) -> Self {
        let Self::Ramp { clients, poisson, stage_ns, rest_ns, steps } = self else { return self };
        let rates = steps.rates_per_s(peak_per_s);
        let stage = |rate, length_ns| RateStage { length_ns, from_per_s: rate, to_per_s: rate };
        let mut stages = Vec::new();
        for rate in &rates {
            if rest_ns > 0 && !stages.is_empty() {
                stages.push(stage(0, rest_ns));
            }
            stages.push(stage(*rate, stage_ns));
        }
        let rate_per_s = rates.iter().max().copied().unwrap_or(1);
        Self::Open { rate_per_s, poisson, clients, pipeline: 1, stages }
    }

    /// What is searched for; `None` under any other load.
    pub fn search(&self) -> Option<&Search> {
        match self {
            Self::Search { search, .. } => Some(search),
            Self::Closed { .. } | Self::Open { .. } | Self::Ramp { .. } => None,
        }
    }

    /// A search as the steady load of one of its probes; any other load as it is.
    #[must_use]
    pub fn at_probe(&self, step: Step) -> Self {
        let Self::Search { clients, pipeline, search } = self else { return self.clone() };
        let (clients, pipeline) = (*clients, *pipeline);
        if step.purpose == Purpose::Peak {
            return Self::Closed { clients, one_session: false, pipeline, stages: Vec::new() };
        }
        let (rate_per_s, poisson) = (step.rate_per_s, search.poisson);
        Self::Open { rate_per_s, poisson, clients, pipeline, stages: Vec::new() }
    }

    /// A steady part of this load, in thousandths: of a ramp whose peak is so many operations a
    /// second, of an open load's rate, of a closed load's clients. Where each operation arrives by
    /// itself that would else be one of `at_once`, a closed load takes as many times the clients.
    #[must_use]
    pub fn part(&self, permille: u32, peak_per_s: f64, at_once: u32) -> Self {
        let share = f64::from(permille) / 1e3;
        let of = |whole: f64| (whole * share).round().max(1.0);
        let (clients, pipeline) = (self.clients(), self.pipeline());
        let open = |per_s: f64, poisson: bool| {
            let (rate_per_s, stages) = (of(per_s) as u64, Vec::new());
            Self::Open { rate_per_s, poisson, clients, pipeline, stages }
        };
        match self {
            Self::Closed { one_session, .. } => {
                let clients = of(f64::from(clients) * f64::from(at_once)) as u32;
                Self::Closed { clients, one_session: *one_session, pipeline, stages: Vec::new() }
            }
            Self::Open { rate_per_s, poisson, .. } => open(*rate_per_s as f64, *poisson),
            Self::Ramp { poisson, .. } => open(peak_per_s, *poisson),
            Self::Search { search, .. } => open(peak_per_s, search.poisson),
        }
    }

    /// About how long a search lasts in a phase with that warm-up, nanoseconds: eight probes of the
    /// bracket, the confirmation and the hold, with a rest between any two; 0 for any other load.
    pub fn search_ns(&self, warmup_ns: u64) -> u64 {
        let Self::Search { search, .. } = self else { return 0 };
        let confirmed = u64::from(search.rounds) * A_ROUND as u64;
        let probes = 1 + 8 + confirmed + 1;
        let lengths = 1 + 8 + 2 * confirmed + 10 + probes / 8;
        search.probe_ns.saturating_mul(lengths).saturating_add(warmup_ns.saturating_mul(probes))
    }

    /// How long the steps of a ramp and the rests between them last, nanoseconds; 0 for any other
    /// load.
    pub fn ramp_ns(&self) -> u64 {
        let Self::Ramp { stage_ns, rest_ns, steps, .. } = self else { return 0 };
        let count = steps.count() as u64;
        stage_ns * count + rest_ns * count.saturating_sub(1)
    }

    /// True where rate or clients change over time.
    pub fn is_staged(&self) -> bool {
        match self {
            Self::Open { stages, .. } => !stages.is_empty(),
            Self::Closed { stages, .. } => !stages.is_empty(),
            Self::Ramp { .. } | Self::Search { .. } => true,
        }
    }

    /// True where each phase is measured in stages, each of them a point of its own.
    pub fn is_ladder(&self) -> bool {
        match self {
            // One alone is a point, if not a steady one.
            Self::Open { stages, .. } => stages.len() > 1,
            Self::Closed { stages, .. } => !stages.is_empty(),
            Self::Ramp { .. } => true,
            Self::Search { .. } => false,
        }
    }

    /// True where points look for a limit of the store, beyond which failing is an answer.
    pub fn is_probing(&self) -> bool {
        self.is_ladder() || self.search().is_some()
    }

    /// True when all clients ask for the same session.
    pub fn one_session(&self) -> bool {
        matches!(self, Self::Closed { one_session: true, .. })
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Self::Closed { stages, .. } = self
            && !stages.is_empty()
        {
            joined(f, stages)?;
            return at_once(f, self.pipeline());
        }
        let clients = self.clients();
        let plural = if clients == 1 { "" } else { "s" };
        if let Self::Open { rate_per_s, poisson, stages, .. } = self {
            let spacing = if *poisson { "Poisson" } else { "evenly spaced" };
            if stages.is_empty() {
                write!(f, "{rate_per_s}/s {spacing} over ")?;
            } else {
                joined(f, stages)?;
                write!(f, ", {spacing}, over ")?;
            }
        }
        if let Self::Search { search, .. } = self {
            let limits: Vec<String> = search.slos.iter().map(Slo::words).collect();
            let spacing = if search.poisson { "Poisson" } else { "evenly spaced" };
            write!(
                f,
                "search for the highest rate with {}, {spacing}, over ",
                limits.join(" and ")
            )?;
        }
        if let Self::Ramp { poisson, stage_ns, rest_ns, steps, .. } = self {
            let spacing = if *poisson { "Poisson" } else { "evenly spaced" };
            write!(f, "{steps} of {} s, ", *stage_ns as f64 / 1e9)?;
            if *rest_ns > 0 {
                write!(f, "rests of {} s between them, ", *rest_ns as f64 / 1e9)?;
            }
            write!(f, "{spacing}, over ")?;
        }
        write!(f, "{clients} client{plural}")?;
        if self.one_session() {
            f.write_str(" on one session")?;
        }
        at_once(f, self.pipeline())
    }
}

/// Stages of which all are written out.
const TOLD_MAX: usize = 8;

fn joined(f: &mut std::fmt::Formatter<'_>, stages: &[impl std::fmt::Display]) -> std::fmt::Result {
    if let [first, second, .., last] = stages
        && stages.len() > TOLD_MAX
    {
        let count = stages.len();
        return write!(f, "{first}, then {second}, … then {last}, {count} stages in all");
    }
    stages.iter().enumerate().try_for_each(|(i, stage)| {
        let then = if i == 0 { "" } else { ", then " };
        write!(f, "{then}{stage}")
    })
}

fn at_once(f: &mut std::fmt::Formatter<'_>, pipeline: u32) -> std::fmt::Result {
    if pipeline > 1 { write!(f, ", {pipeline} at once") } else { Ok(()) }
}
