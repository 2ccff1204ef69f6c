//! May the numbers be used? The rules of [`crate::rules`] applied to one run.

use model::{
    Counts, ErrorClass, Generation, Header, Kv, Load, Plan, Point, SealStatus, Stop, Trial,
    Workload,
};
use stats::compare::FEWEST_BLOCKS;
use stats::steady::{FEWEST_INTERVALS, Steady, is_steady};

use crate::cache;
use crate::judge::{unsealed, whole_blocks};
use crate::notes::Notes;
use crate::null;
use crate::outages;
use crate::ramp::Ramp;
use crate::read_back;
use crate::recorded::Recorded;
use crate::rules::{
    BUSY_SHARE_MAX, DRIFT_SHARE_MAX, LENGTH_SHARE_MIN, LONGEST_SHARE_MAX, OWN_SHARE_MAX,
    OWN_SHARE_NOTE, SILENCE_MIN,
};
use crate::series::MeasuredPoint;
use crate::show;
use crate::view::Validity;

/// What a clean removed is saved again before the next call, so that there is something to remove.
const CLEANED_ANEW: &str = "\
    records that a clean removed are saved again before the client's next call, untimed: rates and \
    times are those of the calls, but CPU time contains that work, and so does what other clients \
    waited for";

/// Broken rules, by what follows from them.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) invalid: Vec<String>,
    not_steady: Vec<String>,
    unreplicated: Vec<String>,
    /// What was not steady, in a few words, each once.
    pub(crate) unsteady: Vec<&'static str>,
}

impl Findings {
    /// Adds what makes a run NOT-STEADY, in a few words and in a sentence.
    pub(crate) fn not_steady(&mut self, words: &'static str, sentence: String) {
        if !self.unsteady.contains(&words) {
            self.unsteady.push(words);
        }
        self.not_steady.push(sentence);
    }

    /// The judgement and its reasons, the graver first.
    pub(crate) fn judgement(self) -> (Validity, Vec<String>) {
        let graded = [
            (Validity::Invalid, &self.invalid),
            (Validity::NotSteady, &self.not_steady),
            (Validity::Unreplicated, &self.unreplicated),
        ];
        let worst = graded.iter().find(|(_, reasons)| !reasons.is_empty());
        let validity = worst.map_or(Validity::Valid, |(validity, _)| *validity);
        (validity, [self.invalid, self.not_steady, self.unreplicated].concat())
    }
}

/// Fewest repetitions of each cell, of its phases or its ramp, that a run may have to be VALID.
pub(crate) fn check_replication(
    plan: &Plan,
    phases: &[MeasuredPoint<'_>],
    ramps: &[Ramp<'_>],
    findings: &mut Findings,
) {
    if plan.search.is_some() {
        return;
    }
    let of_ramps = ramps.iter().map(|ramp| ramp.whole().count());
    let repetitions = phases.iter().map(|phase| phase.trials.len()).chain(of_ramps);
    let Some(have) = repetitions.min().filter(|have| *have < FEWEST_BLOCKS) else { return };
    let plural = if have == 1 { "" } else { "s" };
    let cure = if plan.study == "bench" {
        "--blocks 3"
    } else {
        "a longer --budget, or --set blocks_min=3"
    };
    findings.unreplicated.push(format!(
        "{have} block{plural} of a cell, {FEWEST_BLOCKS} are the fewest for an interval or a \
         ranking: {cure}"
    ));
}

/// Rules about the run as a whole.
pub(crate) fn check_run(recorded: &Recorded, findings: &mut Findings, notes: &mut Notes) {
    check_targets(recorded, findings);
    read_back::check(recorded, findings, notes);
    outages::check(&recorded.trials, findings);
}

fn check_targets(recorded: &Recorded, findings: &mut Findings) {
    for target in recorded.header.plan.targets.iter().filter(|t| t.named) {
        if let Some(failure) = recorded.unavailable(&target.name) {
            findings.invalid.push(format!(
                "target `{}` was named and cannot be used ({}): the reason stands where it is \
                 listed as not run",
                target.name, failure.class
            ));
        }
    }
}

/// Failed trials, and cells without any.
pub(crate) fn check_cells(recorded: &Recorded, findings: &mut Findings) {
    if recorded.trials.is_empty() && !recorded.running {
        findings.invalid.push(format!("no trial was measured{}", why_no_trial(recorded)));
        return;
    }
    let blocks = recorded.seal.as_ref().map_or_else(|| whole_blocks(recorded), |s| s.blocks);
    if recorded.running {
        let text = format!("the run is under way, {blocks} whole blocks of it are measured so far");
        findings.unreplicated.push(text);
    } else if blocks == 0 {
        let text = "the run ended before every cell was measured once: go on with --resume";
        findings.invalid.push(text.into());
    }
    let complete = recorded.seal.as_ref().is_some_and(|s| s.status == SealStatus::Complete);
    for cell in &recorded.header.plan.cells {
        if recorded.unavailable(&cell.target).is_some() {
            continue;
        }
        let trials: Vec<&Trial> = recorded.trials.iter().filter(|t| t.cell == cell.id).collect();
        let failures: Vec<_> = trials.iter().filter_map(|t| t.failure.as_ref()).collect();
        if let Some(first) = failures.first() {
            findings.invalid.push(format!(
                "`{}`: {} of {} trials failed, first: {}: {}",
                cell.id,
                failures.len(),
                trials.len(),
                first.class,
                first.reason()
            ));
        }
        if trials.is_empty() && complete {
            findings.invalid.push(format!("`{}` was never measured", cell.id));
        }
    }
}

/// Why nothing was measured, as far as the record tells.
fn why_no_trial(recorded: &Recorded) -> String {
    let missing: Vec<String> = recorded
        .targets
        .iter()
        .filter_map(|t| Some(format!("{} {}", t.name, t.unavailable.as_ref()?.class)))
        .collect();
    if !missing.is_empty() {
        return format!(" ({}; see what was not run)", missing.join(", "));
    }
    match &recorded.seal {
        Some(seal) => format!(" ({})", seal.stopped_because),
        None => format!(" ({})", unsealed(recorded)),
    }
}

/// Rules about one phase; gives the footnotes that all its rows carry.
pub(crate) fn check_phase(
    phase: &MeasuredPoint<'_>,
    recorded: &Recorded,
    findings: &mut Findings,
    notes: &mut Notes,
) -> Vec<usize> {
    check_length(phase, findings);
    let mut carried = Vec::new();
    if phase.cleaned_anew() {
        carried.push(notes.add(CLEANED_ANEW));
    } else {
        carried.extend(check_generator(phase, findings).map(|text| notes.add(text)));
    }
    if let Workload::AppCache(workload) = &phase.cell.workload {
        carried.extend(cache::memory_notes(phase, workload).map(|text| notes.add(text)));
    }
    if let Workload::Kv(kv) = &phase.cell.workload {
        carried.extend(check_offered(phase, kv, findings).map(|text| notes.add(text)));
        let null = null::check(phase, kv, recorded, findings);
        carried.extend(null.map(|text| notes.add(text)));
    }
    carried.extend(check_drift(phase, findings).map(|text| notes.add(text)));
    if phase.cell.workload.generation() == Generation::Inside {
        carried.push(notes.add(format!(
            "profile {}: values are drawn inside the timed span, as the 2019 script did; rates \
             and times contain that work, which is the same for every target",
            phase.cell.workload.profile()
        )));
    }
    if phase.is_files_alone() {
        carried.push(notes.add(
            "files have no server process: the CPU of their work, also that of the file system, \
             is counted with the generator's",
        ));
    }
    carried.extend(pinning_notes(&recorded.header, notes));
    carried
}

/// Whether each block of a phase lasted as long as planned: nothing is answered any more where one
/// server of several is gone and every client waits for it.
fn check_length(phase: &MeasuredPoint<'_>, findings: &mut Findings) {
    let Some(Stop::AfterNs(planned_ns)) = phase.planned.map(|planned| planned.stop) else { return };
    if phase.cell.load.is_staged() {
        return;
    }
    // Where few operations follow one another, the last may have been long before the end.
    let silent_ns = |measured: &Point| {
        let operations = measured.whole().map_or(0, |whole| whole.counts.total());
        let usual_ns = measured.length_ns / operations.max(1);
        let silent_ns = planned_ns.saturating_sub(measured.length_ns);
        (operations > 0 && silent_ns > usual_ns.saturating_mul(SILENCE_MIN)).then_some(silent_ns)
    };
    let longest = phase.trials.iter().filter_map(|(_, measured)| silent_ns(measured)).max();
    let Some(silent_ns) = longest else { return };
    let share = silent_ns as f64 / planned_ns.max(1) as f64;
    if share > 1.0 - LENGTH_SHARE_MIN {
        findings.invalid.push(format!(
            "{}: nothing was answered in the last {} of {} (at most {} may be): see what became of \
             the server",
            phase.label(),
            show::ns(silent_ns as f64),
            show::ns(planned_ns as f64),
            show::percent(1.0 - LENGTH_SHARE_MIN)
        ));
    }
}

/// What is doubtful about how CPUs were divided.
pub(crate) fn pinning_notes(header: &Header, notes: &mut Notes) -> Vec<usize> {
    let facts = header.conditions.facts.iter().filter(|c| c.group == "pinning");
    let warned = facts.filter_map(|fact| Some((fact, fact.warning.as_ref()?)));
    warned
        .map(|(fact, warning)| notes.add(format!("{}: {}; {warning}", fact.name, fact.value)))
        .collect()
}

/// What a workload's data are called.
pub(crate) fn things(workload: &Workload) -> &'static str {
    match workload {
        Workload::Sessions(_) => "sessions",
        Workload::Kv(_) => "keys",
        Workload::AppCache(_) => "records",
    }
}

/// The classes of failed operations, the most frequent first.
pub(crate) fn classes(counts: &Counts) -> String {
    let mut classes: Vec<(&ErrorClass, &u64)> = counts.errors_by_class.iter().collect();
    if classes.is_empty() {
        return "no class was recorded".into();
    }
    classes.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let named = |(class, n): &(&ErrorClass, &u64)| match counts.error_examples.get(class) {
        Some(words) => format!("{n} {class} (such as: {words})"),
        None => format!("{n} {class}"),
    };
    classes.iter().map(named).collect::<Vec<_>>().join(", ")
}

/// The generator's own share of the clients' time; a footnote where it is merely high.
fn check_generator(phase: &MeasuredPoint<'_>, findings: &mut Findings) -> Option<String> {
    if phase.is_files_alone() {
        return None;
    }
    let own = median(phase.trials.iter().map(|(_, p)| p.own_share))?;
    let label = phase.label();
    if own > OWN_SHARE_MAX {
        findings.invalid.push(format!(
            "{label}: generator-bound, the clients spent {} of their time on the generator's own \
             work in the median trial (at most {} may): give the generator more CPUs or use fewer \
             clients",
            show::percent(own),
            show::percent(OWN_SHARE_MAX)
        ));
        return None;
    }
    (own > OWN_SHARE_NOTE).then(|| {
        format!(
            "{label}: the clients spent {} of their time on the generator's own work; the store \
             may be faster than shown",
            show::percent(own)
        )
    })
}

/// CPU time by time in the median trial: of a thread of the generator, and of the server, in CPUs,
/// where it can be seen.
pub(crate) fn busy(phase: &MeasuredPoint<'_>, kv: &Kv) -> Option<(f64, Option<f64>)> {
    let busy = |ns: u64, length_ns: u64| ns as f64 / length_ns as f64;
    let threads = f64::from(kv.threads.max(1));
    // Where nothing was answered there is no time to set it against.
    let timed = || phase.trials.iter().filter(|(_, p)| p.length_ns > 0);
    let own = median(timed().map(|(_, p)| busy(p.generator_cpu_ns, p.length_ns) / threads))?;
    let seen = timed().filter_map(|(_, p)| Some(busy(p.server_cpu_ns?, p.length_ns)));
    Some((own, median(seen)))
}

/// Whether an event loop offered what was planned; a footnote where that cannot be told.
fn check_offered(phase: &MeasuredPoint<'_>, kv: &Kv, findings: &mut Findings) -> Option<String> {
    let label = phase.label();
    let unsent: u64 = phase.trials.iter().map(|(_, p)| p.unsent).sum();
    if unsent > 0 {
        let why = outages::of_phase(phase).unwrap_or_else(|| {
            "offer a lower rate, or allow more under way with --clients or --pipeline".into()
        });
        findings.invalid.push(format!(
            "{label}: {unsent} requests were due and could not be sent within the time-out: {why}"
        ));
    }
    // Under an open load a thread may keep its CPU busy by waiting; there the lag tells.
    if matches!(phase.cell.load.in_phase(phase.name), Load::Open { .. } | Load::Ramp { .. }) {
        return None;
    }
    let (own, server) = busy(phase, kv)?;
    if own <= BUSY_SHARE_MAX {
        return None;
    }
    match server {
        Some(server) if server > BUSY_SHARE_MAX => None,
        Some(server) => {
            findings.invalid.push(format!(
                "{label}: generator-bound, its threads used {} of their CPUs and the server {} of \
                 one: give it more with --threads",
                show::percent(own),
                show::percent(server)
            ));
            None
        }
        None => Some(format!(
            "{label}: the generator's threads used {} of their CPUs; the server may be faster than \
             shown (try more --threads)",
            show::percent(own)
        )),
    }
}

/// Whether the rate moves within the phase, in block after block.
fn check_drift(phase: &MeasuredPoint<'_>, findings: &mut Findings) -> Option<String> {
    if phase.cell.load.is_staged() {
        return None;
    }
    let label = phase.label();
    if let Some(share) = longest_share(phase).filter(|share| *share > LONGEST_SHARE_MAX) {
        return Some(format!(
            "{label}: one operation lasted {} of its phase, too much to judge whether the rate was \
             steady",
            show::percent(share)
        ));
    }
    let blocks = phase.series().map(|series| series.done_per_interval.as_slice());
    let change = match is_steady(blocks, DRIFT_SHARE_MAX) {
        Steady::Yes => return None,
        Steady::TooShort => return too_short(phase, findings),
        Steady::NotShown(lo, hi) => {
            return Some(format!(
                "{label}: steadiness is not shown, within the phase the rate changes by {} to {} \
                 of its mean (more blocks, or longer ones, tell)",
                show::signed_percent(lo),
                show::signed_percent(hi)
            ));
        }
        Steady::No(change) => change,
    };
    let direction = if change > 0.0 { "rises" } else { "falls" };
    let text = format!(
        "{label}: the rate {direction} by {} of its mean within the phase, in block after block",
        show::percent(change.abs())
    );
    if phase.is_cold() {
        return Some(format!("{text}, as it does where the page cache fills"));
    }
    if phase.keeps_its_data() {
        let sentence = format!("{text}: warm up longer or measure longer");
        findings.not_steady("rates drifted while they were measured", sentence);
        return None;
    }
    Some(format!("{text}, as it may where data grow or clients end one by one"))
}

/// A phase of too few intervals, or blocks, to judge whether its rate was steady: one that ends by
/// time can be longer, so the run is UNREPLICATED; of others it is a footnote.
fn too_short(phase: &MeasuredPoint<'_>, findings: &mut Findings) -> Option<String> {
    let stop = phase.planned.map(|planned| planned.stop);
    let judged = phase.keeps_its_data() && phase.trials.len() >= FEWEST_BLOCKS;
    let Some(Stop::AfterNs(planned_ns)) = stop.filter(|_| judged) else {
        return Some("too short, or too few blocks, to judge whether the rate was steady".into());
    };
    let interval_ns = phase.series().map(|series| series.interval_ns).max().unwrap_or(0);
    let sentence = format!(
        "{} of measurement in a block are too short to judge whether the rate was steady, {} are \
         the least: --duration, or for a study --set measure_ms=",
        show::ns(planned_ns as f64),
        show::ns(((FEWEST_INTERVALS as u64 + 1) * interval_ns) as f64)
    );
    if !findings.unreplicated.contains(&sentence) {
        findings.unreplicated.push(sentence);
    }
    None
}

/// The longest operation as a share of its phase, in the median trial.
fn longest_share(phase: &MeasuredPoint<'_>) -> Option<f64> {
    let share = |p: &Point| {
        let longest_ns = p.operations.iter().map(|o| o.service.max_ns()).max()?;
        Some(longest_ns as f64 / p.length_ns.max(1) as f64)
    };
    median(phase.trials.iter().filter_map(|(_, p)| share(p)))
}

/// The middle value, the upper of two; `None` without values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
