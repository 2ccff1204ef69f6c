//! Rows as comma-separated values (RFC 4180: lines end in CR LF, a field with a comma, quote or
//! line break is quoted). Columns are stable; new ones are added at the end. Times are in
//! nanoseconds, rates per second; an empty field was not measured.

mod probes;
mod samples;

use model::{Counts, Load};
use std::collections::BTreeMap;

use crate::metrics;
use crate::pairs::against;
use crate::standings::standings;
use crate::view::{ALL, RampStage, RampView, Row, StageInTime, View};

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

/// Metrics whose columns came later: they stand behind all others, as [`METRICS`] do.
const LATER_METRICS: [&str; 8] = [
    "calls_rate_per_s",
    "hit_ratio",
    "round_trips_per_op",
    "commands_per_op",
    "files_per_op",
    "store_bytes",
    "server_memory_bytes",
    "stale_members",
];

/// A metric whose columns came later still, behind [`GROWTH`].
const LAST_METRIC: &str = "restoring_ns_per_op";

/// Columns that say which row it is, also of [`render_blocks`].
const PLACE: [&str; 8] =
    ["run", "validity", "workload", "clients", "one_session", "operation", "target", "product"];

/// Where among them the clients are.
const PLACE_CLIENTS: usize = 3;

/// Columns of rows of a profile with sizes: what grows, how much of it there is, and the slope.
const GROWTH: [&str; 6] = ["grows", "size", "slope", "slope_lo", "slope_hi", "growth"];

/// Columns of stages of ramps: number, way, and what is told of the stage as a whole. Rows of an
/// open load at one rate have that as planned, and the others empty.
const STAGE: [&str; 5] = ["stage", "way", "blocks_held", PLANNED, "asked_per_s"];

/// Column of the rate at which requests were due.
const PLANNED: &str = "planned_per_s";

/// Counts in the order of their columns.
const COUNTS: [&str; 9] = [
    "ok",
    "miss",
    "error",
    "wrong",
    "stale",
    "lock_waits",
    "lock_attempts",
    "lock_broken",
    "lock_timeouts",
];

/// One line a row of results, after a line of column names. Columns behind the counts compare with
/// the best of the same operation: its name, how many times as fast as it this row is, the verdict.
pub fn render(view: &View) -> String {
    let mut header: Vec<String> = PLACE.iter().map(ToString::to_string).collect();
    header.push("blocks".into());
    let of_metric = |m: &&str| [m.to_string(), format!("{m}_lo"), format!("{m}_hi")];
    header.extend(METRICS.iter().flat_map(of_metric));
    header.extend(COUNTS.iter().map(ToString::to_string));
    header.extend(["best", "ratio_to_best", "verdict_to_best"].map(String::from));
    header.extend(LATER_METRICS.iter().flat_map(of_metric));
    header.push("lost".into());
    header.extend(GROWTH.map(String::from));
    header.extend(of_metric(&LAST_METRIC));
    header.extend(STAGE.map(String::from));
    header.extend(metrics::METRICS.iter().flat_map(|metric| of_metric(&metric.key)));
    let mut text = line(&header);
    for table in standings(view) {
        for group in &table.groups {
            let best = group.standings.iter().find(|s| s.best).map(|s| s.row);
            for standing in &group.standings {
                text += &line(&row(view, standing.row, best));
            }
        }
    }
    for ramp in &view.ramps {
        for stage in &ramp.stages {
            for operation in stage.operations.keys() {
                text += &line(&stage_row(view, (ramp, stage), operation));
            }
        }
    }
    text
}

/// An operation of a stage of a ramp, as a row of results with the stage's own columns.
fn stage_row(view: &View, (ramp, stage): (&RampView, &RampStage), operation: &str) -> Vec<String> {
    let found = &stage.operations[operation];
    let whole = operation == ALL;
    // Rates and costs are those of all operations together.
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
    let of_stage = |name: &str| number(stage.metrics.get(name).map(|v| v.center));
    let [planned, asked] = [PLANNED, "asked_per_s"].map(of_stage);
    let (number, held) = (stage.number.to_string(), stage.held.to_string());
    fields(view, &row, None, [number, stage.way.to_string(), held, planned, asked])
}

/// A row of a ramp, with nothing measured yet.
fn row_of_ramp(view: &View, ramp: &RampView, operation: String) -> Row {
    let target = view.setup.targets.iter().find(|t| t.name == ramp.target);
    Row {
        target: ramp.target.clone(),
        product: target.and_then(|t| t.product.clone()),
        workload: ramp.workload.clone(),
        operation,
        load: ramp.load.clone(),
        blocks: 0,
        compared_by: String::new(),
        metrics: BTreeMap::new(),
        counts: Counts::default(),
        footnotes: Vec::new(),
        charts: None,
    }
}

fn row(view: &View, row: &Row, best: Option<&Row>) -> Vec<String> {
    let planned = number(planned_per_s(&row.load));
    fields(view, row, best, [String::new(), String::new(), String::new(), planned, String::new()])
}

/// A row with its columns of [`STAGE`].
fn fields(view: &View, row: &Row, best: Option<&Row>, stage: [String; STAGE.len()]) -> Vec<String> {
    let mut fields = place(view, row);
    fields.push(row.blocks.to_string());
    let of_metric = |metric: &&str| {
        let value = row.metrics.get(*metric);
        let center = match value {
            Some(bound) if bound.at_least => format!(">={}", number(Some(bound.center))),
            value => number(value.map(|v| v.center)),
        };
        [center, number(value.and_then(|v| v.lo)), number(value.and_then(|v| v.hi))]
    };
    fields.extend(METRICS.iter().flat_map(of_metric));
    fields.extend(counts(&row.counts).map(|n| n.to_string()));
    let place = (row.workload.as_str(), row.operation.as_str(), &row.load);
    let comparison =
        best.and_then(|best| against(&view.comparisons, place, &row.target, &best.target));
    fields.push(best.map(|b| b.target.clone()).unwrap_or_default());
    fields.push(number(comparison.as_ref().map(|c| c.ratio.center)));
    fields.push(comparison.map_or_else(String::new, |c| c.verdict.to_string()));
    fields.extend(LATER_METRICS.iter().flat_map(of_metric));
    fields.push(row.counts.lost.to_string());
    fields.extend(growth(view, row));
    fields.extend(of_metric(&LAST_METRIC));
    fields.extend(stage);
    fields.extend(metrics::METRICS.iter().flat_map(|metric| of_metric(&metric.key)));
    fields
}

/// The rate of an open load that has one and no stages.
fn planned_per_s(load: &Load) -> Option<f64> {
    match load {
        Load::Open { rate_per_s, stages, .. } if stages.is_empty() => Some(*rate_per_s as f64),
        _ => None,
    }
}

/// The growth curve that a row is a point of; empty fields for other rows.
fn growth(view: &View, row: &Row) -> [String; GROWTH.len()] {
    let place = (&row.target, &row.operation, &row.load);
    let of_row = view.growth.iter().find_map(|curve| {
        let own = (&curve.target, &curve.operation, &curve.load) == place;
        let mut points = curve.points.iter().filter(|_| own);
        Some((curve, points.find(|p| p.workload == row.workload)?))
    });
    let Some((curve, point)) = of_row else { return <[String; GROWTH.len()]>::default() };
    let slope = curve.slope.map(|s| [Some(s.center), s.lo, s.hi]).unwrap_or_default();
    let [slope, lo, hi] = slope.map(number);
    let size = number(Some(point.size(&curve.grows)));
    [curve.grows.clone(), size, slope, lo, hi, curve.verdict.to_string()]
}

fn counts(counts: &Counts) -> [u64; COUNTS.len()] {
    let Counts { ok, miss, error, wrong, stale, .. } = counts;
    let Counts { lock_waits, lock_attempts, lock_broken, lock_timeouts, .. } = counts;
    [*ok, *miss, *error, *wrong, *stale, *lock_waits, *lock_attempts, *lock_broken, *lock_timeouts]
}

/// Columns of a stage in the course of a block's ramp.
const STAGE_IN_TIME: [&str; 6] =
    ["stage_in_time", "from_s", "to_s", PLANNED, "response_ns_p99", "held"];

/// One line a block and row, after a line of column names: what the intervals are made of; then of
/// each ramp a line a block and stage, in the order of time. A view without charts has no blocks
/// and gives the column names alone.
pub fn render_blocks(view: &View) -> String {
    let mut header: Vec<String> = PLACE.iter().map(ToString::to_string).collect();
    let own = [
        "block",
        "rate_per_s",
        "service_ns_mean",
        "service_ns_p50",
        "service_ns_p99",
        "service_ns_p999",
        "ok",
        "not_ok",
        "free_ns",
        "restoring_ns",
    ];
    header.extend(own.map(String::from));
    header.extend(STAGE_IN_TIME.map(String::from));
    let mut text = line(&header);
    for row in &view.cells {
        for point in row.charts.iter().flat_map(|c| &c.by_block) {
            let mut fields = place(view, row);
            fields.push(point.block.to_string());
            fields.extend([number(Some(point.rate_per_s)), number(Some(point.service_ns_mean))]);
            let times = [point.service_ns_p50, point.service_ns_p99, point.service_ns_p999];
            fields.extend(times.map(|n| n.map(|n| n.to_string()).unwrap_or_default()));
            let counted = [point.ok, point.not_ok, point.free_ns, point.restoring_ns];
            fields.extend(counted.map(|n| n.to_string()));
            fields.extend(STAGE_IN_TIME.map(|_| String::new()));
            text += &line(&fields);
        }
    }
    for ramp in &view.ramps {
        for block in ramp.charts.iter().flat_map(|charts| &charts.blocks) {
            for (stage, number) in block.stages.iter().zip(1_u32..) {
                let fields = stage_of_block(view, ramp, (block.block, number), stage);
                text += &line(&fields);
            }
        }
    }
    text
}

/// A stage of a block's ramp, `number` in the order of time from 1.
fn stage_of_block(
    view: &View,
    ramp: &RampView,
    (block, number): (u32, u32),
    stage: &StageInTime,
) -> Vec<String> {
    let row = row_of_ramp(view, ramp, ramp.operation.clone());
    let mut fields = place(view, &row);
    fields[PLACE_CLIENTS] = stage.clients.to_string();
    let ns_p99 = |times: &str| stage.ns_p99.filter(|_| ramp.times == times).map(|ns| ns as f64);
    fields.extend([block.to_string(), self::number(Some(stage.answered_per_s))]);
    fields.extend([String::new(), String::new(), self::number(ns_p99("service"))]);
    fields.extend([const { String::new() }; 5]);
    let seconds = [stage.from_s, stage.to_s].map(|s| self::number(Some(s)));
    fields.push(number.to_string());
    fields.extend(seconds);
    fields.extend([self::number(stage.planned_per_s), self::number(ns_p99("response"))]);
    fields.push(stage.holds.to_string());
    fields
}

fn place(view: &View, row: &Row) -> Vec<String> {
    vec![
        view.run.clone(),
        view.validity.heading().into(),
        row.workload.clone(),
        row.load.clients().to_string(),
        row.load.one_session().to_string(),
        row.operation.clone(),
        row.target.clone(),
        row.product.clone().unwrap_or_default(),
    ]
}

/// Six significant digits: far finer than any interval.
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

/// A field as RFC 4180 quotes it. A text that a spreadsheet would take for a formula gets an
/// apostrophe, which makes it a text there too; numbers keep their sign.
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
    fn fields_are_quoted_where_they_must_be() {
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
