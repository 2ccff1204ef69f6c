//! What goes to standard output: the original's lines, so that whatever reads them finds its way.
//!
//! Three styles: a listing for each test, one line each (`-q`), comma-separated (`--csv`). Progress
//! stands on a line that is overwritten, also where nobody watches, as in the original.

use std::fmt::Write as _;

use super::arguments::{Options, Style};
use super::distribution::{Latencies, Line};

/// Where the servers keep their data, as they say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Configuration {
    pub(super) save: String,
    pub(super) appendonly: String,
}

/// What is told about the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// One server; `None` when it does not tell.
    Server(Option<Configuration>),
    /// The nodes of a cluster that are asked, each with its identity, address and configuration.
    Cluster(Vec<(String, String, Option<Configuration>)>),
}

/// What a test gave.
#[derive(Clone, Debug)]
pub(super) struct Finished<'a> {
    pub(super) title: &'a str,
    pub(super) requests: u64,
    pub(super) seconds: f64,
    pub(super) payload_bytes: usize,
    pub(super) threads: u32,
    pub(super) latencies: Latencies,
}

/// Progress at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress<'a> {
    pub(super) title: &'a str,
    /// Requests per second lately, and from the start.
    pub(super) rps: (f64, f64),
    /// Mean latency lately, and from the start.
    pub(super) mean_ms: (f64, f64),
}

/// First line of `--csv`.
pub(super) const CSV_HEADER: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\
     \"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n";

/// Overwrites the line that is there, of `bytes` bytes, with blanks.
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

/// The result of a test, behind whatever progress of `progress_bytes` bytes stands there.
pub(super) fn result(
    options: &Options,
    told: &Told,
    finished: &Finished<'_>,
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
        Style::Long => clean_line(progress_bytes) + &listing(options, told, finished, rps),
    }
}

/// Mean, least, quantiles and largest, in the order in which they are printed.
fn summary(latencies: &Latencies) -> [f64; 6] {
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|q| latencies.quantile_ms(q));
    [latencies.mean_ms(), latencies.min_ms(), p50, p95, p99, latencies.max_ms()]
}

fn listing(options: &Options, told: &Told, finished: &Finished<'_>, rps: f64) -> String {
    let mut text = head(options, told, finished);
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

fn head(options: &Options, told: &Told, finished: &Finished<'_>) -> String {
    let Finished { title, requests, seconds, payload_bytes, threads, .. } = finished;
    let clients = options.offered.clients;
    let mut text = format!(
        "====== {title} ======\n  {requests} requests completed in {seconds:.2} seconds\n  \
         {clients} parallel clients\n  {payload_bytes} bytes payload\n  keep alive: {}\n",
        options.keep_alive
    );
    match told {
        Told::Server(None) => {}
        Told::Server(Some(Configuration { save, appendonly })) => {
            let _ = writeln!(text, "  host configuration \"save\": {save}");
            let _ = writeln!(text, "  host configuration \"appendonly\": {appendonly}");
        }
        Told::Cluster(nodes) => {
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

/// What is said about a cluster before its tests.
pub(super) fn cluster(nodes: &[(String, String, Option<Configuration>)]) -> String {
    let mut text = format!("Cluster has {} master nodes:\n\n", nodes.len());
    for (number, (identity, address, _)) in nodes.iter().enumerate() {
        let _ = writeln!(text, "Master {number}: {identity} {address}");
    }
    text + "\n"
}

/// What is said before idling, and while it lasts.
pub(super) fn idling(clients: u32) -> String {
    format!("Creating {clients} idle connections and waiting forever (Ctrl+C when done)\n")
}

pub(super) fn idlers(clients: usize) -> String {
    format!("clients: {clients}\r")
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
