//! The conditions under which the study's source measured, beside those of this run.

use model::Condition;
use model::record::DISK;

use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::view::View;

/// A line per condition of the source, then what no run can match.
pub(crate) fn section(view: &View) -> Section {
    let mut blocks = Vec::new();
    if !view.asked.source_conditions.is_empty() {
        let columns = ["condition", "source", "this run"].map(Column::words);
        let line = |(name, value): &(String, String)| {
            let here = here(view, name).unwrap_or_else(|| NONE.into());
            Line::plain([name.as_str().into(), value.as_str().into(), Cell::from(here)])
        };
        let lines = view.asked.source_conditions.iter().map(line).collect();
        blocks.push(Block::table(Table::new(columns.into(), lines)));
    }
    let unmatched = view.asked.source_unmatched.iter();
    blocks.extend(unmatched.map(|text| Block::item(format!("not matched: {text}"))));
    Section { id: "source", title: "The source's conditions", blocks }
}

/// What this run had for a condition of the source.
fn here(view: &View, condition: &str) -> Option<String> {
    let fact = |group: &str, name: &str| {
        let mut facts = view.setup.conditions.facts.iter();
        facts.find(|c| c.group == group && c.name == name).map(|c| c.value.clone())
    };
    let measured = || view.setup.targets.iter().filter(|target| target.not_run.is_none());
    match condition {
        "CPU" => fact("cpu", "model"),
        "cores" => fact("cpu", "CPUs"),
        "memory" => fact("memory", "size"),
        "disk" => disks(view),
        "versions" => {
            let all = measured().filter_map(|t| t.product.as_deref());
            let mut products: Vec<String> =
                all.flat_map(|all| all.split(" and ")).map(Into::into).collect();
            products.sort_unstable();
            products.dedup();
            (!products.is_empty()).then(|| show::listed(&products))
        }
        "network" => {
            let mut places: Vec<&str> = measured().map(|t| t.place.as_str()).collect();
            places.sort_unstable();
            places.dedup();
            (!places.is_empty()).then(|| places.join("; "))
        }
        "size" => {
            let mut data: Vec<&str> = view.asked.data.values().map(String::as_str).collect();
            data.dedup();
            (!data.is_empty()).then(|| data.join("; "))
        }
        "duration" => Some(format!(
            "{} ({} scale, {} blocks)",
            show::duration(view.course.took_s),
            view.asked.scale,
            view.course.blocks
        )),
        _ => None,
    }
}

/// Device and file system of each disk, with the target that has it unless it is that of `--disk`.
fn disks(view: &View) -> Option<String> {
    let facts = &view.setup.conditions.facts;
    let disks = facts.iter().filter(|f| f.name == "device" && f.group.starts_with(DISK));
    let disks: Vec<String> = disks
        .map(|device| {
            let is_kind = |f: &&Condition| f.group == device.group && f.name == "file system";
            let kind = facts.iter().find(is_kind);
            let kind = kind.map_or_else(String::new, |kind| format!(", {}", kind.value));
            let owner = device.group.strip_prefix("disk of ");
            let owner = owner.map_or_else(String::new, |target| format!("{target}: "));
            format!("{owner}{}{kind}", device.value)
        })
        .collect();
    (!disks.is_empty()).then(|| disks.join("; "))
}
