//! A process of this program with other arguments, such as a neighbour or a worker of a fleet.

use crate::child::own_program;
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::process::{Launch, Process};
use crate::scratch::Scratch;
use crate::search::SearchPath;
use std::ffi::OsString;

/// A process of this program, started again. Dropping it ends it.
#[derive(Debug)]
pub struct OwnProcess {
    // Dropped in this order.
    process: Process,
    scratch: Scratch,
    name: &'static str,
}

impl OwnProcess {
    /// Starts this program again with these arguments, on these CPUs; an empty list leaves it on
    /// all of them. `name` is for errors.
    pub fn start(
        guard: &Guard,
        name: &'static str,
        arguments: Vec<OsString>,
        cpus: &[usize],
    ) -> Result<Self> {
        let scratch = Scratch::for_sockets(guard)?;
        let search = SearchPath::of_process();
        let launch = Launch::installer(name, own_program(), arguments, scratch.path(), &search);
        let cpus = (!cpus.is_empty()).then(|| cpus.to_vec());
        let process = Process::spawn(guard, Launch { cpus, ..launch })?;
        Ok(Self { process, scratch, name })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Ends it and removes its directory. Errors: it ended before; the directory could not be
    /// removed.
    pub fn stop(self) -> Result<()> {
        let death = self.process.death();
        self.process.end();
        let removed = self.scratch.remove();
        match death {
            Some(reason) => Err(RigError::Start { program: self.name.into(), reason }),
            None => removed,
        }
    }

    /// How it ended, with the last lines of its output; `None` while it runs.
    pub fn death(&self) -> Option<String> {
        self.process.death()
    }
}
