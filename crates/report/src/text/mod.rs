//! Terminal output: the answer and the verdict, then either one table or the whole sheet.

mod over_time;
pub(crate) mod table;

use crate::section::{Block, Part, Section};
use crate::sheet;
use crate::show;
use crate::view::{ClaimVerdict, ClaimView, Sentence, Status, Validity, View};
use over_time::over_time;
pub use table::wrapped;
use table::{Forms, Paint, marks, paragraph, section, width};

/// The answer, the verdict and one table, for a terminal of `columns` columns, with or without
/// colours. Words or marks repeat the meaning of every colour.
pub fn summary(view: &View, columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let sections = [
        sheet::left_behind(view),
        sheet::not_run(view),
        sheet::throttled(view),
        sheet::tiers(view),
        sheet::requirements(view),
        sheet::overview(view),
        sheet::shards(view),
        sheet::memory(view),
        sheet::miss_costs(view),
        sheet::few(view),
    ];
    let mut parts = vec![heading(view, columns, paint)];
    parts.extend(sections.iter().map(|section| render_section(view, section, columns, paint)));
    parts.push(paragraph("", 0, &details_hint(view), columns));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// `3 confirmed, 2 not run`: the verdicts on claims about this run, or on those about tables of the
/// source; `None` if there are no such claims.
fn verdicts(claims: &[ClaimView], of_tables: bool) -> Option<String> {
    let verdicts = [
        ClaimVerdict::Confirmed,
        ClaimVerdict::Refuted,
        ClaimVerdict::Undecided,
        ClaimVerdict::NotRun,
    ];
    let own = claims.iter().filter(|claim| claim.of_tables == of_tables);
    let count = |verdict| own.clone().filter(|claim| claim.verdict == verdict).count();
    let counts = verdicts.map(|verdict| (count(verdict), verdict));
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, verdict)| format!("{count} {verdict}")).collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

/// Counts of claim verdicts, and the command that shows details.
fn details_hint(view: &View) -> String {
    let measured = verdicts(&view.claims, false).map(|counts| format!("claims: {counts}; "));
    let of_tables = verdicts(&view.claims, true)
        .map(|counts| format!("claims about the source's own tables: {counts}; "));
    let claims: String = measured.into_iter().chain(of_tables).collect();
    let notes = match view.footnotes.len() {
        0 => String::new(),
        1 => " and a note".into(),
        notes => format!(" and {notes} notes"),
    };
    let out = view.records_flag();
    format!("{claims}details{notes}: `cachedyno show {}{out} --details`", view.run)
}

/// The whole result, in the style of [`summary`].
pub fn render(view: &View, columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let mut parts = vec![heading(view, columns, paint)];
    let sections = sheet::sections(view);
    parts.extend(sections.iter().map(|section| render_section(view, section, columns, paint)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Renders a section. All of its tables that have several forms use the same form.
fn render_section(view: &View, of: &Section, columns: usize, paint: Paint) -> String {
    let common = of.blocks.iter().filter_map(|block| match block {
        Block::Table { table, narrower } if !narrower.is_empty() => {
            Some(Forms::of(table, narrower).fitting(columns).unwrap_or(usize::MAX))
        }
        _ => None,
    });
    let common = common.max();
    let mut body = String::new();
    for block in &of.blocks {
        body += &match block {
            Block::Title { text, notes } => {
                let notes = match marks(notes) {
                    empty if empty.is_empty() => empty,
                    notes => format!("  [notes {notes}]"),
                };
                let between = if body.is_empty() { "" } else { "\n" };
                format!("{between}{}", paint.title(&format!("{text}{notes}"), columns))
            }
            Block::Table { table, narrower } => {
                let forms = Forms::of(table, narrower);
                let way = if narrower.is_empty() { forms.fitting(columns) } else { common };
                forms.render(way.filter(|way| *way != usize::MAX), paint, columns)
            }
            Block::Item { text } => paragraph("  ", 4, text, columns),
            Block::Note { text } => paragraph("", 0, text, columns),
            Block::Part { part } => self::part(view, *part, columns, paint),
        };
    }
    section(of.title, paint, &body)
}

fn part(view: &View, part: Part, columns: usize, paint: Paint) -> String {
    match part {
        Part::Claims => view.claims.iter().map(|c| claim(c, columns, paint)).collect(),
        Part::Conditions => warnings(view, columns),
        Part::Notes => footnotes(view, columns),
        Part::Charts => over_time(view, columns),
        // Not shown on a terminal.
        Part::Answer | Part::Weights => String::new(),
    }
}

fn heading(view: &View, columns: usize, paint: Paint) -> String {
    let (word, painted) = (view.validity.heading(), painted(view.validity, paint));
    let space = columns.saturating_sub(width(&view.asked.title) + width(word));
    let mut text = if space < 2 {
        format!("{}{painted}\n", paint.title(&view.asked.title, columns))
    } else {
        format!("{}{}{painted}\n", paint.bold(&view.asked.title), " ".repeat(space.min(60)))
    };
    for sentence in view.answer.summary.iter().map(Sentence::text) {
        text += &paint.title(&sentence, columns);
    }
    text += &paragraph("", 0, &facts(view), columns);
    for reason in view.other_reasons() {
        text += &paragraph("  - ", 4, reason, columns);
    }
    if let Some(warning) = view.validity.warning() {
        text += &paragraph("", 0, warning, columns);
    }
    text
}

/// The heading of a validity, in its colour.
pub(crate) fn painted(validity: Validity, paint: Paint) -> String {
    let word = validity.heading();
    match validity {
        Validity::Valid => paint.good(word),
        Validity::Unreplicated | Validity::NotSteady => paint.doubtful(word),
        Validity::Invalid => paint.bad(word),
    }
}

/// One line with study, scale, size and status of the run.
pub(crate) fn facts(view: &View) -> String {
    let blocks = match view.course.blocks {
        0 => "no complete block".into(),
        1 => "1 block".into(),
        blocks => format!("{blocks} blocks"),
    };
    let (mut took, run) = (show::duration(view.course.took_s), &view.run);
    if view.course.resumed {
        took += " of trials (resumed)";
    } else if view.course.status == Status::Unsealed {
        took += " of trials";
    }
    let (study, scale) = (&view.asked.study, &view.asked.scale);
    let mut facts = format!("{study}, {scale} scale, {blocks}, {took}, run {run}");
    if view.course.status != Status::Complete {
        facts += &format!(", {}", view.course.status);
    }
    if !view.course.stopped_because.is_empty()
        && view.course.stopped_because != view.course.status.name()
    {
        facts += &format!(" ({})", view.course.stopped_because);
    }
    if matches!(view.course.status, Status::Interrupted | Status::Unsealed) {
        facts += &format!("; `{}` resumes it", view.course.resume);
    }
    if !view.course.changed.is_empty() {
        facts += &format!(", changed after it was sealed ({})", view.course.changed.join(", "));
    }
    facts
}

fn claim(claim: &ClaimView, columns: usize, paint: Paint) -> String {
    let verdict = format!("{:<9}", claim.verdict);
    let painted = match claim.verdict {
        ClaimVerdict::Confirmed => paint.good(&verdict),
        ClaimVerdict::Refuted => paint.doubtful(&verdict),
        ClaimVerdict::Undecided | ClaimVerdict::NotRun => paint.dim(&verdict),
    };
    let place = claim.judged_on().map_or(String::new(), |what| format!(" on {what}"));
    let measured = claim.shown.as_ref().map_or(String::new(), |shown| format!("{shown}, "));
    let value = claim.source_value.as_ref();
    let value = value.map_or(String::new(), |value| format!(" (the source's figure: {value})"));
    let body = format!(
        "{}{place}: {measured}expected {}{value}; {}",
        claim.id, claim.expected, claim.note
    );
    // Wrap the paragraph without colour codes, which would count as width.
    paragraph(&format!("  {verdict}  "), 13, &body, columns).replacen(&verdict, &painted, 1)
}

/// Conditions that could disturb a measurement; Markdown and the page list all conditions.
fn warnings(view: &View, columns: usize) -> String {
    let facts = view.setup.conditions.facts.iter();
    let warned = facts.filter_map(|fact| {
        let text = format!("{}: {}; {}", fact.name, fact.value, fact.warning.as_ref()?);
        Some(paragraph("  ! ", 4, &text, columns))
    });
    warned.collect()
}

fn footnotes(view: &View, columns: usize) -> String {
    let note = |(i, text): (usize, &String)| paragraph(&format!("{:>3} ", i + 1), 4, text, columns);
    view.footnotes.iter().enumerate().map(note).collect()
}
