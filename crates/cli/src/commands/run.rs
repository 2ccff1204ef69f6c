//! `cachedyno run STUDY`: plans, checks, measures, judges and prints a study, and writes its page.

use archive::Writer;
use lab::Setup;
use model::study::StudyWorkload;
use model::{Choices, Header, Plan, Scale, SealStatus, TargetChoice, Trial};
use rig::measurement_lock::MeasurementLock;
use stats::compare::FEWEST_BLOCKS;
use std::process::ExitCode;

use super::measuring::{carry_out, given_as, header, resuming, unprotected_stores};
use crate::args::{Fill, Run, duration_ns, require, sets, stall_ns, timeout_ms};
use crate::exit::CliError;
use crate::measurement_lock::acquire;
use crate::orphaned;
use crate::random::random;
use crate::{disks, fault_command, limits, output, preflight, serve, studies, trust};

/// Option that sets the number of clients, for error messages.
const CLIENTS: &str = "--set clients";

pub(crate) fn run(arguments: &Run) -> Result<ExitCode, CliError> {
    let choices = arguments.common.choices(&arguments.targets)?;
    // Bind before the record is created, so that wrong arguments leave nothing behind.
    let served = serve::bind(&arguments.common.serve)?;
    let setup = arguments.common.setup(&choices, arguments.resume.run.is_some())?;
    let setup = Setup { fault_command: arguments.fault_command.clone(), ..setup };
    let ((header, writer, earlier, _lock), setup) = match &arguments.resume.run {
        Some(run) => {
            let open = resume(arguments, run, &choices, &setup)?;
            let setup = arguments.common.fleet.gather(setup, &open.0.plan)?;
            (open, setup)
        }
        None => start_new(arguments, &choices, setup)?,
    };
    carry_out(header, earlier, writer, &setup, arguments.common.printing, served)
}

/// The record's header and writer, the trials measured earlier, and the measurement lock.
type OpenRun = (Header, Writer, Vec<Trial>, Option<MeasurementLock>);

/// Plans a new run and creates its record.
fn start_new(
    arguments: &Run,
    targets: &[TargetChoice],
    setup: Setup,
) -> Result<(OpenRun, Setup), CliError> {
    let study = studies::load(arguments.study.as_deref().unwrap_or_default())?;
    let fills = study.workload == StudyWorkload::AppCache;
    if let (Some(_), false) = (arguments.fill, fills) {
        return Err(CliError::usage(format!(
            "--fill: study `{}` has no application cache to fill (expected a study with \
             workload `app-cache`)",
            study.name
        )));
    }
    if arguments.data_set.is_some() {
        study.takes_files()?;
    }
    let choices = choices(arguments, targets)?;
    let mut plan = study.plan(&choices)?;
    require(&mut plan, &arguments.requirements)?;
    preflight::study_threads(&plan, &choices.sets, setup.pinning.generator.len())
        .map_err(CliError::usage)?;
    arguments.common.fleet.check_rig(&plan)?;
    arguments.common.fleet.divide(&mut plan)?;
    trust::check_settings(&plan)?;
    disks::check_swap(&plan)?;
    limits::allow_connections(CLIENTS, &plan)?;
    let silent = arguments.common.printing.is_silent();
    if !silent {
        warn_of_a_small_budget(&plan);
    }
    let lock = acquire(&setup.guard, &orphaned::disks(&setup, &plan))?;
    let setup = arguments.common.fleet.gather(setup, &plan)?;
    let header = header(plan, &setup, (&arguments.common.records.out, silent))?;
    let writer = Writer::create(&arguments.common.records.out, &header)?;
    Ok(((header, writer, Vec::new(), lock), setup))
}

/// Says before the run that its budget is too small to compare stores.
fn warn_of_a_small_budget(plan: &Plan) {
    if let Some((blocks, block_ns)) = lab::too_small_a_budget(plan) {
        let plural = if blocks == 1 { "" } else { "s" };
        let shorter = if plan.scale == Scale::Quick { "" } else { ", or --scale quick" };
        output::say(&format!(
            "a block takes about {}, so the budget of {} allows only {blocks} block{plural}; a \
             comparison needs {FEWEST_BLOCKS}: use a longer --budget{shorter}",
            stats::format_ns(block_ns as f64),
            stats::format_ns(plan.effort.budget_ns as f64)
        ));
    }
}

/// Reads the trials of an interrupted run and reopens its record.
fn resume(
    arguments: &Run,
    run: &str,
    targets: &[TargetChoice],
    setup: &Setup,
) -> Result<OpenRun, CliError> {
    let path = super::find(&arguments.common.records.out, run)?;
    let record = super::read(&path)?;
    if record.seal.as_ref().is_some_and(|s| s.status == SealStatus::Complete) {
        let run = record.header.run;
        return Err(CliError::usage(format!("run `{run}` is complete: nothing to resume")));
    }
    let plan = &record.header.plan;
    if arguments.study.as_ref().is_some_and(|study| *study != plan.study) {
        return Err(CliError::usage(format!(
            "run `{run}` is of study `{}`, not of `{}`",
            plan.study,
            arguments.study.as_deref().unwrap_or_default()
        )));
    }
    trust::check_settings(plan)?;
    check_existing_stores(arguments, &record.header, targets)?;
    check_place_of_servers(plan, setup)?;
    fault_command::check(plan, arguments.fault_command.is_some())?;
    trust::consent(&record.header, setup, arguments.resume.trust_record)?;
    check_data_set_files(plan)?;
    limits::allow_connections(CLIENTS, plan)?;
    disks::check_planned(plan)?;
    let lock = acquire(&setup.guard, &orphaned::disks(setup, plan))?;
    let writer = Writer::resume(&path)?;
    // Read again under the lock: another cachedyno may have added trials.
    let archive::Record { mut header, trials, .. } = super::read(&path)?;
    if header.plan != *plan {
        return Err(CliError::usage(format!(
            "the plan of run `{run}` was changed by another process"
        )));
    }
    if let Some(fact) =
        unprotected_stores(setup).filter(|fact| !header.conditions.facts.contains(fact))
    {
        header.conditions.facts.push(fact);
        writer.replace_header(&header)?;
    }
    Ok((header, writer, trials, lock))
}

/// Checks that the data set's files are those that the run was planned with.
fn check_data_set_files(plan: &Plan) -> Result<(), CliError> {
    let Some(files) = plan.files() else { return Ok(()) };
    let wrong = |e| CliError::usage(format!("the data set of this run: {e}"));
    lab::data_files::check(files).map_err(wrong)
}

/// Checks that private servers start on the machine on which those of the run were.
fn check_place_of_servers(plan: &Plan, setup: &Setup) -> Result<(), CliError> {
    let (planned, given) =
        (plan.places.servers_on.as_deref(), setup.rig_on.as_ref().map(|r| r.host()));
    let wrong = match (planned, given) {
        (Some(planned), None) => format!(
            "private servers of this run are on `{planned}` (expected --rig-on HOST:PORT of \
             `cachedyno worker --listen` there)"
        ),
        (None, Some(given)) => format!(
            "--rig-on: private servers of this run are on this machine, not on `{given}` (expected \
             no --rig-on)"
        ),
        (Some(planned), Some(given)) if planned != given => format!(
            "--rig-on: private servers of this run are on `{planned}`, not on `{given}` (expected \
             a worker on `{planned}`)"
        ),
        _ => return Ok(()),
    };
    Err(CliError::usage(wrong))
}

/// Checks that exactly the run's existing stores are given again, since a record contains no
/// credentials.
fn check_existing_stores(
    arguments: &Run,
    header: &Header,
    choices: &[TargetChoice],
) -> Result<(), CliError> {
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
                    "cannot use --target `{}`: run `{}` measures {} as planned (expected NAME=URL \
                     of its existing stores and no others)",
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
        "a record contains no passwords, so name existing stores again: {} (expected `{}`)",
        missing.join(", "),
        resuming(header, &arguments.common.records.out, given)
    )))
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
        stall_ns: stall_ns(arguments.stall_limit.as_deref())?,
        files: files.map_err(|e| CliError::usage(format!("--data-set: {e}")))?,
        has_fault_command: arguments.fault_command.is_some(),
    })
}
