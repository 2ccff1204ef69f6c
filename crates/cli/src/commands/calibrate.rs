//! `cachedyno calibrate`: measures this machine and the generator's overhead on it.

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

/// Maximum length of a measurement, in seconds.
const SECONDS_MAX: f64 = 600.0;
/// Minimum length, in seconds; shorter ones would mostly measure the start of the load.
const SECONDS_MIN: f64 = 0.01;

/// Output format of a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CalibrationFormat {
    /// A table with explanations
    Text,
    /// JSON as described in docs/FORMAT.md
    Json,
}

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "It loads only null servers and takes half a minute. The result is \
    stored next to the records and copied into later runs on the same machine.")]
pub(crate) struct Calibrate {
    /// Length of each of the 27 measurements
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,
    /// Output format
    #[arg(long = "format", value_enum, default_value = "text")]
    form: CalibrationFormat,
    #[command(flatten)]
    records: Records,
}

pub(crate) fn run(arguments: &Calibrate) -> Result<ExitCode, CliError> {
    let seconds = arguments.seconds;
    if !(SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
        return Err(CliError::usage(format!(
            "--seconds `{seconds}` is out of range (expected {SECONDS_MIN} to {SECONDS_MAX})"
        )));
    }
    // Fail before measuring if the result cannot be saved.
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
    if arguments.form == CalibrationFormat::Text {
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
    if arguments.form == CalibrationFormat::Text {
        output::print(&format!("\nsaved for later runs: {}\n", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(calibration: &Calibration, form: CalibrationFormat) -> Result<(), CliError> {
    let text = match form {
        CalibrationFormat::Text => {
            let columns = super::columns();
            return output::print_coloured(|colour| {
                ::report::calibration::render(calibration, columns, colour)
            });
        }
        CalibrationFormat::Json => serde_json::to_string_pretty(calibration),
    };
    output::print_json(&(text.map_err(|e| CliError::failed(e.to_string()))? + "\n"))
}

/// The calibration stored next to these records, if it is of this host. Otherwise prints one line
/// with the reason, unless `silent`.
pub(super) fn stored(
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
        Ok(None) => "not calibrated; run `cachedyno calibrate` (half a minute)".into(),
        Err(e) => unused(&e.to_string()),
    };
    if !silent {
        output::say(&line);
    }
    None
}
