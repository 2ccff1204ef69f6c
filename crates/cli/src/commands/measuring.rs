//! Shared steps of all measuring commands: the record's header, the measurement with its sinks, the
//! result, the page and the exit code.

use ::report::view::Validity;
use ::report::{Recorded, View, judge};
use archive::{PackedSamples, RECORDS, REPORT, SUMMARY, Writer, write_derived};
use dash::Listener;
use lab::fleet::Fleet;
use lab::{Ended, Protection, Setup, Sinks};
use model::leftovers;
use model::record::RECORD_FORMAT;
use model::{Condition, Conditions, ErrorClass, Header, Plan, Sink, TargetState, Trial, Workload};
use rig::{FilesLeft, TrialDirs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::{calibrate, doctor};
use crate::args::{Format, Printing};
use crate::exit::{CliError, DONE, INTERRUPTED, NOT_VALID, TARGET, UNMET};
use crate::output;
use crate::progress::{Collector, Display, RemovalDisplay};
use crate::random::random;
use crate::signals::watch_signals;
use crate::{disks, fault_command, reach, serve, studies, tls_flags, trust};

/// Delay before slow file removal is reported.
const REMOVAL_NOTICE_AFTER: Duration = Duration::from_secs(1);

/// Creates the header of a run that starts now, with the calibration stored next to its records.
pub(super) fn header(
    mut plan: Plan,
    setup: &Setup,
    (records, silent): (&Path, bool),
) -> Result<Header, CliError> {
    plan.places.servers_on = setup.rig_on.as_ref().map(|rig| rig.host().into());
    // Check before measuring what reading the record would reject.
    plan.check().map_err(|e| CliError::usage(format!("invalid plan: {e}")))?;
    reach::check(&plan, &setup.endpoints)?;
    let mut facts = doctor::conditions(&setup.disk);
    disks::describe(&plan, setup, &mut facts);
    facts.extend(setup.rig_on.iter().flat_map(|rig| rig.conditions(&setup.pinning.generator)));
    facts.extend(setup.fleet.iter().flat_map(Fleet::conditions));
    facts.extend(unprotected_stores(setup));
    facts.extend(tls_flags::warnings(&setup.endpoints));
    let calibration = calibrate::stored(records, &facts, setup, silent);
    if !silent
        && plan.places.workers == 0
        && plan.cells.iter().any(|cell| matches!(cell.workload, Workload::Kv(_)))
    {
        output::say("measuring first what the generator does without a store");
    }
    let null_rates = lab::null_rates(&plan, setup);
    let run = format!("{:08x}", random()? >> 32);
    Ok(Header {
        format: RECORD_FORMAT,
        host_mark: trust::host_mark(&run, &plan),
        run,
        tool: format!("cachedyno {}", studies::TOOL_VERSION),
        command: fault_command::recorded(std::env::args_os()),
        started_unix_ms: lab::unix_ms(),
        plan,
        conditions: Conditions { facts },
        null_rates,
        calibration,
    })
}

/// A warning that existing stores may be filled, or other users' data on them evicted; `None`
/// without `--allow-fill` and `--i-own-this-server`, or without such stores.
pub(super) fn unprotected_stores(setup: &Setup) -> Option<Condition> {
    let (value, warning) = match setup.protection {
        Protection::Full => return None,
        Protection::EmptyMayFill => (
            "filled regardless of their memory (--allow-fill)",
            "these servers may have evicted keys of the run or refused its writes",
        ),
        Protection::Off => (
            "filled regardless of evictions (--i-own-this-server)",
            "other users' data on these servers was not protected",
        ),
    };
    (!setup.endpoints.is_empty()).then(|| Condition {
        group: "targets".into(),
        name: "existing stores".into(),
        value: value.into(),
        warning: Some(warning.into()),
    })
}

/// Runs the header's plan except for the `earlier` trials, and prints the result. Returns the exit
/// code.
pub(super) fn carry_out(
    header: Header,
    earlier: Vec<Trial>,
    mut writer: Writer,
    setup: &Setup,
    printing: Printing,
    served: Option<Listener>,
) -> Result<ExitCode, CliError> {
    let records = writer.path().parent().unwrap_or(Path::new("."));
    let stop = watch_signals((!printing.quiet).then(|| forced_exit_message(&header, records)))?;
    let silent = printing.is_silent();
    let mut dash = served.map(|l| serve::start(l, setup, silent)).transpose()?;
    let mut display = Display::new(silent);
    let mut collector = Collector { trials: earlier.clone(), ..Collector::default() };
    let Ended { seal, files } = {
        let mut sinks = Sinks::new();
        for sink in [&mut writer as &mut dyn Sink, &mut collector, &mut display] {
            sinks.add(sink);
        }
        if let Some(dash) = &mut dash {
            sinks.add(dash);
        }
        lab::run(header.clone(), setup, earlier, &mut sinks, &stop)
    };
    let is_unusable = unusable(&header.plan, &collector.targets);
    let Collector { targets, trials } = collector;
    // The result does not depend on the samples.
    let samples = PackedSamples::read(writer.path()).and_then(|s| s.by_trial()).unwrap_or_default();
    let (seal, running) = (Some(seal), false);
    let recorded = Recorded { header, targets, trials, seal, running, samples };
    let mut view = judge(&recorded);
    view.mark_changed(writer.changed().to_vec());
    // Write the page first, so that a failure to print does not lose it.
    let page = write_page_and_summary(&view, writer.path());
    if let Some(dash) = &mut dash {
        dash.report(page.clone());
    }
    super::print(&view, printing.shape)?;
    if let Some(page) = page.filter(|_| printing.shape.format == Format::Text) {
        output::print(&format!("page: {}\n", page.display()))?;
    }
    let interrupted = stop.load(Ordering::Relaxed);
    // The measurement is over: let the next signal end the program.
    stop.store(true, Ordering::Relaxed);
    remove_trial_files(files, silent);
    if let Some(dash) = dash {
        dash.end();
    }
    if let Some(why) = writer.lost() {
        return Err(CliError::failed(format!(
            "the record of this run is incomplete; only the output above is complete: {why}"
        )));
    }
    Ok(ExitCode::from(code(interrupted, is_unusable, &view)))
}

/// Removes the files of the trials; reports progress if that is slow.
fn remove_trial_files(files: Vec<Arc<TrialDirs>>, silent: bool) {
    let left: Vec<FilesLeft> = files.iter().filter_map(|files| files.files_left()).collect();
    let count = || left.iter().filter_map(FilesLeft::count).sum::<u64>();
    let all = count();
    let (done, removed) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            drop(files);
            drop(done);
        });
        let is_pending = |wait| removed.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
        if silent || !is_pending(REMOVAL_NOTICE_AFTER) {
            return;
        }
        output::say(
            "removing trial files, which may take minutes (the result is saved; Ctrl-C hands the \
             removal to a background process)",
        );
        let mut display = RemovalDisplay::new(all);
        while is_pending(RemovalDisplay::UPDATE_EVERY) {
            display.show(count());
        }
    });
}

/// The command that resumes a run, including its existing stores.
pub(super) fn resuming(
    header: &Header,
    records: &Path,
    stores: impl Iterator<Item = String>,
) -> String {
    let out = (records != Path::new(RECORDS)).then(|| records.to_string_lossy());
    leftovers::resuming(header, out.as_deref(), stores)
}

/// The `NAME=URL` by which the run's command line selected a target's store.
pub(super) fn given_as(command: &[String], name: &str, address: &str) -> String {
    leftovers::given_as(command, name, address).unwrap_or_else(|| format!("{name}=URL"))
}

/// The message printed when a second signal ends the program.
fn forced_exit_message(header: &Header, records: &Path) -> String {
    let run = &header.run;
    let stores = header.plan.targets.iter().filter_map(|target| {
        Some(given_as(&header.command, &target.name, target.address.as_ref()?))
    });
    let next = format!("`{}` measures any missing trials", resuming(header, records, stores));
    let existing: Vec<&str> =
        header.plan.targets.iter().filter_map(|target| target.address.as_deref()).collect();
    let left = if existing.is_empty() {
        String::new()
    } else {
        let places = existing.join(" and ");
        format!(
            "; data of this run may remain in {places} (how to remove it: `cachedyno show {run}`)"
        )
    };
    format!(
        "exiting at once: a background process stops private servers and removes files{left}; \
         {next}"
    )
}

/// Whether a target named by the user is unavailable, an installed one failed to start, or there is
/// none that can be measured.
fn unusable(plan: &Plan, targets: &[TargetState]) -> bool {
    let none_left = targets.iter().all(|state| state.unavailable.is_some());
    let is_bad = targets.iter().any(|state| {
        let named = plan.target(&state.target).is_some_and(|planned| planned.named);
        let failure = state.unavailable.as_ref();
        failure.is_some_and(|f| named || f.class != ErrorClass::Missing)
    });
    is_bad || (none_left && !targets.is_empty())
}

/// Writes the page and the summary into the record and returns the page's path. Failures, such as a
/// full disk, only cause a warning.
fn write_page_and_summary(view: &View, record: &Path) -> Option<PathBuf> {
    let page = super::page(view).map_err(|e| e.to_string());
    let written = page.and_then(|page| {
        let summary = ::report::json::render(view);
        write_derived(record, REPORT, page.as_bytes())
            .and_then(|()| write_derived(record, SUMMARY, summary.as_bytes()))
            .map_err(|e| e.to_string())
    });
    match written {
        Ok(()) => Some(record.join(REPORT)),
        Err(e) => {
            output::say(&format!("warning: cannot write the page: {e}"));
            None
        }
    }
}

fn code(interrupted: bool, unusable: bool, view: &View) -> u8 {
    let misses = || view.cells.iter().flat_map(|row| &row.required).any(|one| !one.is_met);
    match (interrupted, unusable, view.validity) {
        (true, ..) => INTERRUPTED,
        (_, true, _) => TARGET,
        (_, _, Validity::Invalid | Validity::NotSteady) => NOT_VALID,
        _ if misses() => UNMET,
        _ => DONE,
    }
}
