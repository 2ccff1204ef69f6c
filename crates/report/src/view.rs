//! The evaluated result of a run as plain data, the only source of every output.
//!
//! It serialises to the JSON summary that docs/FORMAT.md describes (without `charts`), and to the
//! data of the HTML page (with `charts`). Keys are stable.

use model::leftovers;
use model::study::{AdviceNote, PublishedTable};
use model::{Calibration, Conditions, Load, Product, shell_words};
use serde::{Deserialize, Serialize};
use stats::Verdict;
use std::collections::BTreeMap;

mod answer;
mod break_even;
mod capabilities;
mod deletions;
mod failover;
mod grids;
mod growth;
mod happened;
mod memory_need;
mod miss_cost;
mod noise;
mod ramps;
mod rows;
mod rule;
mod searches;
mod servers;
mod shards;
mod tiers;
mod value;
mod words;
mod workers;

pub use answer::{Answer, Piece, PieceStyle, Sentence};
pub use break_even::BreakEvenView;
pub use capabilities::{CapabilityView, OperatingView};
pub use deletions::{DeletionPhase, DeletionView};
pub use failover::{FailoverView, FaultTrouble, SpreadView, SurvivalView};
pub use grids::{GridAxis, GridAxisName, GridCell, GridView};
pub use growth::{GrowthPoint, GrowthView};
pub use happened::{EventView, FactView, Happened};
pub use memory_need::{MemoryNeedView, OutgrownStep, OutgrownView};
pub use miss_cost::MissCostView;
pub use noise::NoiseView;
pub(crate) use ramps::{ALL, SAME_RATE};
pub use ramps::{
    HelpsView, PlaceView, RampBlock, RampCharts, RampOperation, RampPoint, RampStage, RampView,
    Saturation, SaturationSeries, StageInTime,
};
pub use rows::{BlockPoint, CurvePoint, Required, ResourceCharts, Row, RowCharts};
pub use rule::Rule;
pub use searches::{BeyondView, ProbeView, SearchBlock, SearchView};
pub use servers::{RoleSpan, ServerCharts, ServerCourse, ServerRole};
pub use shards::ShardsView;
pub use stats::Time;
pub use tiers::{ReachedLimit, TierPhase, TierView};
pub use value::Value;
pub use words::{
    Agreement, ClaimUnit, ClaimVerdict, ProbeReason, ProbeVerdict, RampOutcome, SearchOutcome,
    StageWay, Status,
};
pub use workers::WorkerView;

/// Version of the JSON that [`View`] serialises to.
pub const VIEW_FORMAT: u32 = 1;

/// Whether the numbers can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    /// All fixed rules are met.
    Valid,
    /// All rules are met, but there are too few blocks for an interval or a ranking.
    Unreplicated,
    /// A rule about steadiness is violated.
    NotSteady,
    /// A rule about correctness is violated.
    Invalid,
}

/// A target as measured.
#[derive(Clone, Debug, Serialize)]
pub struct TargetView {
    /// Name in the run.
    pub name: String,
    /// Kind of store.
    pub kind: Product,
    /// Product and version as the server reported them; null if it never replied.
    pub product: Option<String>,
    /// Readable location, without credentials.
    pub place: String,
    /// Limit of its disk, enforced by the kernel, as text; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_limit: Option<String>,
    /// Settings given to a private server.
    pub settings: BTreeMap<String, String>,
    /// Why it was not measured; null if it was.
    pub not_run: Option<String>,
    /// The target that it duplicates, in an A/A control.
    pub control_of: Option<String>,
}

/// Comparison of two targets at the same operation and load.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Profile of the study.
    pub workload: String,
    /// Operation.
    pub operation: String,
    /// Load.
    pub load: Load,
    /// The compared metric: `rate_per_s`, or `service_ns_mean` if the rate is determined by think
    /// time (the page layout) or by the mix (one operation of several in a phase).
    pub metric: String,
    /// First target.
    pub a: String,
    /// Second target.
    pub b: String,
    /// Blocks with results of both.
    pub blocks: u32,
    /// Speed of `a` divided by that of `b`: above 1, `a` is faster.
    pub ratio: Value,
    /// Verdict on `a` against `b`, corrected for the number of comparisons in the run.
    pub verdict: Verdict,
    /// Why the verdict is undecided, or another caveat.
    pub doubt: Option<String>,
}

/// A claim and its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimView {
    /// Id in the study.
    pub id: String,
    /// The statement.
    pub text: String,
    /// Source of the statement.
    pub source: String,
    /// The source's own figure; omitted if it gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_value: Option<String>,
    /// Profile on which it was tested.
    pub workload: Option<String>,
    /// True if it is about published tables, not about this run; omitted otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_tables: bool,
    /// Readable expectation: `redis / files from 1.13 to 1.53`.
    pub expected: String,
    /// The measured or published value; null if not run.
    pub measured: Option<Value>,
    /// What it is.
    pub unit: ClaimUnit,
    /// It with its unit and interval; null if not run.
    pub shown: Option<String>,
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// One sentence of explanation.
    pub note: String,
}

impl ClaimView {
    /// What it was judged on: a profile, or tables of the source.
    pub(crate) fn judged_on(&self) -> Option<&str> {
        if self.of_tables { Some("the source's tables") } else { self.workload.as_deref() }
    }
}

/// A row of the recommendation table.
#[derive(Clone, Debug, Serialize)]
pub struct AdviceView {
    /// Shop system.
    pub shop: String,
    /// `small` or `medium to large`.
    pub size: String,
    /// Number of concurrent requests that stands for this size in the study.
    pub clients: u32,
    /// The shop's default store.
    pub factory: String,
    /// Recommendation of the study's source.
    pub source_recommends: String,
    /// Recommendation by these measurements; null if they are inconclusive.
    pub recommended: Option<String>,
    /// Reason, in one sentence with the ratio and its interval.
    pub why: String,
    /// Agreement with the source.
    pub agreement: Agreement,
    /// The source's second choice against the default, one sentence; omitted if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<String>,
}

/// All targets in the order of their scores by the study's weights, for one load.
#[derive(Clone, Debug, Serialize)]
pub struct RankingView {
    /// Sizes of shop with this load.
    pub sizes: Vec<String>,
    /// Concurrent requests.
    pub clients: u32,
    /// Profile of the rates; if it measures several sizes, the largest.
    pub workload: String,
    /// Why the order is entirely undecided; null if parts of it can be decided.
    pub doubt: Option<String>,
    /// Highest score first.
    pub targets: Vec<RankedView>,
    /// Data for scores with other weights; omitted from the summary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<TargetRates>,
}

/// A target's place in a ranking.
#[derive(Clone, Debug, Serialize)]
pub struct RankedView {
    /// Name of the target.
    pub target: String,
    /// The best target's score divided by this one's; null for the best itself, and if no block
    /// has both.
    pub ratio: Option<Value>,
    /// Verdict against the best; null for the best itself.
    pub verdict: Option<Verdict>,
}

/// A target's rates in each block.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TargetRates {
    /// Name of the target.
    pub target: String,
    /// By operation and block: operations per second; for lists, per second spent in calls.
    pub by_operation: BTreeMap<String, BTreeMap<u32, f64>>,
    /// The same per second of wall time, which includes the clients' own work between calls.
    pub by_wall: BTreeMap<String, BTreeMap<u32, f64>>,
}

/// A trial without a (complete) result.
#[derive(Clone, Debug, Serialize)]
pub struct FailureView {
    /// Block.
    pub block: u32,
    /// Number of the failed probe, from 1; omitted if the whole trial failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<u32>,
    /// Cell.
    pub cell: String,
    /// Its workload.
    pub workload: String,
    /// Phase that ended early with partial figures; omitted if the whole trial failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Target.
    pub target: String,
    /// Error class.
    pub class: String,
    /// Error message.
    pub reason: String,
    /// The last lines of the server's log if a server died; null if an earlier failure of the same
    /// target shows them.
    pub log: Option<String>,
}

/// The evaluated result of a run. Groups are flattened in JSON: their keys are at the top level.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// [`VIEW_FORMAT`].
    pub format: u32,
    /// Id of the run.
    pub run: String,
    /// The question.
    #[serde(flatten)]
    pub asked: Asked,
    /// The answer.
    pub answer: Answer,
    /// Whether the numbers can be used.
    pub validity: Validity,
    /// Reasons for a validity other than VALID.
    pub reasons: Vec<String>,
    /// Unsteady measurements, in a few words each.
    pub unsteady: Vec<String>,
    /// Course of the run.
    #[serde(flatten)]
    pub course: Course,
    /// Targets, tool and environment.
    #[serde(flatten)]
    pub setup: Setup,
    /// Rows of results.
    pub cells: Vec<Row>,
    /// Comparisons of all pairs of targets.
    pub comparisons: Vec<Comparison>,
    /// Growth with the size of the data set; omitted if no profile measures several sizes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<GrowthView>,
    /// Results of ramps; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ramps: Vec<RampView>,
    /// Numbers about stores, and events.
    #[serde(flatten)]
    pub happened: Happened,
    /// Results of searches for the highest rate; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<SearchView>,
    /// Claims with their verdicts.
    pub claims: Vec<ClaimView>,
    /// Recommendations.
    #[serde(flatten)]
    pub advised: Advised,
    /// Failed trials.
    pub failures: Vec<FailureView>,
    /// Warnings that rows refer to; those without a row concern the whole run.
    pub footnotes: Vec<String>,
    /// The fixed rules that decided `validity`.
    pub rules: Vec<Rule>,
}

/// The question of a run and its study.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// Name of the study.
    pub study: String,
    /// Its title.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// Origin of the study.
    pub source: String,
    /// Conditions under which the source measured, as pairs of name and value; omitted if none are
    /// known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_conditions: Vec<(String, String)>,
    /// Conditions of the source that no run can match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_unmatched: Vec<String>,
    /// Tables that the source publishes; omitted if the study has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedTable>,
    /// Scale.
    pub scale: String,
    /// Profiles measured.
    pub profiles: Vec<String>,
    /// Seed.
    pub seed: u64,
    /// Equivalence zone as a fraction.
    pub equivalence_zone: f64,
    /// With fewer blocks, every verdict is undecided.
    pub fewest_blocks: usize,
    /// By profile, whether values are generated `inside` or `outside` the timed span.
    pub generation: BTreeMap<String, String>,
    /// Data set of each profile of sessions or of an application cache, one sentence by profile
    /// name with size; omitted if there is none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
}

/// Course and end of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Course {
    /// How it ended.
    pub status: Status,
    /// Why no more blocks were measured.
    pub stopped_because: String,
    /// Start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Wall time in seconds; for a run that was killed or resumed, the sum over its trials.
    pub took_s: f64,
    /// The command that resumes it.
    #[serde(skip)]
    pub resume: String,
    /// True if it was resumed after an interruption or a kill; else omitted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Complete blocks.
    pub blocks: u32,
    /// Files of the record that were changed after it was sealed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// Targets, tool and environment of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// Version and commit of cachedyno.
    pub tool: String,
    /// Command line.
    pub command: Vec<String>,
    /// Targets, including those not run.
    pub targets: Vec<TargetView>,
    /// Cells of measured targets for which this machine lacks something, with what it lacks;
    /// omitted if it lacks nothing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cells_not_run: BTreeMap<String, String>,
    /// Conditions of the host and the servers.
    pub conditions: Conditions,
    /// Calibration of this machine; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Disturbances.
    pub noise: Vec<NoiseView>,
}

/// Results of a study's advice; most are empty if the study has no advice.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Advised {
    /// The recommendation table.
    pub advice: Vec<AdviceView>,
    /// Basis of the advice: weights and sizes, one sentence.
    pub advice_basis: Option<String>,
    /// Weights of operations in scores, as set by the study; empty without advice.
    pub advice_weights: BTreeMap<String, f64>,
    /// Facts of the source that matter for the choice but cannot be measured; omitted if there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice_notes: Vec<AdviceNote>,
    /// The order of all targets by these weights, few clients first.
    pub rankings: Vec<RankingView>,
    /// Purchases at which one application cache overtakes another; omitted if no profile measures
    /// page views and purchases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub break_even: Vec<BreakEvenView>,
    /// What the measured products can do apart from speed; omitted if the study compares fewer than
    /// two.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<CapabilityView>,
    /// What it takes to run each target; omitted together with `capabilities`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operating: Vec<OperatingView>,
}

impl View {
    /// Reasons why the run is not VALID, except those already given by a search's sentence.
    pub(crate) fn other_reasons(&self) -> impl Iterator<Item = &String> {
        let is_given = |reason: &&String| self.searches.iter().any(|s| s.sentence == **reason);
        self.reasons.iter().filter(move |reason| !is_given(reason))
    }

    /// The flag for the directory of its record, with a leading space; empty for the default
    /// directory.
    pub(crate) fn records_flag(&self) -> String {
        let out = leftovers::records(&self.setup.command);
        out.map_or_else(String::new, |out| format!(" {}", shell_words(["--out", out])))
    }

    /// Adds a footnote about files of the record that were changed after it was sealed.
    pub fn mark_changed(&mut self, files: Vec<String>) {
        self.footnotes.extend(changed_words(&files));
        self.course.changed = files;
    }
}

/// Warning about files of a record that were changed after it was sealed; `None` without any.
pub fn changed_words(files: &[String]) -> Option<String> {
    let matches = if files.len() == 1 { "no longer matches" } else { "no longer match" };
    (!files.is_empty()).then(|| {
        format!(
            "the record was changed after it was sealed: {} {matches} the SHA-256 in its seal, so \
             the result may differ from the measurement",
            files.join(", ")
        )
    })
}

impl View {
    /// A copy without chart data: the summary that JSON output prints.
    #[must_use]
    pub fn without_charts(&self) -> Self {
        let mut summary = self.clone();
        for row in &mut summary.cells {
            row.charts = None;
        }
        for ranking in &mut summary.advised.rankings {
            ranking.rates.clear();
        }
        for ramp in &mut summary.ramps {
            ramp.charts = None;
        }
        summary
    }
}

impl Validity {
    /// Text in the heading of a result: `VALID`, `UNREPLICATED`, `NOT-STEADY` or `INVALID`.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Unreplicated => "UNREPLICATED",
            Self::NotSteady => "NOT-STEADY",
            Self::Invalid => "INVALID",
        }
    }

    /// What to do with the numbers, for the line behind the reasons; `None` if nothing more need be
    /// said.
    pub(crate) fn warning(self) -> Option<&'static str> {
        match self {
            Self::Valid | Self::Unreplicated => None,
            Self::NotSteady => Some("NOT-STEADY: repeat the run before you rely on what follows."),
            Self::Invalid => Some("INVALID: use what follows for diagnosis only."),
        }
    }
}
