//! Standard output in the original's format, for scripts that parse it.
//!
//! Three styles: a listing per test, one line per test (`-q`), and CSV (`--csv`). As in the
//! original, progress overwrites one line, even if standard output is not a terminal.

use std::fmt::Write as _;

use super::arguments::{Options, Style};
use super::distribution::{Latencies, Line};

/// A server's persistence settings, as reported by `CONFIG GET`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Configuration {
    pub(super) save: String,
    pub(super) appendonly: String,
}

/// Servers as shown in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerInfo {
    /// One server; `None` if it does not report its configuration.
    Server(Option<Configuration>),
    /// The cluster nodes in use, each with its identity, address and configuration.
    Cluster(Vec<(String, String, Option<Configuration>)>),
}

/// Result of a test.
#[derive(Clone, Debug)]
pub(super) struct TestResult<'a> {
    pub(super) title: &'a str,
    pub(super) requests: u64,
    pub(super) seconds: f64,
    pub(super) payload_bytes: usize,
    pub(super) threads: u32,
    pub(super) latencies: Latencies,
}

/// A progress update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress<'a> {
    pub(super) title: &'a str,
    /// Requests per second since the last update, and since the start.
    pub(super) rps: (f64, f64),
    /// Mean latency since the last update, and since the start.
    pub(super) mean_ms: (f64, f64),
}

/// First line of `--csv`.
pub(super) const CSV_HEADER: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\
     \"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n";

/// Overwrites the current line of `bytes` bytes with blanks.
pub(super) fn clean_line(bytes: usize) -> String {
    format!("{:>bytes$}\r", " ")
}

pub(super) fn progress(now: &Progress<'_>) -> String {
    let (title, (rps, rps_in_all), (ms, ms_in_all)) = (now.title, now.rps, now.mean_ms);
    format!(
        "{title}: rps={rps:.1} (overall: {rps_in_all:.1}) avg_msec={ms:.3} (overall: \
         {ms_in_all:.3})\r"
    )
}

/// A test's result, which overwrites a progress line of `progress_bytes` bytes.
pub(super) fn result(
    options: &Options,
    info: &ServerInfo,
    finished: &TestResult<'_>,
    progress_bytes: usize,
) -> String {
    let rps = finished.requests as f64 / finished.seconds;
    let title = finished.title;
    let latencies = &finished.latencies;
    match options.style {
        Style::Csv => {
            let cells = summary(latencies).map(|ms| format!(",\"{ms:.3}\"")).concat();
            format!("\"{title}\",\"{rps:.2}\"{cells}\n")
        }
        Style::Quiet => {
            let p50 = latencies.quantile_ms(0.5);
            let line = format!("{title}: {rps:.2} requests per second, p50={p50:.3} msec\n");
            clean_line(progress_bytes) + &line
        }
        Style::Long => clean_line(progress_bytes) + &listing(options, info, finished, rps),
    }
}

/// Mean, minimum, p50, p95, p99 and maximum, in milliseconds.
fn summary(latencies: &Latencies) -> [f64; 6] {
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|q| latencies.quantile_ms(q));
    [latencies.mean_ms(), latencies.min_ms(), p50, p95, p99, latencies.max_ms()]
}

fn listing(options: &Options, info: &ServerInfo, finished: &TestResult<'_>, rps: f64) -> String {
    let mut text = head(options, info, finished);
    let mut list = |title: &str, lines: Vec<Line>| {
        let _ = write!(text, "\n{title}:\n");
        for Line { percent, up_to_us, count } in lines {
            let ms = up_to_us as f64 / 1e3;
            let count = format!("(cumulative count {count})");
            let _ = writeln!(text, "{percent:.3}% <= {ms:.3} milliseconds {count}");
        }
    };
    list("Latency by percentile distribution", finished.latencies.by_level());
    list("Cumulative distribution of latencies", finished.latencies.by_time());
    let _ = write!(
        text,
        "\nSummary:\n  throughput summary: {rps:.2} requests per second\n  latency summary \
         (msec):\n"
    );
    let names = ["avg", "min", "p50", "p95", "p99", "max"].map(|name| format!("{name:>9}"));
    let cells = summary(&finished.latencies).map(|ms| format!("{ms:>9.3}"));
    let _ = write!(text, "    {}\n    {}\n", names.join(" "), cells.join(" "));
    text
}

fn head(options: &Options, info: &ServerInfo, finished: &TestResult<'_>) -> String {
    let TestResult { title, requests, seconds, payload_bytes, threads, .. } = finished;
    let clients = options.load.clients;
    let mut text = format!(
        "====== {title} ======\n  {requests} requests completed in {seconds:.2} seconds\n  \
         {clients} parallel clients\n  {payload_bytes} bytes payload\n  keep alive: {}\n",
        options.keep_alive
    );
    match info {
        ServerInfo::Server(None) => {}
        ServerInfo::Server(Some(Configuration { save, appendonly })) => {
            let _ = writeln!(text, "  host configuration \"save\": {save}");
            let _ = writeln!(text, "  host configuration \"appendonly\": {appendonly}");
        }
        ServerInfo::Cluster(nodes) => {
            let _ = writeln!(text, "  cluster mode: yes ({} masters)", nodes.len());
            for (number, (_, _, configuration)) in nodes.iter().enumerate() {
                let Some(Configuration { save, appendonly }) = configuration else { continue };
                let save = if save.is_empty() { "NONE" } else { save };
                let _ = writeln!(text, "  node [{number}] configuration:");
                let _ = writeln!(text, "    save: {save}\n    appendonly: {appendonly}");
            }
        }
    }
    let _ = match threads {
        0 => writeln!(text, "  multi-thread: no"),
        threads => writeln!(text, "  multi-thread: yes\n  threads: {threads}"),
    };
    text
}

/// The list of a cluster's nodes, printed before the tests.
pub(super) fn cluster(nodes: &[(String, String, Option<Configuration>)]) -> String {
    let mut text = format!("Cluster has {} master nodes:\n\n", nodes.len());
    for (number, (identity, address, _)) in nodes.iter().enumerate() {
        let _ = writeln!(text, "Master {number}: {identity} {address}");
    }
    text + "\n"
}

/// The line printed before the idle connections are opened.
pub(super) fn idle_banner(clients: u32) -> String {
    format!("Creating {clients} idle connections and waiting forever (Ctrl+C when done)\n")
}

pub(super) fn idle_count(clients: usize) -> String {
    format!("clients: {clients}\r")
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
