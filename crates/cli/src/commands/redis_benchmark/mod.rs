//! `cachedyno redis-benchmark …`: a drop-in replacement for redis-benchmark, with the same flags,
//! tests and output.
//!
//! Scripts that call redis-benchmark run unchanged: standard output has the original's format.
//! Corrected figures and warnings go to standard error.
//!
//! - [`arguments`], [`uri`]: the command line.
//! - [`catalogue`], [`numbers`]: the requests of each test.
//! - [`server`]: connections and server configuration; [`existing`]: keys that already exist.
//! - [`offering`]: runs a test on the engine; [`workers`]: several processes that run it; [`idle`]:
//!   idle connections.
//! - [`distribution`], [`output`], [`progress`]: standard output; [`notes`]: standard error.

mod arguments;
mod catalogue;
mod distribution;
mod error;
mod existing;
mod idle;
mod notes;
mod numbers;
mod offering;
mod output;
mod progress;
mod server;
mod uri;
mod workers;

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io::Read as _;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::Point;

use self::arguments::{Invocation, Options, Style};
use self::catalogue::Test;
use self::distribution::Latencies;
use self::notes::CorrectedFigures;
use self::offering::{Measured, TestRunner};
use self::output::{ServerInfo, TestResult};
use self::progress::ProgressPrinter;
use self::server::Deployment;
use crate::exit::{CliError, DONE, FAILED, INTERRUPTED};
use crate::output::{print, print_with_carriage_returns};
use crate::random::random;
use crate::secrets;
use crate::signals::watch_signals;
use crate::studies::TOOL_VERSION;

/// Newest version of redis-benchmark whose flags, tests and output are supported.
const ORIGINAL_VERSION: &str = "8.0.0";
/// Name of the subcommand.
pub(crate) const COMMAND: &str = "redis-benchmark";

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode, CliError> {
    hide_password(arguments)?;
    let invocation = arguments::parse(arguments).map_err(|e| CliError::failed(e.to_string()))?;
    let mut options = match invocation {
        Invocation::Help => {
            print(include_str!("help.txt"))?;
            return Ok(ExitCode::from(DONE));
        }
        Invocation::Version => {
            print(&format!("redis-benchmark {ORIGINAL_VERSION} (cachedyno {TOOL_VERSION})\n"))?;
            return Ok(ExitCode::from(DONE));
        }
        Invocation::Run(options) => options,
    };
    let load = &options.load;
    let at_once = (if options.is_idle { 0 } else { load.clients }, load.pipeline);
    crate::preflight::in_flight(at_once, load.requests, options.data.bytes)
        .map_err(CliError::failed)?;
    // A cluster decides later on the number of threads that is not given.
    workers::gathering(&options, load.threads.max(1))?;
    if let Some(password) = secrets::carried(COMMAND) {
        options.server.password = Some(password);
    }
    Run::new(&options)?.carry_out()
}

/// Flags with their placeholder and help, as `help.txt` lists them.
pub(crate) fn flags() -> Vec<clap::Arg> {
    let is_flag = |line: &&str| line.starts_with("  -");
    let mut flags: Vec<clap::Arg> = Vec::new();
    for line in include_str!("help.txt").lines().filter(is_flag) {
        let (usage, help) = line.trim_start().split_once("  ").unwrap_or((line.trim(), ""));
        let mut words = usage.split([' ', ',']).filter(|word| !word.is_empty()).peekable();
        while let Some(flag) = words.next() {
            let value = words.next_if(|word| !word.starts_with('-') && *word != "1");
            let flag = flag.trim_start_matches('-');
            let arg = clap::Arg::new(flag).help(help.trim().to_string());
            let arg = match flag.parse::<char>() {
                Ok(short) => arg.short(short),
                Err(_) => arg.long(flag),
            };
            flags.push(match value {
                Some(value) => arg.value_name(value),
                None => arg.action(clap::ArgAction::SetTrue),
            });
        }
    }
    flags
}

/// Restarts the program without the password on its command line, if any, so that the process list
/// does not show it.
fn hide_password(arguments: &[OsString]) -> Result<(), CliError> {
    let Some((cleaned, password)) = arguments::without_password(arguments) else { return Ok(()) };
    let name = env::args_os().next().unwrap_or_else(|| COMMAND.into());
    let cleaned = [&[name, COMMAND.into()], &cleaned[..]].concat();
    Err(secrets::restart(&cleaned, &BTreeMap::from([(COMMAND.into(), password)])))
}

/// Prints each warning on a line of standard error.
fn warn(warnings: &[String]) {
    for warning in warnings {
        crate::output::say(&format!("warning: {warning}"));
    }
}

/// How a test ended.
enum TestEnd {
    Completed,
    /// The server's error reply, or another error.
    Failed(String),
    Interrupted,
}

/// A run of all tests.
struct Run<'a> {
    options: &'a Options,
    deployment: Deployment,
    runner: TestRunner,
    tests: Rc<[Test]>,
    stop: std::sync::Arc<AtomicBool>,
    /// Corrected figures that have not been printed yet.
    corrected: Vec<CorrectedFigures>,
    /// Rows on the workers of a fleet that have not been printed yet.
    workers: Vec<Vec<String>>,
    warnings: Vec<String>,
}

impl<'a> Run<'a> {
    /// Selects the tests and connects to the servers.
    fn new(options: &'a Options) -> Result<Self, CliError> {
        let seed = options.load.seed.map_or_else(random, Ok)?;
        let (tests, unknown) = if options.data.command.is_empty() {
            catalogue::tests(&options.data)
        } else {
            let own = catalogue::own_command(&options.data, from_stdin(options)?);
            (vec![own.map_err(|e| CliError::failed(e.to_string()))?], Vec::new())
        };
        if options.is_idle {
            warn(&options.warnings);
        } else {
            warn(&notes::before(options, &tests));
            warn(&unknown);
        }
        crate::limits::raise();
        let mut deployment = server::open(&options.server).map_err(CliError::failed)?;
        warn(&deployment.warnings);
        if !options.is_idle {
            warn(
                &existing::warning(&mut deployment, options, &tests)
                    .into_iter()
                    .collect::<Vec<_>>(),
            );
        }
        let stop = watch_signals(None)?;
        let fleet = workers::gather(options, &deployment, &stop)?;
        Ok(Self {
            options,
            deployment,
            runner: TestRunner::new(seed, fleet),
            tests: tests.into(),
            stop,
            corrected: Vec::new(),
            workers: Vec::new(),
            warnings: Vec::new(),
        })
    }

    fn carry_out(mut self) -> Result<ExitCode, CliError> {
        if let ServerInfo::Cluster(nodes) = &self.deployment.info {
            print(&output::cluster(nodes))?;
        }
        if self.options.is_idle {
            idle::idle(self.options, &self.deployment, &self.stop)?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        if self.options.style == Style::Csv {
            print(output::CSV_HEADER)?;
        }
        loop {
            for test in self.tests.clone().iter() {
                match self.measure(test)? {
                    TestEnd::Completed => {}
                    TestEnd::Failed(message) => {
                        self.print_corrected();
                        crate::output::say(&message);
                        return Ok(ExitCode::from(FAILED));
                    }
                    TestEnd::Interrupted => {
                        self.print_corrected();
                        return Ok(ExitCode::from(INTERRUPTED));
                    }
                }
            }
            self.print_corrected();
            if self.options.data.command.is_empty() && self.options.style != Style::Csv {
                print("\n")?;
            }
            // With `-l`, Ctrl-C may also arrive between two tests.
            match (self.options.loops, self.stop.load(Ordering::Relaxed)) {
                (false, _) => return Ok(ExitCode::from(DONE)),
                (true, true) => return Ok(ExitCode::from(INTERRUPTED)),
                (true, false) => {}
            }
        }
    }

    /// Runs one test and prints its result.
    fn measure(&mut self, test: &Test) -> Result<TestEnd, CliError> {
        let mut printer = ProgressPrinter::new(&test.title, self.options.style);
        let measured =
            self.runner.run_test(self.options, test, &self.deployment, &self.stop, &mut |seen| {
                printer.update(&seen);
            });
        let Measured { point, failure, interrupted } = measured.map_err(CliError::failed)?;
        let progress_bytes = printer.finish()?;
        if let Some(failure) = &failure {
            let mut message = original_wording(&failure.message);
            if message.contains(" refers to ") && !self.options.server.is_cluster {
                message.push_str(" (add --cluster)");
            }
            return Ok(TestEnd::Failed(message));
        }
        self.print(test, &point, progress_bytes)?;
        Ok(if interrupted { TestEnd::Interrupted } else { TestEnd::Completed })
    }

    fn print(&mut self, test: &Test, point: &Point, bytes: usize) -> Result<(), CliError> {
        let service = point.whole().map(|whole| &whole.service).filter(|times| !times.is_empty());
        let Some(service) = service else { return Ok(()) };
        let (options, threads) =
            (self.options, self.runner.threads(self.options, &self.deployment));
        let finished = TestResult {
            title: &test.title,
            requests: service.count(),
            seconds: point.length_ns.max(1) as f64 / 1e9,
            payload_bytes: test.payload_bytes,
            threads: if point.contributors.is_empty() {
                self.deployment.threads(options)
            } else {
                threads
            },
            latencies: Latencies::new(service, options.digits),
        };
        print_with_carriage_returns(&output::result(
            options,
            &self.deployment.info,
            &finished,
            bytes,
        ))?;
        let corrected = CorrectedFigures::new(&test.title, point, threads);
        self.warnings.extend(corrected.warnings(test));
        self.warnings.extend(workers::warnings(&test.title, point));
        self.workers.extend(workers::rows(&test.title, point));
        self.corrected.push(corrected);
        if options.style == Style::Long {
            self.print_corrected();
        }
        Ok(())
    }

    /// Prints and clears the collected corrected figures and warnings.
    fn print_corrected(&mut self) {
        crate::output::say_more(&notes::table(&std::mem::take(&mut self.corrected)));
        crate::output::say_more(&workers::table(std::mem::take(&mut self.workers)));
        warn(&std::mem::take(&mut self.warnings));
    }
}

/// The last argument of the user's command, if it comes from standard input.
fn from_stdin(options: &Options) -> Result<Option<Vec<u8>>, CliError> {
    if !options.data.ends_in_stdin {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|e| CliError::failed(format!("standard input cannot be read: {e}")))?;
    Ok(Some(bytes))
}

/// An error in the original's wording: `Error from server: …` for an error reply.
fn original_wording(message: &str) -> String {
    let answer = message.strip_prefix("the server answered `").and_then(|m| m.strip_suffix('`'));
    match answer {
        Some(reply) => format!("Error from server: {reply}"),
        None => format!("Error: {message}"),
    }
}
