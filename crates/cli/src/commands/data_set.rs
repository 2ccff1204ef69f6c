//! `cachedyno data-set DIR`: a study's records and lists as files that the original reads.

use clap::Args;
use model::study::decided_by_files;
use model::{AppCache, Choices, Workload};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use workloads::app_cache::files::{DATA_FILE, operations_file, write_data, write_operations};
use workloads::app_cache::{DataSet as Records, Lists};

use crate::args::{Scale, sets};
use crate::exit::CliError;
use crate::random::random;
use crate::{output, studies};

/// Arguments of `data-set`.
#[derive(Debug, Args)]
pub(crate) struct DataSet {
    /// Directory for `data.txt` and one `ops-client_N.json` a client; made if it is not there
    directory: PathBuf,
    /// Name or file of the study that says what the records are like
    #[arg(long, default_value = "app-cache")]
    study: String,
    /// How many records and operations
    #[arg(long, value_enum, default_value = "standard")]
    scale: Scale,
    /// Replace a value of the study, such as keys=1000, tags=50, clients=2 or ops=500
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Seed of records and lists (default: random)
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(arguments: &DataSet) -> Result<ExitCode, CliError> {
    let seed = arguments.seed.map_or_else(random, Ok)?;
    let Planned { cache, clients, ops } = planned(arguments, seed)?;
    let directory = &arguments.directory;
    fs::create_dir_all(directory).map_err(|e| unwritten(directory, &e))?;
    let data = Records::drawn(&cache, seed);
    let AppCache { write_chance, clean_chance, .. } = cache;
    let lists = Lists::Drawn { seed, write_chance, clean_chance };
    write(&directory.join(DATA_FILE), |out| write_data(out, &data))?;
    for client in 0..clients {
        let path = directory.join(operations_file(client));
        write(&path, |out| write_operations(out, &data, &lists, client, ops))?;
    }
    output::print(&format!(
        "{}: {} records, {} tags, {ops} operations for each of {clients} clients, seed {seed}\n\
         measure with them: {}\n",
        directory.display(),
        data.keys(),
        data.tags(),
        command(arguments, &cache.profile, clients)?,
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The command that measures with the files: with what was set here but for what they decide.
fn command(arguments: &DataSet, profile: &str, clients: u32) -> Result<String, CliError> {
    let directory = arguments.directory.to_string_lossy();
    let mut words: Vec<String> = ["cachedyno", "run", &arguments.study].map(String::from).to_vec();
    if arguments.scale != Scale::Standard {
        words.extend(["--scale".into(), model::Scale::from(arguments.scale).name().into()]);
    }
    words.extend(["--data-set".into(), directory.into()]);
    let own =
        [("profile".to_string(), profile.to_string()), ("clients".into(), clients.to_string())];
    let others = sets(&arguments.sets)?
        .into_iter()
        .filter(|(key, _)| !decided_by_files(key) && own.iter().all(|(own, _)| own != key));
    for (key, value) in own.iter().cloned().chain(others) {
        words.extend(["--set".into(), format!("{key}={value}")]);
    }
    Ok(model::shell_words(&words))
}

/// What the files will hold.
struct Planned {
    cache: AppCache,
    clients: u32,
    /// Operations of each client.
    ops: u64,
}

/// The study's first profile with lists, with what the user set.
fn planned(arguments: &DataSet, seed: u64) -> Result<Planned, CliError> {
    let study = studies::load(&arguments.study)?;
    let mut choices = Choices {
        scale: arguments.scale.into(),
        budget_s: None,
        sets: vec![("profile".into(), "all".into())],
        targets: Vec::new(),
        control: false,
        seed,
        timeout_ms: None,
        files: None,
    };
    let all = study.plan(&choices)?;
    let Some((cell, _)) = all.caches().find(|(_, cache)| cache.as_original) else {
        return Err(CliError::usage(format!(
            "study `{}` has no profile with lists of operations (expected one with `as_original`, \
             as in --study app-cache)",
            study.name
        )));
    };
    choices.sets = sets(&arguments.sets)?;
    if !choices.sets.iter().any(|(key, _)| key == "profile") {
        choices.sets.push(("profile".into(), cell.workload.study_profile().into()));
    }
    let plan = study.plan(&choices)?;
    let most = plan.cells.into_iter().max_by_key(|cell| cell.load.clients);
    let with_lists = most.and_then(|cell| match cell.workload {
        Workload::AppCache(cache) => Some((cell.load.clients, cache)),
        Workload::Sessions(_) | Workload::Kv(_) => None,
    });
    let ops = |cache: &AppCache| match cache.phases.first().map(|phase| phase.stop) {
        Some(model::Stop::Count(ops)) => Some(ops),
        _ => None,
    };
    with_lists
        .and_then(|(clients, cache)| Some(Planned { ops: ops(&cache)?, clients, cache }))
        .ok_or_else(|| {
            CliError::usage(format!(
                "the chosen profile of study `{}` has no lists of operations (leave out \
                 --set profile)",
                study.name
            ))
        })
}

/// Writes a new file; what is there already stays.
fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    archive::write_new(path, content).map_err(|e| {
        if e.kind() == ErrorKind::AlreadyExists {
            let path = path.display();
            return CliError::usage(format!(
                "`{path}` is there already (expected a directory without a data set)"
            ));
        }
        unwritten(path, &e)
    })
}

fn unwritten(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(format!("`{}` cannot be written: {error}", path.display()))
}
