//! The result as Markdown with pipe tables, for a wiki, a ticket or a commit.

use crate::section::{Block, Part, Section};
use crate::sheet;
use crate::table::{Cell, Column, Line, Table, Tone};
use crate::text::facts;
use crate::text::table::marks;
use crate::view::{Sentence, View};

/// The whole result, below one first-level heading.
pub fn render(view: &View) -> String {
    let mut parts = vec![heading(view)];
    parts.extend(sheet::sections(view).iter().map(|section| shown(view, section)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn heading(view: &View) -> String {
    let mut text = format!("# {}\n\n", plain(&view.asked.title));
    if !view.asked.question.is_empty() {
        text += &format!("{}\n\n", plain(&view.asked.question));
    }
    text += &format!("**{}** – {}\n\n", view.validity.heading(), plain(&facts(view)));
    for words in view.answer.summary.iter().map(Sentence::text) {
        text += &format!("{}\n\n", plain(&words));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    if !view.reasons.is_empty() {
        text.push('\n');
    }
    for reason in view.other_reasons() {
        text += &format!("- {}\n", plain(reason));
    }
    if let Some(warning) = view.validity.warning() {
        text += &format!("\n{warning}\n");
    }
    text
}

/// A pipe table; `align` has one letter per column, `l` or `r`.
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
fn shown(view: &View, section: &Section) -> String {
    let mut body = String::new();
    let mut in_list = false;
    for block in &section.blocks {
        let is_item = matches!(block, Block::Item { .. });
        let goes_on = in_list && is_item;
        if !body.is_empty() && !goes_on {
            body.push('\n');
        }
        in_list = is_item;
        body += &match block {
            Block::Title { text, notes } if notes.is_empty() => format!("### {}\n", plain(text)),
            Block::Title { text, notes } => {
                format!("### {} (notes {})\n", plain(text), marks(notes))
            }
            Block::Item { text } => format!("- {}\n", plain(text)),
            Block::Note { text } => format!("{}\n", plain(text)),
            Block::Table { table, .. } => self::table(table),
            Block::Part { part } => self::part(view, *part),
        };
    }
    if body.is_empty() { String::new() } else { format!("## {}\n\n{body}", section.title) }
}

fn part(view: &View, part: Part) -> String {
    match part {
        Part::Claims => claims(view),
        Part::Conditions => conditions(view),
        Part::Notes => footnotes(view),
        // Pages have them.
        Part::Answer | Part::Charts | Part::Weights => String::new(),
    }
}

/// Renders a table; in the line with the answer, the target or else the first cell is bold.
fn table(table: &Table) -> String {
    let title = |column: &Column| match column.about.as_ref() {
        "" => plain(&column.title),
        about => format!("{} [{about}]", plain(&column.title)),
    };
    let mut header: Vec<String> = table.columns.iter().map(title).collect();
    let side = |column: &Column| if column.is_number { 'r' } else { 'l' };
    let mut align: String = table.columns.iter().map(side).collect();
    let has_notes = table.lines.iter().any(|line| !line.notes().is_empty());
    if has_notes {
        header.push("notes".into());
        align.push('l');
    }
    let row = |line: &Line| {
        let is_target = |cell: &Cell| cell.tone == Tone::Target;
        let strong = line.is_strong.then(|| line.cells.iter().position(is_target).unwrap_or(0));
        let cell = |(i, cell): (usize, &Cell)| match (plain(&cell.whole()), cell.tone) {
            (text, Tone::Best) => format!("**{text}**"),
            (text, _) if strong == Some(i) => format!("**{text}**"),
            (text, _) => text,
        };
        let mut cells: Vec<String> = line.cells.iter().enumerate().map(cell).collect();
        cells.extend(has_notes.then(|| marks(&line.notes())));
        cells
    };
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    pipes(&header, &align, table.lines.iter().map(row))
}

fn claims(view: &View) -> String {
    let rows = view.claims.iter().map(|c| {
        vec![
            format!("**{}**", c.verdict),
            plain(&c.text),
            plain(&c.source),
            c.judged_on().map_or_else(|| "–".into(), plain),
            plain(&c.expected),
            c.source_value.as_ref().map_or_else(|| "–".into(), |value| plain(value)),
            c.shown.clone().unwrap_or_else(|| "–".into()),
            plain(&c.note),
        ]
    });
    let header = [
        "verdict",
        "statement",
        "source",
        "judged on",
        "expected",
        "source's figure",
        "measured",
        "note",
    ];
    pipes(&header, "llllllll", rows)
}

fn conditions(view: &View) -> String {
    let rows = view.setup.conditions.facts.iter().map(|c| {
        let warning = c.warning.as_deref().unwrap_or_default();
        vec![plain(&c.group), plain(&c.name), plain(&c.value), plain(warning)]
    });
    pipes(&["group", "fact", "value", "warning"], "llll", rows)
}

fn footnotes(view: &View) -> String {
    let note = |(i, text): (usize, &String)| format!("{}. {}\n", i + 1, plain(text));
    view.footnotes.iter().enumerate().map(note).collect()
}

/// Escapes Markdown and HTML, on one line.
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
