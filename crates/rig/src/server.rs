//! A started server: its endpoint, command line, settings and cause of death.

use crate::error::Result;
use crate::guard::Guard;
use crate::network::Network;
use crate::process::{Launch, Process};
use crate::scratch::Scratch;
use crate::search::SearchPath;
use model::{Endpoint, Program};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::ops::Deref;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Options for starting a server; the same for every product.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// The program to start; `None` for the product's own.
    pub program: Option<Program>,
    /// Directory on the disk under test; the server's data goes into a new scratch in it.
    pub data_parent: PathBuf,
    /// Settings on top of the product's own defaults, as its configuration file spells them; only
    /// those that [`check_settings`](crate::check_settings) allows.
    pub settings: BTreeMap<String, String>,
    /// CPUs on which it can run; `None` for all CPUs of this thread.
    pub cpus: Option<Vec<usize>>,
    /// Maximum time until it replies; `None` for the product's default.
    pub deadline: Option<Duration>,
    /// Control group with a memory limit to start it in; `None` for that of this process.
    pub group: Option<PathBuf>,
    /// Control groups with other limits to start it in; it stays in those of this process for all
    /// other controllers.
    pub other_groups: Vec<PathBuf>,
    /// Address of this machine to listen on, with a password, for clients on others; `None` for
    /// what the settings say.
    pub bind: Option<Ipv4Addr>,
    /// Network to start it in, where it listens on a port; `None` for that of this process.
    pub network: Option<Arc<Network>>,
    /// Network for all but the first of several servers; `None` for the same.
    pub network_of_others: Option<Arc<Network>>,
    /// Search path for its program.
    pub search: SearchPath,
}

impl ServerSpec {
    /// A server with its product's defaults, on all CPUs, with data in `data_parent`.
    pub fn new(data_parent: impl Into<PathBuf>) -> Self {
        Self {
            program: None,
            data_parent: data_parent.into(),
            settings: BTreeMap::new(),
            cpus: None,
            deadline: None,
            group: None,
            other_groups: Vec::new(),
            bind: None,
            network: None,
            network_of_others: None,
            search: SearchPath::of_process(),
        }
    }

    /// The same for the servers after the first.
    pub(crate) fn of_others(&self) -> Self {
        let network = self.network_of_others.clone().or_else(|| self.network.clone());
        Self { network, ..self.clone() }
    }

    /// Address at which it listens if it does not on a Unix socket.
    pub(crate) fn address(&self) -> Ipv4Addr {
        let of_network = self.network.as_ref().map(|network| network.address());
        of_network.or(self.bind).unwrap_or(Ipv4Addr::LOCALHOST)
    }

    /// Starts a program, given its name and file; its log is next to its socket.
    pub(crate) fn launch(
        &self,
        guard: &Guard,
        (name, program): (&'static str, PathBuf),
        arguments: Vec<OsString>,
        directory: &Path,
        sockets: &Scratch,
    ) -> Result<Process> {
        let launch = Launch {
            name,
            program,
            arguments,
            directory: directory.into(),
            log: sockets.path().join("server.log"),
            cpus: self.cpus.clone(),
            group: self.group.clone(),
            other_groups: self.other_groups.clone(),
            network: self.network.clone(),
            search: self.search.clone(),
        };
        Process::spawn(guard, launch)
    }
}

/// Sends `request` to a server at `socket`. The reply line must start with `expected`; otherwise
/// the error contains the reply.
pub(crate) fn answers(
    socket: &Path,
    request: &str,
    expected: &str,
    patience: Duration,
) -> std::result::Result<(), String> {
    let exchange = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.write_all(format!("{request}\r\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        io::Result::Ok(answer)
    };
    match exchange() {
        Ok(answer) if answer.starts_with(expected) => Ok(()),
        Ok(answer) => Err(format!("unexpected reply `{}` to {request}", answer.trim_end())),
        Err(e) => Err(format!("socket error: {e}")),
    }
}

/// Role of a started server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Accepts writes.
    Primary,
    /// Replicates the primary.
    Replica,
    /// Monitors both; stores no data.
    Sentinel,
    /// Passes requests on to servers; stores no data.
    Proxy,
}

impl Role {
    /// True if a server of this role stores data.
    pub fn keeps_data(self) -> bool {
        matches!(self, Self::Primary | Self::Replica)
    }

    /// Display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Replica => "replica",
            Self::Sentinel => "Sentinel",
            Self::Proxy => "proxy",
        }
    }
}

/// A running private server. Dropping it kills it and removes its directories; SIGKILL is fine,
/// because its data is discarded.
///
/// It also dies with the *thread* that started it (`PR_SET_PDEATHSIG`), so start it from a thread
/// that lives as long as the run.
#[derive(Debug)]
pub struct Server {
    // Fields are dropped in this order: first the process, then its directories.
    pub(crate) process: OwnedProcess,
    pub(crate) endpoint: Endpoint,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) data: Scratch,
    pub(crate) sockets: Scratch,
}

impl Server {
    /// Its address: a Unix socket, or a port of 127.0.0.1 if servers connect to each other.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Its process, for another thread.
    pub fn process(&self) -> ServerProcess {
        ServerProcess(self.process.0.clone())
    }

    /// Name of its program.
    pub fn name(&self) -> &'static str {
        self.process.name()
    }

    /// Program and arguments; they contain no credentials.
    pub fn command_line(&self) -> &[String] {
        self.process.command_line()
    }

    /// The settings that it was started with, including those of the plan, without paths.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// Why it no longer runs: signal or exit code, and the end of its log. `None` while it runs.
    pub fn died(&self) -> Option<String> {
        self.process.death()
    }

    /// Kills it, waits until it has ended and removes its directories. An error means that a
    /// directory could not be removed; the guard then tries again at the end of the run.
    pub fn stop(self) -> Result<()> {
        self.process.end();
        self.data.remove()?;
        self.sockets.remove()
    }
}

/// The process of a server, which ends when this is dropped even if others refer to it.
#[derive(Debug)]
pub(crate) struct OwnedProcess(Arc<Process>);

impl From<Process> for OwnedProcess {
    fn from(process: Process) -> Self {
        Self(Arc::new(process))
    }
}

impl Deref for OwnedProcess {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The process of a server, to interrupt its service and restore it. It does not keep the server
/// running.
#[derive(Clone, Debug)]
pub struct ServerProcess(Arc<Process>);

impl ServerProcess {
    /// Its current process id; after it was started again, another one.
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// True while it runs, or hangs.
    pub fn runs(&self) -> bool {
        self.0.status().is_none()
    }

    /// Sends it a signal. Errors: it has ended, or the system refuses it.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.0.signal(signal)
    }

    /// Starts it again after it has ended, with the same configuration and data and the arguments
    /// of `also`, without waiting until it replies.
    ///
    /// Errors: it still runs, the server was stopped, or the program cannot be started.
    pub fn start_again(&self, also: &[&str]) -> Result<()> {
        self.0.start_again(also)
    }
}
