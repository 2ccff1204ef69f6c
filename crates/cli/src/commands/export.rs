//! `cachedyno export RUN --csv`: a run's results for other programs.

use archive::{PackedSamples, Record};
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use crate::args::Export;
use crate::exit::CliError;
use crate::{foreign, output};

/// Size in bytes at which buffered samples are printed.
const PRINT_BUFFER_BYTES: usize = 256 << 10;

pub(crate) fn run(arguments: &Export) -> Result<ExitCode, CliError> {
    let (records, run) = (&arguments.records.out, &arguments.run);
    if arguments.csv_samples {
        let path = super::find(records, run)?;
        foreign::within(&path, foreign::size(&path, 1), || samples(&path))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(directory) = &arguments.hgrm {
        return distributions(records, run, directory);
    }
    let text = super::judged(records, run, |view| {
        if !arguments.json {
            warn_changed(&view.course.changed);
        }
        Ok(if arguments.csv {
            ::report::csv::render(&view)
        } else if arguments.csv_blocks {
            ::report::csv::render_blocks(&view)
        } else if !arguments.csv_probes {
            ::report::json::render(&view) + "\n"
        } else if !view.searches.is_empty() {
            ::report::csv::render_probes(&view)
        } else {
            let (run, study) = (&view.run, &view.asked.study);
            return Err(CliError::usage(format!(
                "--csv-probes: run `{run}` of {study} has no probes (expected a run of find-max)"
            )));
        })
    })?;
    if arguments.json {
        output::print_json(&text)?;
    } else {
        output::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes one HdrHistogram file per result.
fn distributions(records: &Path, run: &str, directory: &Path) -> Result<ExitCode, CliError> {
    let path = super::find(records, run)?;
    let files = foreign::within(&path, foreign::size(&path, 1), || {
        Ok(::report::hgrm::render(&super::recorded(super::read(&path)?)?))
    })?;
    let failed = |e: io::Error| {
        CliError::usage(format!("--hgrm `{}` cannot be written: {e}", directory.display()))
    };
    fs::create_dir_all(directory).map_err(failed)?;
    for (name, text) in &files {
        fs::write(directory.join(name), text).map_err(failed)?;
        output::print(&format!("{}\n", directory.join(name).display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Warns about changed files on standard error, because CSV has no place for it.
fn warn_changed(files: &[String]) {
    if let Some(words) = ::report::changed_words(files) {
        output::say(&format!("warning: {words}"));
    }
}

/// Prints samples trial by trial, since unpacked they are much larger than the record.
fn samples(record: &Path) -> Result<(), CliError> {
    let Record { header, changed, .. } = Record::read(record)?;
    let run = header.run;
    warn_changed(&changed);
    let packed = PackedSamples::read(record)?;
    // Read all of them once before printing, so that an error prints no partial result.
    packed.each(|_, _| Ok::<(), CliError>(()))?;
    let mut text = ::report::csv::samples_header();
    packed.each(|(block, cell), sample| {
        text += &::report::csv::samples_line((&run, block, cell), &sample);
        if text.len() > PRINT_BUFFER_BYTES {
            output::print(&std::mem::take(&mut text))?;
        }
        Ok::<(), CliError>(())
    })?;
    output::print(&text)?;
    Ok(())
}
