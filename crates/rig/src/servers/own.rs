//! Static description of a server: its program, package and settings, and the functions that find
//! and start it.

use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::search::SearchPath;
use crate::server::{Role, Server, ServerSpec};
use crate::settings::{Allowed, Names};
use crate::template::Templates;
use model::{Endpoint, Program};
use std::path::PathBuf;

/// The endpoint for clients, and all started servers with their roles, the primary first.
pub type StartedServers = (Endpoint, Vec<(Role, Server)>);

/// Description of a product's server.
pub(crate) struct ServerDescription {
    pub(crate) executable: Executable,
    /// Finds the program.
    pub(crate) find: fn(&SearchPath) -> Option<PathBuf>,
    /// Settings that a plan may choose.
    pub(crate) settings: &'static [Names],
    /// True if `-` and `_` are interchangeable in names of settings.
    pub(crate) mixes_dashes: bool,
    /// Starts it with checked settings, and waits until it replies.
    pub(crate) start: fn(&Guard, &mut Templates, &ServerSpec) -> Result<StartedServers>,
}

impl ServerDescription {
    /// The allowed settings of the server, or of the program in its place.
    pub(crate) fn allowed(&self, program: Option<Program>) -> Allowed {
        let executable = self.executable.or(program);
        Allowed::new(executable.name, (self.settings, self.mixes_dashes), program)
    }
}

/// A server's program and its package.
#[derive(Clone, Copy)]
pub(crate) struct Executable {
    /// Name of the program.
    pub(crate) name: &'static str,
    /// The Debian package that contains it.
    pub(crate) package: &'static str,
}

impl Executable {
    /// This program, or `program` in its place.
    pub(crate) fn or(self, program: Option<Program>) -> Self {
        program.map_or(self, |p| Self { name: p.name(), package: p.package })
    }

    /// Finds the program file; an error if it is not installed.
    pub(crate) fn find(self, search: &SearchPath) -> Result<PathBuf> {
        search.find(&[self.name]).ok_or_else(|| self.missing())
    }

    pub(crate) fn missing(self) -> RigError {
        RigError::Missing { program: self.name, package: self.package }
    }
}

/// A single server without replicas.
pub(crate) fn single_server(server: Server) -> StartedServers {
    (server.endpoint().clone(), vec![(Role::Primary, server)])
}
