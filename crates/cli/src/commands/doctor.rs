//! `cachedyno doctor`: reports installed stores, host settings that would disturb a measurement,
//! and leftovers of killed runs.

use model::{Condition, NetAddress, Product};
use rig::{Pinning, SearchPath};
use std::path::Path;
use std::process::ExitCode;

use crate::args::Doctor;
use crate::exit::CliError;
use crate::{orphaned, output};

/// The usual port of Redis, and the program of a Ray head node.
const REDIS_PORT: u16 = 6379;
const RAY_HEAD: &str = "gcs_server";

pub(crate) fn run(arguments: &Doctor) -> Result<ExitCode, CliError> {
    if !arguments.disk.is_dir() {
        let disk = arguments.disk.display();
        return Err(CliError::usage(format!("--disk `{disk}` is not a directory")));
    }
    if arguments.clean {
        return orphaned::clean(&arguments.disk);
    }
    let leftovers = orphaned::list(&arguments.disk);
    let mut all = conditions(&arguments.disk);
    all.extend(ray_at_redis_port());
    let facts = facts(&all, leftovers.is_empty());
    output::print(&(stores() + &facts + &leftovers))?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the stores and their installed versions.
fn stores() -> String {
    let lines = rig::installed(&SearchPath::of_process()).into_iter().map(|store| {
        let (name, program, package) = (store.name, store.program, store.package);
        let missing = || format!("not installed: {program} (apt-get install {package})");
        format!("  {name:<9} {}\n", store.version.unwrap_or_else(missing))
    });
    let embedded = Product::ALL.into_iter().filter(|product| !product.has_server());
    let embedded = embedded.map(|product| format!("  {:<9} needs no server\n", product.name()));
    format!("stores\n{}", lines.chain(embedded).collect::<String>())
}

/// Lists the facts of this host by group, then its warnings. A host with leftovers is not called
/// ready.
fn facts(facts: &[Condition], is_clean: bool) -> String {
    let groups = facts.chunk_by(|a, b| a.group == b.group).map(|group| {
        let lines = group.iter().map(|fact| format!("  {:<28} {}\n", fact.name, fact.value));
        format!("\n{}\n{}", group[0].group, lines.collect::<String>())
    });
    let text: String = groups.collect();
    let warnings: String = facts
        .iter()
        .filter_map(|f| Some(format!("  ! {}: {} ({})\n", f.name, f.warning.as_ref()?, f.value)))
        .collect();
    if warnings.is_empty() {
        let ready = if is_clean { ": this host is ready to measure" } else { " about this host" };
        return format!("{text}\nno warnings{ready}\n");
    }
    text + "\nwarnings: these disturb measurements\n" + &warnings
}

/// The head node of a Ray cluster at the usual port of Redis (`ray start --head`), which answers no
/// Redis client; `None` if there is none that this user can see.
fn ray_at_redis_port() -> Option<Condition> {
    let at = NetAddress::Tcp("127.0.0.1".into(), REDIS_PORT);
    let command = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_ray = |pid: &u32| String::from_utf8_lossy(&command(pid)).contains(RAY_HEAD);
    let pid = rig::listeners(&[at]).into_iter().find(is_ray)?;
    Some(Condition {
        group: "ports".into(),
        name: format!("port {REDIS_PORT}"),
        value: format!("{RAY_HEAD}, process {pid}"),
        warning: Some(
            "the head node of a Ray cluster has the usual port of Redis, so `redis://localhost` is \
             not a Redis: start Ray with another --port, or name the port of your Redis"
                .into(),
        ),
    })
}

/// Facts of this host, including how its CPUs are split between clients and server.
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
    let files = "file stores use both, since they have no server";
    facts.push(fact("CPUs for file stores", format!("{} ({files})", cpus(&all)), None));
    facts
}

fn cpus(list: &[usize]) -> String {
    let mut list = list.to_vec();
    list.sort_unstable();
    list.dedup();
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
