//! `cachedyno export RUN --csv`: the numbers of a run for other programs.

use std::process::ExitCode;

use crate::args::Export;
use crate::exit::CliError;
use crate::output;

pub(crate) fn run(arguments: &Export) -> Result<ExitCode, CliError> {
    let (records, run) = (&arguments.records.out, &arguments.run);
    let text = if arguments.csv_samples {
        let record = super::read(records, run)?;
        ::report::csv::render_samples(&record.header.run, &archive::read_samples(&record.path)?)
    } else {
        let view = super::view_of(records, run)?;
        match (arguments.csv, arguments.csv_blocks) {
            (true, _) => ::report::csv::render(&view),
            (_, true) => ::report::csv::render_blocks(&view),
            (false, false) => ::report::json::render(&view) + "\n",
        }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
