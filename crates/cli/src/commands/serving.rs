//! What the commands of the two reference servers share: where to listen, and until when.

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

/// Where a reference server listens.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Port to listen on; 0 takes one that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Address to listen on; anything but a loopback address lets others in
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Listen on a new unix socket instead
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "host"])]
    socket: Option<PathBuf>,
}

impl Place {
    pub(crate) fn listen(&self) -> Listen {
        match &self.socket {
            Some(path) => Listen::Unix(path.clone()),
            None => Listen::Tcp((self.host, self.port).into()),
        }
    }
}

/// Until when a reference server runs.
#[derive(Debug, Args)]
pub(crate) struct Until {
    /// End after this time, such as 30s, instead of at Ctrl-C
    #[arg(long = "for", value_name = "TIME")]
    time: Option<String>,
}

impl Until {
    /// Reads the time and begins to watch for signals: one that comes from now on is not missed.
    pub(crate) fn watch(&self) -> Result<Watch, CliError> {
        let ns = self.time.as_deref().map(stats::parse_duration_ns).transpose();
        let ns = ns.map_err(|e| CliError::usage(format!("--for: {e}")))?;
        if ns == Some(0) {
            let text = "--for: `0s` would end at once, expected a longer time: for example 30s";
            return Err(CliError::usage(text));
        }
        let watched = || {
            let (read, write) = UnixStream::pair()?;
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                pipe::register(signal, write.try_clone()?)?;
            }
            read.set_read_timeout(ns.map(Duration::from_nanos))?;
            Ok(Watch(read))
        };
        let failed = |e: std::io::Error| format!("signals cannot be watched: {e}");
        watched().map_err(|e| CliError::failed(failed(e)))
    }
}

/// A stream that gets a byte with each signal.
pub(crate) struct Watch(UnixStream);

impl Watch {
    /// Waits for a signal or for the end of the time, without waking up in between.
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

/// What cannot be listened on or pinned to is a wrong argument; the rest could not be foreseen.
pub(crate) fn refused(error: RigError) -> CliError {
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
