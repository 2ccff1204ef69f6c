//! `cachedyno doctor`: which stores are installed, and what would disturb a measurement here.

use model::{Condition, Product};
use rig::{Pinning, SearchPath};
use std::path::Path;
use std::process::ExitCode;

use crate::args::Doctor;
use crate::exit::CliError;

pub(crate) fn run(arguments: &Doctor) -> Result<ExitCode, CliError> {
    if !arguments.disk.is_dir() {
        let disk = arguments.disk.display();
        return Err(CliError::usage(format!("--disk `{disk}` is not a directory")));
    }
    anstream::println!("stores");
    for store in rig::installed(&SearchPath::of_process()) {
        let name = store.product.name();
        let (program, package) = (store.program, store.package);
        let missing = || format!("not installed: {program} (apt-get install {package})");
        anstream::println!("  {name:<8} {}", store.version.unwrap_or_else(missing));
    }
    anstream::println!("  {:<8} needs no server", Product::Files.name());
    let facts = conditions(&arguments.disk);
    let mut group = "";
    for fact in &facts {
        if fact.group != group {
            group = &fact.group;
            anstream::println!("\n{group}");
        }
        anstream::println!("  {:<28} {}", fact.name, fact.value);
    }
    let disturbing: Vec<&Condition> = facts.iter().filter(|f| f.warning.is_some()).collect();
    if disturbing.is_empty() {
        anstream::println!("\nnothing here disturbs a measurement");
        return Ok(ExitCode::SUCCESS);
    }
    anstream::println!("\nwhat disturbs a measurement here");
    for fact in disturbing {
        let warning = fact.warning.as_deref().unwrap_or_default();
        anstream::println!("  ! {}: {} ({})", fact.name, warning, fact.value);
    }
    Ok(ExitCode::SUCCESS)
}

/// Facts of this host and how its CPUs are divided.
pub(crate) fn conditions(disk: &Path) -> Vec<Condition> {
    let mut facts = rig::conditions(disk).facts;
    let pinning = Pinning::for_this_process();
    let fact = |name: &str, value: String, warning: Option<String>| Condition {
        group: "pinning".into(),
        name: name.into(),
        value,
        warning,
    };
    facts.push(fact("CPUs of the clients", cpus(&pinning.generator), pinning.note.clone()));
    facts.push(fact("CPUs of the server", cpus(&pinning.server), None));
    let all: Vec<usize> = [&pinning.generator[..], &pinning.server[..]].concat();
    let files = "clients of files use both: there is no server to run beside them";
    facts.push(fact("CPUs of clients of files", format!("{} ({files})", cpus(&all)), None));
    facts
}

fn cpus(list: &[usize]) -> String {
    let mut list = list.to_vec();
    list.sort_unstable();
    list.dedup();
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
