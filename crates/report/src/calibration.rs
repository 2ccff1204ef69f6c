//! A calibration as text: one table, and its meaning for measurements on this machine.

use model::Calibration;
use model::calibration::{Cost, DelayPercentiles, NULL_FACTOR_MIN, ShapeCost};

use crate::show;
use crate::table::{Column, Line, Table};
use crate::text::table::{Paint, fit, paragraph};

/// Share of time in pauses of more than 1 ms above which a calibration reflects disturbances rather
/// than the machine.
const PAUSED_SHARE_MAX: f64 = 0.01;

/// The whole calibration for a terminal of `columns` columns, with or without colours.
pub fn render(calibration: &Calibration, columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let Calibration { clients, value_bytes, clock, timer, pauses, load, .. } = calibration;
    let title = format!(
        "The generator against a null server: {clients} clients, values of {}, one thread",
        stats::format_bytes(*value_bytes as u64)
    );
    let line = |name: &str, text: &str| paragraph(&format!("{name:<8} "), 9, text, columns);
    let clock = format!(
        "{}, resolution {}, {} per reading",
        if clock.source.is_empty() { "source unknown" } else { &clock.source },
        show::ns(clock.resolution_ns as f64),
        show::ns(clock.reading_ns)
    );
    let timer = format!("a thread that sleeps 1 ms wakes late by {}", late(timer));
    let pauses = format!(
        "a thread that never sleeps loses {} of the time to pauses above 1 ms, the longest {}",
        show::percent(pauses.share_over_1ms),
        show::ns(pauses.ns_max as f64)
    );
    let lag = format!(
        "at a planned {}, requests are sent late by {}",
        show::rate(load.rate_per_s),
        late(&load.lag)
    );
    [
        paint.title(&title, columns),
        fit(&shapes(&calibration.shapes), paint, columns),
        "\n".into(),
        line("clock", &clock),
        line("timer", &timer),
        line("pauses", &pauses),
        line("lag", &lag),
        "\n".into(),
        paragraph("", 0, &meaning(calibration), columns),
    ]
    .concat()
}

/// Meaning of the figures for measurements on this machine.
pub(crate) fn meaning(calibration: &Calibration) -> String {
    let measurable = |shape: &ShapeCost| {
        let most = shape.engine.rate_per_s / NULL_FACTOR_MIN;
        format!("{} at pipeline {}", show::rate(most), shape.pipeline)
    };
    let of_get = |s: &&ShapeCost| s.socket == "unix" && s.operation == "get";
    let most: Vec<String> = calibration.shapes.iter().filter(of_get).map(measurable).collect();
    let paused = calibration.pauses.share_over_1ms;
    let restless = if paused > PAUSED_SHARE_MAX {
        format!(
            " The machine was busy during calibration ({} of the time lost to pauses): calibrate \
             again when it is idle.",
            show::percent(paused)
        )
    } else {
        String::new()
    };
    let finest = calibration.load.lag.ns_p999.max(calibration.timer.ns_p999);
    format!(
        "This machine can judge servers of up to {} (one thread, GET by unix socket, half the rate \
         of the null server). A 99.9th percentile below {} reflects this machine, not a \
         server.{restless}",
        most.join(", "),
        show::ns(finest as f64)
    )
}

fn late(times: &DelayPercentiles) -> String {
    format!(
        "{} (p50), {} (p99), {} (p99.9), at most {}",
        show::ns(times.ns_p50 as f64),
        show::ns(times.ns_p99 as f64),
        show::ns(times.ns_p999 as f64),
        show::ns(times.ns_max as f64)
    )
}

fn shapes(shapes: &[ShapeCost]) -> Table {
    let cpu = |cost: &Cost| {
        let us = |ns: f64| format!("{:.2}", ns / 1e3);
        format!("{}+{}", us(cost.user_ns_per_op), us(cost.system_ns_per_op))
    };
    let cells = |s: &ShapeCost| {
        vec![
            s.socket.clone(),
            s.operation.clone(),
            s.pipeline.to_string(),
            show::rate(s.engine.rate_per_s),
            cpu(&s.engine),
            show::rate(s.bare.rate_per_s),
            cpu(&s.bare),
            show::ratio(s.engine_to_bare),
        ]
    };
    let numbers = ["pipeline", "engine", "CPU u+s µs", "bare loop", "CPU u+s µs", "CPU ratio"];
    let words = ["socket", "operation"].map(Column::words).into_iter();
    let columns = words.chain(numbers.map(Column::number)).collect();
    Table::new(columns, shapes.iter().map(|shape| Line::plain(cells(shape))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::calibration;

    #[test]
    fn a_calibration_as_text() {
        let text = render(&calibration(), 100, false);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_highest_rate_judged_is_half_the_null_rate() {
        let text = meaning(&calibration());
        assert!(text.contains("up to 75.0 k/s at pipeline 1, 1.00 M/s at pipeline 16 ("), "{text}");
        assert!(text.contains("below 2.00 ms reflects this machine"), "{text}");
        let mut quiet = calibration();
        quiet.load.lag.ns_p999 = 10_000;
        assert!(meaning(&quiet).contains("below 400 µs"), "{}", meaning(&quiet));
        assert!(!text.contains("not quiet"), "{text}");
        quiet.pauses.share_over_1ms = 0.02;
        let text = meaning(&quiet);
        assert!(text.contains("busy during calibration (2 % of the time"), "{text}");
    }
}
