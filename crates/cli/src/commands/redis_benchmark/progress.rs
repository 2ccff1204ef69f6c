//! The line that tells how far a test is.

use load::wire::ProgressSnapshot;
use load::wire::row::INTERVAL_NS;

use super::arguments::Style;
use super::output::{self, Progress};
use crate::exit::CliError;
use crate::output::print_returning;

/// How often the line is written anew.
const EVERY_NS: u64 = 240_000_000;
/// The engine's threads tell what they did this much later at most.
const TOLD_AFTER_NS: u64 = 300_000_000;

/// Follows one test.
pub(super) struct Follower<'a> {
    title: &'a str,
    style: Style,
    /// Bytes of the line that stands there.
    bytes: usize,
    printed_ns: u64,
    /// Intervals of the engine that were counted.
    counted: usize,
    done: u64,
    result: Result<(), CliError>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(title: &'a str, style: Style) -> Self {
        let (bytes, printed_ns, counted, done) = (0, 0, 0, 0);
        Self { title, style, bytes, printed_ns, counted, done, result: Ok(()) }
    }

    /// Writes the line anew, unless it is too early.
    pub(super) fn tell(&mut self, moment: &ProgressSnapshot<'_>) {
        // Before the first interval there is no rate to tell.
        let early = moment.at_ns < TOLD_AFTER_NS + INTERVAL_NS
            || moment.at_ns.saturating_sub(self.printed_ns) < EVERY_NS;
        if early || self.style == Style::Csv || self.result.is_err() {
            return;
        }
        self.printed_ns = moment.at_ns;
        let mean_ms = |row: load::wire::row::Row| row.service().mean_ns() / 1e6;
        let progress = Progress {
            title: self.title,
            rps: self.rates(moment),
            mean_ms: (mean_ms(moment.latest.whole()), mean_ms(moment.all.whole())),
        };
        let line = output::progress(&progress);
        let text = output::clean_line(self.bytes) + &line;
        self.bytes = line.len();
        self.result = print_returning(&text);
    }

    /// Requests per second since the last time and since the start, as far as all threads have told
    /// what they did.
    fn rates(&mut self, moment: &ProgressSnapshot<'_>) -> (f64, f64) {
        let whole = (moment.at_ns.saturating_sub(TOLD_AFTER_NS) / INTERVAL_NS) as usize;
        let per_interval = moment.all.done_per_interval();
        let of = |range: std::ops::Range<usize>| -> u64 {
            per_interval.iter().take(range.end).skip(range.start).sum()
        };
        let rate = |done: u64, intervals: usize| {
            done as f64 / (intervals.max(1) as f64 * INTERVAL_NS as f64 / 1e9)
        };
        let counted = self.counted;
        self.counted = whole.max(counted);
        let lately = of(counted..self.counted);
        self.done += lately;
        (rate(lately, self.counted - counted), rate(self.done, self.counted))
    }

    /// Bytes of the line that stands there, once the test is over.
    pub(super) fn finish(self) -> Result<usize, CliError> {
        self.result.map(|()| self.bytes)
    }
}
