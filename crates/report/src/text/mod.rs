//! The result on a terminal, to be read at a glance: validity, one table a profile and load,
//! failures, claims, advice, and the footnotes that the numbers point to.

pub(crate) mod table;

mod effort;
mod growth;
mod happened;
mod locks;
mod overview;
mod problems;
mod ramp;
mod results;
pub(crate) mod search;

use stats::Verdict;

use crate::calibration;
use crate::sheet::{Block, Section};
use crate::show;
use crate::view::{
    AdviceView, Advised, ClaimVerdict, ClaimView, FailureView, RankedView, RankingView, Sentence,
    Status, TargetView, Validity, View,
};
use table::{Line, Paint, Table, named, paragraph, section, width};

/// Lines of failures in a summary.
const FAILURES_MAX: usize = 3;

/// The answer, the verdict and one table, for a terminal of `columns` columns, with or without
/// colours. What colour says, words or marks say as well.
pub fn summary(view: &View, columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let shown = |section: &Section| section.text(columns, paint);
    let mut parts = vec![
        heading(view, columns, paint),
        shown(&not_run(view)),
        shown(&overview::section(view)),
        shown(&few_failures(view)),
        paragraph("", 0, &next(view), columns),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// The first failures, and how many more there are.
fn few_failures(view: &View) -> Section {
    let mut section = failures(view);
    let more = section.blocks.len().saturating_sub(FAILURES_MAX);
    section.blocks.truncate(FAILURES_MAX);
    section.blocks.extend((more > 0).then(|| Block::Item(format!("{more} more lines"))));
    section
}

/// How the claims were judged, and where the rest is.
fn next(view: &View) -> String {
    let verdicts = [
        ClaimVerdict::Confirmed,
        ClaimVerdict::Refuted,
        ClaimVerdict::Undecided,
        ClaimVerdict::NotRun,
    ];
    let count = |verdict| view.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let counts = verdicts.map(|verdict| (count(verdict), verdict));
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, verdict)| format!("{count} {verdict}")).collect();
    let claims =
        if counts.is_empty() { String::new() } else { format!("claims: {}; ", counts.join(", ")) };
    let notes = match view.footnotes.len() {
        0 => String::new(),
        1 => " and a note".into(),
        notes => format!(" and {notes} notes"),
    };
    format!("{claims}details{notes}: `cachedyno show {} --details`", view.run)
}

/// The whole result, as [`summary`].
pub fn render(view: &View, columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let shown = |section: &Section| section.text(columns, paint);
    let [found, behind] = sections(view);
    let mut parts = vec![
        heading(view, columns, paint),
        shown(&not_run(view)),
        results::render(view, columns, paint),
    ];
    parts.extend(found.iter().map(shown));
    parts.extend([shown(&failures(view)), claims(view, columns, paint)]);
    parts.extend(behind.iter().map(shown));
    parts.extend([disturbances(view, columns, paint), footnotes(view, columns, paint)]);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn heading(view: &View, columns: usize, paint: Paint) -> String {
    let (word, painted) = (view.validity.heading(), painted(view.validity, paint));
    let space = columns.saturating_sub(width(&view.asked.title) + width(word));
    let mut text = if space < 2 {
        format!("{}{painted}\n", paint.title(&view.asked.title, columns))
    } else {
        format!("{}{}{painted}\n", paint.bold(&view.asked.title), " ".repeat(space.min(60)))
    };
    for said in view.answer.summary.iter().map(Sentence::text) {
        text += &paint.title(&said, columns);
    }
    text += &paragraph("", 0, &facts(view), columns);
    for reason in search::other_reasons(view) {
        text += &paragraph("  - ", 4, reason, columns);
    }
    if view.validity == Validity::Invalid {
        let warning = "The run is INVALID: what follows shows what happened and is no result.";
        text += &paragraph("", 0, warning, columns);
    }
    text
}

/// `VALID` or what it is instead, in its colour.
pub(crate) fn painted(validity: Validity, paint: Paint) -> String {
    let word = validity.heading();
    match validity {
        Validity::Valid => paint.good(word),
        Validity::Unreplicated | Validity::NotSteady => paint.doubtful(word),
        Validity::Invalid => paint.bad(word),
    }
}

/// Study, scale, size and end of the run, one line.
pub(crate) fn facts(view: &View) -> String {
    let plural = if view.course.blocks == 1 { "" } else { "s" };
    let (mut took, run) = (duration(view.course.took_s), &view.run);
    if view.course.resumed {
        took += " of trials (resumed)";
    } else if view.course.status == Status::Unsealed {
        took += " of trials";
    }
    let (study, scale, blocks) = (&view.asked.study, &view.asked.scale, view.course.blocks);
    let mut facts = format!("{study}, {scale} scale, {blocks} block{plural}, {took}, run {run}");
    if view.course.status != Status::Complete {
        facts += &format!(", {}", view.course.status);
    }
    if !view.course.stopped_because.is_empty()
        && view.course.stopped_because != view.course.status.name()
    {
        facts += &format!(" ({})", view.course.stopped_because);
    }
    if matches!(view.course.status, Status::Interrupted | Status::Unsealed) {
        facts += &format!("; `cachedyno run --resume {run}` goes on with it");
    }
    if !view.course.changed.is_empty() {
        facts += &format!(", changed after it was sealed ({})", view.course.changed.join(", "));
    }
    facts
}

fn duration(seconds: f64) -> String {
    if seconds < 90.0 {
        return format!("{seconds:.0} s");
    }
    let seconds = seconds.round() as u64;
    format!("{} min {} s", seconds / 60, seconds % 60)
}

/// Sections before failures and claims, and those behind them, in the order in which they are
/// shown.
pub(crate) fn sections(view: &View) -> [Vec<Section>; 2] {
    let found = [
        search::section,
        problems::section,
        locks::section,
        effort::section,
        growth::section,
        ramp::section,
        happened::section,
    ];
    let behind = vec![advice(view), settings_of_targets(view)];
    [found.iter().map(|section| section(view)).collect(), behind]
}

/// Targets that were not measured, and why.
pub(crate) fn not_run(view: &View) -> Section {
    let targets = view.setup.targets.iter();
    let told = targets.filter_map(|t| Some(format!("{}: {}", t.name, t.not_run.as_ref()?)));
    Section { title: "Not run", blocks: told.map(Block::Item).collect() }
}

/// Failed trials and probes, and the logs of servers that died.
pub(crate) fn failures(view: &View) -> Section {
    let told = |f: &FailureView| {
        let place = format!("{} in block {}{}", f.cell, f.block + 1, probe(f));
        let log = f.log.as_ref().map(|log| Block::Item(format!("its log: {log}")));
        [Some(Block::Item(format!("{place}: {}: {}", f.class, f.reason))), log]
    };
    Section {
        title: "Failed trials",
        blocks: view.failures.iter().flat_map(told).flatten().collect(),
    }
}

/// `, probe 12`; nothing where all of the trial failed.
pub(crate) fn probe(failure: &FailureView) -> String {
    failure.probe.map_or_else(String::new, |number| format!(", probe {number}"))
}

fn claims(view: &View, columns: usize, paint: Paint) -> String {
    let lines: String = view.claims.iter().map(|c| claim(c, columns, paint)).collect();
    section("Claims, judged on this machine", paint, &lines)
}

fn claim(claim: &ClaimView, columns: usize, paint: Paint) -> String {
    let verdict = format!("{:<9}", claim.verdict);
    let painted = match claim.verdict {
        ClaimVerdict::Confirmed => paint.good(&verdict),
        ClaimVerdict::Refuted => paint.doubtful(&verdict),
        ClaimVerdict::Undecided | ClaimVerdict::NotRun => paint.dim(&verdict),
    };
    let place = claim.workload.as_ref().map_or(String::new(), |w| format!(" on {w}"));
    let measured =
        claim.measured.as_ref().map_or(String::new(), |v| format!("{}, ", show::ratio_value(v)));
    let body =
        format!("{}{place}: {measured}expected {}; {}", claim.id, claim.expected, claim.note);
    // The paragraph is set without colour, so that its width is that of its words.
    paragraph(&format!("  {verdict}  "), 13, &body, columns).replacen(&verdict, &painted, 1)
}

fn advice(view: &View) -> Section {
    let title = "Advice";
    let Advised { advice, advice_basis, .. } = &view.advised;
    if advice.is_empty() {
        return Section { title, blocks: Vec::new() };
    }
    let cells = |a: &AdviceView| {
        vec![
            format!("  {}", a.shop),
            format!("{} ({})", a.size, a.clients),
            a.factory.clone(),
            a.source_recommends.clone(),
            a.recommended.clone().unwrap_or_else(|| "–".into()),
            a.agreement.to_string(),
        ]
    };
    let table = Table {
        header: named(vec![
            "  shop",
            "size (requests)",
            "delivered",
            "source",
            "here",
            "agreement",
        ]),
        right: Vec::new(),
        gap: 2,
        lines: advice.iter().map(|a| Line::Cells(cells(a), false)).collect(),
    };
    let said = reasons(advice).into_iter().map(|(places, why)| format!("{places}: {why}"));
    let orders = orders(view).into_iter().map(|(sizes, order)| format!("order, {sizes}: {order}"));
    let said = said.chain(advice_basis.clone()).chain(orders);
    let blocks = [Block::Table(vec![table])].into_iter().chain(said.map(Block::Item)).collect();
    Section { title, blocks }
}

/// Each reason once, with all rows that it stands for.
fn reasons(advice: &[AdviceView]) -> Vec<(String, String)> {
    let mut reasons: Vec<(String, String)> = Vec::new();
    for row in advice {
        let place = format!("{}, {}", row.shop, row.size);
        match reasons.iter_mut().find(|(_, why)| *why == row.why) {
            Some((places, _)) => *places += &format!("; {place}"),
            None => reasons.push((place, row.why.clone())),
        }
    }
    if let ([(places, _)], 2..) = (reasons.as_mut_slice(), advice.len()) {
        *places = "every shop".into();
    }
    reasons
}

/// What a place in an order says against the first but that it is slower, which an order says by
/// itself.
fn level(ranked: &RankedView) -> Option<Verdict> {
    ranked.verdict.filter(|verdict| *verdict != Verdict::Slower)
}

/// Sizes of shop, each with all targets by their scores and their ratios to the highest, and how
/// far that is an order.
fn orders(view: &View) -> Vec<(String, String)> {
    let order = |ranking: &RankingView| {
        let place = |ranked: &RankedView| {
            let ratio = ranked.ratio.as_ref().map_or(String::new(), |v| {
                let doubt = level(ranked).filter(|_| ranking.doubt.is_none());
                let doubt = doubt.map_or(String::new(), |verdict| format!(" ({verdict})"));
                format!(" {}{doubt}", show::ratio_value(v))
            });
            format!("{}{ratio}", ranked.target)
        };
        let said = match &ranking.doubt {
            Some(doubt) => format!("not decided ({doubt}): "),
            None if ranking.targets.iter().any(|r| level(r).is_some()) => "no clear best: ".into(),
            None => String::new(),
        };
        let targets: Vec<String> = ranking.targets.iter().map(place).collect();
        let size = format!("{} ({})", ranking.sizes.join(", "), ranking.clients);
        (size, said + &targets.join(", "))
    };
    view.advised.rankings.iter().map(order).collect()
}

fn settings_of_targets(view: &View) -> Section {
    let told = settings(view).into_iter().map(|(target, given)| format!("{target}: {given}"));
    Section { title: "Settings", blocks: told.map(Block::Item).collect() }
}

/// Targets with the settings that they were given; a control has those of its target.
fn settings(view: &View) -> Vec<(&str, String)> {
    let setting = |(name, value): (&String, &String)| match value.as_str() {
        "" => format!("{name} empty"),
        value => format!("{name} {value}"),
    };
    let measured = |t: &&TargetView| t.control_of.is_none() && t.not_run.is_none();
    let given = view.setup.targets.iter().filter(measured).filter(|t| !t.settings.is_empty());
    given
        .map(|t| (t.name.as_str(), t.settings.iter().map(setting).collect::<Vec<_>>().join(", ")))
        .collect()
}

fn disturbances(view: &View, columns: usize, paint: Paint) -> String {
    let noise: Vec<String> = view
        .setup
        .noise
        .iter()
        .map(|n| format!("{} {} (worst {})", n.name, n.median, n.worst))
        .collect();
    let mut body = if noise.is_empty() {
        String::new()
    } else {
        paragraph("  ", 2, &format!("median trial: {}", noise.join(", ")), columns)
    };
    if let Some(known) = &view.setup.calibration {
        body += &paragraph("  calibrated: ", 4, &calibration::meaning(known), columns);
    }
    for fact in &view.setup.conditions.facts {
        if let Some(warning) = &fact.warning {
            let text = format!("{}: {}; {warning}", fact.name, fact.value);
            body += &paragraph("  ! ", 4, &text, columns);
        }
    }
    section("Disturbances and conditions", paint, &body)
}

fn footnotes(view: &View, columns: usize, paint: Paint) -> String {
    let note = |(i, text): (usize, &String)| paragraph(&format!("{:>3} ", i + 1), 4, text, columns);
    let lines: String = view.footnotes.iter().enumerate().map(note).collect();
    section("Notes", paint, &lines)
}
