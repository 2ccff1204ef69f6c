//! What speed does not show: what it takes to run each target, and what each product can do.

use model::{Product, Property};

use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::view::{CapabilityView, OperatingView, View};

/// What the tables are based on.
const NOTE: &str = "servers, settings given by the run, and kinds of failures in this run are \
                    counted; properties are those of the products with default settings, not as \
                    this run configures them, by their documentation; most of them are tested on \
                    real servers";

pub(crate) fn section(view: &View) -> Section {
    let own = &view.advised.capabilities;
    let mut blocks = Vec::new();
    if !own.is_empty() {
        blocks.extend(needs(own).map(Block::item));
        let columns = ["target", "servers", "settings", "failures"].map(Column::words);
        let lines = view.advised.operating.iter().map(operated).collect();
        blocks.push(Block::table(Table::new(columns.into(), lines)));
        let columns = ["property", "store", "fact"].map(Column::words);
        blocks.push(Block::table(Table::new(columns.into(), own.iter().map(line).collect())));
        blocks.push(Block::note(NOTE));
    }
    Section { id: "capabilities", title: "What speed does not show", blocks }
}

/// `data types and replication: only redis; persistence: only files and redis`; `None` if all
/// products have the same.
fn needs(capabilities: &[CapabilityView]) -> Option<String> {
    let of = |property: Property, has: bool| -> Vec<&str> {
        let own = capabilities.iter().filter(|c| c.property == property && c.has == Some(has));
        own.map(|c| c.kind.name()).collect()
    };
    let mut groups: Vec<(Vec<String>, Vec<&str>)> = Vec::new();
    for property in Property::ALL {
        let with = of(property, true);
        if with.is_empty() || of(property, false).is_empty() {
            continue;
        }
        match groups.iter_mut().find(|(_, own)| *own == with) {
            Some((properties, _)) => properties.push(property.to_string()),
            None => groups.push((vec![property.to_string()], with)),
        }
    }
    let sentence = |(properties, with): (Vec<String>, Vec<&str>)| {
        format!("{}: only {}", show::listed(&properties), with.join(" and "))
    };
    let sentences: Vec<String> = groups.into_iter().map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

fn operated(operating: &OperatingView) -> Line {
    let OperatingView { target, servers, settings, failures } = operating;
    let names: Vec<&str> = servers.iter().copied().map(Product::name).collect();
    let servers = match names.as_slice() {
        [] => "0".into(),
        names => format!("{} ({})", names.len(), names.join(", ")),
    };
    let failures = match failures.as_slice() {
        [] => NONE.into(),
        kinds => kinds.join(", "),
    };
    Line::plain([
        Cell::target(target),
        Cell::from(servers),
        Cell::number(settings.to_string(), *settings as f64),
        Cell::from(failures),
    ])
}

fn line(capability: &CapabilityView) -> Line {
    Line::plain([
        Cell::from(capability.property.to_string()),
        capability.kind.name().into(),
        capability.text.as_str().into(),
    ])
}
