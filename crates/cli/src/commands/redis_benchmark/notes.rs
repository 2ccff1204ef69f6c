//! Warnings before a test, and corrected figures and warnings after it, on standard error. They
//! show what the original's way of measuring hides. Standard output stays as scripts expect it.

use model::{Counts, Point};
use report::limits::BUSY_SHARE_MAX;
use stats::{Histogram, format_ns};

use super::arguments::Options;
use super::catalogue::Test;
use super::existing::effect;

/// Corrected figures of one test.
#[derive(Clone, Debug)]
pub(super) struct CorrectedFigures {
    title: String,
    /// Time from when a request was due to its complete reply. Without `--rps` a request is due
    /// when it is sent.
    response: Histogram,
    counts: Counts,
    /// Generator CPU time per request.
    cpu_ns: f64,
    /// Share of the time that the generator's threads were busy.
    busy_share: f64,
    /// Requests that were due at the given rate but not sent.
    unsent: u64,
}

impl CorrectedFigures {
    /// Figures of a test that ran on `threads` threads.
    pub(super) fn new(title: &str, point: &Point, threads: u32) -> Self {
        let (response, counts) = point
            .whole()
            .map(|whole| (whole.response.clone(), whole.counts.clone()))
            .unwrap_or_default();
        let cpu_ns = point.generator_cpu_ns as f64;
        Self {
            title: title.into(),
            cpu_ns: cpu_ns / (response.count().max(1)) as f64,
            busy_share: cpu_ns / (point.length_ns.max(1) as f64 * f64::from(threads)),
            unsent: point.unsent,
            response,
            counts,
        }
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.title.clone()];
        cells.extend([0.5, 0.99, 0.999, 0.9999].map(|q| time(self.response.quantile_ns(q) as f64)));
        cells.push(time(self.response.max_ns() as f64));
        let Counts { ok, miss, error, wrong, .. } = &self.counts;
        cells.extend([ok, miss, wrong, error].map(u64::to_string));
        cells.push(time(self.cpu_ns));
        cells
    }

    /// Warnings about the validity of the figures.
    pub(super) fn warnings(&self, test: &Test) -> Vec<String> {
        let Self { title, counts, busy_share, unsent, .. } = self;
        let mut warnings = Vec::new();
        let reads = counts.ok + counts.miss;
        if counts.miss > 0 && counts.ok == 0 {
            let fill = fill_first(test);
            warnings.push(format!(
                "every {title} found nothing, so this is not the cost of a hit{fill}"
            ));
        } else if counts.miss > 0 {
            let (miss, share) = (counts.miss, counts.miss as f64 / reads as f64);
            let share = stats::format_percent(share);
            warnings.push(format!("{miss} of {reads} {title} found nothing ({share})"));
        }
        if counts.wrong > 0 {
            warnings.push(format!("{} replies to {title} had an unexpected type", counts.wrong));
        }
        if *busy_share > BUSY_SHARE_MAX {
            warnings.push(format!(
                "in {title} cachedyno itself was busy for {} of the time and may have been the \
                 bottleneck (use more --threads or another machine)",
                stats::format_percent(*busy_share)
            ));
        }
        if *unsent > 0 {
            warnings.push(format!("{unsent} requests of {title} were due but could not be sent"));
        }
        warnings
    }
}

/// A hint on how to create the data that a built-in test reads; empty for other tests.
fn fill_first(test: &Test) -> String {
    let by = match test.title.as_str() {
        _ if test.is_own => return String::new(),
        "GET" => "set",
        "LPOP" | "RPOP" => "lpush",
        "SPOP" => "sadd",
        _ => return String::new(),
    };
    format!(" (to fill the keys, run the same command with `-t {by}` first)")
}

/// Warnings to print before the tests.
pub(super) fn before(options: &Options, tests: &[Test]) -> Vec<String> {
    let mut warnings = options.warnings.clone();
    let (load, data) = (&options.load, &options.data);
    if options.server.user.is_some() && options.server.password.is_none() {
        warnings.push("--user has no effect without a password (-a)".into());
    }
    if data.keyspace.is_none() && tests.iter().any(|test| test.could_spread) {
        warnings.push(
            "without -r every request uses the same key, which is the best case for servers and \
             their CPU caches (add -r NUMBER)"
                .into(),
        );
    }
    if tests.iter().any(|test| effect(&test.command()).is_some()) {
        warnings.push(
            "acknowledged writes are not read back, so lost writes go unnoticed (`cachedyno bench` \
             reads them back)"
                .into(),
        );
    }
    if load.pipeline > 1 && load.rps.is_none() {
        warnings.push(format!(
            "with -P {0} a latency is that of one request, from sending its batch of {0} to its \
             own complete reply; redis-benchmark takes the first byte of the first reply for all \
             {0}",
            load.pipeline
        ));
    }
    if options.keep_alive == 0 {
        warnings.push(
            "with -k 0 requests per second include connection setup, but latencies are measured \
             from sending the requests, as in redis-benchmark; the corrected figures include it"
                .into(),
        );
    }
    let reads = tests.iter().any(|test| test.title == "GET");
    if data.bytes_given && reads && !tests.iter().any(|test| test.title == "SET") {
        warnings
            .push("-d has no effect on GET: values have the length they were stored with".into());
    }
    if load.threads > 0 {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        if load.threads as usize > cpus {
            let threads = load.threads;
            warnings.push(format!("--threads {threads} exceeds the number of CPUs ({cpus})"));
        }
    }
    warnings
}

/// A table of corrected figures; empty without rows.
pub(super) fn table(rows: &[CorrectedFigures]) -> String {
    let header = [
        "per request",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "max",
        "ok",
        "not found",
        "wrong",
        "errors",
        "own CPU",
    ];
    aligned(&header, rows.iter().map(CorrectedFigures::cells).collect())
}

/// A table with aligned columns; empty without rows.
pub(super) fn aligned(header: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut lines: Vec<Vec<String>> = vec![header.iter().map(|name| (*name).into()).collect()];
    lines.extend(rows);
    let width = |column: usize| {
        lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &Vec<String>| {
        let first = format!("{:<1$}", cells[0], widths[0]);
        let rest =
            cells.iter().zip(&widths).skip(1).map(|(cell, width)| format!("  {cell:>width$}"));
        first + &rest.collect::<String>() + "\n"
    };
    lines.iter().map(line).collect()
}

/// Formats a time; a dash for 0, which means that nothing was measured.
pub(super) fn time(ns: f64) -> String {
    if ns > 0.0 { format_ns(ns) } else { "–".into() }
}

#[cfg(test)]
#[path = "notes_tests.rs"]
mod tests;
