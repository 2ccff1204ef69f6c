//! `cachedyno report RUN`: the page of a run again.

use archive::REPORT;
use std::fs;
use std::process::ExitCode;

use crate::args::Report;
use crate::exit::CliError;
use crate::output;

pub(crate) fn run(arguments: &Report) -> Result<ExitCode, CliError> {
    let record = super::read(&arguments.records.out, &arguments.run)?;
    let path = arguments.page.clone().unwrap_or_else(|| record.path.join(REPORT));
    let text = super::page(&::report::judge(&super::recorded(record)?))?;
    fs::write(&path, text).map_err(|e| {
        let path = path.display();
        CliError::failed(format!(
            "page `{path}` cannot be written: {e} (choose another: --page FILE)"
        ))
    })?;
    output::print(&format!("{}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}
