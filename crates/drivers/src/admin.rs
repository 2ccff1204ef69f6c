//! Administration around a run: facts, preparing a place for data, verification and cleanup.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{Backend, BackgroundWrite, Endpoint, ErrorClass, Fact, Failure, Layout, StoreCounters};
use workloads::store::{Closed, Found, StoreError};

use crate::patience::CleanupDeadline;
use crate::wire::Dialect;
use crate::{SessionOptions, fault, kv, open_page_store, open_session_store};

/// Facts that a store reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Product and version as the server reports it: `Redis 7.0.15`, `Valkey 8.1.1`, `MariaDB
    /// 10.11.19`, `memcached 1.6.18`, `files on ext4`; distinct versions of several servers once
    /// each.
    pub version: String,
    /// Whether the store is empty: no key in the database, no table; `None` if the server does not
    /// report it. Always true for files, whose sessions go into a new subdirectory.
    pub empty: Option<bool>,
    /// Names and values of all settings that the server reports, sorted by name, except those that
    /// can contain a secret; empty if the server denies access.
    pub configuration: Vec<(String, String)>,
}

impl Facts {
    /// Whether two stores are both empty: false if either contains data, unknown if either does not
    /// report it.
    pub fn both_empty(one: Option<bool>, other: Option<bool>) -> Option<bool> {
        match (one, other) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            (None, _) | (_, None) => None,
        }
    }
}

/// Memory statistics of one server, shared by all its databases. Fields that it does not report are
/// `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Address of the server.
    pub server: String,
    /// Memory in use, bytes.
    pub used_bytes: Option<u64>,
    /// Its own limit for that, bytes; 0 if there is none.
    pub limit_bytes: Option<u64>,
    /// Memory of its machine, bytes.
    pub system_bytes: Option<u64>,
    /// Its eviction policy, as the server spells it: `allkeys-lru`, `noeviction`.
    pub policy: Option<String>,
    /// Total keys in all databases.
    pub keys: Option<u64>,
    /// Keys evicted since it started.
    pub evicted: Option<u64>,
    /// True if memory is divided by item size and each class evicts separately; then free memory
    /// does not protect any item.
    pub by_size_class: bool,
}

/// The administrative connection of a run, one per target. Not for the timed span.
pub trait Admin: Send {
    /// Version, emptiness and configuration.
    fn facts(&mut self) -> Result<Facts, Failure>;

    /// Prepares the place for sessions: the table `name` in the layout's schema, for values of up
    /// to `value_bytes`, or the subdirectory `name`. Returns the directory for
    /// [`SessionOptions::directory`]; empty for servers. An existing table or subdirectory of that
    /// name is left unchanged and is an error of class `NotOurs`. Does nothing if keys need no
    /// place.
    fn prepare(
        &mut self,
        layout: Layout,
        name: &str,
        value_bytes: usize,
    ) -> Result<PathBuf, Failure> {
        let _ = (layout, name, value_bytes);
        Ok(PathBuf::new())
    }

    /// Prepares a store for clients of an application cache: creates the tables of
    /// [`Backend::MagentoMysql`] and does nothing for other backends. Existing tables of these
    /// names are left unchanged and are an error of class `NotOurs`. [`Admin::clean`] removes the
    /// created ones.
    fn prepare_cache(&mut self, backend: Backend) -> Result<(), Failure> {
        let _ = backend;
        Ok(())
    }

    /// Creates the table of an application that reads rows through a cache; does nothing for
    /// caches. An existing table of its name is left unchanged and is an error of class `NotOurs`.
    /// [`Admin::clean`] removes the created one.
    fn prepare_rows(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes keys with `prefix` through a proxy, looks for them on the servers that its URL names
    /// behind it, and removes them; does nothing without a proxy. Errors: one is on none of them,
    /// so that other servers would be neither checked for foreign data nor cleaned.
    fn check_behind(&mut self, _prefix: &str) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes the session `id` (which must not exist) with a separate client, reads it back,
    /// compares it and removes it. `id` should start with the run's prefix.
    fn verify(&mut self, layout: Layout, options: &SessionOptions, id: &str)
    -> Result<(), Failure>;

    /// Writes `key` (which must not exist) as a plain key, reads it back, compares it and removes
    /// it, unless the store lacks the commands. `key` should start with the run's prefix. Errors:
    /// also a store without plain keys.
    fn probe(&mut self, key: &str) -> Result<(), Failure> {
        let message =
            format!("key `{key}` cannot be written: the store does not support plain keys");
        Err(Failure { class: ErrorClass::Other, message })
    }

    /// The value of a plain key; `None` if it does not exist. Errors: also a store without plain
    /// keys.
    fn read(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let key = String::from_utf8_lossy(key);
        let message = format!("key `{key}` cannot be read: the store does not support plain keys");
        Err(Failure { class: ErrorClass::Other, message })
    }

    /// Checks that custom commands touch only the run's own keys, as
    /// [`check_own_keys`](crate::kv::check_own_keys) does, and queries the server if it knows which
    /// arguments are keys. Errors: a command that can touch other keys, or a different answer from
    /// the server.
    fn check_commands(&mut self, commands: &[&str]) -> Result<(), Failure> {
        match commands.first() {
            None => Ok(()),
            Some(command) => {
                let message = format!(
                    "command `{command}` cannot be sent: the store does not support commands"
                );
                Err(Failure { class: ErrorClass::Other, message })
            }
        }
    }

    /// Removes only what this run created: on Redis the keys of sessions whose IDs start with
    /// `prefix` (with `SCAN` and `UNLINK`; an empty prefix is rejected), on SQL servers the tables
    /// whose names start with it (none if it is empty), and everywhere the tables or subdirectories
    /// that [`Admin::prepare`] of this value created. Errors: also the end of `patience`.
    fn clean(
        &mut self,
        layout: Layout,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure>;

    /// Like [`Admin::clean`], after a run that was killed: also finds keys that can only be listed
    /// by scanning the whole store, as on memcached. Errors: also a store that cannot list keys.
    fn sweep(
        &mut self,
        layout: Layout,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        self.clean(layout, prefix, patience)
    }

    /// True if [`Admin::clean`] finds what the run wrote; otherwise its keys are removed by name.
    fn lists_names(&self) -> bool {
        true
    }

    /// Removes keys by name if they cannot be listed, in batches of at most a few thousand; returns
    /// how many existed. Does nothing for other stores.
    fn remove_names(&mut self, names: &[Vec<u8>]) -> Result<u64, Failure> {
        let _ = names;
        Ok(0)
    }

    /// Current statistics of the store, summed over its servers; `None` if it never reports any.
    /// While a load runs, they are queried on a separate connection.
    fn counters(&mut self) -> Result<Option<StoreCounters>, Failure> {
        Ok(None)
    }

    /// Statistics of the store other than counters: the cost of the last save and the last rewrite,
    /// the size of a key. For several servers, the sum of copied bytes and the maximum of all
    /// others; empty if it reports none.
    fn numbers(&mut self) -> Result<Vec<Fact>, Failure> {
        Ok(Vec::new())
    }

    /// Size on disk of a table with its indexes, bytes, at once after writes. `None` if the store
    /// has no tables or does not report it.
    fn table_bytes(&mut self, table: &str) -> Result<Option<u64>, Failure> {
        let _ = table;
        Ok(None)
    }

    /// Makes each server write to disk in the background. Errors: also a store that cannot.
    fn write(&mut self, what: BackgroundWrite) -> Result<(), Failure> {
        let message = format!(
            "the plan requests a {} in the background, which this store does not support",
            what.name()
        );
        Err(Failure { class: ErrorClass::Other, message })
    }

    /// Why the last background write of a server failed after its start; `None` if none did so far.
    fn write_failure(&mut self, what: BackgroundWrite) -> Result<Option<Failure>, Failure> {
        let _ = what;
        Ok(None)
    }

    /// Memory statistics of each server, for a cluster of each primary. Empty if data are not
    /// limited by memory. A server that denies access leaves its fields unknown.
    fn memory_stats(&mut self) -> Result<Vec<MemoryStats>, Failure> {
        Ok(Vec::new())
    }
}

/// Checks a command without querying a server.
pub(crate) fn check_own_keys(dialect: Dialect, command: &str) -> Result<(), Failure> {
    let checked = kv::check_own_keys(dialect, command);
    checked.map_err(|e| {
        let message = format!("{e}; --i-own-this-server allows every command");
        Failure { class: ErrorClass::Denied, message }
    })
}

/// Rejects an empty prefix, which would match all keys.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), Failure> {
    if !prefix.is_empty() {
        return Ok(());
    }
    let message =
        "an empty prefix would also match keys of other programs (expected the run's prefix)"
            .into();
    Err(Failure { class: ErrorClass::NotOurs, message })
}

/// Merges the settings of several servers: identical ones once, others with the server's address
/// after the name.
pub(crate) fn merge_settings(
    of_servers: Vec<(String, Vec<(String, String)>)>,
) -> Vec<(String, String)> {
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

/// The merged counters of several servers; `None` if all are empty.
pub(crate) fn merge_counters(
    of_servers: impl Iterator<Item = Result<StoreCounters, StoreError>>,
) -> Result<Option<StoreCounters>, Failure> {
    let mut all = StoreCounters::default();
    for one in of_servers {
        all = all.and(&one?);
    }
    Ok(Some(all).filter(|merged| *merged != StoreCounters::default()))
}

/// Joins the versions of several servers without duplicates.
pub(crate) fn versions(mut versions: Vec<String>) -> String {
    versions.sort();
    versions.dedup();
    fault::printable(versions.join(" and ").as_bytes())
}

/// Writes and reads one session with a client of the layout.
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
            "session `{id}` was written but read back {} (expected the {} bytes written)",
            if found == Found::No { "missing".into() } else { format!("as {} bytes", read.len()) },
            written.len()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_stores_must_report_that_they_are_empty() {
        let [yes, no] = [Some(true), Some(false)];
        assert_eq!(Facts::both_empty(yes, yes), yes);
        assert_eq!(Facts::both_empty(yes, None), None);
        assert_eq!(Facts::both_empty(None, no), no);
        assert_eq!(Facts::both_empty(no, yes), no);
    }

    #[test]
    fn identical_settings_of_several_servers_are_merged() {
        let settings = |value: &str| vec![("a".into(), "1".into()), ("b".into(), value.into())];
        let all =
            merge_settings(vec![("h:1".into(), settings("x")), ("h:2".into(), settings("y"))]);
        let merged = [("a", "1"), ("b (h:1)", "x"), ("b (h:2)", "y")];
        assert_eq!(all, merged.map(|(name, value)| (name.to_string(), value.to_string())));
        assert_eq!(merge_settings(vec![("h:1".into(), settings("x"))]), settings("x"));
        assert_eq!(versions(vec!["b 2".into(), "b 1".into(), "b 2".into()]), "b 1 and b 2");
    }
}
