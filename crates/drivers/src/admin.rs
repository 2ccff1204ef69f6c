//! What is done around a run: facts, a place for its data, a check, and the cleaning up.

use std::path::PathBuf;
use std::time::Duration;

use model::{Endpoint, ErrorClass, Failure, Layout};
use workloads::store::{Closed, Found};

use crate::{SessionOptions, fault, files, mysql, open_page_store, open_session_store, redis};

/// What a store tells about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Product and version as the server reports it: `Redis 7.0.15`, `Valkey 8.1.1`,
    /// `MariaDB 10.11.19`, `files on ext4`.
    pub version: String,
    /// Whether nobody's data is there: no key in the database, no table. Always true of files,
    /// whose sessions go into a new subdirectory.
    pub empty: bool,
    /// Name and value of every setting that the server tells, sorted by name, without those that
    /// may hold a secret; empty where the server does not let us ask.
    pub configuration: Vec<(String, String)>,
}

/// The connection around a run, one a target. Not for the measured span.
pub trait Admin: Send {
    /// Version, emptiness and configuration.
    fn facts(&mut self) -> Result<Facts, Failure>;

    /// Makes the place for the sessions: the table `name` of the layout's schema, for values of
    /// up to `value_bytes`, or the subdirectory `name`. Returns the directory for
    /// [`SessionOptions::directory`]; empty for servers. Something of that name which exists
    /// already is left alone and an error of class `NotOurs`.
    fn prepare(
        &mut self,
        layout: Layout,
        name: &str,
        value_bytes: usize,
    ) -> Result<PathBuf, Failure>;

    /// Writes the session `id` (which must not exist) by a client of its own, reads it back,
    /// compares it and removes it again. `id` should carry the run's prefix.
    fn verify(&mut self, layout: Layout, options: &SessionOptions, id: &str)
    -> Result<(), Failure>;

    /// Removes what this run made and nothing else: on Redis the keys of the sessions whose ids
    /// begin with `prefix` (by `SCAN` and `UNLINK`; an empty prefix is refused), on MySQL the
    /// tables whose names do (none for an empty one), and everywhere the tables or subdirectories
    /// that [`Admin::prepare`] of this very value created.
    fn clean(&mut self, layout: Layout, prefix: &str) -> Result<(), Failure>;
}

/// Connects for administration; errors as [`open_session_store`].
pub fn admin(endpoint: &Endpoint, timeout: Duration) -> Result<Box<dyn Admin>, Failure> {
    match endpoint {
        Endpoint::Files { directory } => files::open_admin(directory),
        Endpoint::Redis { .. } => redis::open_admin(endpoint, timeout),
        Endpoint::Mysql { .. } => mysql::open_admin(endpoint, timeout),
    }
    .map_err(fault::failure)
}

/// Writes and reads one session as a client of the layout does.
pub(crate) fn round_trip(
    endpoint: &Endpoint,
    layout: Layout,
    options: &SessionOptions,
    id: &str,
) -> Result<(), Failure> {
    let written = format!("cachedyno verifies {id}");
    let mut read = Vec::new();
    let found = match layout {
        Layout::Plain => {
            let mut store = open_session_store(endpoint, options)?;
            store.create(id, written.as_bytes()).map_err(fault::failure)?;
            store.read(id, &mut read).map_err(fault::failure)?
        }
        Layout::Page => {
            let mut store = open_page_store(endpoint, options)?;
            store.open(id, &mut read).map_err(fault::failure)?;
            let kept = store.close(written.as_bytes()).map_err(fault::failure)?;
            let opened = store.open(id, &mut read).map_err(fault::failure)?;
            let again = store.close(written.as_bytes()).map_err(fault::failure)?;
            if (kept, again) == (Closed::Kept, Closed::Kept) { opened.found } else { Found::No }
        }
    };
    if found == Found::Yes && read == written.as_bytes() {
        return Ok(());
    }
    Err(Failure {
        class: ErrorClass::Protocol,
        message: format!(
            "session `{id}` was written but came back {} (expected the {} bytes written)",
            if found == Found::No { "missing".into() } else { format!("as {} bytes", read.len()) },
            written.len()
        ),
    })
}
