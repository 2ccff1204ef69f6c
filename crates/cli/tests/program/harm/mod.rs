//! Repeatedly runs every command that can access foreign data and ends it at a random time in a
//! random way. Afterwards all foreign keys, rows and files are unchanged, and no leftovers
//! remain.
//!
//! `HARM_RUNS` sets the number of runs (default: as many as fit into ten seconds) and
//! `HARM_SEED` the seed.
//!
//! - `foreign`: the stores with foreign data, and checks that it is unchanged.
//! - `cases`: the commands.

mod cases;
mod foreign;

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stats::SplitMix64;

use self::cases::{CASES, HarmCase};
use self::foreign::Foreign;
use super::common::{MariadbServer, Place, Started, child_with, installed};

/// Time limit for all runs if their number is not given.
const SHORT: Duration = Duration::from_secs(10);
/// Maximum time until a run is interrupted, milliseconds.
const LONGEST_MS: usize = 3_000;
/// Time limit for an interrupted run to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a run is ended.
#[derive(Clone, Copy, Debug)]
enum End {
    /// By Ctrl-C.
    Interrupt,
    /// By Ctrl-C twice.
    InterruptTwice,
    /// By SIGTERM.
    Terminate,
    /// By SIGKILL.
    KillProgram,
    /// The guard by SIGKILL, then the program by Ctrl-C.
    KillGuard,
    /// Program and guard by SIGKILL, as when a container is stopped.
    KillBoth,
}

const ENDS: [End; 6] = [
    End::Interrupt,
    End::InterruptTwice,
    End::Terminate,
    End::KillProgram,
    End::KillGuard,
    End::KillBoth,
];

/// Findings of a campaign.
#[derive(Debug, Default)]
struct Tally {
    runs: u32,
    interrupted: u32,
    lost: u64,
    faults: Vec<String>,
}

#[test]
fn no_foreign_data_is_lost_and_no_leftovers_remain() {
    let programs = ["redis-server", "redis-cli", "memcached", "mariadbd", "mariadb", "setpriv"];
    if !installed(&programs) {
        return;
    }
    let number = |name: &str| env::var(name).ok().map(|n| n.parse::<u64>().unwrap());
    let (runs, seed) = (number("HARM_RUNS"), number("HARM_SEED").unwrap_or(1));
    let campaign = Campaign { place: Place::new(), foreign: Foreign::new(runs.is_some()) };
    let mut random = SplitMix64::new(seed);
    let (started, mut tally) = (Instant::now(), Tally::default());
    while runs.map_or(started.elapsed() < SHORT, |runs| u64::from(tally.runs) < runs) {
        // Commands take turns; the way to end them is random.
        let case = &CASES[tally.runs as usize % CASES.len()];
        campaign.run(case, &mut random, &mut tally);
    }
    let lost = campaign.foreign.lost();
    tally.lost += lost;
    let Tally { runs, interrupted, lost, faults } = &tally;
    println!(
        "{runs} runs with seed {seed}, {interrupted} of them interrupted: {lost} foreign keys, rows \
         and files lost, {} other faults",
        faults.len()
    );
    assert!(*lost == 0 && faults.is_empty(), "{tally:#?}");
}

struct Campaign {
    place: Place,
    foreign: Foreign,
}

impl Campaign {
    fn run(&self, case: &HarmCase, random: &mut SplitMix64, tally: &mut Tally) {
        let (end, after_ms) = (ENDS[random.index(ENDS.len())], random.index(LONGEST_MS) as u64);
        let mut run = Started::new(self.command(&(case.arguments)(&self.foreign)));
        let started = Instant::now();
        while run.is_running() && started.elapsed() < Duration::from_millis(after_ms) {
            std::thread::sleep(Duration::from_millis(5));
        }
        tally.runs += 1;
        let was_running = run.is_running();
        if was_running {
            tally.interrupted += 1;
            interrupt(&run, end);
        }
        let what =
            format!("run {}: {} ended after {after_ms} ms by {end:?}", tally.runs, case.name);
        // Shown if it does not end.
        println!("{what}");
        let finished = run.finish_within(PATIENCE);
        let is_expected = match finished.code {
            // Killed by a signal.
            None => was_running,
            // A run without its guard starts no server.
            Some(3) if was_running && matches!(end, End::KillGuard) => true,
            Some(code) => case.codes.contains(&code) || (was_running && code == 130),
        };
        if !is_expected || finished.stderr.contains("panicked") {
            tally.faults.push(format!("{what}: {finished:#?}"));
        }
        self.clean_host(&what, tally);
        self.clean_stores(&what, case, tally);
        let lost = self.foreign.lost_in(case.store);
        if lost > 0 {
            tally.faults.push(format!("{what}: {lost} foreign keys, rows or files are lost"));
        }
        tally.lost += lost;
        for left in self.foreign.left_in(case.store) {
            tally.faults.push(format!("{what}: left in the store: {left}"));
        }
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = self.place.command();
        command.args(arguments).env("CACHEDYNO_PASSWORD_MY", MariadbServer::PASSWORD);
        command
    }

    /// Runs `doctor --clean` and records leftovers on this machine that it did not remove.
    fn clean_host(&self, what: &str, tally: &mut Tally) {
        let disks = [self.place.disk(), self.foreign.directory()];
        let is_ours = |left: &String| !left.ends_with("/lock");
        // A surviving guard removes leftovers first.
        let started = Instant::now();
        while self.place.has_processes() && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        for disk in &disks {
            let mut doctor = self.place.command();
            doctor.args(["doctor", "--clean", "--disk"]).arg(disk);
            let finished = Place::finish(doctor);
            if finished.code != Some(0) {
                tally.faults.push(format!("{what}: doctor --clean failed: {finished:#?}"));
            }
        }
        for left in self.place.left().into_iter().filter(is_ours) {
            tally.faults.push(format!("{what}: left on this machine: {left}"));
        }
    }

    /// Removes the leftovers of a killed run in an existing store, with the command that `show`
    /// prints.
    fn clean_stores(&self, what: &str, case: &HarmCase, tally: &mut Tally) {
        let Some(record) = self.newest() else { return };
        let mut show = self.place.command();
        show.args(["show", &record, "--format", "json"]);
        let shown = Place::finish(show);
        if !case.keeps_record || shown.stdout.is_empty() {
            return;
        }
        let summary = shown.json();
        let notes = summary["footnotes"].as_array().cloned().unwrap_or_default();
        let notes = notes.iter().filter_map(|note| note.as_str());
        for note in notes.filter(|note| note.contains("may have left")) {
            let Some(command) = note.split('`').find(|part| part.starts_with("cachedyno clean"))
            else {
                tally.faults.push(format!("{what}: no command that removes it in: {note}"));
                continue;
            };
            let mut shell = self.place.command_by("sh", &["-c", command]);
            let program = assert_cmd::cargo::cargo_bin!("cachedyno");
            let path = env::var("PATH").unwrap_or_default();
            shell.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
            shell.env("CACHEDYNO_PASSWORD_MY", MariadbServer::PASSWORD);
            let cleaned = Place::finish(shell);
            if cleaned.code != Some(0) {
                tally.faults.push(format!("{what}: `{command}`: {cleaned:#?}"));
            }
        }
    }

    /// The newest record.
    fn newest(&self) -> Option<String> {
        let records = std::fs::read_dir(self.place.path().join("cachedyno-records")).ok()?;
        let records = records.filter_map(|e| e.ok().filter(|e| e.path().is_dir()));
        let newest = records.max_by_key(|e| e.metadata().and_then(|m| m.created()).ok());
        newest.map(|entry| entry.path().display().to_string())
    }
}

fn interrupt(run: &Started, end: End) {
    let program = Pid::from_raw(run.pid().cast_signed());
    let guard = child_with(run.pid(), "rig-guard").map(|pid| Pid::from_raw(pid.cast_signed()));
    let send = |pid: Pid, signal| {
        // It may already have ended.
        let _ = kill(pid, signal);
    };
    match end {
        End::Interrupt => send(program, Signal::SIGINT),
        End::InterruptTwice => {
            send(program, Signal::SIGINT);
            std::thread::sleep(Duration::from_millis(30));
            send(program, Signal::SIGINT);
        }
        End::Terminate => send(program, Signal::SIGTERM),
        End::KillProgram => send(program, Signal::SIGKILL),
        End::KillGuard => {
            if let Some(guard) = guard {
                send(guard, Signal::SIGKILL);
            }
            send(program, Signal::SIGINT);
        }
        End::KillBoth => {
            // Stop both first, so that neither notices the other's death.
            let both = [Some(program), guard];
            for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
                both.into_iter().flatten().for_each(|pid| send(pid, signal));
            }
        }
    }
}
