//! `cachedyno list`: the records of earlier runs.

use ::report::list::{Entry, RunSummary};
use archive::{SUMMARY, read_derived};
use model::Listed;
use std::process::ExitCode;

use crate::args::List;
use crate::exit::CliError;
use crate::{foreign, output};

pub(crate) fn run(arguments: &List) -> Result<ExitCode, CliError> {
    let (records, bytes) = (&arguments.records.out, foreign::size(&arguments.records.out, 2));
    let mut unreadable = Vec::new();
    let records = foreign::within(records, bytes, || {
        Ok(archive::list(records, &mut |_, e| unreadable.push(e.to_string()))?)
    })?;
    if records.is_empty() {
        let out = arguments.records.out.display();
        output::print(&format!("no records in {out} (create one: cachedyno run sessions)\n"))?;
    } else {
        let entries: Vec<Entry> = records.into_iter().map(entry).collect();
        output::print_coloured(|colour| {
            ::report::list::render(&entries, super::columns(), colour)
        })?;
    }
    for problem in unreadable {
        output::say(&format!("cannot list a record: {problem}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn entry(record: Listed) -> Entry {
    let summary = read_derived(&record.path, SUMMARY);
    Entry {
        started: super::started(record.started_unix_ms),
        summary: summary.and_then(|text| RunSummary::read(&text)),
        record,
    }
}
