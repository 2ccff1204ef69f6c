//! The progress line of a running test.

use load::wire::ProgressSnapshot;
use load::wire::row::INTERVAL_NS;
use stats::Histogram;

use super::arguments::Style;
use super::offering::Seen;
use super::output::{self, Progress};
use crate::exit::CliError;
use crate::output::print_with_carriage_returns;

/// Minimum interval between updates of the line.
const UPDATE_INTERVAL_NS: u64 = 240_000_000;
/// Maximum delay with which the engine's threads report their counts.
const REPORT_DELAY_NS: u64 = 300_000_000;

/// Prints the progress of one test.
pub(super) struct ProgressPrinter<'a> {
    title: &'a str,
    style: Style,
    /// Length of the current line in bytes.
    bytes: usize,
    printed_ns: u64,
    /// Engine intervals counted so far.
    counted: usize,
    done: u64,
    result: Result<(), CliError>,
}

impl<'a> ProgressPrinter<'a> {
    pub(super) fn new(title: &'a str, style: Style) -> Self {
        let (bytes, printed_ns, counted, done) = (0, 0, 0, 0);
        Self { title, style, bytes, printed_ns, counted, done, result: Ok(()) }
    }

    /// Rewrites the line, unless the last update was too recent.
    pub(super) fn update(&mut self, seen: &Seen<'_>) {
        match seen {
            Seen::Here(moment) => self.update_here(moment),
            Seen::Fleet(now) => self.update_by_fleet(now),
        }
    }

    fn is_early(&self, at_ns: u64) -> bool {
        let is_early = at_ns.saturating_sub(self.printed_ns) < UPDATE_INTERVAL_NS;
        is_early || self.style == Style::Csv || self.result.is_err()
    }

    fn update_here(&mut self, moment: &ProgressSnapshot<'_>) {
        // There is no rate before the first interval is over.
        if moment.at_ns < REPORT_DELAY_NS + INTERVAL_NS || self.is_early(moment.at_ns) {
            return;
        }
        let mean_ms = |row: load::wire::row::Row| row.service().mean_ns() / 1e6;
        let (rps, title) = (self.rates(moment), self.title);
        let mean_ms = (mean_ms(moment.latest.whole()), mean_ms(moment.all.whole()));
        self.show(moment.at_ns, &Progress { title, rps, mean_ms });
    }

    fn update_by_fleet(&mut self, now: &load::Progress<'_>) {
        let Some(latest) = now.latest.as_ref().filter(|latest| !self.is_early(latest.at_ns)) else {
            return;
        };
        let (all, seconds) = (&latest.whole.service, latest.at_ns.max(1) as f64 / 1e9);
        let mut recent = Histogram::new();
        latest.operations.iter().for_each(|operation| recent.merge(&operation.service));
        let progress = Progress {
            title: self.title,
            rps: (now.rate_per_s, all.count() as f64 / seconds),
            mean_ms: (recent.mean_ns() / 1e6, all.mean_ns() / 1e6),
        };
        self.show(latest.at_ns, &progress);
    }

    fn show(&mut self, at_ns: u64, progress: &Progress<'_>) {
        self.printed_ns = at_ns;
        let line = output::progress(progress);
        let text = output::clean_line(self.bytes) + &line;
        self.bytes = line.len();
        self.result = print_with_carriage_returns(&text);
    }

    /// Requests per second since the last update and since the start, over intervals that all
    /// threads have reported.
    fn rates(&mut self, moment: &ProgressSnapshot<'_>) -> (f64, f64) {
        let whole = (moment.at_ns.saturating_sub(REPORT_DELAY_NS) / INTERVAL_NS) as usize;
        let per_interval = moment.all.done_per_interval();
        let of = |range: std::ops::Range<usize>| -> u64 {
            per_interval.iter().take(range.end).skip(range.start).sum()
        };
        let rate = |done: u64, intervals: usize| {
            done as f64 / (intervals.max(1) as f64 * INTERVAL_NS as f64 / 1e9)
        };
        let counted = self.counted;
        self.counted = whole.max(counted);
        let recent = of(counted..self.counted);
        self.done += recent;
        (rate(recent, self.counted - counted), rate(self.done, self.counted))
    }

    /// Length in bytes of the last line. Errors: a line could not be printed.
    pub(super) fn finish(self) -> Result<usize, CliError> {
        self.result.map(|()| self.bytes)
    }
}
