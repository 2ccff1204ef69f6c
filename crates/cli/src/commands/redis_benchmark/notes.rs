//! What the original's practice hides, for standard error: doubts before a test, corrected figures
//! and doubts after it. Standard output stays as scripts expect it.

use load::wire::Outcome;
use model::Counts;
use stats::{Histogram, format_ns};

use super::arguments::Options;
use super::catalogue::Test;
use super::existing::effect;

/// Corrected figures of one test.
#[derive(Clone, Debug)]
pub(super) struct Corrected {
    title: String,
    /// From when a request was due to its whole reply; due is when it was sent, unless there was a
    /// rate to be kept.
    response: Histogram,
    counts: Counts,
    /// CPU time that the generator spent on a request.
    cpu_ns: f64,
    /// Share of its threads' time in which the generator was busy.
    busy_share: f64,
    /// Requests that a rate demanded and that were not sent.
    unsent: u64,
}

impl Corrected {
    /// Of a test with that many threads.
    pub(super) fn new(title: &str, outcome: &Outcome, threads: u32) -> Self {
        let row = outcome.recorder.whole();
        let cpu_ns = outcome.generator_cpu_ns as f64;
        Self {
            title: title.into(),
            response: row.response().clone(),
            counts: row.counts().clone(),
            cpu_ns: cpu_ns / (row.answered().max(1)) as f64,
            busy_share: cpu_ns / (outcome.wall_ns.max(1) as f64 * f64::from(threads)),
            unsent: outcome.unsent,
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

    /// Doubts about the numbers themselves.
    pub(super) fn doubts(&self, test: &Test) -> Vec<String> {
        let Self { title, counts, busy_share, unsent, .. } = self;
        let mut doubts = Vec::new();
        let asked = counts.ok + counts.miss;
        if counts.miss > 0 && counts.ok == 0 {
            let fill = fill_first(test);
            doubts.push(format!("every {title} found nothing: that is not what a hit costs{fill}"));
        } else if counts.miss > 0 {
            let (miss, share) = (counts.miss, counts.miss as f64 / asked as f64);
            let share = stats::format_percent(share);
            doubts.push(format!("{miss} of {asked} {title} found nothing ({share})"));
        }
        if counts.wrong > 0 {
            doubts.push(format!("{} replies to {title} were of another type", counts.wrong));
        }
        if *busy_share > BUSY_SHARE {
            doubts.push(format!(
                "in {title} cachedyno itself was busy for {} of the time and may have been what \
                 was measured (more --threads, or another machine)",
                stats::format_percent(*busy_share)
            ));
        }
        if *unsent > 0 {
            doubts.push(format!("{unsent} requests of {title} were due and could not be sent"));
        }
        doubts
    }
}

/// A generator that is busy for a larger share of the time may itself be the limit.
const BUSY_SHARE: f64 = 0.9;

/// How to put there what a test reads, where it is one of ours.
fn fill_first(test: &Test) -> String {
    let by = match test.title.as_str() {
        _ if test.is_own => return String::new(),
        "GET" => "set",
        "LPOP" | "RPOP" => "lpush",
        "SPOP" => "sadd",
        _ => return String::new(),
    };
    format!(" (fill first by the same command with `-t {by}`)")
}

/// What is to be said before the tests.
pub(super) fn before(options: &Options, tests: &[Test]) -> Vec<String> {
    let mut doubts = options.warnings.clone();
    let (offered, data) = (&options.offered, &options.data);
    if options.server.user.is_some() && options.server.password.is_none() {
        doubts.push("--user has no effect without a password (-a)".into());
    }
    if data.keyspace.is_none() && tests.iter().any(|test| test.could_spread) {
        doubts.push(
            "without -r every request is about one and the same key, which servers and their CPU \
             caches like best (add -r NUMBER)"
                .into(),
        );
    }
    if tests.iter().any(|test| effect(&test.command()).is_some()) {
        doubts.push(
            "acknowledged writes are not read back, so that a store that loses some goes unnoticed \
             (`cachedyno bench` reads them)"
                .into(),
        );
    }
    if offered.pipeline > 1 && offered.rps.is_none() {
        doubts.push(format!(
            "with -P {0} a latency is that of one request, from the sending of its {0} to its own \
             whole reply; redis-benchmark counts the first byte of the first for all {0}",
            offered.pipeline
        ));
    }
    if options.keep_alive == 0 {
        doubts.push(
            "with -k 0 requests per second contain the making of connections, and a latency does \
             not: as in redis-benchmark it is counted from the sending of the requests; the \
             corrected figures contain it"
                .into(),
        );
    }
    let reads = tests.iter().any(|test| test.title == "GET");
    if data.bytes_given && reads && !tests.iter().any(|test| test.title == "SET") {
        doubts.push("-d has no effect on GET: a value is as long as it was stored".into());
    }
    if offered.threads > 0 {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        if offered.threads as usize > cpus {
            let threads = offered.threads;
            doubts.push(format!("--threads {threads} is more than the {cpus} CPUs there are"));
        }
    }
    doubts
}

/// A table of corrected figures, or nothing where nothing was measured.
pub(super) fn table(rows: &[Corrected]) -> String {
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
    if rows.is_empty() {
        return String::new();
    }
    let mut lines: Vec<Vec<String>> = vec![header.map(String::from).to_vec()];
    lines.extend(rows.iter().map(Corrected::cells));
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

/// Nothing took no time at all: what was not measured is a dash.
fn time(ns: f64) -> String {
    if ns > 0.0 { format_ns(ns) } else { "–".into() }
}

#[cfg(test)]
#[path = "notes_tests.rs"]
mod tests;
