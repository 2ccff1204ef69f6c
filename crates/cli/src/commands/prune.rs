//! `cachedyno prune`: removes records of earlier runs.

use model::Listed;
use std::process::ExitCode;
use std::time::Duration;

use crate::args::{Prune, duration_ns};
use crate::exit::CliError;
use crate::{foreign, output};

pub(crate) fn run(arguments: &Prune) -> Result<ExitCode, CliError> {
    let age_ns = duration_ns("--older-than", arguments.older_than.as_deref())?;
    let records = &arguments.records.out;
    let bytes = foreign::size(records, 2);
    // Skip unreadable directories: they might not be records of cachedyno.
    let all = foreign::within(records, bytes, || Ok(archive::list(records, &mut |_, _| {})?))?;
    let older = all.len().saturating_sub(arguments.keep.unwrap_or(0));
    let is_old = |record: &&Listed| {
        let age = lab::unix_ms().saturating_sub(record.started_unix_ms);
        age_ns.is_none_or(|ns| Duration::from_millis(age) > Duration::from_nanos(ns))
    };
    let chosen: Vec<&Listed> = all.iter().take(older).filter(is_old).collect();
    let mut lines = Vec::new();
    for record in &chosen {
        let Listed { run, study, .. } = record;
        let action = if record.status == "running" {
            "kept: the run is still in progress".to_string()
        } else if let Some(target) = record.may_hold_leftovers.first() {
            format!(
                "kept: the run was killed and may have left data in `{target}`; its record is \
                 needed to remove that data (`cachedyno show {run}`)"
            )
        } else if !arguments.yes {
            "would be removed".into()
        } else if archive::remove(records, record)? {
            "removed".into()
        } else {
            "its files are removed; the directory is kept because it contains other files".into()
        };
        lines.push(format!("{run} {study}: {action}"));
    }
    if chosen.is_empty() {
        lines.push("no records to remove".into());
    } else if !arguments.yes {
        lines.push("nothing was removed; repeat with --yes to remove these records".into());
    }
    output::print(&(lines.join("\n") + "\n"))?;
    Ok(ExitCode::SUCCESS)
}
