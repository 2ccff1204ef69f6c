//! All probes of a search, one per line.

use stats::search::Purpose;

use crate::section::{Block, Section};
use crate::show::{self, commas, grouped};
use crate::table::{Cell, Column, Line, NONE, Table, Tone};
use crate::view::{ProbeReason, ProbeVerdict, ProbeView, SearchView, View};

/// Columns of the probes.
fn columns() -> Vec<Column> {
    let numbers = ["rate/s", "answered", "p50", "p99", "errors", "beyond"].map(Column::number);
    let first = [Column::number("probe"), Column::words("purpose")].into_iter();
    first.chain(numbers).chain([Column::words("verdict")]).collect()
}

/// Smaller shares of requests print as "less than".
const BEYOND_MIN: f64 = 1e-4;

/// For each search a table of its probes in order, with an explanation of the verdicts.
pub(crate) fn section(view: &View) -> Section {
    let mut blocks = Vec::new();
    for search in view.searches.iter().filter(|search| !search.probes.is_empty()) {
        if view.searches.len() > 1 {
            blocks.push(Block::title(search.target.clone()));
        }
        let groups = search.probes.chunk_by(|a, b| a.is_slow_cool_down() && b.is_slow_cool_down());
        let lines = groups.filter_map(|group| row(group, search.by_block.len() > 1)).collect();
        blocks.push(Block::table(Table::new(columns(), lines)));
        blocks.extend(meanings(search).into_iter().chain([counts(search)]).map(Block::note));
    }
    Section { id: "probes", title: "Probes", blocks }
}

/// A line for a probe, or for consecutive cool-downs after which the store was still slow, with the
/// numbers of all. With several blocks, the number starts with that of the block.
fn row(group: &[ProbeView], of_blocks: bool) -> Option<Line> {
    let (first, last) = (group.first()?, group.last()?);
    let mut cells = cells(last);
    let block = if of_blocks { format!("{}.", last.block + 1) } else { String::new() };
    let place = f64::from(last.block) * 1e6 + f64::from(last.number);
    cells[0] = Cell::number(format!("{block}{}", last.number), place);
    if let ([_, _, ..], Some(verdict)) = (group, cells.last_mut()) {
        *verdict = format!("still slow, {} times", group.len()).into();
        cells[0] = Cell::number(format!("{block}{}–{}", first.number, last.number), place);
    }
    let holds = last.verdict == Some(ProbeVerdict::Holds);
    Some(Line { cells, is_strong: holds && last.purpose == Purpose::Confirm })
}

/// Explanation of the verdicts that occur, with their confidence; `None` without any.
fn meanings(search: &SearchView) -> Option<String> {
    let mut meanings: Vec<String> = Vec::new();
    for (word, text) in search.probes.iter().map(verdict).filter(|(word, _)| !word.is_empty()) {
        let meaning = format!("{word}: {text}");
        if !meanings.contains(&meaning) {
            meanings.push(meaning);
        }
    }
    (!meanings.is_empty()).then(|| {
        format!(
            "Verdicts are 95 % certain; slow requests of one burst depend on each other and count \
             as few: {}.",
            meanings.join("; ")
        )
    })
}

/// Number of probes, and why some numbers are missing.
fn counts(search: &SearchView) -> String {
    let listed = search.probes.iter().filter(|probe| probe.purpose == Purpose::CoolDown).count();
    let unlisted = if listed < search.rests as usize {
        "; numbers that are not listed are cool-downs after which latency was back to idle"
    } else {
        ""
    };
    format!("{} probes, {} of them cool-downs{unlisted}.", search.tried, search.rests)
}

/// The cells of a probe's line.
fn cells(probe: &ProbeView) -> Vec<Cell> {
    let none = || Cell::from(NONE);
    let over: Vec<String> = probe.beyond.iter().map(|beyond| share(beyond.share)).collect();
    let is_judged = probe.purpose != Purpose::Peak && !over.is_empty();
    vec![
        Cell::default(),
        probe.purpose.to_string().into(),
        probe.rate_per_s.map_or_else(none, |rate| Cell::number(commas(rate), rate as f64)),
        Cell::number(grouped(probe.answered_per_s), probe.answered_per_s),
        Cell::time(probe.response_ns_p50),
        Cell::time(probe.response_ns_p99),
        probe.error_share.map_or_else(none, |share| Cell::number(show::percent(share), share)),
        if is_judged { over.join(", ").into() } else { none() },
        Cell::from(verdict(probe).0).toned(tone(probe)),
    ]
}

fn tone(probe: &ProbeView) -> Tone {
    match probe.verdict {
        Some(ProbeVerdict::Holds) => Tone::Good,
        Some(ProbeVerdict::Missed | ProbeVerdict::Broke) => Tone::Bad,
        Some(ProbeVerdict::Undecided) => Tone::Doubt,
        None => Tone::Plain,
    }
}

/// A share of requests; shares below [`BEYOND_MIN`] all print alike.
fn share(share: f64) -> String {
    if share > 0.0 && share < BEYOND_MIN { "<0.01 %".into() } else { show::percent(share) }
}

/// A probe's verdict and its meaning. The reason replaces the verdict if it says more, to fit a
/// narrow terminal. Disturbances and the reasons of broken probes are listed once below.
fn verdict(probe: &ProbeView) -> (&'static str, &'static str) {
    match (probe.verdict, probe.reason) {
        (Some(ProbeVerdict::Missed), Some(ProbeReason::QueueGrew)) => {
            (ProbeReason::QueueGrew.name(), "missed, it answered fewer than were due")
        }
        (Some(verdict), _) => (
            verdict.name(),
            match verdict {
                ProbeVerdict::Holds => "within the limit",
                ProbeVerdict::Missed => "beyond the limit",
                ProbeVerdict::Undecided => "neither is certain",
                ProbeVerdict::Broke => "it failed, see below, or answered nothing",
            },
        ),
        (None, Some(reason)) => {
            (reason.name(), "a cool-down after which latency was not back to idle")
        }
        (None, None) => ("", ""),
    }
}
