//! `latency.hlog`: latencies over time in `HdrHistogram`'s log format, version 1.3.
//!
//! Format: the comment of `HistogramLogWriter` in <https://github.com/HdrHistogram/HdrHistogram>.
//! Comment lines start with `#`. They are followed by a header of column names and one line per
//! interval: tag, start (seconds after the log's start time), length (seconds), maximum (here in
//! milliseconds) and the distribution (compressed V2, base64; values in nanoseconds). A tag is
//! `cell:phase:operation:time`; commas are replaced with `;` and white space with `_`.

use model::Interval;
use std::fmt::Write as _;

use crate::directory::{Directory, append_whole};
use crate::time::utc;
use crate::{ArchiveError, LATENCY_LOG};

/// Appends the intervals of a trial to the log of a run that started at `started_unix_ms`.
pub(crate) fn append(
    record: &Directory,
    started_unix_ms: u64,
    cell: &str,
    intervals: &[Interval],
) -> Result<(), ArchiveError> {
    let mut file = record.append(LATENCY_LOG)?;
    let known = file.metadata().map_err(|e| record.unwritten(LATENCY_LOG, e))?;
    let is_new = known.len() == 0;
    let mut text = if is_new { head(started_unix_ms) } else { String::new() };
    for interval in intervals {
        line(&mut text, started_unix_ms, cell, interval);
    }
    append_whole(&mut file, &record.place(LATENCY_LOG), text.as_bytes())
}

fn head(started_unix_ms: u64) -> String {
    let time = utc(started_unix_ms);
    format!(
        "#[Logged by cachedyno; values in nanoseconds, maxima in milliseconds]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {}.{:03} (seconds since epoch), {time}]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"HdrHistogram\"\n",
        started_unix_ms / 1000,
        started_unix_ms % 1000
    )
}

fn line(text: &mut String, started_unix_ms: u64, cell: &str, interval: &Interval) {
    let Interval { phase, operation, time, .. } = interval;
    let tag = format!("{cell}:{phase}:{operation}:{time}").replace(',', ";");
    let tag: String = tag.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
    let begun_s = interval.begun_unix_ms.saturating_sub(started_unix_ms) as f64 / 1e3;
    let (length_s, max_ms) = (interval.length_ns as f64 / 1e9, interval.max_ns as f64 / 1e6);
    let encoded = &interval.encoded;
    // Writing to a string does not fail.
    let _ = writeln!(text, "Tag={tag},{begun_s:.3},{length_s:.3},{max_ms:.3},{encoded}");
}
