//! Targets with the limits of a tier, beside the source's figures.

use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::view::{TierPhase, TierView, View};

/// Their limits, and what each phase reached.
pub(crate) fn section(view: &View) -> Section {
    let tiers = &view.happened.tiers;
    let limits = tiers.iter().map(|tier| Block::item(format!("{}: {}", tier.target, tier.limits)));
    let mut blocks: Vec<Block> = limits.collect();
    let lines = tiers.iter().flat_map(|tier| tier.phases.iter().map(|phase| line(tier, phase)));
    let lines: Vec<Line> = lines.collect();
    let has_published =
        tiers.iter().flat_map(|tier| &tier.phases).any(|phase| phase.published_per_s.is_some());
    if !lines.is_empty() {
        let columns = ["target", "workload", "operation"].map(Column::words).into_iter();
        let columns = columns.chain([Column::number("here"), Column::number("published")]);
        let columns = columns.chain([Column::words("limit reached here")]);
        blocks.push(Block::table(Table::new(columns.collect(), lines)));
    }
    if has_published {
        blocks.push(Block::note(
            "published: by the source, for an instance with such limits on its own hardware; the \
             two are facts beside each other, not a comparison of equal machines",
        ));
    }
    Section { id: "tiers", title: "Tiers on this machine", blocks }
}

fn line(tier: &TierView, phase: &TierPhase) -> Line {
    let rate = phase.rate_per_s.as_ref();
    let here =
        rate.map_or(NONE.into(), |rate| Cell::number(show::rate_value_short(rate), rate.center));
    let published =
        phase.published_per_s.map_or(NONE.into(), |per_s| Cell::number(show::rate(per_s), per_s));
    let reached = phase.reached.iter().map(|own| format!("{}: {}", own.limit, own.shown));
    let reached: Vec<String> = reached.collect();
    let reached = if reached.is_empty() { NONE.into() } else { reached.join("; ") };
    Line::plain([
        Cell::target(&tier.target),
        phase.workload.as_str().into(),
        phase.operation.as_str().into(),
        here,
        published,
        reached.into(),
    ])
}
