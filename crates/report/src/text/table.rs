//! Columns that line up, paragraphs that fit, and colour that only repeats what words say.

use std::borrow::Cow;

/// Characters of the widest line that prose is set to, however wide the terminal is.
const PROSE_MAX: usize = 140;

/// Colours by terminal escape sequences, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    /// True for escape sequences.
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

    /// A line in bold; where it is too long, a paragraph.
    pub(crate) fn title(self, text: &str, columns: usize) -> String {
        if width(text) <= columns {
            return self.bold(text) + "\n";
        }
        paragraph("", 0, text, columns).lines().map(|line| self.bold(line) + "\n").collect()
    }

    /// What is as it should be.
    pub(crate) fn good(self, text: &str) -> String {
        self.with("1;32", text)
    }

    /// What is not.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }

    /// What should be looked at.
    pub(crate) fn doubtful(self, text: &str) -> String {
        self.with("1;33", text)
    }
}

/// A line of a table.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    /// Text over the whole width.
    Heading(String),
    /// One text a column; emphasised where true.
    Cells(Vec<String>, bool),
}

/// A table: columns that are as wide as their widest cell.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) header: Vec<Cow<'static, str>>,
    /// Columns set to the right.
    pub(crate) right: Vec<usize>,
    /// Spaces between columns.
    pub(crate) gap: usize,
    pub(crate) lines: Vec<Line>,
}

/// Names of columns that are known beforehand.
pub(crate) fn named(names: Vec<&'static str>) -> Vec<Cow<'static, str>> {
    names.into_iter().map(Cow::Borrowed).collect()
}

/// Leaves out the columns from `from` on in which every row has `nothing`.
pub(crate) fn leave_out_empty<H>(
    header: &mut Vec<H>,
    rows: &mut [Vec<String>],
    (from, nothing): (usize, &str),
) {
    for at in (from..header.len()).rev() {
        if rows.iter().all(|cells| cells[at] == nothing) {
            header.remove(at);
            for cells in &mut *rows {
                cells.remove(at);
            }
        }
    }
}

impl Table {
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.header.iter().map(|h| width(h)).collect();
        for line in &self.lines {
            if let Line::Cells(cells, _) = line {
                for (i, cell) in cells.iter().enumerate() {
                    widths[i] = widths[i].max(width(cell));
                }
            }
        }
        widths
    }

    /// Characters of its widest line.
    pub(crate) fn width(&self) -> usize {
        let widths = self.widths();
        // A column of nothing takes no gap either.
        let used = widths.iter().filter(|w| **w > 0).count();
        let heading = |line: &Line| match line {
            Line::Heading(heading) => width(heading),
            Line::Cells(..) => 0,
        };
        let headings = self.lines.iter().map(heading).max().unwrap_or(0);
        headings.max(widths.iter().sum::<usize>() + self.gap * used.saturating_sub(1))
    }

    /// The table in the first form that fits: as it is, with less space between its columns, with
    /// its first column as lines of their own, or as a list.
    pub(crate) fn fit(&self, paint: Paint, columns: usize) -> String {
        if self.width() <= columns {
            return self.render(paint);
        }
        let tight = Table { gap: 1, ..self.clone() };
        if tight.width() <= columns {
            return tight.render(paint);
        }
        let grouped = tight.grouped();
        if grouped.width() <= columns {
            return grouped.render(paint);
        }
        let lines = self.lines.iter().map(|line| match line {
            Line::Heading(heading) => paint.title(heading, columns),
            Line::Cells(cells, is_strong) => self.listed(cells, *is_strong, paint, columns),
        });
        lines.collect()
    }

    /// The same with each text of the first column once, above the lines that it stands for.
    fn grouped(mut self) -> Self {
        let mut above = String::new();
        let mut lines = Vec::new();
        for line in self.lines {
            match line {
                Line::Cells(mut cells, is_strong) if !cells.is_empty() => {
                    // The column stays, as wide as an indent.
                    let first = std::mem::replace(&mut cells[0], " ".into());
                    if first != above {
                        lines.push(Line::Heading(first.clone()));
                        above = first;
                    }
                    lines.push(Line::Cells(cells, is_strong));
                }
                other => lines.push(other),
            }
        }
        self.lines = lines;
        if let Some(first) = self.header.first_mut() {
            *first = Cow::Borrowed("");
        }
        self
    }

    /// The first cell, and below it all others behind the names of their columns.
    fn listed(&self, cells: &[String], is_strong: bool, paint: Paint, columns: usize) -> String {
        let mut named = self.header.iter().zip(cells);
        let first = named.next().map_or("", |(_, cell)| cell);
        let mut text = if is_strong {
            paint.title(first, columns)
        } else {
            paragraph(&indent(first), 4, first, columns)
        };
        for (name, cell) in named.filter(|(name, cell)| !name.is_empty() && !cell.is_empty()) {
            text += &paragraph(&format!("    {name}: "), 6, cell, columns);
        }
        text
    }

    /// Leaves out a column, where it is there.
    pub(crate) fn remove(&mut self, name: &str) {
        let Some(at) = self.header.iter().position(|known| *known == name) else { return };
        self.header.remove(at);
        self.right = self.right.iter().map(|i| if *i > at { i - 1 } else { *i }).collect();
        for line in &mut self.lines {
            if let Line::Cells(cells, _) = line {
                cells.remove(at);
            }
        }
    }

    /// All lines, the header first, each with a line feed.
    pub(crate) fn render(&self, paint: Paint) -> String {
        let widths = self.widths();
        let header: Vec<String> = self.header.iter().map(ToString::to_string).collect();
        let mut text = paint.dim(&self.line(&header, &widths)) + "\n";
        for line in &self.lines {
            text += &match line {
                Line::Heading(heading) => paint.bold(heading),
                Line::Cells(cells, true) => paint.bold(&self.line(cells, &widths)),
                Line::Cells(cells, false) => self.line(cells, &widths),
            };
            text.push('\n');
        }
        text
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut text = String::new();
        for (i, cell) in cells.iter().enumerate().filter(|(i, _)| widths[*i] > 0) {
            let pad = " ".repeat(widths[i] - width(cell));
            if !text.is_empty() {
                text += &" ".repeat(self.gap);
            }
            text += &if self.right.contains(&i) { pad + cell } else { cell.clone() + &pad };
        }
        text.trim_end().to_string()
    }
}

/// Columns that a text takes on a terminal; every character used here takes one.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// The spaces that a text begins with.
fn indent(text: &str) -> String {
    " ".repeat(text.chars().take_while(|c| *c == ' ').count())
}

/// A text with no-break spaces in the commands that it tells, from a backtick to the next one, so
/// that they can be copied.
fn unbroken(text: &str) -> String {
    let is_command = |part: &str| part.starts_with("cachedyno ");
    let part = |(i, part): (usize, &str)| {
        if i % 2 == 1 && is_command(part) { part.replace(' ', "\u{a0}") } else { part.into() }
    };
    text.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// A paragraph that starts with `first` and goes on below it with `indent` spaces, each line at
/// most `columns` wide where its words allow, with a line feed at the end. A command is one word.
pub(crate) fn paragraph(first: &str, indent: usize, text: &str, columns: usize) -> String {
    let columns = columns.clamp(indent + 20, PROSE_MAX.max(indent + 20));
    if width(first.trim_end()) > columns {
        // A start that is longer than a line is broken like the rest.
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

/// A body under its title; nothing where there is no body.
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
    fn columns_line_up_by_characters_and_empty_ones_vanish() {
        let table = Table {
            header: named(vec!["what", "", "time"]),
            right: vec![2],
            gap: 2,
            lines: vec![
                Line::Cells(vec!["a".into(), String::new(), "1 µs".into()], false),
                Line::Cells(vec!["bcdef".into(), String::new(), "12 µs".into()], false),
            ],
        };
        let plain = table.render(Paint { on: false });
        assert_eq!(plain, "what    time\na       1 µs\nbcdef  12 µs\n");
        assert_eq!(table.width(), 12);
    }

    #[test]
    fn a_narrow_terminal_gets_a_list_of_what_does_not_fit() {
        let cells = ["a store with a name", "", "99 s", "7"].map(String::from).to_vec();
        let table = Table {
            header: named(vec!["store", "empty", "time of an answer", ""]),
            right: Vec::new(),
            gap: 2,
            lines: vec![Line::Heading("read".into()), Line::Cells(cells, true)],
        };
        let (plain, bold) = (Paint { on: false }, Paint { on: true });
        let tight = "store               empty time of an answer\nread\n\
                     a store with a name       99 s              7\n";
        assert_eq!(table.fit(plain, 45), tight);
        let grouped =
            "  empty time of an answer\nread\na store with a name\n        99 s              7\n";
        assert_eq!(table.fit(plain, 44), grouped);
        let listed = "read\na store with a name\n    time of an answer: 99\n      s\n";
        assert_eq!(table.fit(plain, 20), listed);
        assert!(table.fit(bold, 20).contains("\u{1b}[1ma store with a name\u{1b}[0m\n"));
        assert_eq!(table.fit(plain, 48), table.render(plain), "it fits");
    }

    #[test]
    fn a_paragraph_hangs_and_fits() {
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
    fn colour_is_off_unless_asked_for() {
        assert_eq!(Paint { on: false }.bad("no"), "no");
        assert!(Paint { on: true }.bad("no").contains("\u{1b}[1;31mno"));
    }
}
