//! Courses of rate, p99, memory, swap and disk over time as lines of characters, for targets with
//! limited memory, with the events of the phase.

use std::fmt::Write as _;

use crate::show;
use crate::view::{EventView, ResourceCharts, Row, RowCharts, View};

/// Characters for a value of an eighth of the highest one, two eighths, and so on.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Most and fewest characters of a course.
const WIDTH: (usize, usize) = (60, 16);
/// Columns beside the characters: the name before them, the range behind them.
const BESIDE: usize = 45;

/// A course: its name as metrics are named, its points, and whether peaks or means are shown where
/// several points fall on a character.
struct Course {
    title: &'static str,
    unit: &'static str,
    /// Seconds since the start of the measurement, and the value.
    points: Vec<(f64, f64)>,
    shows_peaks: bool,
}

/// The courses of each row with limited memory in its first block, for a terminal of `columns`.
pub(super) fn over_time(view: &View, columns: usize) -> String {
    let width = columns.saturating_sub(BESIDE).clamp(WIDTH.1, WIDTH.0);
    let rows = view.cells.iter().filter_map(|row| {
        let charts = row.charts.as_ref()?;
        Some(of_row(view, row, (charts, charts.resources.as_ref()?), width))
    });
    rows.collect()
}

fn of_row(
    view: &View,
    row: &Row,
    (charts, resources): (&RowCharts, &ResourceCharts),
    width: usize,
) -> String {
    let courses = courses(charts, resources);
    let ends = courses.iter().filter_map(|course| Some(course.points.last()?.0));
    let length_s = ends.fold(0.0, f64::max);
    if length_s <= 0.0 {
        return String::new();
    }
    let block = charts.by_block.first().map_or(0, |point| point.block);
    let mut text = format!(
        "{} {} on {}, {}, block {}, {}\n",
        row.workload,
        row.operation,
        row.target,
        row.load,
        block + 1,
        show::ns(length_s * 1e9)
    );
    for Course { title, unit, points, shows_peaks } in courses {
        let values = points.iter().map(|(_, value)| *value);
        let (least, most) =
            (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max));
        if most <= 0.0 {
            continue;
        }
        let line = line(&points, (length_s, most), width, shows_peaks);
        let [least, most] = [least, most].map(|value| show::named(unit, value));
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {title:<9} {line} {least} to {most}");
    }
    text + &events(view, row, block, (length_s, width))
}

fn courses(charts: &RowCharts, resources: &ResourceCharts) -> Vec<Course> {
    let evenly = |interval_s: f64, values: Option<&Vec<Option<f64>>>| {
        let all = values.into_iter().flatten().enumerate();
        all.filter_map(|(i, value)| Some(((i + 1) as f64 * interval_s, (*value)?))).collect()
    };
    let rates = charts.rate_series.first().map(|all| all.iter().copied().map(Some).collect());
    let p99 = charts.p99_series.first().cloned().unwrap_or_default();
    let of = |title, unit, all: &[Vec<Option<f64>>]| Course {
        title,
        unit,
        points: evenly(resources.interval_s, all.first()),
        shows_peaks: false,
    };
    vec![
        Course {
            title: "rate",
            unit: "rate_per_s",
            points: evenly(charts.interval_s, rates.as_ref()),
            shows_peaks: false,
        },
        Course { title: "p99", unit: "p99_ns", points: p99, shows_peaks: true },
        of("memory", "bytes", &resources.memory_bytes),
        of("on swap", "bytes", &resources.swapped_bytes),
        of("read/s", "bytes", &resources.read_bytes_per_s),
        of("written/s", "bytes", &resources.written_bytes_per_s),
    ]
}

/// Points as characters. A character without a point repeats the one before it.
fn line(
    points: &[(f64, f64)],
    (length_s, most): (f64, f64),
    width: usize,
    shows_peaks: bool,
) -> String {
    let mut cells: Vec<Vec<f64>> = vec![Vec::new(); width];
    for (at_s, value) in points {
        cells[place(*at_s, length_s, width)].push(*value);
    }
    let mut last = ' ';
    let of_cell = |cell: Vec<f64>| {
        let value = if shows_peaks {
            cell.iter().copied().reduce(f64::max)
        } else {
            (!cell.is_empty()).then(|| cell.iter().sum::<f64>() / cell.len() as f64)
        };
        if let Some(value) = value {
            let level = (value / most * LEVELS.len() as f64).ceil() as usize;
            last = LEVELS[level.clamp(1, LEVELS.len()) - 1];
        }
        last
    };
    cells.into_iter().map(of_cell).collect()
}

/// The character for a time.
fn place(at_s: f64, length_s: f64, width: usize) -> usize {
    ((at_s / length_s * width as f64).ceil() as usize).clamp(1, width) - 1
}

/// A mark below the courses at each event of the phase, and what happened when.
fn events(view: &View, row: &Row, block: u32, (length_s, width): (f64, usize)) -> String {
    let is_own = |event: &&EventView| {
        (&event.target, &event.workload, &event.load, event.block)
            == (&row.target, &row.workload, &row.load, block)
            && event.phase.as_ref() == Some(&row.operation)
    };
    let own: Vec<&EventView> = view.happened.events.iter().filter(is_own).collect();
    if own.is_empty() {
        return String::new();
    }
    let mut marks = vec![' '; width];
    for event in &own {
        marks[place(event.at_s, length_s, width)] = '↑';
    }
    let told: Vec<String> =
        own.iter().map(|e| format!("{} at {}", e.what, show::ns(e.at_s * 1e9))).collect();
    let marks: String = marks.into_iter().collect();
    format!("  {:<9} {} {}\n", "", marks.trim_end(), told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn courses_are_drawn_to_scale() {
        let points = [(1.0, 8.0), (2.0, 4.0), (4.0, 1.0)];
        assert_eq!(line(&points, (4.0, 8.0), 4, false), "█▄▄▁");
        let many = [(0.5, 2.0), (1.0, 8.0), (2.0, 8.0)];
        assert_eq!(line(&many, (2.0, 8.0), 2, false), "▅█");
        assert_eq!(line(&many, (2.0, 8.0), 2, true), "██");
        assert_eq!(line(&[(2.0, 1.0)], (2.0, 1.0), 2, false), " █", "nothing before the first");
    }
}
