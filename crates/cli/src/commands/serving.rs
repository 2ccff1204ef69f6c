//! Shared flags and shutdown of the two reference server commands.

use clap::Args;
use rig::RigError;
use rig::reference::Listen;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::{ErrorKind, Read as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::exit::CliError;

/// Listening address of a reference server.
#[derive(Debug, Args)]
pub(crate) struct ListenFlags {
    /// Port to listen on; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Address to listen on; anything but a loopback address exposes the server to the network
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Listen on a new unix socket instead
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "host"])]
    socket: Option<PathBuf>,
}

impl ListenFlags {
    pub(crate) fn listen(&self) -> Listen {
        match &self.socket {
            Some(path) => Listen::Unix(path.clone()),
            None => Listen::Tcp((self.host, self.port).into()),
        }
    }
}

/// When a reference server stops.
#[derive(Debug, Args)]
pub(crate) struct StopFlags {
    /// Stop after this time, such as 30s, instead of on Ctrl-C
    #[arg(long = "for", value_name = "TIME")]
    time: Option<String>,
}

impl StopFlags {
    /// Parses the time and installs signal handlers, so that later signals are not missed.
    pub(crate) fn watch(&self) -> Result<StopWait, CliError> {
        let ns = self.time.as_deref().map(stats::parse_duration_ns).transpose();
        let ns = ns.map_err(|e| CliError::usage(format!("--for: {e}")))?;
        if ns == Some(0) {
            let text = "--for: `0s` would stop at once, expected a longer time: for example 30s";
            return Err(CliError::usage(text));
        }
        let install = || {
            let (read, write) = UnixStream::pair()?;
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                pipe::register(signal, write.try_clone()?)?;
            }
            read.set_read_timeout(ns.map(Duration::from_nanos))?;
            Ok(StopWait(read))
        };
        let failed = |e: std::io::Error| format!("cannot install signal handlers: {e}");
        install().map_err(|e| CliError::failed(failed(e)))
    }
}

/// A stream that receives one byte per signal; its read timeout is the `--for` time.
pub(crate) struct StopWait(UnixStream);

impl StopWait {
    /// Blocks until a signal arrives or the time is over.
    pub(crate) fn wait(mut self) -> Result<(), CliError> {
        loop {
            match self.0.read(&mut [0]) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(());
                }
                Err(e) => return Err(CliError::failed(format!("waiting for a signal: {e}"))),
                Ok(_) => return Ok(()),
            }
        }
    }
}

/// Reports an unusable address, socket or CPU as a usage error, anything else as a failure.
pub(crate) fn start_error(error: RigError) -> CliError {
    match error {
        RigError::Setting { name, problem, expected, .. } => {
            CliError::usage(format!("--{name} {problem}, expected {expected}"))
        }
        RigError::Cpu { .. } => CliError::usage(format!("--cpus: {error}")),
        RigError::SocketPath { .. } => CliError::usage(format!("--socket: {error}")),
        other => other.into(),
    }
}

/// `1 request`, `2 requests`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
