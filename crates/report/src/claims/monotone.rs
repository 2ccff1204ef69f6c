//! Published figures from one row or column to the next.

use model::study::claims::Monotone;
use model::study::published::{PublishedRow, PublishedTable};

use super::context::{Context, Kind};
use super::judged::{Judged, range};
use super::published::{PublishedRatio, judged, tables};
use crate::show;

/// A figure with its place in a table.
struct Step {
    number: f64,
    row: String,
    column: String,
}

impl Kind for Monotone {
    fn expected(&self) -> String {
        let Self { columns, across, min, max, .. } = self;
        let factor = match max {
            Some(max) if *min == 0.0 => format!("at most {}", show::ratio(*max)),
            max => range(*min, *max),
        };
        if *across {
            format!("{}: each divided by the one before, {factor}", columns.join(" → "))
        } else {
            format!("{}: each row divided by the one above, {factor}", columns.join("; "))
        }
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let ratios: Vec<PublishedRatio> = tables(context, &self.tables)
            .flat_map(|table| series(self, table).into_iter().map(move |steps| (table, steps)))
            .flat_map(|(table, steps)| {
                let pairs = steps.windows(2).filter(|pair| pair[0].number > 0.0);
                let ratios = pairs.map(|pair| ratio(self, table, &pair[0], &pair[1]));
                ratios.collect::<Vec<_>>()
            })
            .collect();
        judged(&ratios, (self.min, self.max.unwrap_or(f64::INFINITY)))
    }
}

/// The figures in the order of the steps, row by row or column by column. Texts are omitted.
fn series(claim: &Monotone, table: &PublishedTable) -> Vec<Vec<Step>> {
    let step = |row: PublishedRow<'_>, column: &String| {
        let (row, number) = (row.name().to_string(), row.number(column)?);
        Some(Step { number, row, column: column.clone() })
    };
    let columns = || claim.columns.iter();
    if claim.across {
        table.rows().map(|row| columns().filter_map(|column| step(row, column)).collect()).collect()
    } else {
        let of_column = |column| table.rows().filter_map(|row| step(row, column)).collect();
        columns().map(of_column).collect()
    }
}

fn ratio(claim: &Monotone, table: &PublishedTable, from: &Step, to: &Step) -> PublishedRatio {
    let place = if claim.across {
        format!("{} from {} to {}, {}", from.row, from.column, to.column, table.title)
    } else {
        format!("{} to {}, {}, {}", from.row, to.row, to.column, table.title)
    };
    let (before, after) = (show::published(from.number), show::published(to.number));
    let figures = format!("where {before} becomes {after}");
    PublishedRatio { ratio: to.number / from.number, place, figures }
}
