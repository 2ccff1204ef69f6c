//! Loads: arrivals and schedule.

use std::fmt;

use serde::{Deserialize, Serialize};
use stats::search::{A_ROUND, Purpose, Step};

use crate::arrivals::Arrivals;
use crate::search::{Search, Slo};
use crate::stages::Stage;

/// Name of the phase that measures a store's maximum throughput.
pub const PEAK: &str = "peak";

/// Name of the fill before the first phase in progress reports and records.
pub const FILL: &str = "fill";

/// A load: arrivals × schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Load {
    /// Arrival process.
    pub arrivals: Arrivals,
    /// Offered level over time.
    pub schedule: Schedule,
    /// Number of clients, at least 1; for a closed load, the maximum of active ones.
    pub clients: u32,
    /// Maximum operations in flight per client, at least 1.
    pub pipeline: u32,
    /// True if all clients use the same session (parallel requests of one visitor).
    pub one_session: bool,
    /// True if each request of a closed load has its own connection, which is opened for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconnects: bool,
}

/// Offered level over time, after the warm-up. Levels are active clients for closed arrivals, and
/// operations per second for planned ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// A constant level, at least 1.
    Steady(u64),
    /// Consecutive stages, at least one.
    Stages(Vec<Stage>),
    /// Levels as shares of the rate that the same trial reaches in its phase [`PEAK`]; only for
    /// planned arrivals.
    Shares(Shares),
    /// A constant level in thousandths of that rate; only for planned arrivals.
    Share(u32),
    /// Probes until the highest rate within limits is known, the first with closed arrivals and all
    /// others with planned ones; only for planned arrivals.
    Search(Search),
}

/// Stages of equal length, in shares of a peak.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shares {
    /// Thousandths of the peak in order of time; at least one, each above 0.
    pub permille: Vec<u32>,
    /// Length of each stage, nanoseconds, at least 1.
    pub stage_ns: u64,
    /// Pause without load between two stages, nanoseconds, so that the queue of one does not affect
    /// the next.
    pub rest_ns: u64,
}

impl Shares {
    /// The stages for a peak in operations per second; each level is at least 1.
    fn at_peak(&self, peak_per_s: f64) -> Vec<Stage> {
        let share = |permille: &u32| (f64::from(*permille) * peak_per_s / 1e3).round() as u64;
        let levels: Vec<u64> = self.permille.iter().map(|p| share(p).max(1)).collect();
        Stage::with_pauses(&levels, self.stage_ns, self.rest_ns)
    }

    /// Total length, nanoseconds.
    fn length_ns(&self) -> u64 {
        let count = self.permille.len() as u64;
        let rests_ns = self.rest_ns.saturating_mul(count.saturating_sub(1));
        self.stage_ns.saturating_mul(count).saturating_add(rests_ns)
    }
}

impl Load {
    /// A closed load: each client sends its next operation when the last one is answered.
    pub fn closed(clients: u32) -> Self {
        Self {
            arrivals: Arrivals::Closed,
            schedule: Schedule::Steady(clients.into()),
            clients,
            pipeline: 1,
            one_session: false,
            reconnects: false,
        }
    }

    /// An open load: operations are sent when due, over clients with one in flight each.
    pub fn planned(arrivals: Arrivals, schedule: Schedule, clients: u32) -> Self {
        Self { arrivals, schedule, ..Self::closed(clients) }
    }

    /// The same with `pipeline` operations in flight per client.
    #[must_use]
    pub fn pipelined(self, pipeline: u32) -> Self {
        Self { pipeline, ..self }
    }

    /// The same with a new connection for each request.
    #[must_use]
    pub fn reconnecting(self) -> Self {
        Self { reconnects: true, ..self }
    }

    /// First word of the metric names of what a request waits for before it is sent: its
    /// connection, or its client.
    pub fn waits(&self) -> &'static str {
        if self.reconnects { "connect" } else { "lag" }
    }

    /// True if operations are sent when due, whether or not earlier ones were answered.
    pub fn is_planned(&self) -> bool {
        self.arrivals != Arrivals::Closed
    }

    /// The rate of a load with a constant rate, operations per second.
    pub fn steady_per_s(&self) -> Option<u64> {
        match self.schedule {
            Schedule::Steady(rate_per_s) if self.is_planned() => Some(rate_per_s),
            _ => None,
        }
    }

    /// The highest offered rate, operations per second; `None` if it is not planned or depends on
    /// the store.
    pub fn highest_per_s(&self) -> Option<u64> {
        match &self.schedule {
            _ if !self.is_planned() => None,
            Schedule::Steady(rate_per_s) => Some(*rate_per_s),
            Schedule::Stages(stages) => Some(Stage::highest(stages)),
            Schedule::Shares(_) | Schedule::Share(_) | Schedule::Search(_) => None,
        }
    }

    /// True if a request starts before it is sent: when it is due, or its connection is opened.
    pub fn has_response_times(&self) -> bool {
        self.is_planned() || self.reconnects
    }

    /// The relevant latency and the first word of its metric names: response time where a request
    /// starts before it is sent; otherwise service time.
    pub fn times(&self) -> &'static str {
        if self.has_response_times() { "response" } else { "service" }
    }

    /// The load of a phase: this one, but with closed arrivals in the phase [`PEAK`].
    #[must_use]
    pub fn in_phase(&self, phase: &str) -> Self {
        if phase == PEAK { self.with_all_clients() } else { self.clone() }
    }

    /// All clients active all the time.
    fn with_all_clients(&self) -> Self {
        let Self { clients, pipeline, one_session, reconnects, .. } = *self;
        Self { one_session, reconnects, ..Self::closed(clients).pipelined(pipeline) }
    }

    /// True if its rates are shares of that in phase [`PEAK`].
    pub fn needs_peak(&self) -> bool {
        matches!(self.schedule, Schedule::Shares(_) | Schedule::Share(_))
    }

    /// Converts shares of a peak to stages for a peak in operations per second; other loads are
    /// unchanged.
    #[must_use]
    pub fn at_peak(self, peak_per_s: f64) -> Self {
        let schedule = match &self.schedule {
            Schedule::Shares(shares) => Schedule::Stages(shares.at_peak(peak_per_s)),
            Schedule::Share(permille) => return self.part(*permille, peak_per_s, 1),
            _ => return self,
        };
        Self { schedule, ..self }
    }

    /// The search; `None` for other loads.
    pub fn search(&self) -> Option<&Search> {
        match &self.schedule {
            Schedule::Search(search) => Some(search),
            _ => None,
        }
    }

    /// Converts a search to the steady load of one of its probes; other loads are unchanged.
    #[must_use]
    pub fn at_probe(&self, step: Step) -> Self {
        match (self.search(), step.purpose) {
            (None, _) => self.clone(),
            (Some(_), Purpose::Peak) => self.with_all_clients(),
            (Some(_), _) => Self { schedule: Schedule::Steady(step.rate_per_s), ..self.clone() },
        }
    }

    /// A steady part of this load in thousandths: of the peak for planned arrivals, of the clients
    /// for closed ones. If `at_once` operations that are normally chained arrive independently, a
    /// closed load uses that many times the clients.
    #[must_use]
    pub fn part(&self, permille: u32, peak_per_s: f64, at_once: u32) -> Self {
        let of = |whole: f64| (whole * f64::from(permille) / 1e3).round().max(1.0);
        if self.is_planned() {
            let schedule = Schedule::Steady(of(peak_per_s) as u64);
            return Self { schedule, ..self.clone() };
        }
        let clients = of(f64::from(self.clients) * f64::from(at_once)) as u32;
        Self { clients, ..self.clone() }.with_all_clients()
    }

    /// Approximate length of a search in a phase with this warm-up, nanoseconds: eight probes of
    /// the bracket, the confirmation and the hold run, with a cool-down after each; 0 for other
    /// loads.
    pub fn search_ns(&self, warmup_ns: u64) -> u64 {
        let Some(search) = self.search() else { return 0 };
        let confirmed = u64::from(search.rounds) * A_ROUND as u64;
        let probes = 1 + 8 + confirmed + 1;
        let lengths = 1 + 8 + 2 * confirmed + 10 + probes / 8;
        search.probe_ns.saturating_mul(lengths).saturating_add(warmup_ns.saturating_mul(probes))
    }

    /// Total length of all stages and pauses, nanoseconds; 0 without stages.
    pub fn stages_ns(&self) -> u64 {
        match &self.schedule {
            Schedule::Stages(stages) => Stage::length_of(stages),
            Schedule::Shares(shares) => shares.length_ns(),
            Schedule::Steady(_) | Schedule::Share(_) | Schedule::Search(_) => 0,
        }
    }

    /// True if rate or clients change over time.
    pub fn is_staged(&self) -> bool {
        !matches!(self.schedule, Schedule::Steady(_) | Schedule::Share(_))
    }

    /// True if each phase is measured in stages, each with its own point.
    pub fn is_ladder(&self) -> bool {
        matches!(self.schedule, Schedule::Stages(_) | Schedule::Shares(_))
    }

    /// True if points search for a limit of the store, above which failures are results.
    pub fn is_probing(&self) -> bool {
        self.is_ladder() || self.search().is_some()
    }

    /// Description of the schedule.
    fn offered(&self) -> String {
        let unit = self.arrivals.unit();
        match &self.schedule {
            Schedule::Steady(level) => unit.of(*level),
            Schedule::Share(permille) => {
                format!("{} % of the highest rate", f64::from(*permille) / 10.0)
            }
            Schedule::Stages(stages) => listed(stages.iter().map(|stage| stage.words(unit))),
            Schedule::Shares(Shares { permille, stage_ns, rest_ns }) => {
                let max = f64::from(permille.iter().max().copied().unwrap_or(0)) / 10.0;
                let (count, seconds) = (permille.len(), *stage_ns as f64 / 1e9);
                let plural = if count == 1 { "" } else { "s" };
                let pauses = match *rest_ns as f64 / 1e9 {
                    0.0 => String::new(),
                    seconds => format!(", pauses of {seconds} s between them"),
                };
                format!("up to {max} % of the peak in {count} step{plural} of {seconds} s{pauses}")
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
        if self.reconnects {
            f.write_str(", a connection for each request")?;
        }
        if self.pipeline > 1 { write!(f, ", {} at once", self.pipeline) } else { Ok(()) }
    }
}

/// Maximum number of stages that are listed completely.
const LISTED_MAX: usize = 8;

fn listed(words: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = words.collect();
    match &all[..] {
        [first, second, .., last] if all.len() > LISTED_MAX => {
            let count = all.len();
            format!("{first}, then {second}, … then {last}, {count} stages in all")
        }
        _ => all.join(", then "),
    }
}
