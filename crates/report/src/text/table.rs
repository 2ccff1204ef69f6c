//! Aligned tables, wrapped paragraphs, and colours that only repeat the meaning of the text.

use std::mem;

use crate::table::{Cell, Column, Line, Table, Tone};

/// Maximum line width of prose in characters, even on a wider terminal.
const PROSE_MAX: usize = 140;

/// Colours text with terminal escape sequences, or leaves it plain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    /// True to emit escape sequences.
    pub(crate) on: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_string()
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// A bold line, wrapped if it is too long.
    pub(crate) fn title(self, text: &str, columns: usize) -> String {
        if width(text) <= columns {
            return self.bold(text) + "\n";
        }
        paragraph("", 0, text, columns).lines().map(|line| self.bold(line) + "\n").collect()
    }

    /// A good result.
    pub(crate) fn good(self, text: &str) -> String {
        self.with("1;32", text)
    }

    /// A bad result.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }

    /// Cell text in the colour of its tone.
    fn toned(self, text: &str, tone: Tone) -> String {
        match tone {
            Tone::Best => self.bold(text),
            Tone::Good => self.good(text),
            Tone::Bad => self.bad(text),
            Tone::Doubt => self.doubtful(text),
            Tone::Plain | Tone::Target | Tone::Tied => text.into(),
        }
    }

    /// A doubtful result.
    pub(crate) fn doubtful(self, text: &str) -> String {
        self.with("1;33", text)
    }
}

/// How compact a table is.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Spaces between columns.
    gap: usize,
    /// Whether the first column becomes a heading above the lines that share its value.
    is_grouped: bool,
    /// Whether footnotes have their own column.
    has_notes: bool,
}

const WIDE: Layout = Layout { gap: 2, is_grouped: false, has_notes: true };
const TIGHT: Layout = Layout { gap: 1, ..WIDE };
const GROUPED: Layout = Layout { is_grouped: true, ..TIGHT };
const BARE: Layout = Layout { has_notes: false, ..GROUPED };

/// A table for a terminal, with all of its columns or in a narrower form.
pub(crate) struct Forms<'a> {
    /// By decreasing width.
    forms: Vec<&'a Table>,
}

impl<'a> Forms<'a> {
    /// A table, and the same with fewer columns.
    pub(crate) fn of(table: &'a Table, narrower: &'a [Table]) -> Self {
        Self { forms: [table].into_iter().chain(narrower).collect() }
    }

    /// All form and layout combinations: each form wide and tight, then the last form with headings
    /// for its first column, and finally without notes.
    fn candidates(&self) -> impl Iterator<Item = (&'a Table, Layout)> {
        let layouts = |table: &&'a Table| {
            let layout: &[Layout] =
                if table.is_grouped { &[WIDE, TIGHT, GROUPED] } else { &[WIDE, TIGHT] };
            let table = *table;
            layout.iter().map(move |layout| (table, *layout)).collect::<Vec<_>>()
        };
        let last = self.forms[self.forms.len() - 1];
        let all: Vec<_> = self.forms.iter().flat_map(layouts).collect();
        all.into_iter().chain([(last, GROUPED), (last, BARE)])
    }

    /// Index of the first candidate that fits; `None` means that the table becomes a list.
    pub(crate) fn fitting(&self, columns: usize) -> Option<usize> {
        self.candidates().position(|(table, layout)| Grid::of(table, layout).width() <= columns)
    }

    /// Renders the table with a result of [`fitting`](Self::fitting).
    pub(crate) fn render(&self, index: Option<usize>, paint: Paint, columns: usize) -> String {
        let found = index.and_then(|index| self.candidates().nth(index));
        let Some((table, layout)) = found else { return self.list(paint, columns) };
        let text = Grid::of(table, layout).render(paint);
        let marked = if layout.has_notes { String::new() } else { marked(table) };
        if marked.is_empty() {
            return text;
        }
        text + &paragraph("  notes on ", 4, &marked, columns)
    }

    /// Each line as its first cell, and below it all other cells after their column names.
    fn list(&self, paint: Paint, columns: usize) -> String {
        let table = self.forms[self.forms.len() - 1];
        let layout = if table.is_grouped { GROUPED } else { TIGHT };
        let grid = Grid::of(table, layout);
        let from = usize::from(table.is_grouped);
        let one = |line: &GridLine| match line {
            GridLine::Heading(heading) => paint.title(heading, columns),
            GridLine::Cells(cells, is_strong) => {
                let mut named = grid.header.iter().zip(cells).skip(from);
                let first = named.next().map_or("", |(_, (cell, _))| cell.as_str());
                let mut text = if *is_strong {
                    paint.title(first, columns)
                } else {
                    paragraph("", 4, first, columns)
                };
                for (name, (cell, _)) in named.filter(|(n, (c, _))| !n.is_empty() && !c.is_empty())
                {
                    text += &paragraph(&format!("    {name}: "), 6, cell, columns);
                }
                text
            }
        };
        grid.lines.iter().map(one).collect()
    }
}

/// Renders a table in the first form and layout that fits.
pub(crate) fn fit(table: &Table, paint: Paint, columns: usize) -> String {
    let forms = Forms::of(table, &[]);
    forms.render(forms.fitting(columns), paint, columns)
}

/// Width of a table in its tight layout, in characters.
pub(crate) fn least_width(table: &Table) -> usize {
    Grid::of(table, TIGHT).width()
}

/// The lines with footnotes: `read: all 2, files 1; …`; empty if there are none.
fn marked(table: &Table) -> String {
    let name = usize::from(table.is_grouped);
    let is_same = |a: &Line, b: &Line| table.is_grouped && a.cells[0].text == b.cells[0].text;
    let group = |lines: &[Line]| {
        let all: Vec<Vec<usize>> = lines.iter().map(Line::notes).collect();
        let is_common = |note: &&usize| all.len() > 1 && all.iter().all(|own| own.contains(note));
        let common: Vec<usize> = all[0].iter().filter(is_common).copied().collect();
        let mut parts = Vec::new();
        if !common.is_empty() {
            parts.push(format!("all {}", marks(&common)));
        }
        for (line, own) in lines.iter().zip(&all) {
            let own: Vec<usize> = own.iter().filter(|n| !common.contains(n)).copied().collect();
            if !own.is_empty() {
                parts.push(format!("{} {}", line.cells[name].text, marks(&own)));
            }
        }
        let of =
            if table.is_grouped { format!("{}: ", lines[0].cells[0].text) } else { String::new() };
        (!parts.is_empty()).then(|| of + &parts.join(", "))
    };
    let groups: Vec<String> = table.lines.chunk_by(is_same).filter_map(group).collect();
    groups.join("; ")
}

/// Footnote numbers, from 1: `2,5`.
pub(crate) fn marks(notes: &[usize]) -> String {
    notes.iter().map(|note| (note + 1).to_string()).collect::<Vec<_>>().join(",")
}

/// A rendered line.
enum GridLine {
    /// Text over the whole width.
    Heading(String),
    /// Text and tone of each column; bold if the flag is true.
    Cells(Vec<(String, Tone)>, bool),
}

/// A table whose columns are as wide as their widest cells.
struct Grid {
    header: Vec<String>,
    right: Vec<bool>,
    gap: usize,
    lines: Vec<GridLine>,
}

impl Grid {
    fn of(table: &Table, layout: Layout) -> Self {
        let title = |column: &Column| match (column.title.as_ref(), column.about.as_ref()) {
            (title, "") => title.to_string(),
            (title, about) => format!("{title} [{about}]"),
        };
        let mut header: Vec<String> = table.columns.iter().map(title).collect();
        let mut right: Vec<bool> = table.columns.iter().map(|column| column.is_number).collect();
        let has_notes = layout.has_notes && table.lines.iter().any(|line| !line.notes().is_empty());
        if has_notes {
            header.push("notes".into());
            right.push(false);
        }
        let any_strong = table.lines.iter().any(|line| line.is_strong);
        let (mut lines, mut before) = (Vec::new(), None);
        for line in &table.lines {
            let mut cells: Vec<(String, Tone)> =
                line.cells.iter().map(|cell| cell_text(cell, any_strong, line.is_strong)).collect();
            if has_notes {
                cells.push((marks(&line.notes()), Tone::Plain));
            }
            let is_new = before.replace(&line.cells[0].text) != Some(&line.cells[0].text);
            if layout.is_grouped {
                // Unless marks already indent the lines, the empty column serves as an indent.
                let indent = if any_strong { "" } else { " " };
                let (first, _) = mem::replace(&mut cells[0], (indent.into(), Tone::Plain));
                lines.extend(is_new.then_some(GridLine::Heading(first)));
            } else if table.is_grouped && !is_new {
                cells[0].0.clear();
            }
            lines.push(GridLine::Cells(cells, line.is_strong));
        }
        if let Some(first) = header.first_mut().filter(|_| layout.is_grouped) {
            first.clear();
        }
        Self { header, right, gap: layout.gap, lines }
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.header.iter().map(|h| width(h)).collect();
        for line in &self.lines {
            if let GridLine::Cells(cells, _) = line {
                for (i, (cell, _)) in cells.iter().enumerate() {
                    widths[i] = widths[i].max(width(cell));
                }
            }
        }
        widths
    }

    /// Width of its widest line, in characters.
    fn width(&self) -> usize {
        let widths = self.widths();
        // An empty column has no gap.
        let used = widths.iter().filter(|w| **w > 0).count();
        let heading = |line: &GridLine| match line {
            GridLine::Heading(heading) => width(heading),
            GridLine::Cells(..) => 0,
        };
        let headings = self.lines.iter().map(heading).max().unwrap_or(0);
        headings.max(widths.iter().sum::<usize>() + self.gap * used.saturating_sub(1))
    }

    /// The header and all lines, each with a line feed.
    fn render(&self, paint: Paint) -> String {
        let widths = self.widths();
        let header: Vec<(String, Tone)> =
            self.header.iter().map(|name| (name.clone(), Tone::Plain)).collect();
        let off = Paint { on: false };
        let mut text = paint.dim(&self.line(&header, &widths, off)) + "\n";
        for line in &self.lines {
            text += &match line {
                GridLine::Heading(heading) => paint.bold(heading),
                GridLine::Cells(cells, true) => paint.bold(&self.line(cells, &widths, off)),
                GridLine::Cells(cells, false) => self.line(cells, &widths, paint),
            };
            text.push('\n');
        }
        text
    }

    fn line(&self, cells: &[(String, Tone)], widths: &[usize], paint: Paint) -> String {
        let mut text = String::new();
        let last = cells.iter().rposition(|(cell, _)| !cell.is_empty()).unwrap_or(0);
        let mut is_first = true;
        for (i, (cell, tone)) in cells.iter().enumerate().take(last + 1) {
            if widths[i] == 0 {
                continue;
            }
            if !mem::replace(&mut is_first, false) {
                text += &" ".repeat(self.gap);
            }
            let pad = " ".repeat(widths[i] - width(cell));
            let painted = paint.toned(cell, *tone);
            text += &match (self.right[i], i == last) {
                (true, _) => pad + &painted,
                (false, true) => painted,
                (false, false) => painted + &pad,
            };
        }
        text.trim_end().to_string()
    }
}

/// Text and tone of a cell; marks show the best cells even without colours.
fn cell_text(cell: &Cell, any_strong: bool, is_strong: bool) -> (String, Tone) {
    let mark = match cell.tone {
        Tone::Best => "* ",
        Tone::Tied => "~ ",
        Tone::Target if is_strong => "* ",
        Tone::Target if any_strong => "  ",
        _ => "",
    };
    (format!("{mark}{}", cell.whole()), cell.tone)
}

/// Terminal columns of a text; every character used here takes one.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// The leading spaces of a text.
fn indent(text: &str) -> String {
    " ".repeat(text.chars().take_while(|c| *c == ' ').count())
}

/// Puts no-break spaces into `cachedyno` commands between backticks, so that they can be copied.
fn unbroken(text: &str) -> String {
    let is_command = |part: &str| part.starts_with("cachedyno ");
    let part = |(i, part): (usize, &str)| {
        if i % 2 == 1 && is_command(part) { part.replace(' ', "\u{a0}") } else { part.into() }
    };
    text.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// Wraps a paragraph that starts with `first`; further lines have `indent` spaces. Lines are at
/// most `columns` wide if the words allow it, and end with a line feed. A command counts as one
/// word.
pub(crate) fn paragraph(first: &str, indent: usize, text: &str, columns: usize) -> String {
    let columns = columns.clamp(indent + 20, PROSE_MAX.max(indent + 20));
    if width(first.trim_end()) > columns {
        // A `first` that is longer than a line is wrapped as well.
        let (start, text) = (self::indent(first), format!("{first} {text}"));
        return paragraph(&start, indent, &text, columns);
    }
    let mut lines = vec![first.to_string()];
    let mut fresh = true;
    // A number stays with its percent sign.
    let text = unbroken(text).replace(" %", "\u{a0}%");
    for word in text.split([' ', '\n']).filter(|w| !w.is_empty()) {
        let space = if fresh { "" } else { " " };
        fresh = false;
        let Some(line) = lines.last_mut() else { continue };
        if line.trim().is_empty() || width(line) + space.len() + width(word) <= columns {
            *line += &format!("{space}{word}");
        } else {
            line.truncate(line.trim_end().len());
            lines.push(" ".repeat(indent) + word);
        }
    }
    lines.join("\n").replace('\u{a0}', " ") + "\n"
}

/// Wraps the lines of a message at words, for a terminal of that many columns.
pub fn wrapped(message: &str, columns: usize) -> String {
    let wrap = |line: &str| {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        match width(line) {
            fits if fits <= columns => line.into(),
            _ => paragraph(&" ".repeat(indent), indent, text, columns),
        }
    };
    let lines: Vec<String> = message.split('\n').map(wrap).collect();
    lines.iter().map(|line| line.trim_end_matches('\n')).collect::<Vec<_>>().join("\n")
}

/// A body under its title; empty if the body is.
pub(crate) fn section(title: &str, paint: Paint, body: &str) -> String {
    match (body, title) {
        ("", _) => String::new(),
        (body, "") => body.trim_start_matches('\n').into(),
        (body, title) => format!("{}\n{body}", paint.bold(title)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_characters_and_empty_ones_omitted() {
        let lines = vec![Line::plain(["a", "", "1 µs"]), Line::plain(["bcdef", "", "12 µs"])];
        let columns = vec![Column::words("what"), Column::words(""), Column::number("time")];
        let table = Table::new(columns, lines);
        let plain = fit(&table, Paint { on: false }, 80);
        assert_eq!(plain, "what    time\na       1 µs\nbcdef  12 µs\n");
        assert_eq!(least_width(&table), 11);
    }

    #[test]
    fn a_table_that_does_not_fit_becomes_a_list() {
        let notes =
            |text: &str, notes: &[usize]| Cell { notes: notes.into(), ..Cell::target(text) };
        let line = |is_strong, name| Line {
            cells: vec!["read".into(), name, "99 s".into(), "7".into()],
            is_strong,
        };
        let lines =
            vec![line(true, notes("a store with a name", &[1])), line(false, Cell::target("b"))];
        let columns = ["operation", "store", "time of an answer", "n"].map(Column::words);
        let table = Table::new(columns.into(), lines).grouped();
        let (plain, bold) = (Paint { on: false }, Paint { on: true });
        let tight = "operation store                 time of an answer n notes\n\
                     read      * a store with a name 99 s              7 2\n\
                     \u{20}           b                   99 s              7\n";
        assert_eq!(fit(&table, plain, 57), tight);
        let grouped = "store                 time of an answer n notes\nread\n\
                       * a store with a name 99 s              7 2\n\
                       \u{20} b                   99 s              7\n";
        assert_eq!(fit(&table, plain, 56), grouped);
        let bare = "store                 time of an answer n\nread\n\
                    * a store with a name 99 s              7\n\
                    \u{20} b                   99 s              7\n\
                    \u{20} notes on read: a store with a name 2\n";
        assert_eq!(fit(&table, plain, 45), bare);
        let listed = fit(&table, plain, 30);
        assert!(listed.starts_with("read\n* a store with a name\n    time of an answer: 99 s\n"));
        assert!(fit(&table, bold, 30).contains("\u{1b}[1m* a store with a name\u{1b}[0m\n"));
    }

    #[test]
    fn paragraphs_are_wrapped_with_a_hanging_indent() {
        let text = paragraph("- ", 2, "one two three four five six seven", 22);
        assert_eq!(text, "- one two three four\n  five six seven\n");
        assert_eq!(paragraph("", 0, "one two three four 5 %", 21), "one two three four\n5 %\n");
        assert!(paragraph("", 0, &"x".repeat(50), 30).contains(&"x".repeat(50)));
        let text = paragraph("  one, two, three, four, five: ", 4, "six", 24);
        assert_eq!(text, "  one, two, three, four,\n    five: six\n");
        assert_eq!(
            paragraph("  a start that fits: ", 4, "longer", 24),
            "  a start that fits:\n    longer\n"
        );
    }

    #[test]
    fn messages_are_wrapped_line_by_line() {
        assert_eq!(wrapped("short\n  a  b\n", 30), "short\n  a  b\n");
        let text = wrapped("  one two three four five\nsix", 20);
        assert_eq!(text, "  one two three four\n  five\nsix");
    }

    #[test]
    fn colour_is_only_used_if_enabled() {
        assert_eq!(Paint { on: false }.bad("no"), "no");
        assert!(Paint { on: true }.bad("no").contains("\u{1b}[1;31mno"));
    }
}
