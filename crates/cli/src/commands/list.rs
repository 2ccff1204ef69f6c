//! `cachedyno list`: the records of earlier runs.

use jiff::Timestamp;
use std::process::ExitCode;

use crate::args::List;
use crate::exit::CliError;

pub(crate) fn run(arguments: &List) -> Result<ExitCode, CliError> {
    let records = archive::list(&arguments.records.out)?;
    if records.is_empty() {
        let directory = arguments.records.out.display();
        anstream::println!("no records in {directory} (make one: cachedyno run sessions)");
    }
    for record in records {
        let started = i64::try_from(record.started_unix_ms).unwrap_or(i64::MAX);
        let started = Timestamp::from_millisecond(started).unwrap_or(Timestamp::UNIX_EPOCH);
        anstream::println!(
            "{}  {}  {:<12} {:<9} {:<12} {}",
            record.run,
            started.strftime("%Y-%m-%d %H:%M:%S UTC"),
            record.study,
            record.scale,
            record.status,
            record.targets.join(", ")
        );
    }
    Ok(ExitCode::SUCCESS)
}
