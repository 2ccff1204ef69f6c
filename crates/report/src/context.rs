//! Context of the results: targets, failures, disturbances, and footnotes on settings and controls.

use model::leftovers::{KILLED, leftovers};
use model::{
    BackgroundWrite, Failure, Plan, PlannedTarget, Point, Product, Program, RedisCompatible,
    TargetState, Trial,
};
use stats::Verdict;
use std::collections::BTreeMap;

use crate::blocks::median;
use crate::cache;
use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::show::{self, commas};
use crate::taken::{shares, who};
use crate::view::{Comparison, FailureView, NoiseView, TargetView};

/// Maximum number of lines of a server's log shown with a failure.
const LOG_LINES: usize = 3;
/// Maximum number of characters per log line.
const LOG_LINE_CHARS: usize = 160;
/// Minimum share of one CPU for which another process is listed, and maximum number listed.
const BUSY_SHOWN_MIN: f64 = 0.01;
const BUSY_SHOWN_MAX: usize = 3;
/// Minimum run length for that list: CPU time is counted in ticks of 10 ms, too coarse for less.
const BUSY_SHOWN_FROM_NS: u64 = 1_000_000_000;
/// Server programs, which may be the measured server itself if a target is given by its address.
const SERVERS: [&str; 5] = ["redis-server", "memcached", "mariadbd", "mysqld", "postgres"];

/// All planned targets, including those that were not measured.
pub(crate) fn targets(recorded: &Recorded) -> Vec<TargetView> {
    recorded.header.plan.targets.iter().map(|t| target(recorded, t)).collect()
}

fn target(recorded: &Recorded, planned: &PlannedTarget) -> TargetView {
    let state = recorded.state(&planned.name);
    let prefix = |t: &&Trial| target_of(&recorded.header.plan, &t.cell) == Some(&planned.name);
    let seen = recorded.trials.iter().filter(prefix).find_map(|t| t.version.clone());
    TargetView {
        name: planned.name.clone(),
        kind: planned.product,
        product: state.and_then(|s| s.version.clone()).or(seen),
        place: planned.address.clone().unwrap_or_else(|| {
            private_place(planned, recorded.header.plan.places.servers_on.as_deref())
        }),
        disk_limit: planned.disk_limit.map(|limit| limit.to_string()),
        settings: planned.settings.clone(),
        not_run: recorded.unavailable(&planned.name).map(ToString::to_string),
        control_of: planned.control_of.clone(),
    }
}

/// Name of a private server: its program if that is not the product's own.
fn server(planned: &PlannedTarget) -> &'static str {
    planned.program.map_or("server", Program::name)
}

/// Location of a target that the run creates.
fn private_place(planned: &PlannedTarget, host: Option<&str>) -> String {
    let files = planned.products().iter().filter(|product| !product.has_server()).count();
    let within = planned.directory.as_ref().map(|parent| format!(" in {}", parent.display()));
    let within = within.unwrap_or_default();
    let on = host.map_or_else(String::new, |host| format!("on {host}, "));
    let (own, fresh) =
        (format!("a private directory{within}"), format!("{on}started fresh for each trial"));
    match (files, planned.products().len() - files) {
        (_, 0) => format!("{own}, created and removed by the run"),
        (0, 1) => format!("a private {}{within}, {fresh}", server(planned)),
        (0, _) => format!("private servers{within}, {fresh}"),
        (_, _) => format!("a private server, {fresh}, and {own}"),
    }
}

fn target_of<'a>(plan: &'a Plan, cell: &str) -> Option<&'a String> {
    plan.cells.iter().find(|c| c.id == cell).map(|c| &c.target)
}

/// Cells for which this machine lacks something, in the plan's order, with what it lacks.
pub(crate) fn cells_not_run(recorded: &Recorded) -> BTreeMap<String, String> {
    let cells = recorded.header.plan.cells.iter();
    cells
        .filter_map(|cell| Some((cell.id.clone(), recorded.lacking(&cell.id)?.to_string())))
        .collect()
}

/// Every failed point and trial of cells that could run, in the order recorded. Only the first of
/// each target and class includes the log.
pub(crate) fn failures(recorded: &Recorded) -> Vec<FailureView> {
    let mut views: Vec<FailureView> = Vec::new();
    let probe = |point: &Point| point.probe.and(point.stage).map(|number| number + 1);
    let not_run = cells_not_run(recorded);
    let could_run = recorded.trials.iter().filter(|t| !not_run.contains_key(&t.cell));
    let failed = could_run.flat_map(|trial| {
        let points = trial.points.iter();
        let of_points = points.filter_map(move |p| Some((trial, Some(p), p.failure.as_ref()?)));
        of_points.chain(trial.failure.as_ref().map(|failure| (trial, None, failure)))
    });
    for (trial, point, failure) in failed {
        let cell = recorded.header.plan.cells.iter().find(|cell| cell.id == trial.cell);
        let target = cell.map(|cell| cell.target.clone()).unwrap_or_default();
        let class = failure.class.to_string();
        let is_known = views.iter().any(|v| (&v.target, &v.class) == (&target, &class));
        views.push(FailureView {
            block: trial.block,
            probe: point.and_then(probe),
            cell: trial.cell.clone(),
            workload: cell.map(|cell| cell.workload.profile().into()).unwrap_or_default(),
            phase: point.map(|point| point.phase.clone()),
            target,
            class,
            reason: failure.reason().into(),
            log: failure.log().filter(|_| !is_known).map(last_lines),
        });
    }
    views
}

/// The last lines of a server's log, truncated to [`LOG_LINE_CHARS`] each.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.split(" | ").collect();
    let cut = |line: &&str| match line.char_indices().nth(LOG_LINE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => (*line).to_string(),
    };
    let last: Vec<String> = lines.iter().rev().take(LOG_LINES).rev().map(cut).collect();
    last.join(" | ")
}

/// Disturbances during the trials with points. Values that the host does not report are omitted.
pub(crate) fn noise(trials: &[Trial]) -> Vec<NoiseView> {
    let trials: Vec<&Trial> = trials.iter().filter(|trial| !trial.points.is_empty()).collect();
    let row = |name: &str, meaning: &str, text: fn(f64) -> String, values: Vec<f64>| {
        let worst = values.iter().copied().reduce(f64::max)?;
        Some(NoiseView {
            name: name.into(),
            median: text(median(values.into_iter())?),
            worst: text(worst),
            meaning: meaning.into(),
        })
    };
    let share = |name: &str, meaning: &str, read: fn(&Trial) -> Option<f64>| {
        row(name, meaning, show::percent, trials.iter().filter_map(|trial| read(trial)).collect())
    };
    [
        share(
            "stolen from the server",
            "time its threads waited for a CPU occupied by other processes",
            |t| shares(t).1,
        ),
        share(
            "stolen from the generator",
            "time its threads waited for a CPU occupied by other processes",
            |t| Some(shares(t).0),
        ),
        share("steal", "CPU time that the hypervisor gave to other virtual machines", |t| {
            Some(t.noise.steal_share)
        }),
        share("other processes", "CPU time used by neither generator nor server", |t| {
            Some(t.noise.other_cpu_share)
        })
        .map(|found| NoiseView { median: found.median + " of all CPUs", ..found }),
        share("run-queue wait", "time for which clients were runnable but had no CPU", |t| {
            Some(t.noise.run_delay_share)
        }),
        share("PSI cpu", "wall time in which some task waited for a CPU", |t| {
            t.noise.psi_cpu_some_share
        }),
        share("PSI io", "wall time in which some task waited for the disk", |t| {
            t.noise.psi_io_some_share
        }),
        share("PSI memory", "wall time in which some task waited for memory", |t| {
            t.noise.psi_memory_some_share
        }),
        row(
            "hiccup",
            "longest oversleep of a thread that repeatedly sleeps 1 ms",
            show::ns,
            trials.iter().map(|t| t.noise.hiccup_ns_max as f64).collect(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Notes the other processes that used the most CPU time, as it was not available to the
/// measurement.
fn busiest(recorded: &Recorded, notes: &mut Notes) {
    let mut used: BTreeMap<&str, u64> = BTreeMap::new();
    let all_ns: u64 = recorded.trials.iter().map(|t| t.took_ns).sum();
    for busy in recorded.trials.iter().flat_map(|t| &t.noise.busiest) {
        *used.entry(&busy.name).or_default() += busy.cpu_ns;
    }
    if all_ns < BUSY_SHOWN_FROM_NS {
        return;
    }
    let of_a_cpu = |ns: u64| ns as f64 / all_ns as f64;
    let mut used: Vec<(&str, u64)> = used.into_iter().collect();
    used.retain(|(_, ns)| of_a_cpu(*ns) >= BUSY_SHOWN_MIN);
    used.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let by_address = recorded.header.plan.targets.iter().any(|t| t.address.is_some());
    let shown: Vec<String> = used
        .iter()
        .take(BUSY_SHOWN_MAX)
        .map(|(name, ns)| {
            let may_be_measured = by_address
                && (SERVERS.contains(name)
                    || RedisCompatible::all().any(|server| server.program == *name));
            let remark = if may_be_measured { ", perhaps the measured one" } else { "" };
            format!("{name} ({} of one CPU{remark})", show::percent(of_a_cpu(*ns)))
        })
        .collect();
    if !shown.is_empty() {
        notes.add(format!("other processes on this machine: {}", shown.join(", ")));
    }
}

/// Notes the processes that occupied the CPUs of generator and server, if for a notable share of
/// the time.
fn disturbers(recorded: &Recorded, notes: &mut Notes) {
    let trials = || recorded.trials.iter();
    let worst = trials().map(|trial| shares(trial).0.max(shares(trial).1.unwrap_or(0.0)));
    let who = who(trials());
    if worst.reduce(f64::max).is_some_and(|share| share >= BUSY_SHOWN_MIN) && !who.is_empty() {
        notes.add(format!("other processes used the CPUs of generator and server{who}"));
    }
}

/// Notes on the whole run: A/A control, durability, fills, clock steps and other processes.
pub(crate) fn notes(recorded: &Recorded, comparisons: &[Comparison], notes: &mut Notes) {
    control(&recorded.header.plan, comparisons, notes);
    durability(recorded, notes);
    unlimited(&recorded.header.plan, notes);
    elsewhere(&recorded.header.plan, notes);
    cache::fills(&recorded.header.plan, notes);
    cache::lists(&recorded.header.plan, notes);
    clock_steps(recorded, notes);
    busiest(recorded, notes);
    disturbers(recorded, notes);
}

/// Notes that private servers run on another machine, and stores without a server do not.
fn elsewhere(plan: &Plan, notes: &mut Notes) {
    let Some(host) = &plan.places.servers_on else { return };
    let has_local = |target: &&PlannedTarget| target.products().iter().any(|p| !p.has_server());
    let local: Vec<&str> = plan.targets.iter().filter(has_local).map(|t| &*t.name).collect();
    let but = match (local.len(), plan.targets.len()) {
        (0, _) => "; times include the network".to_string(),
        (local, all) if local == all => return,
        _ => format!(
            "; their times include the network, those of {} do not: they keep files on this \
             machine",
            local.join(" and ")
        ),
    };
    notes.add(format!("private servers ran on {host}{but}"));
}

/// Notes servers at a URL beside targets whose memory is limited.
fn unlimited(plan: &Plan, notes: &mut Notes) {
    let is_limited = |target: &str| {
        let mut own = plan.cells.iter().filter(|cell| cell.target == target);
        own.any(|cell| cell.workload.memory().is_some())
    };
    if !plan.targets.iter().any(|target| is_limited(&target.name)) {
        return;
    }
    for target in plan.targets.iter().filter(|target| !is_limited(&target.name)) {
        if target.address.is_some() && target.product.has_server() {
            notes.add(format!(
                "memory of {}: what its owner gave the server; cachedyno limits only the servers \
                 that it starts",
                target.name
            ));
        }
    }
}

/// Notes the trials during which the wall clock was set, with the consequences.
fn clock_steps(recorded: &Recorded, notes: &mut Notes) {
    for trial in &recorded.trials {
        let Some(step_ms) = trial.clock_step_ms else { continue };
        let (sign, seconds) = (if step_ms < 0 { "-" } else { "+" }, step_ms.unsigned_abs() / 1000);
        let seconds = commas(seconds);
        notes.add(format!(
            "the wall clock was set by {sign}{seconds} s during trial {} of block {}, or the \
             machine slept: times of day in its record are off by that; measurements use a clock \
             that cannot be set, but data that expires by the time of day may have expired",
            trial.cell,
            trial.block + 1
        ));
    }
}

/// What a run that was killed or could not clean up may have left in stores that it did not start,
/// with the command that removes it.
pub(crate) fn left_behind(recorded: &Recorded) -> Vec<String> {
    let header = &recorded.header;
    let cells = &header.plan.cells;
    let failed = || recorded.trials.iter().filter_map(|t| Some((t, t.not_removed.as_ref()?)));
    let described = |(trial, failure): (&Trial, &Failure)| {
        format!("{} in block {}: {failure}", trial.cell, trial.block + 1)
    };
    let mut texts: Vec<String> = failed().map(described).collect();
    for target in &header.plan.targets {
        let is_left =
            failed().any(|(t, _)| cells.iter().any(|c| c.id == t.cell && c.target == target.name));
        let why = match recorded.seal {
            // The run removes its data when it ends.
            None if recorded.running => continue,
            None => KILLED,
            Some(_) if is_left => "could not remove all that it wrote",
            Some(_) => continue,
        };
        texts.extend(leftovers(header, target, why));
    }
    texts
}

/// Notes how each target keeps data through a crash, according to its settings, because the
/// compared stores may give different guarantees.
fn durability(recorded: &Recorded, notes: &mut Notes) {
    let cells = &recorded.header.plan.cells;
    let is_saved = |target: &str| {
        let mut own = cells.iter().filter(|cell| cell.target == target);
        own.any(|cell| cell.workload.requests(BackgroundWrite::Save))
    };
    for planned in &recorded.header.plan.targets {
        let state = recorded.state(&planned.name);
        if planned.control_of.is_some() || state.is_some_and(|s| s.unavailable.is_some()) {
            continue;
        }
        for product in planned.products() {
            let setting = |name: &str| match planned.backend {
                Some(_) => setting(planned, state, &format!("{}.{name}", product.name())),
                None => setting(planned, state, name),
            };
            let text = match product {
                Product::Redis => redis_durability(setting, is_saved(&planned.name)),
                Product::Mysql => mysql_durability(setting),
                Product::Postgres => postgres_durability(setting),
                Product::Sqlite => sqlite_durability(setting),
                Product::Files => files_durability(setting),
                Product::Disk => None,
                Product::Memcached => {
                    Some("nothing is stored on disk; a crash loses every key".to_string())
                }
            };
            if let Some(text) = text {
                let part = if planned.products().len() > 1 { product.name() } else { "" };
                let name = format!("{} {part}", planned.name);
                notes.add(format!("durability of {}: {text}", name.trim_end()));
            }
        }
    }
}

/// A setting as the server reports it, else as given; `-` and `_` in its name are equivalent.
fn setting<'a>(
    planned: &'a PlannedTarget,
    state: Option<&'a TargetState>,
    name: &str,
) -> Option<&'a str> {
    let same = |key: &str| key.replace('-', "_").eq_ignore_ascii_case(name);
    let reported = state.into_iter().flat_map(|s| &s.configuration).find(|(k, _)| same(k));
    let given = planned.settings.iter().find(|(k, _)| same(k));
    reported.map(|(_, v)| v.as_str()).or(given.map(|(_, v)| v.as_str()))
}

/// `is_saved` is true if the run itself requests a snapshot.
fn redis_durability<'a>(
    setting: impl Fn(&str) -> Option<&'a str>,
    is_saved: bool,
) -> Option<String> {
    let append = setting("appendonly")?.eq_ignore_ascii_case("yes");
    if append {
        let sync = setting("appendfsync").unwrap_or("everysec");
        return Some(format!("every change goes to a log on disk (appendfsync {sync})"));
    }
    match setting("save").map(|s| s.trim_matches(['"', '\''])) {
        Some("") if is_saved => Some(
            "snapshots when the run requests one (appendonly no, save empty); a crash loses later \
             changes"
                .into(),
        ),
        Some("") => {
            let has_replicas = setting("replicas").is_some_and(|count| count != "0");
            let lost = if has_replicas { "what its replicas do not have" } else { "everything" };
            Some(format!(
                "nothing is stored on disk (appendonly no, save empty); a crash loses {lost}"
            ))
        }
        Some(points) => Some(format!(
            "periodic RDB snapshots (save {points}); a crash loses changes since the last one"
        )),
        None => Some("no log on disk (appendonly no)".into()),
    }
}

fn mysql_durability<'a>(setting: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let flush = setting("innodb_flush_log_at_trx_commit")?;
    let kept = match flush {
        "1" => "each commit is flushed to disk",
        "2" => "each commit is written, but flushed once a second",
        "0" => "commits are written and flushed once a second",
        _ => "commits are flushed as configured",
    };
    let mut text = format!("{kept} (innodb_flush_log_at_trx_commit {flush}");
    if let Some(binary_log) = setting("sync_binlog").filter(|_| on(setting("log_bin"))) {
        text += &format!(", sync_binlog {binary_log}");
    }
    Some(text + ")")
}

fn postgres_durability<'a>(setting: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let (fsync, commit) = (setting("fsync")?, setting("synchronous_commit")?);
    let kept = match (fsync, commit) {
        ("off", _) => "commits are flushed when the operating system decides",
        (_, "off") => "commits are flushed within three times wal_writer_delay",
        _ => "each commit is flushed to disk",
    };
    Some(format!("{kept} (fsync {fsync}, synchronous_commit {commit})"))
}

fn sqlite_durability<'a>(setting: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let (mode, synchronous) = (setting("journal_mode")?, setting("synchronous")?);
    let kept = match synchronous {
        "off" => "commits are flushed when the operating system decides",
        "normal" if mode == "wal" => "commits are flushed at checkpoints",
        _ => "each commit is flushed to disk",
    };
    Some(format!("{kept} (journal_mode {mode}, synchronous {synchronous})"))
}

fn on(value: Option<&str>) -> bool {
    value.is_some_and(|v| v.eq_ignore_ascii_case("on") || v == "1")
}

fn files_durability<'a>(setting: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let sync = setting("fsync")?;
    Some(match sync {
        "no" | "off" | "0" | "false" => {
            "files are written to the page cache and flushed when the operating system decides (no \
             fsync)"
                .into()
        }
        _ => format!("files are flushed to disk (fsync {sync})"),
    })
}

/// Notes the result of the A/A control: the same target measured twice must not differ.
fn control(plan: &Plan, comparisons: &[Comparison], notes: &mut Notes) {
    for target in &plan.targets {
        let Some(original) = &target.control_of else { continue };
        let own: Vec<&Comparison> = comparisons
            .iter()
            .filter(|c| [&c.a, &c.b].contains(&&target.name) && [&c.a, &c.b].contains(&original))
            .collect();
        let false_alarms =
            own.iter().filter(|c| matches!(c.verdict, Verdict::Faster | Verdict::Slower)).count();
        let text = match (own.len(), false_alarms) {
            (0, _) => format!("A/A control: {original} was not measured twice in the same block"),
            (n, 0) => format!(
                "A/A control: {original} measured twice is nowhere faster or slower than itself \
                 ({n} comparisons), as expected"
            ),
            (n, false_alarms) => format!(
                "A/A control: {original} measured twice differs from itself in {false_alarms} of \
                 {n} comparisons; distrust differences of that size here"
            ),
        };
        notes.add(text);
    }
}
