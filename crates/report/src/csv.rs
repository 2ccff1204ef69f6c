//! Rows as comma-separated values (RFC 4180: lines end in CR LF, a field with a comma, quote or
//! line break is quoted). Columns are stable; new ones are added at the end. Times are in
//! nanoseconds, rates are per second; a field is empty if the value was not measured.

mod probes;
mod samples;

use model::{Counts, Load};
use std::collections::BTreeMap;

use crate::metrics;
use crate::pairs::against;
use crate::standings::standings;
use crate::view::{ALL, BlockPoint, GrowthView, RampStage, RampView, Row, StageInTime, View};

pub use probes::render_probes;
pub use samples::{samples_header, samples_line};

/// Metrics in the order of their columns, each as centre, `_lo` and `_hi`.
const METRICS: [&str; 21] = [
    "rate_per_s",
    "service_ns_p50",
    "service_ns_p90",
    "service_ns_p95",
    "service_ns_p99",
    "service_ns_p999",
    "service_ns_p9999",
    "service_ns_max",
    "service_ns_mean",
    "response_ns_p50",
    "response_ns_p90",
    "response_ns_p95",
    "response_ns_p99",
    "response_ns_p999",
    "response_ns_p9999",
    "response_ns_max",
    "response_ns_mean",
    "lock_wait_ns_p50",
    "lock_wait_ns_p99",
    "lock_wait_ns_max",
    "lock_wait_share",
];

/// Metrics added later, whose columns follow the first ones; three columns each, as in [`METRICS`].
const LATER_METRICS: [&str; 7] = [
    "calls_rate_per_s",
    "round_trips_per_op",
    "commands_per_op",
    "files_per_op",
    "store_bytes",
    "server_memory_bytes",
    "stale_members",
];

/// A metric whose columns were added later still.
const LAST_METRIC: &str = "restoring_ns_per_op";

/// Column of the rate at which requests were due.
const PLANNED: &str = "planned_per_s";

/// Column name and value of a field.
type Field = (String, String);

/// A line of column names, then one line per row of results. The columns after the counts compare
/// the row with the best target at the same operation: its name, the ratio of this row's rate to
/// its rate, and the verdict.
pub fn render(view: &View) -> String {
    let mut text = header(&fields(view, &empty_row(), None, Stage::default()));
    for table in standings(view) {
        for group in &table.groups {
            let best = group.best().map(|standing| standing.row);
            for standing in &group.standings {
                let stage = Stage {
                    planned_per_s: standing.row.load.steady_per_s().map(|rate| rate as f64),
                    ..Stage::default()
                };
                text += &values(&fields(view, standing.row, best, stage));
            }
        }
    }
    for ramp in &view.ramps {
        for stage in &ramp.stages {
            for operation in stage.operations.keys() {
                text += &values(&stage_row(view, (ramp, stage), operation));
            }
        }
    }
    text
}

/// An operation of a stage of a ramp, as a row of results with the stage's own columns.
fn stage_row(view: &View, (ramp, stage): (&RampView, &RampStage), operation: &str) -> Vec<Field> {
    let found = &stage.operations[operation];
    let whole = operation == ALL;
    // Rates and costs apply to all operations together.
    let own = stage.metrics.iter().filter(|_| whole);
    let metrics = found.metrics.iter().chain(own);
    let phase = &ramp.operation;
    let name = if whole { phase.clone() } else { format!("{phase}.{operation}") };
    let row = Row {
        blocks: stage.blocks,
        metrics: metrics.map(|(name, value)| (name.clone(), *value)).collect(),
        counts: found.counts.clone(),
        ..row_of_ramp(view, ramp, name)
    };
    let of_stage = |name: &str| stage.metrics.get(name).map(|v| v.center);
    let [planned_per_s, asked_per_s] = [PLANNED, "asked_per_s"].map(of_stage);
    fields(view, &row, None, Stage { of: Some(stage), planned_per_s, asked_per_s })
}

/// A row of a ramp without measurements.
fn row_of_ramp(view: &View, ramp: &RampView, operation: String) -> Row {
    let target = view.setup.targets.iter().find(|t| t.name == ramp.target);
    Row {
        target: ramp.target.clone(),
        product: target.and_then(|t| t.product.clone()),
        workload: ramp.workload.clone(),
        operation,
        load: ramp.load.clone(),
        ..empty_row()
    }
}

/// An empty row, which has all columns.
fn empty_row() -> Row {
    Row {
        target: String::new(),
        product: None,
        workload: String::new(),
        operation: String::new(),
        load: Load::closed(1),
        blocks: 0,
        compared_by: String::new(),
        metrics: BTreeMap::new(),
        counts: Counts::default(),
        footnotes: Vec::new(),
        required: Vec::new(),
        charts: None,
    }
}

/// Columns of stages. An open load without stages has only `planned_per_s`.
#[derive(Clone, Copy, Default)]
struct Stage<'a> {
    of: Option<&'a RampStage>,
    planned_per_s: Option<f64>,
    asked_per_s: Option<f64>,
}

fn field(name: &str, value: impl Into<String>) -> Field {
    (name.into(), value.into())
}

/// All columns of a row; those after the counts compare it with the best at the same operation.
fn fields(view: &View, row: &Row, best: Option<&Row>, stage: Stage<'_>) -> Vec<Field> {
    let mut fields = place(view, row);
    fields.push(field("blocks", row.blocks.to_string()));
    let of_metric = |metric: &&str| {
        let value = row.metrics.get(*metric);
        let center = match value {
            Some(bound) if bound.at_least => format!(">={}", number(Some(bound.center))),
            value => number(value.map(|v| v.center)),
        };
        [
            field(metric, center),
            (format!("{metric}_lo"), number(value.and_then(|v| v.lo))),
            (format!("{metric}_hi"), number(value.and_then(|v| v.hi))),
        ]
    };
    fields.extend(METRICS.iter().flat_map(of_metric));
    fields.extend(counts(&row.counts).map(|(name, n)| field(name, n.to_string())));
    let place = (row.workload.as_str(), row.operation.as_str(), &row.load);
    let comparison =
        best.and_then(|best| against(&view.comparisons, place, &row.target, &best.target));
    fields.push(field("best", best.map(|b| b.target.clone()).unwrap_or_default()));
    fields.push(field("ratio_to_best", number(comparison.as_ref().map(|c| c.ratio.center))));
    let verdict = comparison.map_or_else(String::new, |c| c.verdict.to_string());
    fields.push(field("verdict_to_best", verdict));
    fields.extend(LATER_METRICS.iter().flat_map(of_metric));
    fields.push(field("lost", row.counts.lost.to_string()));
    fields.extend(growth(view, row));
    fields.extend(of_metric(&LAST_METRIC));
    let text = |read: fn(&RampStage) -> String| stage.of.map(read).unwrap_or_default();
    fields.extend([
        field("stage", text(|stage| stage.number.to_string())),
        field("way", text(|stage| stage.way.to_string())),
        field("blocks_held", text(|stage| stage.held.to_string())),
        field(PLANNED, number(stage.planned_per_s)),
        field("asked_per_s", number(stage.asked_per_s)),
    ]);
    fields.extend(metrics::METRICS.iter().flat_map(|metric| of_metric(&metric.key)));
    fields
}

/// Fields of the growth curve to which a row belongs; empty for other rows.
fn growth(view: &View, row: &Row) -> [Field; 6] {
    let place = (&row.target, &row.operation, &row.load);
    let of_row = view.growth.iter().find_map(|curve| {
        let own = (&curve.target, &curve.operation, &curve.load) == place;
        let mut points = curve.points.iter().filter(|_| own);
        Some((curve, points.find(|p| p.workload == row.workload)?))
    });
    let slope = of_row.and_then(|(curve, _)| curve.slope);
    let text = |read: fn(&GrowthView) -> String| of_row.map(|(c, _)| read(c)).unwrap_or_default();
    [
        field("grows", text(|curve| curve.grows.clone())),
        field("size", number(of_row.map(|(curve, point)| point.size(&curve.grows)))),
        field("slope", number(slope.map(|s| s.center))),
        field("slope_lo", number(slope.and_then(|s| s.lo))),
        field("slope_hi", number(slope.and_then(|s| s.hi))),
        field("growth", text(|curve| curve.verdict.to_string())),
    ]
}

fn counts(counts: &Counts) -> [(&'static str, u64); 9] {
    [
        ("ok", counts.ok),
        ("miss", counts.miss),
        ("error", counts.error),
        ("wrong", counts.wrong),
        ("stale", counts.stale),
        ("lock_waits", counts.lock_waits),
        ("lock_attempts", counts.lock_attempts),
        ("lock_broken", counts.lock_broken),
        ("lock_timeouts", counts.lock_timeouts),
    ]
}

/// The data behind the intervals: a line of column names, one line per row and block, then one line
/// per ramp, block and stage in chronological order. A view without charts gives only the column
/// names.
pub fn render_blocks(view: &View) -> String {
    let mut text = header(&fields_of_block(view, &empty_row(), &BlockLine::default()));
    for row in &view.cells {
        for point in row.charts.iter().flat_map(|c| &c.by_block) {
            let of = BlockLine { block: point.block, point: Some(point), ..BlockLine::default() };
            text += &values(&fields_of_block(view, row, &of));
        }
    }
    for ramp in &view.ramps {
        for block in ramp.charts.iter().flat_map(|charts| &charts.blocks) {
            for stage in block.stages.iter().zip(1_u32..) {
                let row = row_of_ramp(view, ramp, ramp.operation.clone());
                let of = BlockLine { block: block.block, stage: Some((ramp, stage)), point: None };
                text += &values(&fields_of_block(view, &row, &of));
            }
        }
    }
    text
}

/// Content of a block's line: a point, or a stage with its chronological number.
#[derive(Default)]
struct BlockLine<'a> {
    block: u32,
    point: Option<&'a BlockPoint>,
    stage: Option<(&'a RampView, (&'a StageInTime, u32))>,
}

fn fields_of_block(view: &View, row: &Row, of: &BlockLine<'_>) -> Vec<Field> {
    let whole = |read: fn(&BlockPoint) -> Option<u64>| {
        of.point.and_then(read).map(|n| n.to_string()).unwrap_or_default()
    };
    let stage = of.stage.map(|(_, (stage, _))| stage);
    let seconds = |read: fn(&StageInTime) -> f64| number(stage.map(read));
    let rate = of.point.map(|p| p.rate_per_s).or(stage.map(|s| s.answered_per_s));
    let stage_p99 = |times: &str| {
        let ns_p99 = of.stage.filter(|(ramp, _)| ramp.times == times)?.1.0.ns_p99?;
        Some(number(Some(ns_p99 as f64)))
    };
    let mut fields = place(view, row);
    if let (Some(stage), Some(clients)) = (stage, fields.iter_mut().find(|f| f.0 == "clients")) {
        clients.1 = stage.clients.to_string();
    }
    let service_p99 = stage_p99("service").unwrap_or_else(|| whole(|p| p.service_ns_p99));
    fields.extend([
        field("block", of.block.to_string()),
        field("rate_per_s", number(rate)),
        field("service_ns_mean", number(of.point.map(|p| p.service_ns_mean))),
        field("service_ns_p50", whole(|p| p.service_ns_p50)),
        field("service_ns_p99", service_p99),
        field("service_ns_p999", whole(|p| p.service_ns_p999)),
        field("ok", whole(|p| Some(p.ok))),
        field("not_ok", whole(|p| Some(p.not_ok))),
        field("free_ns", whole(|p| Some(p.free_ns))),
        field("restoring_ns", whole(|p| Some(p.restoring_ns))),
        field("stage_in_time", of.stage.map_or_else(String::new, |(_, (_, n))| n.to_string())),
        field("from_s", seconds(|s| s.from_s)),
        field("to_s", seconds(|s| s.to_s)),
        field(PLANNED, number(stage.and_then(|s| s.planned_per_s))),
        field("response_ns_p99", stage_p99("response").unwrap_or_default()),
        field("held", stage.map_or_else(String::new, |s| s.holds.to_string())),
    ]);
    fields
}

/// Fields that identify a row.
fn place(view: &View, row: &Row) -> Vec<Field> {
    vec![
        field("run", view.run.clone()),
        field("validity", view.validity.heading()),
        field("workload", row.workload.clone()),
        field("clients", row.load.clients.to_string()),
        field("one_session", row.load.one_session.to_string()),
        field("operation", row.operation.clone()),
        field("target", row.target.clone()),
        field("product", row.product.clone().unwrap_or_default()),
    ]
}

/// The line of column names.
fn header(fields: &[Field]) -> String {
    line(&fields.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>())
}

fn values(fields: &[Field]) -> String {
    line(&fields.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>())
}

/// Six significant digits, far more precise than any interval.
fn number(value: Option<f64>) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else { return String::new() };
    if value == 0.0 {
        return "0".into();
    }
    let decimals = (5 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

fn line(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|f| quoted(f)).collect();
    fields.join(",") + "\r\n"
}

/// Quotes a field as in RFC 4180. Text that a spreadsheet would interpret as a formula gets a
/// leading apostrophe, which keeps it text; numbers keep their sign.
fn quoted(field: &str) -> String {
    let is_formula =
        field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err();
    if is_formula {
        quoted(&format!("'{field}"))
    } else if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_only_if_necessary() {
        let fields = ["plain", "a,b", "say \"x\"", "two\nlines"].map(String::from);
        assert_eq!(line(&fields), "plain,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\r\n");
    }

    #[test]
    fn no_field_is_a_formula() {
        let fields = ["=1+1", "@x", "+x", "-x,y", "-1.5", "+2", "a=b"].map(String::from);
        assert_eq!(line(&fields), "'=1+1,'@x,'+x,\"'-x,y\",-1.5,+2,a=b\r\n");
    }

    #[test]
    fn numbers_keep_six_digits_and_no_more() {
        let cases = [
            (12_345.678_9, "12345.7"),
            (0.012_345_678, "0.0123457"),
            (1_234_567.0, "1234567"),
            (2.5, "2.5"),
            (0.0, "0"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(Some(value)), expected);
        }
        assert_eq!(number(Some(f64::NAN)), "");
    }
}
