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
        if arguments.csv {
            ::report::csv::render(&view)
        } else if arguments.csv_blocks {
            ::report::csv::render_blocks(&view)
        } else if !arguments.csv_probes {
            ::report::json::render(&view) + "\n"
        } else if view.search.is_some() {
            ::report::csv::render_probes(&view)
        } else {
            let (run, study) = (&view.run, &view.study);
            return Err(CliError::usage(format!(
                "--csv-probes: run `{run}` of {study} has no probes (expected a run of find-max)"
            )));
        }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
