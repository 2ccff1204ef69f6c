//! The answer for a terminal.

use super::question::Question;
use super::view::{DeploymentView, Measurement, Missing, Outcome, SizingView};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::text::table::{Paint, fit, paragraph, section};

/// Most measurements listed that were not used; JSON has all.
const LEFT_OUT_MAX: usize = 8;

/// The answer for a terminal of `columns` columns, with or without colours.
pub fn render(view: &SizingView, columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let word = match view.outcome {
        Outcome::Covered => paint.good("COVERED"),
        Outcome::PartlyCovered => paint.doubtful("PARTLY COVERED"),
        Outcome::NotCovered => paint.bad("NOT COVERED"),
    };
    let mut parts = vec![
        paragraph("", 0, &format!("Sizing: {}", view.question), columns)
            + &format!("{word}\n")
            + &paint.title(&view.sentence, columns),
    ];
    if !view.deployments.is_empty() {
        parts.push(fit(&table(&view.deployments), paint, columns));
    }
    parts.extend(view.deployments.iter().map(|own| details(own, paint, columns)));
    parts.push(section("not covered", paint, &lacks(&view.missing, columns)));
    parts.push(section("not used", paint, &left_out(view, columns)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// The answer as indented JSON, with a line feed at the end.
///
/// # Panics
/// Never: the view is plain data whose keys are text.
pub fn json(view: &SizingView) -> String {
    let mut text =
        serde_json::to_string_pretty(view).expect("plain data with text as keys serialises");
    text.push('\n');
    text
}

/// The answer in one sentence.
pub(super) fn sentence(question: &Question, deployments: &[DeploymentView]) -> String {
    let Some(best) = deployments.first() else {
        return "the records do not cover this question".into();
    };
    let servers = match best.servers {
        1 => format!("one server of {}", best.named()),
        several => format!("{several} servers of {}", best.named()),
    };
    let carry = question.rate.as_ref().map(|rate| {
        let verb = if best.servers == 1 { "carries" } else { "carry" };
        let is_known = best.rate.as_ref().is_some_and(|own| own.survived_share.is_some());
        let failed = match rate.survive {
            0 => String::new(),
            1 if is_known => ", also after one has failed".into(),
            1 => ", with one to spare for a failure, which was not measured".into(),
            several => {
                format!(", with {several} to spare for failures, which were not measured")
            }
        };
        format!("{verb} {}/s with {}{failed}", show::commas(rate.per_s), rate.limits())
    });
    let memory = best.memory.as_ref().map(|need| {
        let each = if best.servers == 1 { "needs" } else { "each needs" };
        let saving = need.while_saving.as_ref().map_or_else(String::new, |saving| {
            let bytes = stats::format_bytes(saving.machine_bytes);
            format!(", and {bytes} of memory during a {}", saving.written_by)
        });
        format!("{each} {} of maxmemory{saving}", stats::format_bytes(need.maxmemory_bytes))
    });
    let cost = best.cost.as_ref().and_then(|cost| {
        let per_million = cost.per_million?;
        Some(format!("{} {} per million requests", money(per_million), cost.currency))
    });
    match (carry, memory) {
        (Some(carry), memory) => {
            let more: Vec<String> = memory.into_iter().chain(cost).collect();
            let more =
                if more.is_empty() { String::new() } else { format!("; {}", more.join("; ")) };
            format!("{servers} {carry}{more}")
        }
        (None, Some(memory)) => format!("{servers} {memory}"),
        (None, None) => servers,
    }
}

/// An amount of money with three significant digits.
fn money(amount: f64) -> String {
    if amount <= 0.0 {
        return "0".into();
    }
    let decimals = (2 - amount.log10().floor() as i32).clamp(0, 9);
    format!("{amount:.*}", decimals as usize)
}

fn table(deployments: &[DeploymentView]) -> Table {
    let has_rate = deployments.iter().any(|own| own.rate.is_some());
    let has_memory = deployments.iter().any(|own| own.memory.is_some());
    let has_save = deployments.iter().any(|own| saving(own).is_some());
    let has_cost = deployments.iter().any(|own| own.cost.is_some());
    let rates =
        [Column::number("carries"), Column::number("measured"), Column::number("95 % interval")];
    let mut columns = vec![Column::words("target"), Column::number("servers")];
    columns.extend(rates.into_iter().filter(|_| has_rate));
    columns.extend(has_memory.then(|| Column::number("maxmemory each")));
    columns.extend(has_save.then(|| Column::number("memory each")));
    columns.extend(has_cost.then(|| Column::number("per hour")));
    columns.extend((has_cost && has_rate).then(|| Column::number("per million")));
    let line = |(number, own): (usize, &DeploymentView)| {
        let mut cells: Vec<Cell> = vec![own.target.as_str().into(), servers(own).into()];
        if has_rate {
            cells.extend(rate_cells(own));
        }
        let memory = |bytes: Option<u64>| bytes.map_or_else(|| NONE.into(), stats::format_bytes);
        if has_memory {
            cells.push(memory(own.memory.as_ref().map(|need| need.maxmemory_bytes)).into());
        }
        if has_save {
            cells.push(memory(saving(own)).into());
        }
        let cost = own.cost.as_ref();
        if has_cost {
            let per_hour = cost.map(|c| format!("{} {}", money(c.per_hour), c.currency));
            cells.push(per_hour.unwrap_or_else(|| NONE.into()).into());
        }
        if has_cost && has_rate {
            let per_million =
                cost.and_then(|c| Some(format!("{} {}", money(c.per_million?), c.currency)));
            cells.push(per_million.unwrap_or_else(|| NONE.into()).into());
        }
        Line { is_strong: number == 0, ..Line::plain(cells) }
    };
    Table { columns, is_grouped: false, lines: deployments.iter().enumerate().map(line).collect() }
}

/// Memory of one server during a save.
fn saving(own: &DeploymentView) -> Option<u64> {
    Some(own.memory.as_ref()?.while_saving.as_ref()?.machine_bytes)
}

fn rate_cells(own: &DeploymentView) -> [Cell; 3] {
    let Some(rate) = &own.rate else { return [NONE, NONE, NONE].map(Cell::from) };
    let measured = show::rate(rate.measured_per_s.center);
    let measured = if rate.is_highest { measured } else { format!("≥ {measured}") };
    let ends = show::bounds(&rate.measured_per_s);
    let ends = ends.map(|(lo, hi)| format!("{} to {}", show::rate(lo), show::rate(hi)));
    [show::rate(rate.usable_per_s), measured, ends.unwrap_or_else(|| NONE.into())].map(Cell::from)
}

/// Servers of a deployment by their purpose: `3 (2 + 1 spare)`.
fn servers(own: &DeploymentView) -> String {
    let DeploymentView { servers, shards, spare_shards, replicas, .. } = own;
    match (spare_shards, replicas) {
        (0, 0) => servers.to_string(),
        (spare, 0) => format!("{servers} ({shards} + {spare} spare)"),
        (0, replicas) => format!("{servers} ({shards} with replicas: {replicas})"),
        (spare, replicas) => {
            format!("{servers} ({shards} + {spare} spare, with replicas: {replicas})")
        }
    }
}

fn details(own: &DeploymentView, paint: Paint, columns: usize) -> String {
    let address = own.address.as_ref().map(|address| format!(" at {address}"));
    let settings = (!own.settings.is_empty()).then(|| format!(", {}", own.settings));
    let tls = own.tls.then_some(", TLS");
    let title = format!(
        "{}: {}{}{}{}",
        own.target,
        own.product,
        address.unwrap_or_default(),
        tls.unwrap_or_default(),
        settings.unwrap_or_default()
    );
    let measured = |m: &Measurement| {
        let text = format!("{}: run {}, `{}`, {} UTC", m.what, m.run, m.cell, m.started);
        paragraph("  - ", 4, &text, columns)
    };
    let mut text = paint.title(&title, columns);
    text.extend(own.measurements.iter().map(measured));
    text.extend(own.notes.iter().map(|note| paragraph("  ! ", 4, note, columns)));
    text
}

fn lacks(missing: &[Missing], columns: usize) -> String {
    let of = |lack: &Missing| {
        let mut text = paragraph("  - ", 4, &lack.text, columns);
        // Commands are not wrapped, so that they can be copied.
        text.extend(lack.commands.iter().map(|command| format!("      {command}\n")));
        text
    };
    missing.iter().map(of).collect()
}

fn left_out(view: &SizingView, columns: usize) -> String {
    let mut text = String::new();
    for one in view.left_out.iter().take(LEFT_OUT_MAX) {
        let cell = one.cell.as_ref().map_or_else(String::new, |cell| format!(", `{cell}`"));
        text += &paragraph("  - ", 4, &format!("{}{cell}: {}", one.run, one.reason), columns);
    }
    let more = view.left_out.len().saturating_sub(LEFT_OUT_MAX);
    if more > 0 {
        text += &format!("  {}: --format json lists all\n", show::more_lines(more));
    }
    text
}
