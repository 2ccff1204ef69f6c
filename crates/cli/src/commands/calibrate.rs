//! `cachedyno calibrate`: what this machine can do and what the generator costs on it.

use archive::{CALIBRATION, read_calibration, write_calibration};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use lab::Setup;
use lab::calibrate::{Calibrator, MEASUREMENTS, machine};
use model::{Calibration, Condition};
use rig::{Guard, Pinning};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::doctor;
use crate::args::Records;
use crate::exit::CliError;
use crate::measurement_lock::acquire;
use crate::output;
use crate::studies::TOOL_VERSION;

/// Longest measurement, in seconds.
const SECONDS_MAX: f64 = 600.0;
/// Shortest: below it a load has hardly begun.
const SECONDS_MIN: f64 = 0.01;

/// How a calibration is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum As {
    /// A table and what it means
    Text,
    /// What docs/FORMAT.md describes
    Json,
}

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
#[command(
    after_help = "It puts load on servers that do nothing, runs nothing else, and takes half a \
    minute. The result is kept beside the records; runs on the same machine carry it."
)]
pub(crate) struct Calibrate {
    /// Seconds of each of its 27 measurements
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,
    /// How the result is printed
    #[arg(long = "format", value_enum, default_value = "text")]
    form: As,
    #[command(flatten)]
    records: Records,
}

pub(crate) fn run(arguments: &Calibrate) -> Result<ExitCode, CliError> {
    let seconds = arguments.seconds;
    if !(SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
        return Err(CliError::usage(format!(
            "--seconds `{seconds}` cannot be measured (expected {SECONDS_MIN} to {SECONDS_MAX})"
        )));
    }
    // Before half a minute is spent on what could not be kept.
    let records = &arguments.records.out;
    fs::create_dir_all(records).map_err(|e| {
        let records = records.display();
        CliError::failed(format!("--out `{records}` cannot be written: {e}"))
    })?;
    let (guard, pinning) = (Guard::start()?, Pinning::for_this_process());
    let _lock = acquire(&guard, &[])?;
    let facts = doctor::conditions(records);
    let calibrator = Calibrator {
        guard: &guard,
        pinning: &pinning,
        facts: &facts,
        tool: format!("cachedyno {TOOL_VERSION}"),
        length: Duration::from_secs_f64(seconds),
    };
    if arguments.form == As::Text {
        output::say(&format!("{MEASUREMENTS} measurements of {seconds} s each"));
    }
    let bar = ProgressBar::new(u64::from(MEASUREMENTS));
    if let Ok(style) = ProgressStyle::with_template("{wide_bar:.cyan/dim} {pos}/{len}  {msg}") {
        bar.set_style(style.progress_chars("━━─"));
    }
    let measured = calibrator.run(&mut |name| {
        bar.set_message(name.to_string());
        bar.inc(1);
    });
    bar.finish_and_clear();
    let calibration = measured.map_err(|e| CliError::failed(e.message))?;
    print(&calibration, arguments.form)?;
    let path = write_calibration(records, &calibration)?;
    if arguments.form == As::Text {
        output::print(&format!("\nkept for later runs: {}\n", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(calibration: &Calibration, form: As) -> Result<(), CliError> {
    let text = match form {
        As::Text => {
            let columns = super::columns();
            return output::print_painted(|colour| {
                ::report::calibration::render(calibration, columns, colour)
            });
        }
        As::Json => serde_json::to_string_pretty(calibration),
    };
    output::print_json(&(text.map_err(|e| CliError::failed(e.to_string()))? + "\n"))
}

/// The calibration that is kept with these records, when it is of this host; otherwise says in
/// one line why there is none, unless it is to be silent.
pub(super) fn known(
    records: &Path,
    facts: &[Condition],
    setup: &Setup,
    silent: bool,
) -> Option<Calibration> {
    let path = records.join(CALIBRATION);
    let unused = |why: &str| {
        let path = path.display();
        format!("warning: `{path}` is not used ({why}); run `cachedyno calibrate` again")
    };
    let line = match read_calibration(records) {
        Ok(Some(known)) => match known.host.difference(&machine::host(facts, &setup.pinning)) {
            None => return Some(known),
            Some(difference) => unused(&format!("another host: {difference}")),
        },
        Ok(None) => "not calibrated: `cachedyno calibrate` takes half a minute".into(),
        Err(e) => unused(&e.to_string()),
    };
    if !silent {
        output::say(&line);
    }
    None
}
