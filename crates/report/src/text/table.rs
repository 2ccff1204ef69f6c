//! Columns that line up, paragraphs that fit, and colour that only repeats what words say.

/// Characters of the widest line that prose is set to, however wide the terminal is.
const PROSE_MAX: usize = 140;

/// Columns below which a table that does not fit is better read as a list.
const NARROW: usize = 60;

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
#[derive(Debug)]
pub(crate) enum Line {
    /// Text over the whole width.
    Heading(String),
    /// One text a column; emphasised where true.
    Cells(Vec<String>, bool),
}

/// A table: columns that are as wide as their widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) header: Vec<&'static str>,
    /// Columns set to the right.
    pub(crate) right: &'static [usize],
    /// Spaces between columns.
    pub(crate) gap: usize,
    pub(crate) lines: Vec<Line>,
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
        widths.iter().sum::<usize>() + self.gap * used.saturating_sub(1)
    }

    /// The table as it is, or on a narrow terminal that it does not fit as a list.
    pub(crate) fn fit(&self, paint: Paint, columns: usize) -> String {
        if columns >= NARROW || self.width() <= columns {
            return self.render(paint);
        }
        let lines = self.lines.iter().map(|line| match line {
            Line::Heading(heading) => paint.bold(heading) + "\n",
            Line::Cells(cells, is_strong) => self.listed(cells, *is_strong, paint, columns),
        });
        lines.collect()
    }

    /// The first cell, and below it all others behind the names of their columns.
    fn listed(&self, cells: &[String], is_strong: bool, paint: Paint, columns: usize) -> String {
        let mut named = self.header.iter().zip(cells);
        let first = named.next().map_or("", |(_, cell)| cell);
        let mut text = if is_strong { paint.bold(first) } else { first.to_string() } + "\n";
        for (name, cell) in named.filter(|(name, cell)| !name.is_empty() && !cell.is_empty()) {
            text += &paragraph(&format!("    {name}: "), 6, cell, columns);
        }
        text
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

/// A paragraph that starts with `first` and goes on below it with `indent` spaces, each line at
/// most `columns` wide where its words allow, with a line feed at the end.
pub(crate) fn paragraph(first: &str, indent: usize, text: &str, columns: usize) -> String {
    let columns = columns.clamp(indent + 20, PROSE_MAX.max(indent + 20));
    let mut lines = vec![first.to_string()];
    let mut fresh = true;
    // A number stays with its percent sign.
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split([' ', '\n']).filter(|w| !w.is_empty()) {
        let line = lines.last().map_or(0, |l| width(l));
        if !fresh && line + 1 + width(word) > columns {
            lines.push(" ".repeat(indent) + word);
        } else if let Some(line) = lines.last_mut() {
            let space = if fresh { "" } else { " " };
            *line += &format!("{space}{word}");
        }
        fresh = false;
    }
    lines.join("\n").replace('\u{a0}', " ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_characters_and_empty_ones_vanish() {
        let table = Table {
            header: vec!["what", "", "time"],
            right: &[2],
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
            header: vec!["store", "empty", "time of an answer", ""],
            right: &[],
            gap: 2,
            lines: vec![Line::Heading("read".into()), Line::Cells(cells, true)],
        };
        let (plain, bold) = (Paint { on: false }, Paint { on: true });
        let listed = "read\na store with a name\n    time of an answer: 99 s\n";
        assert_eq!(table.fit(plain, 40), listed);
        assert!(table.fit(bold, 40).contains("\u{1b}[1ma store with a name\u{1b}[0m\n"));
        assert_eq!(table.fit(plain, 59), table.render(plain), "it fits");
        assert_eq!(table.fit(plain, 60), table.render(plain));
    }

    #[test]
    fn a_paragraph_hangs_and_fits() {
        let text = paragraph("- ", 2, "one two three four five six seven", 22);
        assert_eq!(text, "- one two three four\n  five six seven\n");
        assert_eq!(paragraph("", 0, "one two three four 5 %", 21), "one two three four\n5 %\n");
        assert!(paragraph("", 0, &"x".repeat(50), 30).contains(&"x".repeat(50)));
    }

    #[test]
    fn colour_is_off_unless_asked_for() {
        assert_eq!(Paint { on: false }.bad("no"), "no");
        assert!(Paint { on: true }.bad("no").contains("\u{1b}[1;31mno"));
    }
}
