//! `cachedyno list`: the records of earlier runs.

use jiff::Timestamp;
use std::process::ExitCode;

use crate::args::List;
use crate::exit::CliError;
use crate::output;

pub(crate) fn run(arguments: &List) -> Result<ExitCode, CliError> {
    let records = archive::list(&arguments.records.out)?;
    if records.is_empty() {
        let directory = arguments.records.out.display();
        output::print(&format!("no records in {directory} (make one: cachedyno run sessions)\n"))?;
    }
    for record in records {
        let started = i64::try_from(record.started_unix_ms).unwrap_or(i64::MAX);
        let started = Timestamp::from_millisecond(started).unwrap_or(Timestamp::UNIX_EPOCH);
        output::print(&format!(
            "{}  {}  {:<12} {:<9} {:<12} {}\n",
            record.run,
            started.strftime("%Y-%m-%d %H:%M:%S UTC"),
            record.study,
            record.scale,
            record.status,
            record.targets.join(", ")
        ))?;
        for target in record.may_hold_leftovers {
            let run = &record.run;
            output::print(&format!(
                "          was killed and may have left data in `{target}`: `cachedyno show {run}` \
                 says how to remove it\n"
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
