//! A load: how requests arrive, and what is offered over time.

use std::fmt;

use serde::{Deserialize, Serialize};
use stats::search::{A_ROUND, Purpose, Step};

use crate::arrivals::Arrivals;
use crate::search::{Search, Slo};
use crate::stages::Stage;

/// Name of the phase in which a trial learns how much a store answers at most.
pub const PEAK: &str = "peak";

/// Name of what is told and recorded of the filling before the first phase.
pub const FILL: &str = "fill";

/// How operations are offered: arrivals × schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Load {
    /// When a client sends.
    pub arrivals: Arrivals,
    /// What is offered over time.
    pub schedule: Schedule,
    /// Clients that share the operations, at least 1; of a closed load the most that are at work.
    pub clients: u32,
    /// Operations that a client may have in flight, at least 1.
    pub pipeline: u32,
    /// True when all clients ask for the same session (parallel requests of one visitor).
    pub one_session: bool,
}

/// What is offered over time, behind the warm-up. Its levels are clients at work where arrivals are
/// closed, and operations a second where they are planned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// The same level all the time, at least 1.
    Steady(u64),
    /// One level after the other; at least one stage.
    Stages(Vec<Stage>),
    /// Levels that follow from the rate that the same trial reaches in its phase [`PEAK`]; of
    /// planned arrivals only.
    Shares(Shares),
    /// Probes that follow from one another until the highest rate within limits is known: the first
    /// with closed arrivals, all others with planned ones; of planned arrivals only.
    Search(Search),
}

/// Stages of equal length, in shares of a peak.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shares {
    /// Thousandths of the peak in the order of time; at least one, each above 0.
    pub permille: Vec<u32>,
    /// How long each stage lasts, nanoseconds, at least 1.
    pub stage_ns: u64,
    /// Time between two stages in which nothing is offered, so that the queue of one is no part of
    /// the next, nanoseconds.
    pub rest_ns: u64,
}

impl Shares {
    /// The stages where the peak is so many operations a second; each offers at least 1.
    fn at_peak(&self, peak_per_s: f64) -> Vec<Stage> {
        let share = |permille: &u32| (f64::from(*permille) * peak_per_s / 1e3).round() as u64;
        let levels: Vec<u64> = self.permille.iter().map(|p| share(p).max(1)).collect();
        Stage::with_rests(&levels, self.stage_ns, self.rest_ns)
    }

    /// How long all of them last, nanoseconds.
    fn length_ns(&self) -> u64 {
        let count = self.permille.len() as u64;
        let rests_ns = self.rest_ns.saturating_mul(count.saturating_sub(1));
        self.stage_ns.saturating_mul(count).saturating_add(rests_ns)
    }
}

impl Load {
    /// Clients that each send one operation at a time, when their last one is answered.
    pub fn closed(clients: u32) -> Self {
        Self {
            arrivals: Arrivals::Closed,
            schedule: Schedule::Steady(clients.into()),
            clients,
            pipeline: 1,
            one_session: false,
        }
    }

    /// Operations that are sent when they are due, over clients that each have one in flight.
    pub fn planned(arrivals: Arrivals, schedule: Schedule, clients: u32) -> Self {
        Self { arrivals, schedule, ..Self::closed(clients) }
    }

    /// The same with so many operations of a client in flight.
    #[must_use]
    pub fn pipelined(self, pipeline: u32) -> Self {
        Self { pipeline, ..self }
    }

    /// True where operations are sent when they are due, whether or not others were answered.
    pub fn is_planned(&self) -> bool {
        self.arrivals != Arrivals::Closed
    }

    /// The rate of a load that offers one all the time, operations a second.
    pub fn steady_per_s(&self) -> Option<u64> {
        match self.schedule {
            Schedule::Steady(rate_per_s) if self.is_planned() => Some(rate_per_s),
            _ => None,
        }
    }

    /// The highest rate that is offered, operations a second; `None` where that is not planned or
    /// follows from what the store answers.
    pub fn highest_per_s(&self) -> Option<u64> {
        match &self.schedule {
            _ if !self.is_planned() => None,
            Schedule::Steady(rate_per_s) => Some(*rate_per_s),
            Schedule::Stages(stages) => Some(Stage::highest(stages)),
            Schedule::Shares(_) | Schedule::Search(_) => None,
        }
    }

    /// Which times tell how long users wait: those from the moment at which a request was due,
    /// where that is not the moment at which it was sent. The first word of their metrics' names.
    pub fn times(&self) -> &'static str {
        if self.is_planned() { "response" } else { "service" }
    }

    /// How a phase is offered: as this says, but with closed arrivals in the phase [`PEAK`].
    #[must_use]
    pub fn in_phase(&self, phase: &str) -> Self {
        if phase == PEAK { self.all_at_work() } else { self.clone() }
    }

    /// All clients at work all the time.
    fn all_at_work(&self) -> Self {
        let Self { clients, pipeline, one_session, .. } = *self;
        Self { one_session, ..Self::closed(clients).pipelined(pipeline) }
    }

    /// Shares of a peak as the stages that they are where the peak is so many operations a second;
    /// any other load as it is.
    #[must_use]
    pub fn at_peak(self, peak_per_s: f64) -> Self {
        let Schedule::Shares(shares) = &self.schedule else { return self };
        Self { schedule: Schedule::Stages(shares.at_peak(peak_per_s)), ..self }
    }

    /// What is searched for; `None` under any other load.
    pub fn search(&self) -> Option<&Search> {
        match &self.schedule {
            Schedule::Search(search) => Some(search),
            _ => None,
        }
    }

    /// A search as the steady load of one of its probes; any other load as it is.
    #[must_use]
    pub fn at_probe(&self, step: Step) -> Self {
        match (self.search(), step.purpose) {
            (None, _) => self.clone(),
            (Some(_), Purpose::Peak) => self.all_at_work(),
            (Some(_), _) => Self { schedule: Schedule::Steady(step.rate_per_s), ..self.clone() },
        }
    }

    /// A steady part of this load, in thousandths: of the peak where arrivals are planned, of the
    /// clients where they are closed. Where each operation arrives by itself that would else be one
    /// of `at_once`, a closed load takes as many times the clients.
    #[must_use]
    pub fn part(&self, permille: u32, peak_per_s: f64, at_once: u32) -> Self {
        let of = |whole: f64| (whole * f64::from(permille) / 1e3).round().max(1.0);
        if self.is_planned() {
            let schedule = Schedule::Steady(of(peak_per_s) as u64);
            return Self { schedule, ..self.clone() };
        }
        let clients = of(f64::from(self.clients) * f64::from(at_once)) as u32;
        Self { clients, ..self.clone() }.all_at_work()
    }

    /// About how long a search lasts in a phase with that warm-up, nanoseconds: eight probes of the
    /// bracket, the confirmation and the hold, with a rest between any two; 0 for any other load.
    pub fn search_ns(&self, warmup_ns: u64) -> u64 {
        let Some(search) = self.search() else { return 0 };
        let confirmed = u64::from(search.rounds) * A_ROUND as u64;
        let probes = 1 + 8 + confirmed + 1;
        let lengths = 1 + 8 + 2 * confirmed + 10 + probes / 8;
        search.probe_ns.saturating_mul(lengths).saturating_add(warmup_ns.saturating_mul(probes))
    }

    /// How long all stages last, with the rests between them, nanoseconds; 0 where there are none.
    pub fn stages_ns(&self) -> u64 {
        match &self.schedule {
            Schedule::Stages(stages) => Stage::length_of(stages),
            Schedule::Shares(shares) => shares.length_ns(),
            Schedule::Steady(_) | Schedule::Search(_) => 0,
        }
    }

    /// True where rate or clients change over time.
    pub fn is_staged(&self) -> bool {
        !matches!(self.schedule, Schedule::Steady(_))
    }

    /// True where each phase is measured in stages, each of them a point of its own.
    pub fn is_ladder(&self) -> bool {
        matches!(self.schedule, Schedule::Stages(_) | Schedule::Shares(_))
    }

    /// True where points look for a limit of the store, beyond which failing is an answer.
    pub fn is_probing(&self) -> bool {
        self.is_ladder() || self.search().is_some()
    }

    /// What is offered over time, in words.
    fn offered(&self) -> String {
        let unit = self.arrivals.unit();
        match &self.schedule {
            Schedule::Steady(level) => unit.of(*level),
            Schedule::Stages(stages) => listed(stages.iter().map(|stage| stage.words(unit))),
            Schedule::Shares(Shares { permille, stage_ns, rest_ns }) => {
                let most = f64::from(permille.iter().max().copied().unwrap_or(0)) / 10.0;
                let (count, seconds) = (permille.len(), *stage_ns as f64 / 1e9);
                let plural = if count == 1 { "" } else { "s" };
                let rests = match *rest_ns as f64 / 1e9 {
                    0.0 => String::new(),
                    seconds => format!(", rests of {seconds} s between them"),
                };
                format!("up to {most} % of the peak in {count} step{plural} of {seconds} s{rests}")
            }
            Schedule::Search(search) => {
                let limits: Vec<String> = search.slos.iter().map(Slo::words).collect();
                format!("search for the highest rate with {}", limits.join(" and "))
            }
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offered = self.offered();
        let clients = Arrivals::Closed.unit().of(self.clients.into());
        match (self.arrivals.spacing(), &self.schedule) {
            (None, _) => f.write_str(&offered)?,
            (Some(spacing), Schedule::Steady(_)) => {
                write!(f, "{offered} {spacing} over {clients}")?;
            }
            (Some(spacing), _) => write!(f, "{offered}, {spacing}, over {clients}")?,
        }
        if self.one_session {
            f.write_str(" on one session")?;
        }
        if self.pipeline > 1 { write!(f, ", {} at once", self.pipeline) } else { Ok(()) }
    }
}

/// Stages of which all are written out.
const TOLD_MAX: usize = 8;

fn listed(words: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = words.collect();
    match &all[..] {
        [first, second, .., last] if all.len() > TOLD_MAX => {
            let count = all.len();
            format!("{first}, then {second}, … then {last}, {count} stages in all")
        }
        _ => all.join(", then "),
    }
}
