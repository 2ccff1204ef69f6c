//! Command-line parser compatible with redis-benchmark. It is written by hand, since `-h` is the
//! host and the first argument without a dash starts the user's own command.
//!
//! Sources: redis-benchmark 7.0 to 8.0, and the client options added by valkey-benchmark 8.1.
//! Number parsing is stricter than theirs: `-n 100k` is an error, not 100 requests.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use drivers::redis::chosen::ReadFrom;
use model::Secret;

use super::error::ArgumentError;
use super::uri;

/// Maximum number of threads, as in the original.
const THREADS_MAX: u32 = 500;
/// Maximum length of a value, in bytes.
const BYTES_MAX: u64 = 1 << 30;
/// Maximum number of significant digits of latencies.
const DIGITS_MAX: u8 = 4;
/// Maximum of `-r`, since random numbers have twelve digits.
const KEYSPACE_MAX: u64 = 1_000_000_000_000;

/// A parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Invocation {
    Help,
    Version,
    Run(Box<Options>),
}

/// TLS options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsFlags {
    pub(super) is_on: bool,
    pub(super) name: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) ca_directory: Option<PathBuf>,
    pub(super) is_insecure: bool,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) ciphers: Option<String>,
    pub(super) ciphersuites: Option<String>,
}

/// Output style of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    #[default]
    Long,
    Quiet,
    Csv,
}

/// Load options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoadOptions {
    pub(super) clients: u32,
    /// Requests per test; `None` if `duration_s` ends the test.
    pub(super) requests: Option<u64>,
    pub(super) duration_s: Option<u64>,
    pub(super) warmup_s: u64,
    pub(super) pipeline: u32,
    /// 0 for a single thread reported as `multi-thread: no`.
    pub(super) threads: u32,
    /// Requests per second over all clients; `None` for as many as possible.
    pub(super) rps: Option<u64>,
    pub(super) seed: Option<u64>,
}

/// Several processes that run the tests together.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(super) struct FleetOptions {
    /// Where the workers come from; `None` for this process alone.
    pub(super) place: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    /// How long to wait for all workers.
    pub(super) wait_ns: Option<u64>,
}

/// Contents of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Data {
    /// Bytes of a value.
    pub(super) bytes: usize,
    pub(super) bytes_given: bool,
    /// Exclusive upper bound of random numbers; `None` leaves `__rand_int__` unreplaced.
    pub(super) keyspace: Option<u64>,
    pub(super) is_sequential: bool,
    /// Tests by name, in lower case; `None` for all.
    pub(super) tests: Option<Vec<String>>,
    /// Arguments of the user's own command; empty to run the tests.
    pub(super) command: Vec<Vec<u8>>,
    /// True if the command's last argument comes from standard input.
    pub(super) ends_in_stdin: bool,
}

/// Server address and login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) socket: Option<PathBuf>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) database: u32,
    pub(super) is_resp3: bool,
    pub(super) is_tracking: bool,
    pub(super) is_cluster: bool,
    pub(super) read_from: ReadFrom,
    pub(super) tls: TlsFlags,
}

/// All options of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) server: Server,
    pub(super) load: LoadOptions,
    pub(super) fleet: FleetOptions,
    pub(super) data: Data,
    /// 0 reconnects a client for each batch of requests; printed as given.
    pub(super) keep_alive: i64,
    pub(super) style: Style,
    pub(super) digits: u8,
    pub(super) loops: bool,
    pub(super) is_idle: bool,
    /// Warnings about the command line itself, one sentence each.
    pub(super) warnings: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        let server = Server {
            host: "127.0.0.1".into(),
            port: 6379,
            socket: None,
            user: None,
            password: None,
            database: 0,
            is_resp3: false,
            is_tracking: false,
            is_cluster: false,
            read_from: ReadFrom::default(),
            tls: TlsFlags::default(),
        };
        let load = LoadOptions {
            clients: 50,
            requests: None,
            duration_s: None,
            warmup_s: 0,
            pipeline: 1,
            threads: 0,
            rps: None,
            seed: None,
        };
        Self {
            server,
            load,
            fleet: FleetOptions::default(),
            data: Data { bytes: 3, ..Data::default() },
            keep_alive: 1,
            style: Style::default(),
            digits: 3,
            loops: false,
            is_idle: false,
            warnings: Vec::new(),
        }
    }
}

/// Default number of requests per test.
const REQUESTS: u64 = 100_000;

/// Parses the arguments that follow the subcommand.
pub(super) fn parse(arguments: &[OsString]) -> Result<Invocation, ArgumentError> {
    let mut options = Options::default();
    let mut at = 0;
    while let Some(flag) = arguments.get(at).map(|a| a.to_string_lossy()) {
        at += 1;
        match flag.as_ref() {
            "--help" => return Ok(Invocation::Help),
            "-v" | "--version" => return Ok(Invocation::Version),
            "--" => break,
            flag if !flag.starts_with('-') => {
                at -= 1;
                break;
            }
            flag if options.switch(flag) => {}
            flag => {
                let Some(setting) = SETTINGS.iter().find(|(name, _)| *name == flag) else {
                    return Err(unknown(flag));
                };
                let (name, set) = setting;
                let value = arguments.get(at).ok_or(ArgumentError::Missing(name))?;
                at += 1;
                set(&mut options, &Value { flag: name, text: value })?;
            }
        }
    }
    options.data.command = arguments[at..].iter().map(|a| a.clone().into_vec()).collect();
    options.finish();
    Ok(Invocation::Run(Box::new(options)))
}

fn unknown(flag: &str) -> ArgumentError {
    const UNSUPPORTED: [&str; 9] = [
        "--rdma",
        "--mptcp",
        "--fuzz",
        "--fuzz-mode",
        "--fuzz-loglevel",
        "--dataset",
        "--maxdocs",
        "--num-functions",
        "--num-keys-in-fcall",
    ];
    let make = if UNSUPPORTED.contains(&flag) {
        ArgumentError::Unsupported
    } else {
        ArgumentError::Unknown
    };
    make(flag.to_string())
}

impl Options {
    /// Applies a flag without an argument; false if the flag is unknown.
    fn switch(&mut self, flag: &str) -> bool {
        match flag {
            "-q" if self.style != Style::Csv => self.style = Style::Quiet,
            "-q" => {}
            "--csv" => self.style = Style::Csv,
            "-l" => self.loops = true,
            "-I" => self.is_idle = true,
            "-x" => self.data.ends_in_stdin = true,
            "-3" => self.server.is_resp3 = true,
            "--enable-tracking" => self.server.is_tracking = true,
            "--cluster" => self.server.is_cluster = true,
            "--sequential" => self.data.is_sequential = true,
            "--tls" => self.server.tls.is_on = true,
            "--insecure" => self.server.tls.is_insecure = true,
            "-e" => self.warn("-e has no effect: an error reply always ends the run"),
            _ => return false,
        }
        true
    }

    fn warn(&mut self, sentence: impl Into<String>) {
        self.warnings.push(sentence.into());
    }

    /// Sets defaults and warns about flags that have no effect in combination.
    fn finish(&mut self) {
        if self.load.duration_s.is_none() && self.load.requests.is_none() {
            self.load.requests = Some(REQUESTS);
        }
        if !self.data.command.is_empty() && self.data.tests.is_some() {
            self.warn("-t has no effect: a command was given");
        }
        if self.data.is_sequential && self.data.keyspace.is_none() {
            self.warn("--sequential has no effect without -r");
        }
        if self.server.read_from != ReadFrom::Primaries && !self.server.is_cluster {
            self.warn("--rfr has no effect without --cluster");
        }
        if self.fleet.place.is_none() && self.fleet != FleetOptions::default() {
            self.warn("--token-file and --fleet-wait have no effect without --fleet");
        }
        if self.fleet.place.is_some() && self.is_idle {
            self.warn("--fleet has no effect with -I: this process opens all connections");
        }
        if !self.server.tls.is_on && self.server.tls != TlsFlags::default() {
            self.warn("TLS options have no effect without --tls: nothing is encrypted");
        }
    }
}

/// An argument of a flag.
struct Value<'a> {
    flag: &'static str,
    text: &'a OsStr,
}

impl Value<'_> {
    fn text(&self) -> String {
        self.text.to_string_lossy().into_owned()
    }

    fn path(&self) -> PathBuf {
        self.text.into()
    }

    fn refused(&self, expected: impl Into<String>) -> ArgumentError {
        let (flag, text) = (self.flag.to_string(), self.text());
        ArgumentError::InvalidValue { flag, text, expected: expected.into() }
    }

    /// A whole number, which may be negative.
    fn number(&self) -> Result<i64, ArgumentError> {
        self.text().trim().parse().map_err(|_| self.refused("a whole number"))
    }

    /// A whole number, raised to `min` if smaller. Errors: it is above `max`.
    fn within(&self, min: u64, max: u64) -> Result<u64, ArgumentError> {
        let number = u64::try_from(self.number()?).unwrap_or(0).max(min);
        if number <= max { Ok(number) } else { Err(self.refused(format!("at most {max}"))) }
    }

    /// A whole number of at least 1.
    fn positive(&self, max: u64) -> Result<u64, ArgumentError> {
        if self.number()? < 1 {
            return Err(self.refused("at least 1"));
        }
        self.within(1, max)
    }

    fn port(&self) -> Result<u16, ArgumentError> {
        u16::try_from(self.number()?).map_err(|_| self.refused("a port, 0 to 65535"))
    }
}

type Set = fn(&mut Options, &Value<'_>) -> Result<(), ArgumentError>;

/// Flags with an argument, and how to apply them.
const SETTINGS: [(&str, Set); 31] = [
    ("-h", |o, v| keep(&mut o.server.host, v.text())),
    ("-p", |o, v| keep(&mut o.server.port, v.port()?)),
    ("-s", |o, v| keep(&mut o.server.socket, Some(v.path()))),
    ("-a", |o, v| keep(&mut o.server.password, Some(Secret::new(v.text())))),
    ("--user", |o, v| keep(&mut o.server.user, Some(v.text()))),
    ("-u", set_uri),
    ("-c", set_clients),
    ("-n", set_requests),
    ("--duration", set_duration),
    ("--warmup", |o, v| keep(&mut o.load.warmup_s, v.within(0, u64::from(u32::MAX))?)),
    ("-d", set_bytes),
    ("--dbnum", |o, v| keep(&mut o.server.database, v.within(0, u64::from(u32::MAX))? as u32)),
    ("--threads", set_threads),
    ("--rfr", set_read_from),
    ("-k", |o, v| keep(&mut o.keep_alive, v.number()?)),
    ("-r", set_keyspace),
    ("-P", |o, v| keep(&mut o.load.pipeline, v.within(1, 1_000_000)? as u32)),
    ("--precision", set_digits),
    ("-t", set_tests),
    ("--rps", |o, v| keep(&mut o.load.rps, Some(v.within(0, u64::MAX)?).filter(|n| *n > 0))),
    ("--seed", |o, v| keep(&mut o.load.seed, Some(v.number()?.cast_unsigned()))),
    ("--fleet", |o, v| keep(&mut o.fleet.place, Some(v.text()))),
    ("--token-file", |o, v| keep(&mut o.fleet.token_file, Some(v.path()))),
    ("--fleet-wait", set_fleet_wait),
    ("--sni", |o, v| keep(&mut o.server.tls.name, Some(v.text()))),
    ("--cacert", |o, v| keep(&mut o.server.tls.ca_file, Some(v.path()))),
    ("--cacertdir", |o, v| keep(&mut o.server.tls.ca_directory, Some(v.path()))),
    ("--cert", |o, v| keep(&mut o.server.tls.certificate, Some(v.path()))),
    ("--key", |o, v| keep(&mut o.server.tls.key, Some(v.path()))),
    ("--tls-ciphers", |o, v| keep(&mut o.server.tls.ciphers, Some(v.text()))),
    ("--tls-ciphersuites", |o, v| keep(&mut o.server.tls.ciphersuites, Some(v.text()))),
];

#[expect(clippy::unnecessary_wraps, reason = "setters share one signature, and others can fail")]
fn keep<T>(place: &mut T, value: T) -> Result<(), ArgumentError> {
    *place = value;
    Ok(())
}

fn set_uri(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    let uri = uri::parse(&value.text())?;
    let server = &mut options.server;
    server.tls.is_on |= uri.is_tls;
    server.host = uri.host.unwrap_or_else(|| server.host.clone());
    server.port = uri.port.unwrap_or(server.port);
    server.user = uri.user.or_else(|| server.user.take());
    server.password = uri.password.or_else(|| server.password.take());
    server.database = uri.database.unwrap_or(server.database);
    Ok(())
}

fn set_clients(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    if value.number()? < 1 {
        options.warn("-c below 1: one client is used");
    }
    keep(&mut options.load.clients, value.within(1, 1_000_000)? as u32)
}

fn set_requests(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    if options.load.duration_s.is_some() {
        return Err(both_ends());
    }
    keep(&mut options.load.requests, Some(value.positive(u64::MAX)?))
}

fn set_duration(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    if options.load.requests.is_some() {
        return Err(both_ends());
    }
    keep(&mut options.load.duration_s, Some(value.positive(u64::from(u32::MAX))?))
}

fn both_ends() -> ArgumentError {
    let message = "-n and --duration both limit a test (expected only one of them)";
    ArgumentError::Other(message.into())
}

fn set_bytes(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    options.data.bytes_given = true;
    // Values above the maximum are clamped, as in the original.
    let bytes = u64::try_from(value.number()?).unwrap_or(0).clamp(1, BYTES_MAX);
    keep(&mut options.data.bytes, bytes as usize)
}

fn set_threads(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    let threads = value.within(0, u64::from(u32::MAX))? as u32;
    if threads > THREADS_MAX {
        options.warn(format!(
            "--threads {threads} is above the limit: {THREADS_MAX} threads are used"
        ));
    }
    keep(&mut options.load.threads, threads.min(THREADS_MAX))
}

fn set_read_from(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    options.server.read_from = match value.text().as_str() {
        "no" => ReadFrom::Primaries,
        "yes" => ReadFrom::Replicas,
        "all" => ReadFrom::All,
        _ => return Err(value.refused("no, yes or all")),
    };
    Ok(())
}

fn set_keyspace(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    // 0 and negative values mean 1, which allows a single number.
    keep(&mut options.data.keyspace, Some(value.within(1, KEYSPACE_MAX)?))
}

fn set_fleet_wait(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    let parsed = stats::parse_duration_ns(&value.text());
    let wait_ns = parsed.map_err(|_| value.refused("a time, such as 5m"))?;
    keep(&mut options.fleet.wait_ns, Some(wait_ns))
}

fn set_digits(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    let digits = match value.number()? {
        // The original's help documents 0 as the default.
        ..=0 => Options::default().digits,
        digits => u8::try_from(digits).unwrap_or(DIGITS_MAX).min(DIGITS_MAX),
    };
    keep(&mut options.digits, digits)
}

fn set_tests(options: &mut Options, value: &Value<'_>) -> Result<(), ArgumentError> {
    let names = value.text().to_lowercase();
    keep(&mut options.data.tests, Some(names.split(',').map(String::from).collect()))
}

/// The arguments without passwords, and the password in effect; `None` if there is no password.
///
/// The program is restarted with these arguments, so that the process list shows no password.
pub(super) fn without_password(arguments: &[OsString]) -> Option<(Vec<OsString>, Secret)> {
    let Ok(Invocation::Run(options)) = parse(arguments) else { return None };
    let password = options.server.password?;
    let own = arguments.len() - options.data.command.len();
    let mut cleaned = Vec::new();
    let mut at = 0;
    while at < own {
        let flag = &arguments[at];
        let has_value = SETTINGS.iter().any(|(name, _)| flag == name);
        let value = has_value.then(|| &arguments[at + 1]);
        match (flag.as_bytes(), value) {
            (b"-a", _) => {}
            (b"-u", Some(text)) => {
                let (plain, user) = uri::without_password(&text.to_string_lossy());
                cleaned.extend(["-u".into(), plain.into()]);
                cleaned.extend(user.into_iter().flat_map(|user| ["--user".into(), user.into()]));
            }
            (_, Some(text)) => cleaned.extend([flag.clone(), text.clone()]),
            (_, None) => cleaned.push(flag.clone()),
        }
        at += 1 + usize::from(has_value);
    }
    cleaned.extend_from_slice(&arguments[own..]);
    Some((cleaned, password))
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
