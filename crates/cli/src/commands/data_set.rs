//! `cachedyno data-set DIR`: exports a study's records and operation lists as files that the
//! original benchmark can read.

use clap::Args;
use model::study::determined_by_files;
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
    /// Directory for `data.txt` and one `ops-client_N.json` per client; created if missing
    directory: PathBuf,
    /// Name or file of the study that defines the records
    #[arg(long, default_value = "app-cache")]
    study: String,
    /// Number of records and operations
    #[arg(long, value_enum, default_value = "standard")]
    scale: Scale,
    /// Replace a value of the study, such as keys=1000, tags=50, clients=2 or ops=500
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Seed of the records and lists (default: random)
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(arguments: &DataSet) -> Result<ExitCode, CliError> {
    let seed = arguments.seed.map_or_else(random, Ok)?;
    let DataSetPlan { cache, clients, ops } = plan_data_set(arguments, seed)?;
    let directory = &arguments.directory;
    fs::create_dir_all(directory).map_err(|e| write_error(directory, &e))?;
    let data = Records::drawn(&cache, seed);
    let AppCache { write_chance, clean_chance, .. } = cache;
    let lists = Lists::Drawn { seed, write_chance, clean_chance };
    write_new_file(&directory.join(DATA_FILE), |out| write_data(out, &data))?;
    for client in 0..clients {
        let path = directory.join(operations_file(client));
        write_new_file(&path, |out| write_operations(out, &data, &lists, client, ops))?;
    }
    output::print(&format!(
        "{}: {} records, {} tags, {ops} operations for each of {clients} clients, seed {seed}\n\
         use them with: {}\n",
        directory.display(),
        data.keys(),
        data.tags(),
        command(arguments, &cache.profile, clients)?,
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The `cachedyno run` command that uses the files. It repeats the user's `--set` values, except
/// those that the files determine.
fn command(arguments: &DataSet, profile: &str, clients: u32) -> Result<String, CliError> {
    let directory = arguments.directory.to_string_lossy();
    let mut words: Vec<String> = ["cachedyno", "run", &arguments.study].map(String::from).to_vec();
    if arguments.scale != Scale::Standard {
        words.extend(["--scale".into(), model::Scale::from(arguments.scale).name().into()]);
    }
    words.extend(["--data-set".into(), directory.into()]);
    let fixed =
        [("profile".to_string(), profile.to_string()), ("clients".into(), clients.to_string())];
    let rest = sets(&arguments.sets)?
        .into_iter()
        .filter(|(key, _)| !determined_by_files(key) && fixed.iter().all(|(name, _)| name != key));
    for (key, value) in fixed.iter().cloned().chain(rest) {
        words.extend(["--set".into(), format!("{key}={value}")]);
    }
    Ok(model::shell_words(&words))
}

/// Contents of the files.
struct DataSetPlan {
    cache: AppCache,
    clients: u32,
    /// Operations per client.
    ops: u64,
}

/// Plans the study's first profile that has operation lists, with the user's settings.
fn plan_data_set(arguments: &DataSet, seed: u64) -> Result<DataSetPlan, CliError> {
    let study = studies::load(&arguments.study)?;
    let mut choices = Choices {
        sets: vec![("profile".into(), "all".into())],
        ..Choices::new(arguments.scale.into(), seed)
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
    let largest = plan.cells.into_iter().max_by_key(|cell| cell.load.clients);
    let with_lists = largest.and_then(|cell| match cell.workload {
        Workload::AppCache(cache) => Some((cell.load.clients, cache)),
        Workload::Sessions(_) | Workload::Kv(_) | Workload::CacheAside(_) => None,
    });
    let ops = |cache: &AppCache| match cache.phases.first().map(|phase| phase.stop) {
        Some(model::Stop::Count(ops)) => Some(ops),
        _ => None,
    };
    with_lists
        .and_then(|(clients, cache)| Some(DataSetPlan { ops: ops(&cache)?, clients, cache }))
        .ok_or_else(|| {
            CliError::usage(format!(
                "the chosen profile of study `{}` has no lists of operations (leave out \
                 --set profile)",
                study.name
            ))
        })
}

/// Writes a new file. Errors: a file of that name exists; it is left unchanged.
fn write_new_file(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    archive::write_new(path, content).map_err(|e| {
        if e.kind() == ErrorKind::AlreadyExists {
            let path = path.display();
            return CliError::usage(format!(
                "`{path}` already exists (expected a directory without a data set)"
            ));
        }
        write_error(path, &e)
    })
}

fn write_error(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(format!("`{}` cannot be written: {error}", path.display()))
}
