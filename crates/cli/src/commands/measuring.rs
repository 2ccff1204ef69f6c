//! What commands that measure do alike: the header of the record, the measurement with its sinks,
//! the result, its page and the exit code.

use ::report::view::Validity;
use ::report::{Recorded, View, judge};
use archive::{PackedSamples, RECORDS, REPORT, SUMMARY, Writer, write_derived};
use dash::Listener;
use lab::{Ended, Setup, Sinks};
use model::leftovers;
use model::record::RECORD_FORMAT;
use model::target::mask_text;
use model::{Condition, Conditions, ErrorClass, Header, Plan, Sink, TargetState, Trial};
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
use crate::progress::{Collector, Display};
use crate::random::random;
use crate::signals::watch_signals;
use crate::{reach, serve, studies, trust};

/// How long something is waited for in silence.
const SLOW: Duration = Duration::from_secs(1);
/// How often it is said how far that is.
const SAID_EVERY: Duration = Duration::from_secs(5);

/// The header of a run that begins now, with the calibration that is kept with its records.
pub(super) fn header(
    plan: Plan,
    setup: &Setup,
    (records, silent): (&Path, bool),
) -> Result<Header, CliError> {
    // What reading a record refuses is not measured first.
    plan.check().map_err(|e| CliError::usage(format!("this cannot be planned: {e}")))?;
    reach::check(&plan, &setup.endpoints)?;
    let mut facts = doctor::conditions(&setup.disk);
    facts.extend(owned(setup));
    let calibration = calibrate::known(records, &facts, setup, silent);
    let null_rates = lab::null_rates(&plan, setup);
    let run = format!("{:08x}", random()? >> 32);
    Ok(Header {
        format: RECORD_FORMAT,
        host_mark: trust::host_mark(&run, &plan),
        run,
        tool: format!("cachedyno {}", studies::TOOL_VERSION),
        // What passes for a password where none is expected is masked as well.
        command: std::env::args_os()
            .map(|argument| mask_text(&argument.to_string_lossy()))
            .collect(),
        started_unix_ms: lab::unix_ms(),
        plan,
        conditions: Conditions { facts },
        null_rates,
        calibration,
    })
}

/// That nothing protected what others keep on the servers of existing stores, where it is so.
pub(super) fn owned(setup: &Setup) -> Option<Condition> {
    (setup.i_own_this_server && !setup.endpoints.is_empty()).then(|| Condition {
        group: "targets".into(),
        name: "existing stores".into(),
        value: "filled whatever they evict (--i-own-this-server)".into(),
        warning: Some("data of others on these servers were not protected".into()),
    })
}

/// Measures what the header plans, beside the trials that were measured earlier, and tells it.
pub(super) fn carry_out(
    header: Header,
    earlier: Vec<Trial>,
    mut writer: Writer,
    setup: &Setup,
    printing: Printing,
    served: Option<Listener>,
) -> Result<ExitCode, CliError> {
    let records = writer.path().parent().unwrap_or(Path::new("."));
    let stop = watch_signals((!printing.quiet).then(|| last_words(&header, records)))?;
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
    // Without them there is a result all the same.
    let samples = PackedSamples::read(writer.path()).and_then(|s| s.by_trial()).unwrap_or_default();
    let (seal, running) = (Some(seal), false);
    let recorded = Recorded { header, targets, trials, seal, running, samples };
    let mut view = judge(&recorded);
    view.mark_changed(writer.changed().to_vec());
    // First the page: what cannot be printed is kept at least.
    let page = leave_page(&view, writer.path());
    if let Some(dash) = &mut dash {
        dash.report(page.clone());
    }
    super::print(&view, printing.shape)?;
    if let Some(page) = page.filter(|_| printing.shape.format == Format::Text) {
        output::print(&format!("page: {}\n", page.display()))?;
    }
    let interrupted = stop.load(Ordering::Relaxed);
    // There is nothing left to stop: the next signal ends the program.
    stop.store(true, Ordering::Relaxed);
    remove(files, silent);
    if let Some(dash) = dash {
        dash.end();
    }
    if let Some(why) = writer.lost() {
        return Err(CliError::failed(format!(
            "the record of this run is incomplete, and only the output above has the whole result: \
             {why}"
        )));
    }
    Ok(ExitCode::from(code(interrupted, is_unusable, &view)))
}

/// Removes what trials left on the disk; where that takes long, says so, and how far it is.
fn remove(files: Vec<Arc<TrialDirs>>, silent: bool) {
    let left: Vec<FilesLeft> = files.iter().filter_map(|files| files.files_left()).collect();
    let count = || left.iter().filter_map(FilesLeft::count).sum::<u64>();
    let all = count();
    let (told, removed) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            drop(files);
            drop(told);
        });
        let lasts = |longer| removed.recv_timeout(longer) == Err(RecvTimeoutError::Timeout);
        if silent || !lasts(SLOW) {
            return;
        }
        output::say(
            "removing the files of the trials, which may take minutes (the result is kept; Ctrl-C \
             leaves it to a process in the background)",
        );
        while lasts(SAID_EVERY) {
            output::say(&format!("about {} of {all} files are left to remove", count()));
        }
    });
}

/// The command that takes up a run, with its existing stores.
pub(super) fn resuming(
    header: &Header,
    records: &Path,
    stores: impl Iterator<Item = String>,
) -> String {
    let out = (records != Path::new(RECORDS)).then(|| records.to_string_lossy());
    leftovers::resuming(header, out.as_deref(), stores)
}

/// What named the store of a target on the command line of its run.
pub(super) fn given_as(command: &[String], name: &str, address: &str) -> String {
    leftovers::given_as(command, name, address).unwrap_or_else(|| format!("{name}=URL"))
}

/// What is said where a second signal ends the program.
fn last_words(header: &Header, records: &Path) -> String {
    let run = &header.run;
    let stores = header.plan.targets.iter().filter_map(|target| {
        Some(given_as(&header.command, &target.name, target.address.as_ref()?))
    });
    let next = format!("`{}` adds what is missing, if anything", resuming(header, records, stores));
    let existing: Vec<&str> =
        header.plan.targets.iter().filter_map(|target| target.address.as_deref()).collect();
    let left = if existing.is_empty() {
        String::new()
    } else {
        let places = existing.join(" and ");
        format!(
            "; data of this run may be left in {places} (how to remove it: `cachedyno show {run}`)"
        )
    };
    format!(
        "ended at once: a process in the background ends private servers and removes files{left}; \
         {next}"
    )
}

/// Whether a target that the user named cannot be used, or one that is installed did not start.
fn unusable(plan: &Plan, targets: &[TargetState]) -> bool {
    targets.iter().any(|state| {
        let named = plan.target(&state.target).is_some_and(|planned| planned.named);
        let failure = state.unavailable.as_ref();
        failure.is_some_and(|f| named || f.class != ErrorClass::Missing)
    })
}

/// Writes page and summary into the record; the page's path. A full disk costs the page, not the
/// result.
fn leave_page(view: &View, record: &Path) -> Option<PathBuf> {
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
            output::say(&format!("warning: the page is not written: {e}"));
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
