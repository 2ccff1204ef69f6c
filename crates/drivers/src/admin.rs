//! What is done around a run: facts, a place for its data, a check, and the cleaning up.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{Backend, Endpoint, ErrorClass, Fact, Failure, Layout, StoreCounters};
use workloads::store::{Closed, Found, StoreError};

use crate::patience::Patience;
use crate::wire::Dialect;
use crate::{SessionOptions, fault, kv, open_page_store, open_session_store};

/// What a store tells about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Product and version as the server reports it: `Redis 7.0.15`, `Valkey 8.1.1`,
    /// `MariaDB 10.11.19`, `memcached 1.6.18`, `files on ext4`; of several servers each once.
    pub version: String,
    /// Whether nobody's data is there: no key in the database, no table; `None` where the server
    /// does not tell. Always true of files, whose sessions go into a new subdirectory.
    pub empty: Option<bool>,
    /// Name and value of every setting that the server tells, sorted by name, without those that
    /// may hold a secret; empty where the server does not let us ask.
    pub configuration: Vec<(String, String)>,
}

impl Facts {
    /// Whether two stores are empty: not where one holds data, unknown where one does not tell.
    pub fn both_empty(one: Option<bool>, other: Option<bool>) -> Option<bool> {
        match (one, other) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            (None, _) | (_, None) => None,
        }
    }
}

/// What one server reports about its memory, which the data of all its databases share. What it
/// does not report is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Address of the server.
    pub server: String,
    /// Memory in use, bytes.
    pub used_bytes: Option<u64>,
    /// Its own limit of that, bytes; 0 where none is set.
    pub limit_bytes: Option<u64>,
    /// Memory of its machine, bytes.
    pub system_bytes: Option<u64>,
    /// What it does at its limit, as it spells it: `allkeys-lru`, `noeviction`.
    pub policy: Option<String>,
    /// Keys in all databases together.
    pub keys: Option<u64>,
    /// Keys evicted since it started.
    pub evicted: Option<u64>,
    /// True where memory is divided by the size of items and each part evicts by itself: then free
    /// memory protects no item.
    pub by_size_class: bool,
}

/// The connection around a run, one a target. Not for the measured span.
pub trait Admin: Send {
    /// Version, emptiness and configuration.
    fn facts(&mut self) -> Result<Facts, Failure>;

    /// Makes the place for the sessions: the table `name` of the layout's schema, for values of
    /// up to `value_bytes`, or the subdirectory `name`. Returns the directory for
    /// [`SessionOptions::directory`]; empty for servers. Something of that name which exists
    /// already is left alone and an error of class `NotOurs`. Nothing where keys need no place.
    fn prepare(
        &mut self,
        layout: Layout,
        name: &str,
        value_bytes: usize,
    ) -> Result<PathBuf, Failure> {
        let _ = (layout, name, value_bytes);
        Ok(PathBuf::new())
    }

    /// Makes what clients of an application cache find there: the tables of
    /// [`Backend::MagentoMysql`]; nothing for a backend that makes all it needs by itself. Tables
    /// of these names which exist already are left alone and an error of class `NotOurs`;
    /// [`Admin::clean`] removes those that were made.
    fn prepare_cache(&mut self, backend: Backend) -> Result<(), Failure> {
        let _ = backend;
        Ok(())
    }

    /// Writes the session `id` (which must not exist) by a client of its own, reads it back,
    /// compares it and removes it again. `id` should carry the run's prefix.
    fn verify(&mut self, layout: Layout, options: &SessionOptions, id: &str)
    -> Result<(), Failure>;

    /// Writes `key` (which must not exist) as a plain key, reads it back, compares it and removes
    /// it again, as far as the store knows how. `key` should carry the run's prefix. Errors: also
    /// a store that keeps no plain keys.
    fn probe(&mut self, key: &str) -> Result<(), Failure> {
        let message = format!("key `{key}` cannot be written: the store keeps no plain keys");
        Err(Failure { class: ErrorClass::Other, message })
    }

    /// The value of a plain key; `None` where there is none. Errors: also a store that keeps no
    /// plain keys.
    fn read(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let key = String::from_utf8_lossy(key);
        let message = format!("key `{key}` cannot be read: the store keeps no plain keys");
        Err(Failure { class: ErrorClass::Other, message })
    }

    /// Checks that commands of a user touch only the run's own keys, as
    /// [`check_own_keys`](crate::kv::check_own_keys) does, and asks the server where it knows which
    /// arguments are keys. Errors: one that does not, or of which the server says otherwise.
    fn check_commands(&mut self, commands: &[&str]) -> Result<(), Failure> {
        match commands.first() {
            None => Ok(()),
            Some(command) => {
                let message = format!("command `{command}` cannot be sent: the store takes none");
                Err(Failure { class: ErrorClass::Other, message })
            }
        }
    }

    /// Removes what this run made and nothing else: on Redis the keys of the sessions whose ids
    /// begin with `prefix` (by `SCAN` and `UNLINK`; an empty prefix is refused), on SQL servers the
    /// tables whose names do (none for an empty one), and everywhere the tables or subdirectories
    /// that [`Admin::prepare`] of this very value created. Errors: also the end of `patience`.
    fn clean(
        &mut self,
        layout: Layout,
        prefix: &str,
        patience: &mut Patience<'_>,
    ) -> Result<(), Failure>;

    /// As [`Admin::clean`], after a run that was killed: also where keys can only be listed by
    /// walking through all that the store holds, as on memcached. Errors: also a store that lists
    /// none.
    fn sweep(
        &mut self,
        layout: Layout,
        prefix: &str,
        patience: &mut Patience<'_>,
    ) -> Result<(), Failure> {
        self.clean(layout, prefix, patience)
    }

    /// True where [`Admin::clean`] finds what the run wrote; else its keys are removed by name.
    fn lists_names(&self) -> bool {
        true
    }

    /// Removes keys by name where they cannot be listed, in batches of at most some thousands; how
    /// many of them were there. Elsewhere this does nothing.
    fn remove_names(&mut self, names: &[Vec<u8>]) -> Result<u64, Failure> {
        let _ = names;
        Ok(0)
    }

    /// What the store tells about itself now, of several servers together; `None` where it tells
    /// nothing of that kind, and never will. While a load runs, it is asked on a connection of its
    /// own.
    fn counters(&mut self) -> Result<Option<StoreCounters>, Failure> {
        Ok(None)
    }

    /// Numbers about the store that are no counters: what the last save cost, what a key takes. Of
    /// several servers the sum of what was copied, else the most; empty where it tells none.
    fn numbers(&mut self) -> Result<Vec<Fact>, Failure> {
        Ok(Vec::new())
    }

    /// Lets each server save its data to disk in the background. Errors: also a store that cannot.
    fn save(&mut self) -> Result<(), Failure> {
        let message = "the plan saves the store's data to disk, which this store cannot do".into();
        Err(Failure { class: ErrorClass::Other, message })
    }

    /// How much memory is left, of each server by itself, of a cluster of each primary. Empty where
    /// data are not limited by memory. A server that refuses to tell leaves its fields unknown.
    fn room(&mut self) -> Result<Vec<Room>, Failure> {
        Ok(Vec::new())
    }
}

/// Checks a command without asking a server.
pub(crate) fn check_own_keys(dialect: Dialect, command: &str) -> Result<(), Failure> {
    let checked = kv::check_own_keys(dialect, command);
    checked.map_err(|e| {
        let message = format!("{e}; --i-own-this-server allows every command");
        Failure { class: ErrorClass::Denied, message }
    })
}

/// Refuses to remove the keys of all.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), Failure> {
    if !prefix.is_empty() {
        return Ok(());
    }
    let message = "an empty prefix would remove the keys of others (expected the run's)".into();
    Err(Failure { class: ErrorClass::NotOurs, message })
}

/// Settings of several servers as those of one: what is the same on all once, the rest with the
/// server's address behind its name.
pub(crate) fn together(of_servers: Vec<(String, Vec<(String, String)>)>) -> Vec<(String, String)> {
    let number = of_servers.len();
    let mut servers: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (server, settings) in of_servers {
        for setting in settings {
            servers.entry(setting).or_default().push(server.clone());
        }
    }
    let mut all = Vec::new();
    for ((name, value), on) in servers {
        if on.len() == number {
            all.push((name, value));
        } else {
            all.extend(on.iter().map(|server| (format!("{name} ({server})"), value.clone())));
        }
    }
    all
}

/// What several servers told, together; `None` when none of them told anything.
pub(crate) fn counted(
    of_servers: impl Iterator<Item = Result<StoreCounters, StoreError>>,
) -> Result<Option<StoreCounters>, Failure> {
    let mut all = StoreCounters::default();
    for one in of_servers {
        all = all.and(&one?);
    }
    Ok(Some(all).filter(|told| *told != StoreCounters::default()))
}

/// Versions of several servers, each once.
pub(crate) fn versions(mut versions: Vec<String>) -> String {
    versions.sort();
    versions.dedup();
    fault::words(versions.join(" and ").as_bytes())
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
            store.create(id, written.as_bytes())?;
            store.read(id, &mut read)?
        }
        Layout::Page => {
            let mut store = open_page_store(endpoint, options)?;
            store.open(id, &mut read)?;
            let kept = store.close(written.as_bytes())?;
            let opened = store.open(id, &mut read)?;
            let again = store.close(written.as_bytes())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_empty_together_where_all_tell_so() {
        let [yes, no] = [Some(true), Some(false)];
        assert_eq!(Facts::both_empty(yes, yes), yes);
        assert_eq!(Facts::both_empty(yes, None), None);
        assert_eq!(Facts::both_empty(None, no), no);
        assert_eq!(Facts::both_empty(no, yes), no);
    }

    #[test]
    fn settings_of_several_servers_are_told_once_where_they_agree() {
        let settings = |value: &str| vec![("a".into(), "1".into()), ("b".into(), value.into())];
        let all = together(vec![("h:1".into(), settings("x")), ("h:2".into(), settings("y"))]);
        let told = [("a", "1"), ("b (h:1)", "x"), ("b (h:2)", "y")];
        assert_eq!(all, told.map(|(name, value)| (name.to_string(), value.to_string())));
        assert_eq!(together(vec![("h:1".into(), settings("x"))]), settings("x"));
        assert_eq!(versions(vec!["b 2".into(), "b 1".into(), "b 2".into()]), "b 1 and b 2");
    }
}
