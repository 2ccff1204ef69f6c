//! `cachedyno run STUDY`: plan, check, measure, judge, print, leave a page.

use ::report::view::Validity;
use ::report::{Recorded, View, judge};
use archive::{PackedSamples, RECORDS, REPORT, SUMMARY, Writer, write_derived};
use dash::Listener;
use lab::{Ended, Setup, Sinks};
use model::leftovers;
use model::record::RECORD_FORMAT;
use model::study::StudyWorkload;
use model::target::mask_text;
use model::{
    Choices, Condition, Conditions, ErrorClass, Header, Plan, SealStatus, Sink, TargetChoice, Trial,
};
use rig::alone::Alone;
use rig::{Guard, Pinning, Shelf};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::{calibrate, doctor};
use crate::alone::alone;
use crate::args::{Fill, Format, Run};
use crate::exit::{CliError, DONE, INTERRUPTED, NOT_VALID, TARGET};
use crate::output;
use crate::ownerless;
use crate::progress::{Collector, Display};
use crate::{limits, secrets, sense, serve, studies, trust};

/// How the number of clients is chosen here.
const CLIENTS: &str = "--set clients";
/// How long something is waited for in silence.
const SLOW: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &Run) -> Result<ExitCode, CliError> {
    let choices = target_choices(arguments)?;
    // Before a record is begun: wrong arguments leave nothing behind.
    let served = serve::bind(&arguments.serve)?;
    let setup = setup(arguments, &choices)?;
    let (header, writer, earlier, _alone) = match &arguments.resume.run {
        Some(run) => resume(arguments, run, &choices, &setup)?,
        None => begin(arguments, &choices, &setup)?,
    };
    let (quiet, format) = (arguments.quiet, arguments.format);
    carry_out(header, earlier, writer, &setup, (quiet, format), served)
}

/// Measures what the header plans, beside the trials that were measured earlier, and tells it.
pub(super) fn carry_out(
    header: Header,
    earlier: Vec<Trial>,
    mut writer: Writer,
    setup: &Setup,
    (quiet, format): (bool, Format),
    served: Option<Listener>,
) -> Result<ExitCode, CliError> {
    let records = writer.path().parent().unwrap_or(Path::new("."));
    let stop = watch_signals((!quiet).then(|| last_words(&header, records)))?;
    let silent = quiet || format != Format::Text;
    let mut dash = served.map(|l| serve::start(l, setup, silent)).transpose()?;
    let mut display = Display::new(silent);
    let mut collector = Collector::default();
    let Ended { seal, files } = {
        let mut sinks = Sinks::new();
        for sink in [&mut writer as &mut dyn Sink, &mut collector, &mut display] {
            sinks.add(sink);
        }
        if let Some(dash) = &mut dash {
            sinks.add(dash);
        }
        match header.plan.search {
            Some(_) => {
                let seal = lab::search::run(header.clone(), setup, &mut sinks, &stop);
                Ended { seal, files: Vec::new() }
            }
            None => lab::run(header.clone(), setup, earlier.clone(), &mut sinks, &stop),
        }
    };
    let trials: Vec<Trial> = earlier.into_iter().chain(collector.trials).collect();
    let is_unusable = unusable(&header.plan, &collector.targets);
    let targets = collector.targets;
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
    super::print(&view, format)?;
    if let Some(page) = page.filter(|_| format == Format::Text) {
        output::print(&format!("\npage: {}\n", page.display()))?;
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
    Ok(ExitCode::from(code(interrupted, is_unusable, view.validity)))
}

/// Removes what trials left on the disk, and says so where that takes long.
fn remove(files: Vec<Arc<Shelf>>, silent: bool) {
    let (told, removed) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            drop(files);
            drop(told);
        });
        let is_slow = removed.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout);
        if is_slow && !silent {
            output::say(
                "removing the files of the trials, which may take minutes (the result is kept; \
                 Ctrl-C leaves it to a process in the background)",
            );
        }
    });
}

fn target_choices(arguments: &Run) -> Result<Vec<TargetChoice>, CliError> {
    Ok(arguments.targets.iter().map(|t| TargetChoice::parse(t)).collect::<Result<_, _>>()?)
}

/// What is measured, its record, what was measured earlier, and the lock that keeps others away.
type Begun = (Header, Writer, Vec<Trial>, Option<Alone>);

/// Plans a new run and begins its record.
fn begin(arguments: &Run, targets: &[TargetChoice], setup: &Setup) -> Result<Begun, CliError> {
    let study = studies::load(arguments.study.as_deref().unwrap_or_default())?;
    let fills = study.workload == StudyWorkload::AppCache;
    if let (Some(_), false) = (arguments.fill, fills) {
        return Err(CliError::usage(format!(
            "--fill: study `{}` has no application cache to fill (expected one of workload \
             `app-cache`)",
            study.name
        )));
    }
    if arguments.data_set.is_some() {
        study.takes_files()?;
    }
    let choices = choices(arguments, targets)?;
    let plan = study.plan(&choices)?;
    sense::threads_of(&plan, &choices.sets, setup.pinning.generator.len())
        .map_err(CliError::usage)?;
    trust::check_settings(&plan)?;
    limits::allow(CLIENTS, &plan)?;
    let silent = arguments.quiet || arguments.format != Format::Text;
    let alone = alone(&setup.guard, &ownerless::disks(setup))?;
    let header = header(plan, setup, (&arguments.records.out, silent))?;
    let writer = Writer::create(&arguments.records.out, &header)?;
    Ok((header, writer, Vec::new(), alone))
}

/// The header of a run that begins now, with the calibration that is kept with its records.
pub(super) fn header(
    plan: Plan,
    setup: &Setup,
    (records, silent): (&Path, bool),
) -> Result<Header, CliError> {
    // What reading a record refuses is not measured first.
    plan.check().map_err(|e| CliError::usage(format!("this cannot be planned: {e}")))?;
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
fn owned(setup: &Setup) -> Option<Condition> {
    (setup.i_own_this_server && !setup.endpoints.is_empty()).then(|| Condition {
        group: "targets".into(),
        name: "existing stores".into(),
        value: "filled whatever they evict (--i-own-this-server)".into(),
        warning: Some("data of others on these servers were not protected".into()),
    })
}

/// Reads what an interrupted run has measured and opens its record again.
fn resume(
    arguments: &Run,
    run: &str,
    targets: &[TargetChoice],
    setup: &Setup,
) -> Result<Begun, CliError> {
    let path = super::find(&arguments.records.out, run)?;
    let record = super::read(&path)?;
    if record.seal.as_ref().is_some_and(|s| s.status == SealStatus::Complete) {
        let run = record.header.run;
        return Err(CliError::usage(format!(
            "run `{run}` is complete, there is nothing to resume"
        )));
    }
    let plan = &record.header.plan;
    if plan.search.is_some() {
        return Err(CliError::usage(format!(
            "run `{run}` is a search, which cannot be resumed: what it found so far is in \
             `cachedyno show {run}` (expected a run of a study; search again with find-max)"
        )));
    }
    if arguments.study.as_ref().is_some_and(|study| *study != plan.study) {
        return Err(CliError::usage(format!(
            "run `{run}` is of study `{}`, not of `{}`",
            plan.study,
            arguments.study.as_deref().unwrap_or_default()
        )));
    }
    trust::check_settings(plan)?;
    same_places(arguments, &record.header, targets)?;
    trust::consent(&record.header, setup, arguments.resume.trust_record)?;
    same_files(plan)?;
    limits::allow(CLIENTS, plan)?;
    let alone = alone(&setup.guard, &ownerless::disks(setup))?;
    let writer = Writer::resume(&path)?;
    // Read again under the lock: another cachedyno may have added trials meanwhile.
    let archive::Record { mut header, trials, .. } = super::read(&path)?;
    if header.plan != *plan {
        return Err(CliError::usage(format!("the plan of run `{run}` was changed meanwhile")));
    }
    if let Some(fact) = owned(setup).filter(|fact| !header.conditions.facts.contains(fact)) {
        header.conditions.facts.push(fact);
        writer.replace_header(&header)?;
    }
    Ok((header, writer, trials, alone))
}

/// Files of a data set must be those that the run was planned with, before anything is added to it.
fn same_files(plan: &Plan) -> Result<(), CliError> {
    let Some(files) = plan.files() else { return Ok(()) };
    let wrong = |e| CliError::usage(format!("the data set of this run: {e}"));
    lab::data_files::check(files).map_err(wrong)
}

/// A record holds no credentials, so existing stores must be given again, and nothing else.
fn same_places(arguments: &Run, header: &Header, choices: &[TargetChoice]) -> Result<(), CliError> {
    let targets = &header.plan.targets;
    let existing = || targets.iter().filter_map(|t| Some((&t.name, t.address.as_ref()?)));
    for choice in choices {
        let planned = existing().find(|(name, _)| **name == choice.name);
        match (planned, &choice.endpoint) {
            (Some((name, address)), Some(endpoint)) if endpoint.to_string() != *address => {
                return Err(CliError::usage(format!(
                    "target `{name}` of this run was {address}, not {endpoint}"
                )));
            }
            (Some(_), Some(_)) => {}
            _ => {
                let all: Vec<String> = targets.iter().map(|t| format!("`{}`", t.name)).collect();
                return Err(CliError::usage(format!(
                    "--target `{}` cannot be chosen: run `{}` measures {} as planned (expected \
                     NAME=URL of its existing stores, and no other)",
                    choice.name,
                    header.run,
                    all.join(", ")
                )));
            }
        }
    }
    let is_given = |name: &str| choices.iter().any(|c| c.name == name);
    let missing: Vec<String> = existing()
        .filter(|(name, _)| !is_given(name))
        .map(|(name, address)| format!("target `{name}` was {address}"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let given = existing().map(|(name, address)| given_as(&header.command, name, address));
    Err(CliError::usage(format!(
        "a record holds no passwords, so give existing stores again: {} (expected `{}`)",
        missing.join(", "),
        resuming(header, &arguments.records.out, given)
    )))
}

/// The command that takes up a run, with its existing stores.
fn resuming(header: &Header, records: &Path, stores: impl Iterator<Item = String>) -> String {
    let out = (records != Path::new(RECORDS)).then(|| records.to_string_lossy());
    leftovers::resuming(header, out.as_deref(), stores)
}

/// What named the store of a target on the command line of its run.
fn given_as(command: &[String], name: &str, address: &str) -> String {
    leftovers::given_as(command, name, address).unwrap_or_else(|| format!("{name}=URL"))
}

fn choices(arguments: &Run, targets: &[TargetChoice]) -> Result<Choices, CliError> {
    let files = arguments.data_set.as_deref().map(lab::data_files::look).transpose();
    let mut sets = sets(&arguments.sets)?;
    if let Some(fill) = arguments.fill {
        let fill = if fill == Fill::Fast { "fast" } else { "save" };
        sets.push(("fill".into(), fill.into()));
    }
    Ok(Choices {
        scale: arguments.scale.into(),
        budget_s: duration_ns("--budget", arguments.budget.as_deref())?.map(|ns| ns as f64 / 1e9),
        sets,
        targets: targets.to_vec(),
        control: arguments.aa,
        seed: arguments.seed.map_or_else(random, Ok)?,
        timeout_ms: timeout_ms(arguments.timeout.as_deref())?,
        files: files.map_err(|e| CliError::usage(format!("--data-set: {e}")))?,
    })
}

/// The pairs of `--set`.
pub(super) fn sets(pairs: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let split = |pair: &String| match pair.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(CliError::usage(format!("--set `{pair}` is not of the form KEY=VALUE"))),
    };
    pairs.iter().map(split).collect()
}

/// Time-outs are kept in whole milliseconds.
pub(super) fn timeout_ms(text: Option<&str>) -> Result<Option<u64>, CliError> {
    match duration_ns("--timeout", text)? {
        Some(ns) if ns < 1_000_000 => {
            let text = text.unwrap_or_default();
            Err(CliError::usage(format!("--timeout `{text}` is too short (expected 1ms or more)")))
        }
        ns => Ok(ns.map(|ns| ns / 1_000_000)),
    }
}

pub(super) fn duration_ns(flag: &str, text: Option<&str>) -> Result<Option<u64>, CliError> {
    let parse = |text| stats::parse_duration_ns(text);
    text.map(parse).transpose().map_err(|e| CliError::usage(format!("{flag}: {e}")))
}

pub(super) fn random() -> Result<u64, CliError> {
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| CliError::failed(format!("no random number from `/dev/urandom`: {e}")))?;
    Ok(u64::from_le_bytes(bytes))
}

fn setup(arguments: &Run, targets: &[TargetChoice]) -> Result<Setup, CliError> {
    if !arguments.disk.is_dir() {
        let disk = arguments.disk.display();
        return Err(CliError::usage(format!("--disk `{disk}` is not a directory")));
    }
    Ok(Setup {
        guard: Guard::start()?,
        disk: arguments.disk.clone(),
        pinning: Pinning::for_this_process(),
        endpoints: secrets::endpoints(targets, &arguments.password_files)?,
        allow_shared: arguments.allow_shared,
        resumes: arguments.resume.run.is_some(),
        i_own_this_server: arguments.i_own_this_server,
    })
}

/// The first signal ends the run after the operations under way; the second ends the program with
/// these words, and the guard cleans up. A third does not wait for them to be read.
pub(super) fn watch_signals(last_words: Option<String>) -> Result<Arc<AtomicBool>, CliError> {
    const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
    let failed = |e: io::Error| CliError::failed(format!("signals cannot be watched: {e}"));
    let (stop, tells) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let exits = i32::from(INTERRUPTED);
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_shutdown(signal, exits, tells.clone())
            .map_err(failed)?;
    }
    let mut signals = Signals::new(SIGNALS).map_err(failed)?;
    let stopped = stop.clone();
    thread::spawn(move || {
        for _ in signals.forever() {
            if stopped.swap(true, Ordering::Relaxed) {
                tells.store(true, Ordering::Relaxed);
                if let Some(words) = &last_words {
                    let from_bar = if output::says_to_terminal() { "\n" } else { "" };
                    output::say(&format!("{from_bar}{words}"));
                }
                low_level::exit(exits);
            }
        }
    });
    Ok(stop)
}

/// What is said where a second signal ends the program.
fn last_words(header: &Header, records: &Path) -> String {
    let run = &header.run;
    let next = if header.plan.search.is_some() {
        format!("`cachedyno show {run}` tells what it found so far")
    } else {
        let stores = header.plan.targets.iter().filter_map(|target| {
            Some(given_as(&header.command, &target.name, target.address.as_ref()?))
        });
        format!("`{}` adds what is missing, if anything", resuming(header, records, stores))
    };
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
fn unusable(plan: &Plan, targets: &[::report::TargetState]) -> bool {
    targets.iter().any(|state| {
        let named = plan.target(&state.name).is_some_and(|planned| planned.named);
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

fn code(interrupted: bool, unusable: bool, validity: Validity) -> u8 {
    match (interrupted, unusable, validity) {
        (true, ..) => INTERRUPTED,
        (_, true, _) => TARGET,
        (_, _, Validity::Valid | Validity::Unreplicated) => DONE,
        _ => NOT_VALID,
    }
}
