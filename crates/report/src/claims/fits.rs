//! Published rates against the bandwidth that the source states.

use model::study::claims::Fits;

use super::context::{Context, Kind};
use super::judged::Judged;
use super::published::{PublishedRatio, judged, tables};
use crate::show;

impl Kind for Fits {
    fn expected(&self) -> String {
        let Self { rate, bytes, bandwidth, .. } = self;
        format!("{rate} × {bytes} bytes within the stated bandwidth ({bandwidth})")
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let rows = tables(context, &self.tables)
            .flat_map(|table| table.rows().map(move |row| (table, row)));
        let ratios: Vec<PublishedRatio> = rows
            .filter_map(|(table, row)| {
                let stated = row.number(&self.bandwidth).filter(|stated| *stated > 0.0)?;
                let needed = row.number(&self.rate)? * self.bytes * 8.0 / 1e6;
                Some(PublishedRatio {
                    ratio: needed / stated,
                    place: format!("{}, {}", row.name(), table.title),
                    figures: format!(
                        "whose values alone need {} Mbit/s of the stated {}",
                        show::commas(needed.round() as u64),
                        show::published(stated)
                    ),
                })
            })
            .collect();
        judged(&ratios, (0.0, 1.0))
    }
}
