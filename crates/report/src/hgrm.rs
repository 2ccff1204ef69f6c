//! Percentile distributions for the plotters of `HdrHistogram`: one file per row.
//!
//! Format: `outputPercentileDistribution` of <https://github.com/HdrHistogram/HdrHistogram>, with
//! five ticks per half distance. Values are milliseconds.

use stats::Histogram;
use std::fmt::Write as _;

use crate::recorded::Recorded;
use crate::series::measured;

/// Lines per halving of the share above the percentile.
const TICKS: f64 = 5.0;
const NS_PER_MS: f64 = 1e6;

/// File name and latencies of each row over all blocks: response times where a request starts
/// before it is sent, otherwise service times. Failed operations have no latency; a comment gives
/// their number.
pub fn render(recorded: &Recorded) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for phase in measured(recorded).iter().filter(|phase| !phase.cell.load.is_probing()) {
        let has_response_times = phase.cell.load.has_response_times();
        for operation in &phase.operations {
            let (mut times, mut failed) = (Histogram::new(), 0);
            for block in &operation.blocks {
                let result = block.result;
                times.merge(if has_response_times { &result.response } else { &result.service });
                failed += result.counts.error;
            }
            let name = format!("{} {}", phase.cell.id, operation.name);
            files.push((file_name(&name), distribution(&times, failed)));
        }
    }
    files
}

/// Letters, digits, dots and dashes of a name, with `_` for everything else.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-.=".contains(c) { c } else { '_' };
    name.chars().map(plain).collect::<String>() + ".hgrm"
}

fn distribution(times: &Histogram, failed: u64) -> String {
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let total = times.count();
    let mut cumulated = 0;
    let mut steps = times.recorded().map(|(ns, count)| {
        cumulated += count;
        (ns, cumulated)
    });
    let mut step = steps.next();
    let mut percentile = 0.0_f64;
    while let Some((ns, below)) = step {
        // Print each tick with the value at which it falls.
        if (below as f64 / total as f64) * 100.0 < percentile {
            step = steps.next();
            continue;
        }
        let value = ns as f64 / NS_PER_MS;
        if below == total {
            let _ = writeln!(text, "{value:12.3} {:.12} {total:10}", 1.0);
            break;
        }
        let share = percentile / 100.0;
        let _ = writeln!(text, "{value:12.3} {share:.12} {below:10} {:14.2}", 1.0 / (1.0 - share));
        let halves = (100.0 / (100.0 - percentile)).log2().floor() + 1.0;
        percentile += 100.0 / (TICKS * halves.exp2());
    }
    let (mean, max) = (times.mean_ns() / NS_PER_MS, times.max_ns() as f64 / NS_PER_MS);
    let _ =
        writeln!(text, "#[Mean    = {mean:12.3}, Failed operations, not among them = {failed}]");
    let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {total:12}]");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_ends_with_all_of_it() {
        let mut times = Histogram::new();
        (1..=1_000).for_each(|ms| times.record(ms * 1_000_000));
        let text = distribution(&times, 7);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0][1..], ["0.000000000000", "1", "1.00"]);
        let half = lines.iter().find(|line| line[1] == "0.500000000000").unwrap();
        assert_eq!((half[2], half[3]), ("500", "2.00"));
        assert_eq!(lines.last().unwrap()[1..], ["1.000000000000", "1000"]);
        assert!(lines.is_sorted_by_key(|line| line[2].parse::<u64>().unwrap()), "{text}");
        assert!(text.contains("Failed operations, not among them = 7]"), "{text}");
        assert!(distribution(&Histogram::new(), 0).lines().count() == 4);
        assert_eq!(file_name("redis/get=1/50 mixed"), "redis_get=1_50_mixed.hgrm");
    }
}
