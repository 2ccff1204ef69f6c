//! The result as Markdown with pipe tables, for a wiki, an issue or a commit.

use crate::sheet::{Block, Section};
use crate::show;
use crate::standings::{Group, Standing, Standings, doubts, marks, standings};
use crate::text::table::{Line, Table, leave_out_empty};
use crate::text::{facts, failures, not_run, search, sections};
use crate::view::{Sentence, Validity, View};

/// The whole result; a heading of the first level, all else below it.
pub fn render(view: &View) -> String {
    let [found, behind] = sections(view);
    let mut parts = vec![heading(view), results(view)];
    parts.extend(found.iter().map(shown));
    parts.extend([shown(&not_run(view)), shown(&failures(view)), claims(view)]);
    parts.extend(behind.iter().map(shown));
    parts.extend([conditions(view), footnotes(view)]);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn heading(view: &View) -> String {
    let mut text = format!("# {}\n\n", plain(&view.asked.title));
    if !view.asked.question.is_empty() {
        text += &format!("{}\n\n", plain(&view.asked.question));
    }
    for words in view.answer.summary.iter().map(Sentence::text) {
        text += &format!("{}\n\n", plain(&words));
    }
    text += &format!("**{}** – {}\n", view.validity.heading(), plain(&facts(view)));
    if !view.reasons.is_empty() {
        text.push('\n');
    }
    for reason in search::other_reasons(view) {
        text += &format!("- {}\n", plain(reason));
    }
    if view.validity == Validity::Invalid {
        text += "\nThe run is INVALID: what follows shows what happened and is no result.\n";
    }
    text
}

fn results(view: &View) -> String {
    let mut text = String::new();
    let tables = standings(view);
    for table in &tables {
        let notes = if table.footnotes.is_empty() {
            String::new()
        } else {
            format!(" (notes {})", marks(table.footnotes.iter()))
        };
        text += &format!("## {}, {}{notes}\n\n", plain(table.workload), table.load);
        if let Some(data) = view.asked.data.get(table.workload) {
            text += &format!("{}\n\n", plain(data));
        }
        let rows = table
            .groups
            .iter()
            .flat_map(|group| group.standings.iter().map(|s| row(group, s, &table.footnotes)));
        text += &results_table(table.rate_heading(), rows.collect());
        text.push('\n');
    }
    if !text.is_empty() {
        if tables.iter().any(Standings::compares) {
            text += "Bold: best of its operation. ";
        }
        text += "Times are service times, under an open load response times; CPU is time per \
                 operation.\n";
    }
    for doubt in doubts(&tables) {
        text += &format!("\n{}\n", plain(&doubt));
    }
    text
}

/// A table of [`row`]s; of its last two columns without those that are empty.
fn results_table(rates: &str, mut rows: Vec<Vec<String>>) -> String {
    let mut columns = vec![
        ("operation", 'l'),
        ("target", 'l'),
        (rates, 'r'),
        ("p50", 'r'),
        ("p99", 'r'),
        ("p99.9", 'r'),
        ("CPU/op server", 'r'),
        ("CPU/op generator", 'r'),
        ("blocks", 'r'),
        ("against the best", 'l'),
        ("notes", 'l'),
    ];
    let last_two = columns.len() - 2;
    leave_out_empty(&mut columns, &mut rows, (last_two, ""));
    let (header, align): (Vec<&str>, String) = columns.into_iter().unzip();
    pipes(&header, &align, rows.into_iter())
}

fn row(group: &Group<'_>, standing: &Standing<'_>, shared: &[usize]) -> Vec<String> {
    let target = plain(&standing.row.target);
    vec![
        plain(group.operation),
        if standing.is_best() { format!("**{target}**") } else { target },
        standing.metric("rate_per_s", show::rate_value),
        standing.time("p50"),
        standing.time("p99"),
        standing.time("p999"),
        standing.ns("server_cpu_ns_per_op"),
        standing.ns("generator_cpu_ns_per_op"),
        standing.row.blocks.to_string(),
        group.verdict(standing),
        standing.marks(shared),
    ]
}

/// A table; `align` has a letter a column, `l` or `r`.
fn pipes(header: &[&str], align: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(ToString::to_string).collect();
    let rule: Vec<String> =
        align.chars().map(|a| if a == 'r' { "---:" } else { "---" }.to_string()).collect();
    let mut text = line(&header) + &line(&rule);
    rows.for_each(|cells| text += &line(&cells));
    text
}

/// A section as every output has it; items next to each other are one list.
fn shown(section: &Section) -> String {
    let mut body = String::new();
    let mut in_list = false;
    for block in &section.blocks {
        let is_item = matches!(block, Block::Item(_));
        let goes_on = in_list && is_item;
        if !body.is_empty() && !goes_on {
            body.push('\n');
        }
        in_list = is_item;
        body += &match block {
            Block::Title(title) => format!("### {}\n", plain(title)),
            Block::Item(text) => format!("- {}\n", plain(text)),
            Block::Note(text) => format!("{}\n", plain(text)),
            Block::Table(forms) => forms.first().map_or_else(String::new, table),
        };
    }
    self::section(section.title, &body)
}

/// What is emphasised has its first cell bold.
fn table(table: &Table) -> String {
    let header: Vec<&str> = table.header.iter().map(|name| name.trim()).collect();
    let side = |i: usize| if table.right.contains(&i) { 'r' } else { 'l' };
    let align: String = (0..header.len()).map(side).collect();
    let row = |line: &Line| match line {
        Line::Heading(heading) => vec![plain(heading)],
        Line::Cells(cells, is_strong) => {
            let mut cells: Vec<String> = cells.iter().map(|cell| plain(cell.trim())).collect();
            if let Some(first) = cells.first_mut().filter(|_| *is_strong) {
                *first = format!("**{first}**");
            }
            cells
        }
    };
    pipes(&header, &align, table.lines.iter().map(row))
}

fn claims(view: &View) -> String {
    if view.claims.is_empty() {
        return String::new();
    }
    let rows = view.claims.iter().map(|c| {
        vec![
            format!("**{}**", c.verdict),
            plain(&c.text),
            plain(&c.source),
            c.workload.as_ref().map_or_else(|| "–".into(), |w| plain(w)),
            plain(&c.expected),
            c.measured.as_ref().map_or_else(|| "–".into(), show::ratio_value),
            plain(&c.note),
        ]
    });
    let header = ["verdict", "statement", "source", "profile", "expected", "measured", "note"];
    section("Claims, judged on this machine", &pipes(&header, "lllllll", rows))
}

fn conditions(view: &View) -> String {
    if view.setup.conditions.facts.is_empty() {
        return String::new();
    }
    let rows = view.setup.conditions.facts.iter().map(|c| {
        let warning = c.warning.as_deref().unwrap_or_default();
        vec![plain(&c.group), plain(&c.name), plain(&c.value), plain(warning)]
    });
    section("Conditions", &pipes(&["group", "fact", "value", "warning"], "llll", rows))
}

fn footnotes(view: &View) -> String {
    let note = |(i, text): (usize, &String)| format!("{}. {}\n", i + 1, plain(text));
    let lines: String = view.footnotes.iter().enumerate().map(note).collect();
    section("Notes", &lines)
}

fn section(title: &str, body: &str) -> String {
    if body.is_empty() { String::new() } else { format!("## {title}\n\n{body}") }
}

/// Text that Markdown and HTML leave alone, on one line.
fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\r' | '\n' => safe.push(' '),
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '|' | '*' | '_' | '[' | ']' | '\\' => safe.extend(['\\', c]),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_a_table_or_start_markup() {
        assert_eq!(plain("a|b\n<i>*_x_*"), "a\\|b &lt;i&gt;\\*\\_x\\_\\*");
    }
}
