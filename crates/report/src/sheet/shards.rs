//! What shards add to the rate of one.

use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::view::{ShardsView, View};

const NOTE: &str = "efficiency: the rate, divided by the number of shards and the rate of the same \
                    target with one shard; 100 % if each shard adds its whole rate";

/// A line for each number of shards, and what else limits their rates.
pub(crate) fn section(view: &View) -> Section {
    let all = &view.happened.shards;
    let Some(first) = all.first() else {
        return Section { id: "shards", title: "Efficiency of shards", blocks: Vec::new() };
    };
    let has_profiles = all.iter().any(|own| own.workload != first.workload);
    let has_loads = all.iter().any(|own| own.load != first.load);
    let mut columns = vec![Column::words("target"), Column::words("operation")];
    columns.extend(has_profiles.then(|| Column::words("profile")));
    columns.extend(has_loads.then(|| Column::words("load")));
    let ends = show::ends_name(all.iter().map(|own| own.blocks).min().unwrap_or(0));
    columns.push(Column::number("shards"));
    columns.extend(["rate", "efficiency"].map(|name| Column::number(name).about(ends)));
    let line = |own: &ShardsView| {
        let mut cells = vec![Cell::target(&own.target), own.operation.as_str().into()];
        cells.extend(has_profiles.then(|| own.workload.as_str().into()));
        cells.extend(has_loads.then(|| own.load.to_string().into()));
        cells.push(Cell::number(own.shards.to_string(), f64::from(own.shards)));
        cells.push(Cell::number(show::rate_value_short(&own.rate_per_s), own.rate_per_s.center));
        cells.push(own.efficiency.as_ref().map_or_else(
            || NONE.into(),
            |own| Cell::number(show::with_bounds(own, show::percent), own.center),
        ));
        Line::plain(cells)
    };
    let mut blocks =
        vec![Block::table(Table::new(columns, all.iter().map(line).collect())), Block::note(NOTE)];
    let mut limits: Vec<&String> = Vec::new();
    for sentence in all.iter().flat_map(|own| &own.limited_by) {
        if !limits.contains(&sentence) {
            limits.push(sentence);
        }
    }
    blocks.extend(limits.into_iter().map(|sentence| Block::item(sentence.clone())));
    Section { id: "shards", title: "Efficiency of shards", blocks }
}
