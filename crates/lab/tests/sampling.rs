//! Samples of server and generator while real servers are measured.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests fail like tests")]

mod common;

use cachedyno_lab::{Sinks, run, unix_ms};
use common::{is_installed, setup};
use model::{
    Choices, Conditions, ErrorClass, Event, Header, Load, MemoryPlan, Plan, Sample, Scale, Sink,
    SinkError, Stop, Study, TargetChoice, ThreadCpu, Trial, Workload,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

const SESSIONS: (&str, &str) = ("sessions", include_str!("../../../studies/sessions.toml"));
const CACHES: (&str, &str) = ("app-cache", include_str!("../../../studies/app-cache.toml"));
const RAMP: (&str, &str) = ("ramp", include_str!("../../../studies/ramp.toml"));

fn plan(study: (&str, &str), target: &str, sets: &[(&str, &str)]) -> Plan {
    let always = [("clients", "2"), ("blocks_min", "1"), ("blocks_max", "1"), ("warmup_ms", "50")];
    let sets = always.iter().chain(sets);
    let sets = sets.map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect();
    let choices = Choices {
        sets,
        targets: vec![TargetChoice::parse(target).unwrap()],
        ..Choices::new(Scale::Quick, 1)
    };
    Study::parse(study.0, study.1).unwrap().plan(&choices).unwrap()
}

/// Callback for each live sample.
type OnSample<'a> = Box<dyn FnMut(&Sample) + 'a>;

#[derive(Default)]
struct Heard<'a> {
    on_sample: Option<OnSample<'a>>,
    live: Vec<(String, Sample)>,
    samples: BTreeMap<(u32, String), Vec<Sample>>,
    trials: Vec<Trial>,
}

impl Sink for Heard<'_> {
    fn name(&self) -> &'static str {
        "heard"
    }

    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::Sampled { cell, sample } => {
                if let Some(on_sample) = &mut self.on_sample {
                    on_sample(sample);
                }
                self.live.push((cell.clone(), sample.as_ref().clone()));
            }
            Event::Samples { block, cell, samples } => {
                self.samples.insert((*block, cell.clone()), samples.clone());
            }
            Event::TrialEnded(trial) => self.trials.push(trial.as_ref().clone()),
            _ => {}
        }
        Ok(())
    }
}

impl Heard<'_> {
    /// Runs a plan on private servers.
    fn run(&mut self, plan: Plan) {
        let disk = tempfile::tempdir().unwrap();
        let setup = setup(&disk);
        let header = Header {
            format: model::record::RECORD_FORMAT,
            run: "5a3b1e00".into(),
            tool: "test".into(),
            command: Vec::new(),
            started_unix_ms: unix_ms(),
            plan,
            conditions: Conditions::default(),
            host_mark: None,
            null_rates: Vec::new(),
            calibration: None,
        };
        let mut sinks = Sinks::new();
        sinks.add(self);
        run(header, &setup, Vec::new(), &mut sinks, &AtomicBool::new(false));
    }

    /// The only trial and its samples.
    fn only(&self) -> (&Trial, &[Sample]) {
        let [trial] = &self.trials[..] else { panic!("{:?}", self.trials) };
        let samples = &self.samples[&(trial.block, trial.cell.clone())];
        assert!(samples.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
        assert!(samples.iter().all(|sample| sample.at_ns < trial.took_ns));
        (trial, samples)
    }
}

/// The process that has these threads: its id is that of its first thread.
fn pid(threads: &[ThreadCpu]) -> Pid {
    let is_leader = |id: u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.contains(&format!("\nTgid:\t{id}\n"))
    };
    let leader = threads.iter().find(|thread| is_leader(thread.id)).unwrap();
    Pid::from_raw(leader.id.cast_signed())
}

fn server_cpu_ns(sample: &Sample) -> u64 {
    sample.server.as_ref().unwrap().cpu_ns
}

#[test]
fn a_trial_is_sampled_from_its_beginning_to_its_end() {
    if !is_installed("redis-server") {
        return;
    }
    let mut heard = Heard::default();
    heard.run(plan(SESSIONS, "redis", &[("measure_ms", "400"), ("sessions", "500")]));
    let (trial, samples) = heard.only();
    assert_eq!(trial.failure, None);
    assert!(samples.len() >= 8, "{} samples", samples.len());
    // Live samples are kept.
    assert!(!heard.live.is_empty());
    for (cell, live) in &heard.live {
        assert_eq!(*cell, trial.cell);
        let kept = samples.iter().find(|sample| sample.at_ns == live.at_ns).unwrap();
        assert_eq!(kept.store, live.store);
    }
    // Phases follow each other on the clock of the samples.
    let (first, last) = (&samples[0], samples.last().unwrap());
    let mut ended_ns = first.at_ns;
    for phase in &trial.points {
        assert!(phase.begun_ns >= ended_ns, "{} begins at {}", phase.phase, phase.begun_ns);
        ended_ns = phase.begun_ns + phase.length_ns;
    }
    assert!(ended_ns <= last.at_ns);
    // The samples cover the server's CPU time that the engine counted in the phases.
    let in_phases: u64 = trial.points.iter().filter_map(|phase| phase.server_cpu_ns).sum();
    assert!(server_cpu_ns(last) - server_cpu_ns(first) >= in_phases, "{in_phases}");
    for pair in samples.windows(2) {
        assert!(server_cpu_ns(&pair[1]) >= server_cpu_ns(&pair[0]));
        assert!(pair[1].generator.cpu_ns >= pair[0].generator.cpu_ns);
        let switches = |sample: &Sample| sample.generator.voluntary_switches;
        assert!(switches(&pair[1]) >= switches(&pair[0]));
    }
    let server = last.server.as_ref().unwrap();
    assert!(server.threads.iter().any(|t| t.name.starts_with("redis-server")), "{server:?}");
    assert!(server.resident_bytes > 1 << 20, "{server:?}");
    assert!(last.network.is_none());
    let done: u64 = trial.points.iter().map(|p| p.operations.last().unwrap().counts.total()).sum();
    let counters: Vec<_> = samples.iter().filter_map(|sample| sample.store.as_ref()).collect();
    let commands = counters.last().unwrap().commands.unwrap() - counters[0].commands.unwrap();
    assert!(commands >= done, "{commands} commands, {done} operations");
    assert!(counters.last().unwrap().keys >= Some(500), "{counters:?}");
}

#[test]
fn stores_without_a_server_show_the_generator_alone() {
    let mut heard = Heard::default();
    heard.run(plan(SESSIONS, "files", &[("measure_ms", "200"), ("sessions", "100")]));
    let (trial, samples) = heard.only();
    assert_eq!(trial.failure, None);
    assert!(samples.iter().all(|sample| sample.server.is_none() && sample.store.is_none()));
    let (first, last) = (&samples[0].generator, &samples.last().unwrap().generator);
    let in_phases: u64 = trial.points.iter().map(|phase| phase.generator_cpu_ns).sum();
    assert!(last.cpu_ns - first.cpu_ns >= in_phases, "{in_phases}");
}

#[test]
fn a_backend_of_two_servers_is_sampled_as_one() {
    if !["redis-server", "memcached"].into_iter().all(is_installed) {
        return;
    }
    let sets = [("profile", "weighted"), ("measure_ms", "200"), ("keys", "300"), ("tags", "50")];
    let mut heard = Heard::default();
    heard.run(plan(CACHES, "two-levels-redis", &sets));
    let (trial, samples) = heard.only();
    assert_eq!(trial.failure, None);
    let server = samples.last().unwrap().server.as_ref().unwrap();
    let names: Vec<&str> = server.threads.iter().map(|t| t.name.as_str()).collect();
    for expected in ["redis-server", "memcached"] {
        assert!(names.iter().any(|name| name.starts_with(expected)), "{names:?}");
    }
    let counters = samples.iter().filter_map(|sample| sample.store.as_ref()).next_back().unwrap();
    // Only Redis reports fragmentation, and only memcached has a limit.
    assert!(counters.fragmentation.is_some() && counters.limit_bytes.is_some(), "{counters:?}");
    assert!(counters.keys > Some(0), "{counters:?}");
}

#[test]
fn a_stopped_server_does_not_stop_the_samples() {
    if !is_installed("redis-server") {
        return;
    }
    let mut is_stopped = false;
    let mut heard = Heard {
        on_sample: Some(Box::new(|sample: &Sample| {
            if is_stopped || sample.store.is_none() {
                return;
            }
            let server = pid(&sample.server.as_ref().unwrap().threads);
            kill(server, Signal::SIGSTOP).unwrap();
            is_stopped = true;
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(1500));
                kill(server, Signal::SIGCONT).unwrap();
            });
        })),
        ..Heard::default()
    };
    heard.run(plan(SESSIONS, "redis", &[("measure_ms", "900"), ("sessions", "200")]));
    let (trial, samples) = heard.only();
    assert_eq!(trial.failure, None);
    // The longest series of samples in which the server used no CPU time.
    let still = samples.chunk_by(|a, b| server_cpu_ns(a) == server_cpu_ns(b));
    let still = still.max_by_key(|run| run.len()).unwrap();
    assert!(still.len() >= 5, "{} samples", still.len());
    // It reported nothing while it was stopped, and reported again afterwards.
    assert!(still.iter().filter(|sample| sample.store.is_some()).count() <= 2);
    assert!(samples.last().unwrap().store.is_some());
}

#[test]
fn a_server_that_dies_ends_its_samples_and_no_others() {
    if !is_installed("redis-server") {
        return;
    }
    let mut is_dead = false;
    let mut heard = Heard {
        on_sample: Some(Box::new(|sample: &Sample| {
            let Some(server) = sample.server.as_ref().filter(|_| !is_dead) else { return };
            kill(pid(&server.threads), Signal::SIGKILL).unwrap();
            is_dead = true;
        })),
        ..Heard::default()
    };
    heard.run(plan(SESSIONS, "redis", &[("measure_ms", "900"), ("sessions", "200")]));
    let (trial, samples) = heard.only();
    assert!(trial.failure.as_ref().unwrap().message.contains("the server died"), "{trial:?}");
    assert!(samples[0].server.is_some());
    let last = samples.last().unwrap();
    assert!(last.server.is_none() && last.store.is_none(), "{last:?}");
    assert!(last.generator.cpu_ns > 0);
}

#[test]
fn a_store_beyond_its_memory_swaps_and_is_killed_without_swap() {
    if !is_installed("redis-server") {
        return;
    }
    let sets = [("keys", "8000"), ("value_bytes", "16384"), ("measure_ms", "300")];
    let mut plan = plan(RAMP, "redis", &sets);
    let mut cell = plan.cells.remove(0);
    cell.load = Load::closed(4);
    for (id, swap_bytes) in [("swap", 256 << 20), ("none", 0)] {
        let Workload::Kv(kv) = &mut cell.workload else { panic!("{:?}", cell.workload) };
        kv.filled_share = 1.0;
        kv.phases.truncate(1);
        kv.memory = Some(MemoryPlan { limit_bytes: 64 << 20, swap_bytes });
        plan.cells.insert(0, model::Cell { id: id.into(), ..cell.clone() });
    }
    plan.cells.truncate(2);
    let mut heard = Heard::default();
    heard.run(plan);
    if heard.trials.is_empty() {
        println!("skipped: no control group with a memory limit can be made here");
        return;
    }
    let trial = |id: &str| heard.trials.iter().find(|trial| trial.cell == id).unwrap();
    let failure = trial("none").failure.as_ref().unwrap();
    assert_eq!(failure.class, ErrorClass::Killed);
    assert!(failure.message.contains("used up its memory_limit of 64 MiB and died"), "{failure}");
    let swapping = trial("swap");
    if let Some(failure) = &swapping.failure {
        assert!(failure.message.contains("cannot swap to"), "{failure}");
        println!("skipped in part: {failure}");
        return;
    }
    let memory = swapping.memory.unwrap();
    assert_eq!(memory.oom_kills, 0);
    assert!(memory.swap.unwrap().used_bytes > 50 << 20, "{memory:?}");
    let samples = &heard.samples[&(0, "swap".into())];
    let swapped = |sample: &Sample| sample.server.as_ref().map(|server| server.swapped_bytes);
    assert!(samples.iter().filter_map(swapped).max() > Some(50 << 20));
}

/// Stops the server of the first trial a second after its clients began, for good.
fn stopping<'a>() -> Heard<'a> {
    let mut since = None;
    let mut is_stopped = false;
    Heard {
        on_sample: Some(Box::new(move |sample: &Sample| {
            let filled = sample.store.as_ref().and_then(|store| store.keys) > Some(0);
            let Some(server) = sample.server.as_ref().filter(|_| filled && !is_stopped) else {
                return;
            };
            if sample.at_ns > *since.get_or_insert(sample.at_ns) + 1_000_000_000 {
                kill(pid(&server.threads), Signal::SIGSTOP).unwrap();
                is_stopped = true;
            }
        })),
        ..Heard::default()
    }
}

#[test]
fn a_stalled_store_ends_its_cell_with_partial_figures() {
    if !is_installed("redis-server") {
        return;
    }
    for study in [RAMP, SESSIONS] {
        let sets = [("measure_ms", "20000")];
        let own = if study == RAMP { ("keys", "500") } else { ("sessions", "200") };
        let mut plan = plan(study, "redis", &[sets[0], own]);
        let mut cell = plan.cells.remove(0);
        match &mut cell.workload {
            Workload::Kv(kv) => {
                (kv.filled_share, kv.follows) = (1.0, false);
                kv.phases.truncate(1);
                kv.phases[0].stop = Stop::AfterNs(20_000_000_000);
                cell.load = Load::closed(4);
            }
            Workload::Sessions(sessions) => {
                sessions.phases.truncate(1);
                sessions.phases[0].stop = Stop::AfterNs(20_000_000_000);
            }
            other => panic!("{other:?}"),
        }
        let mut next = model::Cell { id: "next".into(), ..cell.clone() };
        if let Workload::Kv(kv) = &mut next.workload {
            kv.phases[0].stop = Stop::AfterNs(100_000_000);
        }
        if let Workload::Sessions(sessions) = &mut next.workload {
            sessions.phases[0].stop = Stop::AfterNs(100_000_000);
        }
        (plan.cells, plan.seed) = (vec![cell, next], 2);
        (plan.stall_ns, plan.timeout_ns) = (500_000_000, 2_000_000_000);
        let mut heard = stopping();
        heard.run(plan);
        assert_eq!(heard.trials.len(), 2);
        let stalled = heard.trials.iter().find(|trial| trial.cell != "next").unwrap();
        assert_eq!((&stalled.failure, stalled.points.len()), (&None, 1), "{stalled:?}");
        let point = &stalled.points[0];
        let failure = point.failure.as_ref().unwrap();
        assert_eq!(failure.class, ErrorClass::Stalled);
        assert!(failure.message.starts_with("no answer for 500"), "{failure}");
        assert!(point.whole().unwrap().counts.ok > 100, "{point:?}");
        assert!((1_000_000_000..12_000_000_000).contains(&point.length_ns), "{point:?}");
        let next = heard.trials.iter().find(|trial| trial.cell == "next").unwrap();
        assert!(next.failure.is_none() && next.points[0].failure.is_none(), "{next:?}");
    }
}

#[test]
fn a_store_killed_for_memory_while_it_is_measured_keeps_its_figures() {
    if !is_installed("redis-server") {
        return;
    }
    let mut plan = plan(RAMP, "redis", &[("keys", "8000"), ("value_bytes", "16384")]);
    let mut cell = plan.cells.remove(0);
    cell.load = Load::closed(4);
    for (id, filled_share) in [("killed", 0.2), ("small", 0.0)] {
        let Workload::Kv(kv) = &mut cell.workload else { panic!("{:?}", cell.workload) };
        (kv.filled_share, kv.follows) = (filled_share, false);
        kv.phases.truncate(1);
        kv.phases[0].mix = [("set".to_string(), 1.0)].into();
        kv.phases[0].stop = Stop::AfterNs(30_000_000_000);
        kv.memory = Some(MemoryPlan { limit_bytes: 64 << 20, swap_bytes: 0 });
        if id == "small" {
            kv.keys = 100;
            kv.phases[0].stop = Stop::AfterNs(100_000_000);
        }
        plan.cells.push(model::Cell { id: id.into(), ..cell.clone() });
    }
    plan.cells.retain(|cell| ["killed", "small"].contains(&&*cell.id));
    let mut heard = Heard::default();
    heard.run(plan);
    if heard.trials.is_empty() {
        println!("skipped: no control group with a memory limit can be made here");
        return;
    }
    let trial = |id: &str| heard.trials.iter().find(|trial| trial.cell == id).unwrap();
    let killed = trial("killed");
    assert_eq!(killed.failure, None);
    let point = &killed.points[0];
    let failure = point.failure.as_ref().unwrap();
    assert_eq!(failure.class, ErrorClass::Killed);
    assert!(failure.message.contains("used up its memory_limit of 64 MiB and died"), "{failure}");
    assert!(point.whole().unwrap().counts.ok > 100 && point.length_ns < 20_000_000_000);
    assert!(killed.memory.unwrap().oom_kills >= 1);
    assert!(trial("small").points[0].failure.is_none());
}

#[test]
fn a_limit_below_what_a_server_needs_to_start_fails_only_its_cell() {
    if !is_installed("redis-server") {
        return;
    }
    let mut plan = plan(RAMP, "redis", &[("keys", "500"), ("measure_ms", "200")]);
    let mut cell = plan.cells.remove(0);
    cell.load = Load::closed(2);
    for (id, limit_bytes) in [("tiny", 1 << 20), ("usual", 64 << 20)] {
        let Workload::Kv(kv) = &mut cell.workload else { panic!("{:?}", cell.workload) };
        kv.phases.truncate(1);
        kv.phases[0].stop = Stop::AfterNs(200_000_000);
        kv.memory = Some(MemoryPlan { limit_bytes, swap_bytes: 0 });
        plan.cells.push(model::Cell { id: id.into(), ..cell.clone() });
    }
    // The check starts a server for the first cell.
    plan.cells.retain(|cell| ["tiny", "usual"].contains(&&*cell.id));
    plan.cells.reverse();
    let mut heard = Heard::default();
    heard.run(plan);
    if heard.trials.is_empty() {
        println!("skipped: no control group with a memory limit can be made here");
        return;
    }
    let trial = |id: &str| heard.trials.iter().find(|trial| trial.cell == id).unwrap();
    let failure = trial("tiny").failure.as_ref().unwrap();
    assert_eq!(failure.class, ErrorClass::Killed, "{failure}");
    assert!(failure.message.contains("memory_limit of 1 MiB exceeded"), "{failure}");
    assert!(trial("usual").failure.is_none() && trial("usual").points.len() == 1);
}
