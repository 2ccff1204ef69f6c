//! What is known of a server before it is started: its program, its package, its settings, and how
//! it is found and started.

use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::search::SearchPath;
use crate::server::{Role, Server, ServerSpec};
use crate::settings::{Allowed, Names};
use crate::template::Templates;
use model::{Endpoint, Program};
use std::path::PathBuf;

/// How clients reach a server, and all that was started for it, the primary first.
pub type StartedServers = (Endpoint, Vec<(Role, Server)>);

/// A product's own server.
pub(crate) struct Own {
    pub(crate) executable: Executable,
    /// Looks for the program.
    pub(crate) find: fn(&SearchPath) -> Option<PathBuf>,
    /// Settings that a plan may choose.
    pub(crate) settings: &'static [Names],
    /// True where it takes `-` and `_` for the same.
    pub(crate) mixes_dashes: bool,
    /// Starts it, with settings that were checked, and waits until it answers.
    pub(crate) start: fn(&Guard, &mut Templates, &ServerSpec) -> Result<StartedServers>,
}

impl Own {
    /// The settings of it, or of the program in its place.
    pub(crate) fn allowed(&self, program: Option<Program>) -> Allowed {
        let executable = self.executable.or(program);
        Allowed::new(executable.name, (self.settings, self.mixes_dashes), program)
    }
}

/// A server's program and who brings it.
#[derive(Clone, Copy)]
pub(crate) struct Executable {
    /// Name of the program.
    pub(crate) name: &'static str,
    /// The Debian package that brings it.
    pub(crate) package: &'static str,
}

impl Executable {
    /// This one, or the program in its place.
    pub(crate) fn or(self, program: Option<Program>) -> Self {
        program.map_or(self, |p| Self { name: p.name(), package: p.package })
    }

    /// The file of this name. Errors: there is none.
    pub(crate) fn find(self, search: &SearchPath) -> Result<PathBuf> {
        search.find(&[self.name]).ok_or_else(|| self.missing())
    }

    pub(crate) fn missing(self) -> RigError {
        RigError::Missing { program: self.name, package: self.package }
    }
}

/// One server, which serves by itself.
pub(crate) fn alone(server: Server) -> StartedServers {
    (server.endpoint().clone(), vec![(Role::Primary, server)])
}
