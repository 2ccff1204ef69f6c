//! A scripted server in its own process.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// Listens on a port of 127.0.0.1 until it is dropped.
pub(crate) struct Scripted {
    child: Child,
    pub(crate) address: String,
}

impl Scripted {
    pub(crate) fn new(script: &str) -> Self {
        Self::with(script, &[])
    }

    /// With more arguments than its script.
    pub(crate) fn with(script: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("cachedyno"))
            // Exits on its own, even if the test is killed.
            .args(["scripted-server", "--for", "300s", "--script", script])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on ") else { panic!("{line}") };
        Self { address: address.into(), child }
    }

    /// Stops it as a user does, so that it writes its log.
    pub(crate) fn stop(mut self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
