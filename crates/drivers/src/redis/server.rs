//! One server, and what its administration asks of it.

use std::time::Duration;

use model::{Endpoint, ErrorClass};
use workloads::store::StoreError;

use super::errors::known;
use super::resp::{Tree, text};
use super::version::is_of_cluster;
use super::wire::Wire;
use crate::{CleanupDeadline, fault};

/// Approximate number of keys that one `SCAN` inspects.
const BATCH: &[u8] = b"1000";
/// Key names requested to check that a server owns all slots.
const SLOTS_TRIED: u32 = 32;

pub(super) struct Server {
    pub(super) endpoint: Endpoint,
    part: Part,
    pub(super) wire: Wire,
    /// True if `wire` can no longer be used.
    is_broken: bool,
    timeout: Duration,
    /// True once the server has rejected `INFO` with several sections.
    pub(super) takes_one_section: bool,
}

/// A server's part in a deployment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// It has all keys, or those that a proxy sends to it.
    Alone,
    /// It is a member of a cluster.
    Member,
    /// It passes requests for keys on, and refuses all others.
    Proxy,
}

impl Server {
    pub(super) fn open(
        endpoint: Endpoint,
        part: Part,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let wire = Wire::connect(&endpoint, timeout)?;
        let (is_broken, takes_one_section) = (false, false);
        Ok(Self { endpoint, part, wire, is_broken, timeout, takes_one_section })
    }

    /// Errors: it answers `PING` and closes the connection on `INFO`, twice, as a proxy does that
    /// refuses the command; or it answers nothing.
    pub(super) fn answers_info(&mut self) -> Result<(), StoreError> {
        for _ in 0..2 {
            match self.info() {
                Err(e) if e.class == ErrorClass::Closed => {
                    self.wire = Wire::connect(&self.endpoint, self.timeout)?;
                }
                Err(e) if e.fatal => return Err(e),
                // What follows reports other errors.
                _ => return Ok(()),
            }
        }
        let message = format!(
            "{} answers `PING` and closes the connection on `INFO`, as a proxy does that refuses \
             the command (expected a server, or a proxy with the servers behind it in its URL: \
             redis://HOST:PORT?behind=HOST:PORT,HOST:PORT)",
            self.address()
        );
        Err(StoreError::fatal(ErrorClass::Other, message))
    }

    pub(super) fn address(&self) -> String {
        match &self.endpoint {
            Endpoint::Redis { address, .. } => address.to_string(),
            other => other.to_string(),
        }
    }

    /// Reply to `INFO server`; empty if the server does not know it.
    pub(super) fn info(&mut self) -> Result<String, StoreError> {
        known(self.wire.ask(&[b"INFO", b"server"])).map(|reply| reply.map(text).unwrap_or_default())
    }

    /// Writes a key, reads it back and removes it, skipping commands that the server does not know.
    pub(super) fn probe(&mut self, key: &str) -> Result<(), StoreError> {
        let (key, value) = (key.as_bytes(), format!("cachedyno verifies {key}"));
        if known(self.wire.ask(&[b"SET", key, value.as_bytes()]))?.is_none() {
            return Ok(());
        }
        let read = known(self.wire.ask(&[b"GET", key]))?;
        let lists = self.lists_keys();
        if known(self.wire.ask(&[b"UNLINK", key]))?.is_none() {
            known(self.wire.ask(&[b"DEL", key]))?;
        }
        lists?;
        match read {
            None => Ok(()),
            Some(Tree::Text(read)) if read == value.as_bytes() => Ok(()),
            Some(other) => Err(StoreError::fatal(
                ErrorClass::Protocol,
                format!(
                    "a key was written as `{value}` and read back as `{}` (expected the value \
                     written)",
                    fault::printable(text(other).as_bytes())
                ),
            )),
        }
    }

    /// Errors: the server has keys but does not support `SCAN`, which finds the keys of a run. A
    /// server without keys passes: it is a fake.
    pub(super) fn lists_keys(&mut self) -> Result<(), StoreError> {
        if self.part == Part::Proxy {
            return Ok(());
        }
        let size = known(self.wire.ask(&[b"DBSIZE"]))?;
        let has_keys = matches!(size, Some(Tree::Integer(1..)));
        if has_keys && known(self.wire.ask(&[b"SCAN", b"0"]))?.is_none() {
            let message = "the server does not support `SCAN`, which finds and removes the keys \
                           of a run (expected a server that does: it may be renamed there)";
            return Err(StoreError::fatal(ErrorClass::Other, message));
        }
        Ok(())
    }

    pub(super) fn configuration(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        let list = match self.wire.ask(&[b"CONFIG", b"GET", b"*"]) {
            Ok(Tree::List(list)) => list,
            Ok(_) => Vec::new(),
            // Managed servers forbid it, and accounts can lack the permission.
            Err(e) if !e.fatal => Vec::new(),
            Err(e) => return Err(e),
        };
        let texts: Vec<String> = list.into_iter().map(text).collect();
        let pairs = texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let mut reported: Vec<_> = pairs.filter(|(name, _)| !may_be_secret(name)).collect();
        reported.sort();
        Ok(reported)
    }

    /// Requests names in many slots if the server is part of a cluster: a single name could happen
    /// to be in one of its own slots.
    pub(super) fn has_every_slot(&mut self, name: &str) -> Result<(), StoreError> {
        if self.part != Part::Alone || !is_of_cluster(&self.info()?) {
            return Ok(());
        }
        let names: Vec<String> = (0..SLOTS_TRIED).map(|n| format!("{name}-{n}")).collect();
        let requests: Vec<Vec<&[u8]>> =
            names.iter().map(|name| vec![&b"EXISTS"[..], name.as_bytes()]).collect();
        let queried = self.wire.all(&requests);
        if queried.is_err() {
            // The old connection still has replies in flight.
            self.wire = Wire::connect(&self.endpoint, self.timeout)?;
        }
        queried
    }

    /// Removes keys, on a new connection if the last attempt failed.
    pub(super) fn remove(
        &mut self,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), StoreError> {
        if self.is_broken {
            self.wire = Wire::connect(&self.endpoint, self.timeout)?;
        }
        let removed = self.remove_matching(prefix, patience);
        self.is_broken = removed.is_err();
        removed
    }

    fn remove_matching(
        &mut self,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), StoreError> {
        let mut pattern = escape(prefix);
        pattern.push('*');
        let mut cursor = b"0".to_vec();
        let size = known(self.wire.ask(&[b"DBSIZE"]))?;
        let keys = if let Some(Tree::Integer(keys)) = size { keys } else { 0 };
        for _ in 0..scans_max(keys) {
            check_patience(patience)?;
            let request: [&[u8]; 6] =
                [b"SCAN", &cursor, b"MATCH", pattern.as_bytes(), b"COUNT", BATCH];
            let Some(reply) = known(self.wire.ask(&request))? else { return self.lists_keys() };
            let (next, keys) = scanned(reply)?;
            // Check again instead of relying on the server's matching alone.
            let ours = keys.iter().filter(|key| key.starts_with(prefix.as_bytes()));
            // One key per request: a cluster rejects requests with keys of several slots, and
            // without `ASKING` also keys of a slot that is migrating to this server.
            let mut requests: Vec<Vec<&[u8]>> = Vec::new();
            for key in ours {
                if self.part == Part::Member {
                    requests.push(vec![b"ASKING"]);
                }
                requests.push(vec![b"UNLINK", key]);
            }
            self.wire.all(&requests)?;
            if next == b"0" {
                return Ok(());
            }
            cursor = next;
        }
        let message = format!("`SCAN` does not finish although `DBSIZE` is {keys}");
        Err(StoreError::fatal(ErrorClass::Protocol, message))
    }
}

/// Most `SCAN` calls for this many keys: at least a tenth of the key table's buckets are used,
/// except for a while after a mass removal.
fn scans_max(keys: i64) -> u64 {
    10_000 + u64::try_from(keys).unwrap_or_default() / 10
}

pub(super) fn check_patience(patience: &mut CleanupDeadline<'_>) -> Result<(), StoreError> {
    patience.check().map_err(|e| StoreError::fatal(e.class, e.message))
}

fn scanned(tree: Tree) -> Result<(Vec<u8>, Vec<Vec<u8>>), StoreError> {
    if let Tree::List(parts) = tree
        && let Ok([Tree::Text(cursor), Tree::List(keys)]) = <[Tree; 2]>::try_from(parts)
    {
        let bytes = |t| if let Tree::Text(key) = t { Some(key) } else { None };
        return Ok((cursor, keys.into_iter().filter_map(bytes).collect()));
    }
    Err(StoreError::fatal(ErrorClass::Protocol, "`SCAN` did not return a cursor and keys"))
}

/// True for `requirepass`, `tls-key-file-pass`, `masterauth`, `masteruser`, `primaryauth` and
/// similar settings.
fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("pass")
        || name.contains("secret")
        || name.ends_with("auth")
        || name.ends_with("user")
}

/// Escapes a text for `SCAN MATCH`, so that the pattern only matches the text itself.
fn escape(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognized_by_name() {
        for name in ["requirepass", "masterauth", "masteruser", "tls-key-file-pass", "primaryauth"]
        {
            assert!(may_be_secret(name), "{name}");
        }
        for name in ["tls-auth-clients", "maxmemory", "save", "appendfsync"] {
            assert!(!may_be_secret(name), "{name}");
        }
    }

    #[test]
    fn a_prefix_matches_itself_only() {
        assert_eq!(escape("a*b?[c]\\^"), "a\\*b\\?\\[c\\]\\\\\\^");
    }
}
