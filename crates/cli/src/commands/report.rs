//! `cachedyno report RUN`: regenerates a run's HTML page.

use archive::{REPORT, write_derived, write_page};
use std::process::ExitCode;

use crate::args::Report;
use crate::exit::CliError;
use crate::output;

pub(crate) fn run(arguments: &Report) -> Result<ExitCode, CliError> {
    let record = super::find(&arguments.records.out, &arguments.run)?;
    let text = super::judged(&arguments.records.out, &arguments.run, |view| super::page(&view))?;
    let written = match &arguments.page {
        None => write_derived(&record, REPORT, text.as_bytes()).map(|()| record.join(REPORT)),
        Some(page) => write_page(page, text.as_bytes()).map(|()| page.clone()),
    };
    let path = written
        .map_err(|e| CliError::failed(format!("page: {e} (choose another page: --page FILE)")))?;
    output::print(&format!("{}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}
