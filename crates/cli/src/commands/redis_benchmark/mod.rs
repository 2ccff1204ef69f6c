//! `cachedyno redis-benchmark …`: the flags, tests and output of redis-benchmark, measured anew.
//!
//! A script that calls redis-benchmark runs unchanged: standard output has the original's form.
//! What is corrected, or doubtful in what was asked for, goes to standard error.
//!
//! - [`arguments`], [`uri`]: the command line.
//! - [`catalogue`], [`numbers`]: what tests send.
//! - [`server`]: the servers before the tests; [`existing`]: the keys that they hold.
//! - [`offering`]: a test on the engine; [`idle`]: connections that do nothing.
//! - [`distribution`], [`output`], [`progress`]: what is printed; [`notes`]: what is said besides.

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

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io::Read as _;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use load::wire::Outcome;

use self::arguments::{Asked, Options, Style};
use self::catalogue::Test;
use self::distribution::Latencies;
use self::notes::Corrected;
use self::offering::Stock;
use self::output::{Finished, Told};
use self::progress::Follower;
use self::server::Site;
use crate::exit::{CliError, DONE, FAILED, INTERRUPTED};
use crate::output::{print, print_returning};
use crate::random::random;
use crate::secrets;
use crate::signals::watch_signals;
use crate::studies::TOOL_VERSION;

/// The newest redis-benchmark whose flags, tests and output these are.
const ORIGINAL_VERSION: &str = "8.0.0";
/// What the command line is called by.
pub(crate) const COMMAND: &str = "redis-benchmark";

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode, CliError> {
    leave_the_process_list(arguments)?;
    let asked = arguments::parse(arguments).map_err(|e| CliError::failed(e.to_string()))?;
    let mut options = match asked {
        Asked::Help => {
            print(include_str!("help.txt"))?;
            return Ok(ExitCode::from(DONE));
        }
        Asked::Version => {
            print(&format!("redis-benchmark {ORIGINAL_VERSION} (cachedyno {TOOL_VERSION})\n"))?;
            return Ok(ExitCode::from(DONE));
        }
        Asked::Run(options) => options,
    };
    let offered = &options.offered;
    let at_once = (if options.is_idle { 0 } else { offered.clients }, offered.pipeline);
    crate::preflight::in_flight(at_once, offered.requests, options.data.bytes)
        .map_err(CliError::failed)?;
    if let Some(password) = secrets::carried(COMMAND) {
        options.server.password = Some(password);
    }
    Run::new(&options)?.carry_out()
}

/// Starts the program anew without the password that stands on its command line, if there is one.
fn leave_the_process_list(arguments: &[OsString]) -> Result<(), CliError> {
    let Some((cleaned, password)) = arguments::without_password(arguments) else { return Ok(()) };
    let name = env::args_os().next().unwrap_or_else(|| COMMAND.into());
    let cleaned = [&[name, COMMAND.into()], &cleaned[..]].concat();
    Err(secrets::restart(&cleaned, &BTreeMap::from([(COMMAND.into(), password)])))
}

/// Says something on standard error, a line each.
fn warn(doubts: &[String]) {
    for doubt in doubts {
        crate::output::say(&format!("warning: {doubt}"));
    }
}

/// How a test ended.
enum Ended {
    Well,
    /// The server's words, or what else ended it.
    Badly(String),
    Interrupted,
}

/// A run of all tests.
struct Run<'a> {
    options: &'a Options,
    site: Site,
    stock: Stock,
    tests: Rc<[Test]>,
    stop: std::sync::Arc<AtomicBool>,
    /// Corrected figures that are still to be said.
    corrected: Vec<Corrected>,
    doubts: Vec<String>,
}

impl<'a> Run<'a> {
    /// Reads what is asked for, and finds the servers.
    fn new(options: &'a Options) -> Result<Self, CliError> {
        let seed = options.offered.seed.map_or_else(random, Ok)?;
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
        let mut site = server::open(&options.server).map_err(CliError::failed)?;
        warn(&site.doubts);
        if !options.is_idle {
            warn(&existing::warning(&mut site, options, &tests).into_iter().collect::<Vec<_>>());
        }
        let (stop, stock) = (watch_signals(None)?, Stock::new(seed));
        let (corrected, doubts) = (Vec::new(), Vec::new());
        Ok(Self { options, site, stock, tests: tests.into(), stop, corrected, doubts })
    }

    fn carry_out(mut self) -> Result<ExitCode, CliError> {
        if let Told::Cluster(nodes) = &self.site.told {
            print(&output::cluster(nodes))?;
        }
        if self.options.is_idle {
            idle::idle(self.options, &self.site, &self.stop)?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        if self.options.style == Style::Csv {
            print(output::CSV_HEADER)?;
        }
        loop {
            for test in self.tests.clone().iter() {
                match self.measure(test)? {
                    Ended::Well => {}
                    Ended::Badly(words) => {
                        self.say_corrected();
                        crate::output::say(&words);
                        return Ok(ExitCode::from(FAILED));
                    }
                    Ended::Interrupted => {
                        self.say_corrected();
                        return Ok(ExitCode::from(INTERRUPTED));
                    }
                }
            }
            self.say_corrected();
            if self.options.data.command.is_empty() && self.options.style != Style::Csv {
                print("\n")?;
            }
            // What goes on until it is stopped is interrupted between two tests as well.
            match (self.options.loops, self.stop.load(Ordering::Relaxed)) {
                (false, _) => return Ok(ExitCode::from(DONE)),
                (true, true) => return Ok(ExitCode::from(INTERRUPTED)),
                (true, false) => {}
            }
        }
    }

    /// Offers one test and prints what it gave.
    fn measure(&mut self, test: &Test) -> Result<Ended, CliError> {
        let mut follower = Follower::new(&test.title, self.options.style);
        let outcome = self.stock.offer(self.options, test, &self.site, &self.stop, &mut |moment| {
            follower.tell(&moment);
        });
        let outcome = outcome.map_err(CliError::failed)?;
        let progress_bytes = follower.finish()?;
        if let Some(failure) = &outcome.failure {
            let mut words = words_of(&failure.message);
            if words.contains(" refers to ") && !self.options.server.is_cluster {
                words.push_str(" (add --cluster)");
            }
            return Ok(Ended::Badly(words));
        }
        self.print(test, &outcome, progress_bytes)?;
        Ok(if outcome.interrupted { Ended::Interrupted } else { Ended::Well })
    }

    fn print(&mut self, test: &Test, outcome: &Outcome, bytes: usize) -> Result<(), CliError> {
        let row = outcome.recorder.whole();
        if row.answered() == 0 {
            return Ok(());
        }
        let (options, threads) = (self.options, self.site.threads(self.options));
        let finished = Finished {
            title: &test.title,
            requests: row.answered(),
            seconds: outcome.wall_ns.max(1) as f64 / 1e9,
            payload_bytes: test.payload_bytes,
            threads,
            latencies: Latencies::new(row.service(), options.digits),
        };
        print_returning(&output::result(options, &self.site.told, &finished, bytes))?;
        let corrected = Corrected::new(&test.title, outcome, offering::threads(threads, options));
        self.doubts.extend(corrected.doubts(test));
        self.corrected.push(corrected);
        if options.style == Style::Long {
            self.say_corrected();
        }
        Ok(())
    }

    /// Says what is corrected and what is doubtful so far.
    fn say_corrected(&mut self) {
        crate::output::say_more(&notes::table(&std::mem::take(&mut self.corrected)));
        warn(&std::mem::take(&mut self.doubts));
    }
}

/// The last word of the user's command, where standard input holds it.
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

/// Why a test ended, as the original says it: an error reply by the server's words.
fn words_of(message: &str) -> String {
    let answer = message.strip_prefix("the server answered `").and_then(|m| m.strip_suffix('`'));
    match answer {
        Some(words) => format!("Error from server: {words}"),
        None => format!("Error: {message}"),
    }
}
