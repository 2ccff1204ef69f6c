//! One file per command; `measuring` and `serving` contain shared code.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod clean;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod data_set;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod find_max;
pub(crate) mod list;
pub(crate) mod man;
mod measuring;
pub(crate) mod null_server;
pub(crate) mod prune;
pub(crate) mod redis_benchmark;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scripted_server;
pub(crate) mod serving;
pub(crate) mod show;
pub(crate) mod size;
pub(crate) mod studies;
pub(crate) mod worker;

use ::report::{Recorded, View, judge};
use archive::Record;
use jiff::Timestamp;
use std::env;
use std::path::{Path, PathBuf};

use crate::args::{Format, Shape};
use crate::exit::CliError;
use crate::{foreign, output};

/// Default number of columns.
const COLUMNS: usize = 100;

/// Columns of the output terminal. For a pipe or file: `COLUMNS` from the environment, or else the
/// columns of any terminal of this process.
fn columns() -> usize {
    let asked = || env::var("COLUMNS").ok()?.parse::<usize>().ok().filter(|columns| *columns > 0);
    output::columns().or_else(asked).or_else(output::any_terminal_columns).unwrap_or(COLUMNS)
}

/// The directory of a run.
fn find(records: &Path, run: &str) -> Result<PathBuf, CliError> {
    let bytes = foreign::size(records, 2);
    foreign::within(records, bytes, || Ok(archive::find(records, run)?))
}

/// Reads the record in a directory.
fn read(path: &Path) -> Result<Record, CliError> {
    foreign::within(path, foreign::size(path, 1), || Ok(Record::read(path)?))
}

/// Reads and judges a record and converts the view, within the limits for the record's size.
fn judged<T>(
    records: &Path,
    run: &str,
    make: impl FnOnce(View) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let path = find(records, run)?;
    foreign::within(&path, foreign::size(&path, 1), || make(view_of(&path)?))
}

/// Reads the record in a directory and judges it.
fn view_of(path: &Path) -> Result<View, CliError> {
    judged_record(path).map(|(_, view)| view)
}

/// Reads the record in a directory and judges it; returns both.
fn judged_record(path: &Path) -> Result<(Recorded, View), CliError> {
    let mut record = Record::read(path)?;
    let changed = std::mem::take(&mut record.changed);
    let recorded = recorded(record)?;
    let mut view = judge(&recorded);
    view.mark_changed(changed);
    Ok((recorded, view))
}

/// The start of a run as text, in UTC.
fn started(unix_ms: u64) -> String {
    let started = Timestamp::from_millisecond(i64::try_from(unix_ms).unwrap_or(i64::MAX));
    started.unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Converts a record to the input of [`judge`].
fn recorded(record: Record) -> Result<Recorded, CliError> {
    Ok(Recorded {
        samples: archive::PackedSamples::read(&record.path)?.by_trial()?,
        header: record.header,
        targets: record.targets,
        trials: record.trials,
        seal: record.seal,
        running: record.running,
    })
}

/// Prints a view in the requested format.
fn print(view: &View, shape: Shape) -> Result<(), CliError> {
    let text = if shape.details { ::report::text::render } else { ::report::text::summary };
    match shape.format {
        Format::Text => output::print_coloured(|colour| text(view, columns(), colour) + "\n"),
        Format::Json => output::print_json(&(::report::json::render(view) + "\n")),
        Format::Junit => output::print(&::report::junit::render(view)),
        Format::Markdown => output::print(&(::report::markdown::render(view) + "\n")),
    }
}

/// Renders the page of a view.
fn page(view: &View) -> Result<String, CliError> {
    ::report::html::render(view).map_err(|e| CliError::failed(e.to_string()))
}
