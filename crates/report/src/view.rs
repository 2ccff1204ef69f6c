//! The judged result of a run as plain data: every output is made from it and from nothing else.
//!
//! Serialised, it is the JSON summary that docs/FORMAT.md describes (without `charts`), and the
//! data of the HTML page (with them). Keys are stable.

use model::leftovers;
use model::{Calibration, Conditions, Load, Product, shell_words};
use serde::{Deserialize, Serialize};
use stats::Verdict;
use std::collections::BTreeMap;

mod answer;
mod growth;
mod happened;
mod ramps;
mod rows;
mod searches;
mod value;
mod words;

pub use answer::{Answer, Piece, PieceStyle, Sentence};
pub use growth::{GrowthPoint, GrowthView};
pub use happened::{EventView, FactView, Happened};
pub(crate) use ramps::{ALL, SAME_RATE};
pub use ramps::{
    PlaceView, RampBlock, RampCharts, RampOperation, RampPoint, RampStage, RampView, Saturation,
    SaturationSeries, StageInTime,
};
pub use rows::{BlockPoint, CurvePoint, Required, Row, RowCharts};
pub use searches::{BeyondView, ProbeView, SearchBlock, SearchView};
pub use stats::Time;
pub use value::Value;
pub use words::{
    Agreement, ClaimVerdict, ProbeReason, ProbeVerdict, RampOutcome, SearchOutcome, StageWay,
    Status,
};

/// Version of the JSON that [`View`] serialises to.
pub const VIEW_FORMAT: u32 = 1;

/// May the numbers be used?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    /// All fixed rules hold.
    Valid,
    /// They hold, with too few repetitions for an interval or a ranking.
    Unreplicated,
    /// A rule about steadiness does not hold.
    NotSteady,
    /// A rule about correctness does not hold.
    Invalid,
}

/// One fixed rule, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// What is looked at.
    pub name: &'static str,
    /// The limit, with its unit.
    pub limit: String,
    /// What follows beyond it, and why.
    pub meaning: &'static str,
}

/// A target as measured.
#[derive(Clone, Debug, Serialize)]
pub struct TargetView {
    /// Name in the run.
    pub name: String,
    /// Kind of store.
    pub kind: Product,
    /// Product and version as the server reported it; null when it never answered.
    pub product: Option<String>,
    /// Where it was, for people, without credentials.
    pub place: String,
    /// Settings that we gave a private server.
    pub settings: BTreeMap<String, String>,
    /// Why it was not measured; null when it was.
    pub not_run: Option<String>,
    /// The target that it repeats, for the A/A control.
    pub control_of: Option<String>,
}

/// Two targets at the same operation and load.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Profile of the study.
    pub workload: String,
    /// Operation.
    pub operation: String,
    /// Load.
    pub load: Load,
    /// What is compared: `rate_per_s`, or `service_ns_mean` where something else rules the rate:
    /// think time (the page layout), or the mix (one operation of several in a phase).
    pub metric: String,
    /// First target.
    pub a: String,
    /// Second target.
    pub b: String,
    /// Blocks that have both.
    pub blocks: u32,
    /// How many times as fast `a` is as `b`: above 1, `a` is the faster.
    pub ratio: Value,
    /// `a` against `b`, corrected for the number of comparisons in the run.
    pub verdict: Verdict,
    /// Why it is undecided, or other doubts.
    pub doubt: Option<String>,
}

/// A judged statement.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimView {
    /// Id in the study.
    pub id: String,
    /// The statement.
    pub text: String,
    /// Who said it where.
    pub source: String,
    /// Profile that it was judged on.
    pub workload: Option<String>,
    /// What the statement expects, for people: `redis / files from 1.13 to 1.53`.
    pub expected: String,
    /// The measured ratio; null when not run.
    pub measured: Option<Value>,
    /// What was found.
    pub verdict: ClaimVerdict,
    /// One sentence of explanation.
    pub note: String,
}

/// A row of the recommendation table.
#[derive(Clone, Debug, Serialize)]
pub struct AdviceView {
    /// Shop system.
    pub shop: String,
    /// `small` or `medium to large`.
    pub size: String,
    /// Concurrent requests that the study means by that.
    pub clients: u32,
    /// State of delivery.
    pub factory: String,
    /// What the study's source recommends.
    pub source_recommends: String,
    /// What these measurements recommend; null when they cannot say.
    pub recommended: Option<String>,
    /// Why, in one sentence with the ratio and its interval.
    pub why: String,
    /// Against the source.
    pub agreement: Agreement,
}

/// All targets in the order of their scores by the study's weights, for one load.
#[derive(Clone, Debug, Serialize)]
pub struct RankingView {
    /// Sizes of shop that mean this load.
    pub sizes: Vec<String>,
    /// Concurrent requests.
    pub clients: u32,
    /// Profile that the rates are of; of one with sizes the largest.
    pub workload: String,
    /// Why nothing of the order is decided; null where something may be.
    pub doubt: Option<String>,
    /// Highest score first.
    pub targets: Vec<RankedView>,
    /// What scores by other weights are made of; left out of the summary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<TargetRates>,
}

/// A target's place in a ranking.
#[derive(Clone, Debug, Serialize)]
pub struct RankedView {
    /// Name of the target.
    pub target: String,
    /// How many times the best target's score is its own; null for the best itself, and where no
    /// block has both.
    pub ratio: Option<Value>,
    /// Against the best; null for the best itself.
    pub verdict: Option<Verdict>,
}

/// A target's rates in single blocks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TargetRates {
    /// Name of the target.
    pub target: String,
    /// By operation and block: operations per second, of lists those by time in calls.
    pub by_operation: BTreeMap<String, BTreeMap<u32, f64>>,
    /// The same by wall time, of which the clients' own work between calls is a part.
    pub by_wall: BTreeMap<String, BTreeMap<u32, f64>>,
}

/// A trial that has no (complete) result.
#[derive(Clone, Debug, Serialize)]
pub struct FailureView {
    /// Block.
    pub block: u32,
    /// Number of the probe that failed, from 1; left out where all of the trial did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<u32>,
    /// Cell.
    pub cell: String,
    /// Target.
    pub target: String,
    /// Class of the fault.
    pub class: String,
    /// What happened.
    pub reason: String,
    /// The last lines of the server's log, where one died; null where an earlier failure of the
    /// same target has them.
    pub log: Option<String>,
}

/// What disturbed the run: the worst and the middle trial.
#[derive(Clone, Debug, Serialize)]
pub struct NoiseView {
    /// What: `steal`, `PSI cpu`, `other processes`, `run-queue wait`, `hiccup`.
    pub name: String,
    /// Median over trials, with unit.
    pub median: String,
    /// Largest over trials, with unit.
    pub worst: String,
    /// What it means.
    pub meaning: String,
}

/// The judged result of a run. Groups are no objects in JSON: their keys stand beside the others.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// [`VIEW_FORMAT`].
    pub format: u32,
    /// Id of the run.
    pub run: String,
    /// What was asked.
    #[serde(flatten)]
    pub asked: Asked,
    /// What was found.
    pub answer: Answer,
    /// May the numbers be used?
    pub validity: Validity,
    /// Why not.
    pub reasons: Vec<String>,
    /// What was not steady, in a few words each.
    pub unsteady: Vec<String>,
    /// How the run went.
    #[serde(flatten)]
    pub course: Course,
    /// What was measured, with what and where.
    #[serde(flatten)]
    pub setup: Setup,
    /// Rows of results.
    pub cells: Vec<Row>,
    /// Every pair of targets.
    pub comparisons: Vec<Comparison>,
    /// Growth with the size of the data set; left out where no profile measures several sizes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<GrowthView>,
    /// What ramps found; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ramps: Vec<RampView>,
    /// Numbers about stores, and what happened to them.
    #[serde(flatten)]
    pub happened: Happened,
    /// What searches for the highest rate found; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<SearchView>,
    /// Judged statements.
    pub claims: Vec<ClaimView>,
    /// What is recommended.
    #[serde(flatten)]
    pub advised: Advised,
    /// Failed trials.
    pub failures: Vec<FailureView>,
    /// Warnings that rows point to; those that no row points to concern the whole run.
    pub footnotes: Vec<String>,
    /// The fixed rules that decided `validity`.
    pub rules: Vec<Rule>,
}

/// What was asked, and by which study.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// Name of the study.
    pub study: String,
    /// Its title.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// Where the study comes from.
    pub source: String,
    /// Scale.
    pub scale: String,
    /// Profiles measured.
    pub profiles: Vec<String>,
    /// Seed.
    pub seed: u64,
    /// Equivalence zone as a fraction.
    pub equivalence_zone: f64,
    /// Blocks below which nothing is decided.
    pub fewest_blocks: usize,
    /// `inside` or `outside`: whether the drawing of values is in the timed span, by profile.
    pub generation: BTreeMap<String, String>,
    /// What data each profile of an application cache has, one sentence by its name with the size;
    /// left out where there is none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
}

/// How the run went, and how it ended.
#[derive(Clone, Debug, Serialize)]
pub struct Course {
    /// How it ended.
    pub status: Status,
    /// Why no more blocks were added.
    pub stopped_because: String,
    /// Start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Wall seconds; of a run that was killed or resumed, those of its trials together.
    pub took_s: f64,
    /// True where it was interrupted or killed before and taken up again; else left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Whole blocks.
    pub blocks: u32,
    /// Files of the record that were changed after it was sealed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// What was measured, with what and where.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// Version and commit of cachedyno.
    pub tool: String,
    /// Command line.
    pub command: Vec<String>,
    /// Targets, also those not run.
    pub targets: Vec<TargetView>,
    /// Conditions under which it was measured.
    pub conditions: Conditions,
    /// What this machine was found to do; left out where it was not calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Disturbances.
    pub noise: Vec<NoiseView>,
}

/// What the advice of a study comes to; all empty without advice in the study.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Advised {
    /// The recommendation table.
    pub advice: Vec<AdviceView>,
    /// What the advice rests on: weights and sizes, one sentence.
    pub advice_basis: Option<String>,
    /// Weights of operations in scores, as the study has them; empty without advice.
    pub advice_weights: BTreeMap<String, f64>,
    /// The order of all targets by these weights, few clients first.
    pub rankings: Vec<RankingView>,
}

impl View {
    /// Why the run may not be used, but for what the answer of a search says already.
    pub(crate) fn other_reasons(&self) -> impl Iterator<Item = &String> {
        let is_said = |reason: &&String| self.searches.iter().any(|s| s.sentence == **reason);
        self.reasons.iter().filter(move |reason| !is_said(reason))
    }

    /// The flag that names the directory of its record, with a space before it; empty for the usual
    /// one.
    pub(crate) fn records_flag(&self) -> String {
        let out = leftovers::records(&self.setup.command);
        out.map_or_else(String::new, |out| format!(" {}", shell_words(["--out", out])))
    }

    /// Says that these files of the record were changed after it was sealed.
    pub fn mark_changed(&mut self, files: Vec<String>) {
        self.footnotes.extend(changed_words(&files));
        self.course.changed = files;
    }
}

/// Says that files of a record were changed after it was sealed; `None` where none were.
pub fn changed_words(files: &[String]) -> Option<String> {
    let fit = if files.len() == 1 { "no longer fits" } else { "no longer fit" };
    (!files.is_empty()).then(|| {
        format!(
            "the record was changed after it was sealed: {} {fit} the SHA-256 in its seal, so the \
             result may not be what was measured",
            files.join(", ")
        )
    })
}

impl View {
    /// The same without what only charts need: the summary that JSON output prints.
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
    /// As it stands in the heading of a result: `VALID`, `UNREPLICATED`, `NOT-STEADY` or
    /// `INVALID`.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Unreplicated => "UNREPLICATED",
            Self::NotSteady => "NOT-STEADY",
            Self::Invalid => "INVALID",
        }
    }
}
