//! Tables that a source publishes. They are not measured here: claims check their arithmetic, and
//! reports print them beside the results.

use serde::{Deserialize, Serialize};

use super::quoted_list;

/// A published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// Unique in the study.
    pub id: String,
    /// What the table shows.
    pub title: String,
    /// Author, place and date of publication.
    pub source: String,
    /// Column names; the first is that of the rows' names.
    pub columns: Vec<String>,
    /// Rows with one cell for each column.
    pub rows: Vec<Vec<PublishedCell>>,
    /// What the source says about the figures, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A cell of a published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PublishedCell {
    /// A figure, in the unit that the column's name has.
    Number(f64),
    /// A name, or what the source prints in place of a figure.
    Text(String),
}

impl PublishedCell {
    /// The figure, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }
}

/// Reference to the figure that the source has for a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Id of the table.
    pub table: String,
    /// Name of the row.
    pub row: String,
    /// Name of the column, which contains operations per second.
    pub column: String,
    /// The profile that measures what the figure is about.
    pub profile: String,
    /// The operation that the figure is about.
    pub operation: String,
}

impl PublishedFigure {
    /// The figure, and where it is in words; `None` if the tables do not have it.
    pub fn find(&self, tables: &[PublishedTable]) -> Option<(f64, String)> {
        let Self { table: id, row, column, .. } = self;
        let table = tables.iter().find(|table| table.id == *id)?;
        let figure = table.rows().find(|own| own.name() == row)?.number(column)?;
        Some((figure, format!("{column} of {row} in {}: {}", table.title, table.source)))
    }
}

/// One row of a published table.
#[derive(Clone, Copy, Debug)]
pub struct PublishedRow<'a> {
    table: &'a PublishedTable,
    cells: &'a [PublishedCell],
}

impl<'a> PublishedRow<'a> {
    /// Its first cell.
    pub fn name(self) -> &'a str {
        match self.cells.first() {
            Some(PublishedCell::Text(name)) => name,
            _ => "",
        }
    }

    /// Its figure in a column; `None` if the table has no such column or the cell is a text.
    pub fn number(self, column: &str) -> Option<f64> {
        let index = self.table.columns.iter().position(|name| name == column)?;
        self.cells.get(index)?.number()
    }
}

impl PublishedTable {
    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = PublishedRow<'_>> {
        self.rows.iter().map(|cells| PublishedRow { table: self, cells })
    }

    /// True if a column has this name.
    pub fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column == name)
    }

    /// What contradicts itself, for the author of a study; `None` if nothing does.
    pub(super) fn contradiction(&self) -> Option<String> {
        let Self { id, columns, rows, .. } = self;
        let twice = columns.iter().enumerate().find(|(i, name)| columns[..*i].contains(name));
        if let Some((_, name)) = twice {
            return Some(format!("duplicate column `{name}` of table `{id}`"));
        }
        if columns.len() < 2 || rows.is_empty() {
            return Some(format!("table `{id}` is empty (expected two columns and a row or more)"));
        }
        rows.iter().enumerate().find_map(|(i, cells)| self.fault_in_row(i + 1, cells))
    }

    fn fault_in_row(&self, number: usize, cells: &[PublishedCell]) -> Option<String> {
        let Self { id, columns, .. } = self;
        let negative = |n: f64| !(n.is_finite() && n >= 0.0);
        if cells.len() != columns.len() {
            let (found, wanted) = (cells.len(), columns.len());
            let columns = quoted_list(columns.iter().map(String::as_str));
            return Some(format!(
                "row {number} of table `{id}` has {found} cells (expected {wanted}: {columns})"
            ));
        }
        if !matches!(&cells[0], PublishedCell::Text(name) if !name.is_empty()) {
            let column = &columns[0];
            return Some(format!(
                "row {number} of table `{id}` begins with no name (expected a text in `{column}`)"
            ));
        }
        let odd = cells.iter().filter_map(PublishedCell::number).find(|n| negative(*n))?;
        Some(format!("`{odd}` in row {number} of table `{id}` (expected a number of 0 or more)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Study;

    fn table(rows: &str) -> PublishedTable {
        let text = format!(
            "id = \"t\"\ntitle = \"Tiers\"\nsource = \"s\"\n\
             columns = [\"instance\", \"vCPUs\", \"GET/s\"]\nrows = {rows}"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn cells_are_numbers_or_texts() {
        let table = table(r#"[["C0", "shared", 15000], ["C1", 1, 38000.5]]"#);
        assert_eq!(table.contradiction(), None);
        let rows: Vec<_> = table.rows().collect();
        assert_eq!((rows[0].name(), rows[0].number("vCPUs")), ("C0", None));
        assert_eq!((rows[1].number("vCPUs"), rows[1].number("GET/s")), (Some(1.0), Some(38_000.5)));
        assert_eq!(rows[0].number("memory"), None);
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<PublishedTable>(&text).unwrap(), table);
    }

    #[test]
    fn faults_name_the_row() {
        for (rows, fault) in [
            ("[]", "table `t` is empty (expected two columns and a row or more)"),
            (
                r#"[["C0", 1]]"#,
                "row 1 of table `t` has 2 cells (expected 3: `instance`, `vCPUs` and `GET/s`)",
            ),
            (
                r#"[["C0", 1, 2], [7, 1, 2]]"#,
                "row 2 of table `t` begins with no name (expected a text in `instance`)",
            ),
            (r#"[["C0", 1, -2]]"#, "`-2` in row 1 of table `t` (expected a number of 0 or more)"),
        ] {
            assert_eq!(table(rows).contradiction().as_deref(), Some(fault), "{rows}");
        }
    }

    #[test]
    fn a_claim_names_known_tables_and_columns() {
        let sizing = include_str!("../../../../studies/sizing.toml");
        for (from, to, problem) in [
            ("id = \"premium\"", "id = \"standard\"", "duplicate table `standard`"),
            ("[\"P1\", ", "[", "row 1 of table `premium` has 5 cells (expected 6: `instance`, "),
            (
                "tables = [\"standard\", ",
                "tables = [\"basic\", ",
                "unknown table `basic` (known: `s",
            ),
            ("rate = \"GET/s ", "rate = \"SET/s ", "table `standard` has no column `SET/s without"),
            ("bytes = 1024", "bytes = 0", "`0` in a claim (expected a number above 0)"),
            (
                "columns = [\"capacity 3\", \"capacity 9\"], across",
                "columns = [\"capacity 9\"], across",
                "a claim across fewer than two columns (expected two or more, or `across = false`)",
            ),
        ] {
            assert!(sizing.contains(from), "{from}");
            let error = Study::parse("f", &sizing.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
