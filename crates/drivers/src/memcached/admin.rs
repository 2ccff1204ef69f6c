//! Administration of memcached servers around a run.

use std::thread;
use std::time::Duration;

use load::wire::route::Route;
use model::{
    ErrorClass, Fact, Failure, Layout, Memcached, MemcachedProtocol, NetAddress, StoreCounters,
};
use workloads::store::StoreError;

use super::line::{Line, unexpected};
use super::memory::Items;
use super::requests::KEY_BYTES_MAX;
use crate::wire::Dialect;
use crate::{Admin, CleanupDeadline, Facts, MemoryStats, SessionOptions, admin, fault, tls};

/// Keys removed per write.
const REMOVED_AT_ONCE: usize = 4096;
/// Most bytes of a run's keys on one server: ten million keys of usual length.
const LISTED_BYTES_MAX: usize = 512 << 20;
/// Extra keys allowed in a listing beyond twice the server's item count: keys written since, or
/// listed twice.
const LISTED_MORE: u64 = 1 << 20;
/// Most listings of a server's keys until one contains none of the run's.
const LISTS_MAX: usize = 20;
/// Requests that list keys, the preferred one first.
const LISTINGS: [&[u8]; 2] = [b"lru_crawler metadump hash\r\n", b"lru_crawler metadump all\r\n"];
/// Pause before a busy crawler is queried again.
const BUSY_FOR: Duration = Duration::from_millis(50);

struct MemcachedAdmin {
    /// Address and connection of each server.
    servers: Vec<(String, Line)>,
    route: Box<dyn Route>,
}

pub(crate) fn open_admin(
    memcached: &Memcached,
    timeout: Duration,
) -> Result<Box<dyn Admin>, StoreError> {
    // As in the load, all servers share one certificate name.
    let tls = tls::of_target(memcached.tls.as_ref(), &memcached.servers[0])?;
    let connect = |address: &NetAddress| {
        let mut line = Line::connect(memcached, address, tls.as_ref(), timeout)?;
        // Any reply will do here; a server with TLS gives none to a client without.
        line.send(b"version\r\n")?;
        line.next()?;
        Ok((address.to_string(), line))
    };
    let servers = memcached.servers.iter().map(connect).collect::<Result<_, StoreError>>()?;
    Ok(Box::new(MemcachedAdmin { servers, route: super::route(memcached)? }))
}

impl MemcachedAdmin {
    fn ask(&mut self) -> Result<Facts, StoreError> {
        let (mut versions, mut settings, mut empty) = (Vec::new(), Vec::new(), Some(true));
        for (address, line) in &mut self.servers {
            line.send(b"version\r\n")?;
            let answer = line.next()?;
            let Some(version) = answer.strip_prefix(b"VERSION ") else {
                return Err(unexpected(&answer));
            };
            versions.push(format!("memcached {}", fault::printable(version)));
            empty = Facts::both_empty(empty, items(line)?.map(|items| items == 0));
            let mut own = line.stats(b"stats settings\r\n")?;
            own.sort();
            settings.push((address.clone(), own));
        }
        Ok(Facts {
            version: admin::versions(versions),
            empty,
            configuration: admin::merge_settings(settings),
        })
    }

    /// All keys that start with `prefix`, from all servers.
    fn names_of(
        &mut self,
        prefix: &[u8],
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut names = Vec::new();
        for (address, line) in &mut self.servers {
            let mut bytes = 0;
            list(address, line, patience, |name| {
                if name.starts_with(prefix) {
                    bytes += name.len();
                    names.push(name);
                }
                if bytes > LISTED_BYTES_MAX {
                    let message = format!("{address} lists more keys than a run can have written");
                    return Err(StoreError::fatal(ErrorClass::Protocol, message));
                }
                Ok(())
            })?;
        }
        Ok(names)
    }

    /// Writes a value, reads it back, compares it and removes it.
    fn round_trip(&mut self, name: &str) -> Result<(), StoreError> {
        if name.len() > KEY_BYTES_MAX {
            let message = format!("key `{name}` is too long (expected at most {KEY_BYTES_MAX})");
            return Err(StoreError::soft(ErrorClass::Other, message));
        }
        let written = format!("cachedyno verifies {name}");
        let (_, line) = &mut self.servers[self.route.node(name.as_bytes())];
        line.send(format!("set {name} 0 60 {}\r\n{written}\r\n", written.len()).as_bytes())?;
        let mut answer = line.next()?;
        if answer != b"STORED" {
            return Err(unexpected(&answer));
        }
        line.send(format!("get {name}\r\n").as_bytes())?;
        answer = line.next()?;
        if answer != format!("VALUE {name} 0 {}", written.len()).as_bytes() {
            return Err(unexpected(&answer));
        }
        let read = line.block(written.len())?;
        let end = line.next()?;
        line.send(format!("delete {name}\r\n").as_bytes())?;
        let removed = line.next()?;
        if read == written.as_bytes() && end == b"END" && removed == b"DELETED" {
            return Ok(());
        }
        let message = format!("key `{name}` was written but a different value was read back");
        Err(StoreError::fatal(ErrorClass::Protocol, message))
    }

    fn value(&mut self, name: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let (_, line) = &mut self.servers[self.route.node(name)];
        line.send(&[b"get ", name, b"\r\n"].concat())?;
        let answer = line.next()?;
        if answer == b"END" {
            return Ok(None);
        }
        // `VALUE <key> <flags> <bytes>`
        let words: Vec<&[u8]> = answer.split(|byte| *byte == b' ').collect();
        let bytes = match words[..] {
            [b"VALUE", key, _, bytes] if key == name => std::str::from_utf8(bytes).ok(),
            _ => None,
        };
        let Some(bytes) = bytes.and_then(|bytes| bytes.parse().ok()) else {
            return Err(unexpected(&answer));
        };
        let value = line.block(bytes)?;
        match line.next()?.as_slice() {
            b"END" => Ok(Some(value)),
            other => Err(unexpected(other)),
        }
    }

    fn remove_all(&mut self, names: &[Vec<u8>]) -> Result<u64, StoreError> {
        let mut requests = vec![(Vec::new(), 0_usize); self.servers.len()];
        for name in names {
            let (request, number) = &mut requests[self.route.node(name)];
            for part in [b"delete ", &name[..], b"\r\n"] {
                request.extend_from_slice(part);
            }
            *number += 1;
        }
        let mut there = 0;
        for ((_, line), (request, number)) in self.servers.iter_mut().zip(requests) {
            line.send(&request)?;
            for _ in 0..number {
                let answer = line.next()?;
                match answer.as_slice() {
                    b"DELETED" => there += 1,
                    b"NOT_FOUND" => {}
                    _ => return Err(unexpected(&answer)),
                }
            }
        }
        Ok(there)
    }
}

/// Number of items on a server; `None` if it does not report it.
fn items(line: &mut Line) -> Result<Option<u64>, StoreError> {
    let stats = line.stats(b"stats\r\n")?;
    let items = stats.iter().find(|(name, _)| name == "curr_items");
    Ok(items.and_then(|(_, items)| items.parse().ok()))
}

/// Passes every key of a server to `each`. Lists keys by hash table, or on older servers by LRU
/// queues, between which keys can move during the listing. Waits while the crawler is busy with the
/// server's own work.
fn list(
    address: &str,
    line: &mut Line,
    patience: &mut CleanupDeadline<'_>,
    mut each: impl FnMut(Vec<u8>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let fatal = |failure: Failure| StoreError::fatal(failure.class, failure.message);
    let cannot_list = |answer: &[u8]| {
        let words = fault::printable(answer);
        let message = format!(
            "{address} cannot list its keys: it answered `{words}` (expected memcached 1.4.31 \
             or newer with its crawler enabled)"
        );
        StoreError::fatal(ErrorClass::Other, message)
    };
    let endless = |counted: u64| {
        let message =
            format!("{address} lists keys endlessly (expected the {counted} that it reports)");
        StoreError::fatal(ErrorClass::Protocol, message)
    };
    let counted = items(line)?.unwrap_or(0);
    let mut left = counted.saturating_mul(2).saturating_add(LISTED_MORE);
    let mut ways = LISTINGS.iter();
    let mut way = ways.next();
    while let Some(request) = way {
        let refusal = line.dump(
            request,
            |line| key_of(line).is_some(),
            |entry| {
                patience.check().map_err(fatal)?;
                left = left.checked_sub(1).ok_or_else(|| endless(counted))?;
                each(key_of(entry).ok_or_else(|| cannot_list(entry))?)
            },
        )?;
        let Some(refusal) = refusal else { return Ok(()) };
        patience.check().map_err(fatal)?;
        if refusal.starts_with(b"BUSY") {
            thread::sleep(BUSY_FOR);
        } else {
            way = ways.next();
            if way.is_none() {
                return Err(cannot_list(&refusal));
            }
        }
    }
    Ok(())
}

/// The key in a line of `lru_crawler metadump`, `key=… exp=… …`, in which `%` and two digits encode
/// bytes that a line cannot contain; `None` for any other line. Source: the section on the crawler
/// in memcached's `doc/protocol.txt`.
fn key_of(entry: &[u8]) -> Option<Vec<u8>> {
    let encoded = entry.strip_prefix(b"key=")?.split(|b| *b == b' ').next()?;
    let mut key = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((first, after)) = rest.split_first() {
        let hex = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        key.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    Some(key)
}

impl Admin for MemcachedAdmin {
    fn facts(&mut self) -> Result<Facts, Failure> {
        self.ask().map_err(Failure::from)
    }

    fn verify(&mut self, _: Layout, _: &SessionOptions, id: &str) -> Result<(), Failure> {
        self.probe(id)
    }

    fn probe(&mut self, key: &str) -> Result<(), Failure> {
        self.round_trip(key).map_err(Failure::from)
    }

    fn read(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.value(key).map_err(Failure::from)
    }

    fn check_commands(&mut self, commands: &[&str]) -> Result<(), Failure> {
        let dialect = Dialect::Memcached(MemcachedProtocol::default());
        commands.iter().try_for_each(|command| admin::check_own_keys(dialect, command))
    }

    /// Does nothing, since keys cannot be listed: [`Admin::remove_names`] removes those of a run.
    fn clean(&mut self, _: Layout, _: &str, _: &mut CleanupDeadline<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn sweep(
        &mut self,
        _: Layout,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        admin::check_prefix(prefix)?;
        // A listing can miss keys that the server moves, so repeat until a listing contains none.
        for _ in 0..LISTS_MAX {
            let names = self.names_of(prefix.as_bytes(), patience)?;
            if names.is_empty() {
                return Ok(());
            }
            for names in names.chunks(REMOVED_AT_ONCE) {
                patience.check()?;
                self.remove_names(names)?;
            }
        }
        let message = format!("keys `{prefix}…` are still listed after their removal");
        Err(Failure { class: ErrorClass::Protocol, message })
    }

    fn lists_names(&self) -> bool {
        false
    }

    fn remove_names(&mut self, names: &[Vec<u8>]) -> Result<u64, Failure> {
        self.remove_all(names).map_err(Failure::from)
    }

    fn counters(&mut self) -> Result<Option<StoreCounters>, Failure> {
        let servers = self.servers.iter_mut();
        admin::merge_counters(servers.map(|(_, line)| Ok(counters(&line.stats(b"stats\r\n")?))))
    }

    fn numbers(&mut self) -> Result<Vec<Fact>, Failure> {
        let mut all = Items::default();
        for (_, line) in &mut self.servers {
            all.add(&line.stats(b"stats\r\n")?, &line.stats(b"stats items\r\n")?);
        }
        Ok(all.facts())
    }

    fn memory_stats(&mut self) -> Result<Vec<MemoryStats>, Failure> {
        let of_server = |(address, line): &mut (String, Line)| {
            let reported = counters(&line.stats(b"stats\r\n")?);
            Ok(MemoryStats {
                server: address.clone(),
                used_bytes: reported.used_bytes,
                limit_bytes: reported.limit_bytes,
                keys: reported.keys,
                evicted: reported.evicted,
                by_size_class: true,
                ..MemoryStats::default()
            })
        };
        Ok(self.servers.iter_mut().map(of_server).collect::<Result<_, StoreError>>()?)
    }
}

/// The counters from `stats`. Source: memcached's `doc/protocol.txt`, "General-purpose statistics".
///
/// `commands` counts commands on keys: `cmd_set` includes every kind of store, and a read of
/// several keys counts once per key. Expired items are counted when a read, a store that reuses
/// their memory, or the crawler finds them.
fn counters(stats: &[(String, String)]) -> StoreCounters {
    let value = |name: &str| {
        let found = stats.iter().find(|(own, _)| own == name);
        found.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let sum = |names: &[&str]| names.iter().filter_map(|name| value(name)).reduce(|a, b| a + b);
    StoreCounters {
        saving: None,
        rewriting: None,
        // Values in the file count in `bytes` as well.
        used_bytes: value("bytes")
            .map(|bytes| bytes.saturating_sub(value("extstore_bytes_used").unwrap_or(0))),
        limit_bytes: value("limit_maxbytes").filter(|bytes| *bytes > 0),
        fragmentation: None,
        keys: value("curr_items"),
        connections: value("curr_connections"),
        refused: value("rejected_connections"),
        commands: sum(&[
            "cmd_get",
            "cmd_set",
            "cmd_touch",
            "delete_hits",
            "delete_misses",
            "incr_hits",
            "incr_misses",
            "decr_hits",
            "decr_misses",
        ]),
        hits: value("get_hits"),
        misses: value("get_misses"),
        evicted: value("evictions"),
        expired: sum(&["get_expired", "reclaimed", "crawler_reclaimed"]),
        received_bytes: value("bytes_read"),
        sent_bytes: value("bytes_written"),
        flash_hits: value("get_extstore"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed_from_crawler_lines() {
        let key = |line: &str| key_of(line.as_bytes()).map(|k| String::from_utf8(k).unwrap());
        assert_eq!(key("key=a-1 exp=-1 la=3").as_deref(), Some("a-1"));
        assert_eq!(key("key=a%20b%25%zz%4 exp=-1").as_deref(), Some("a b%%zz%4"));
        assert_eq!(key("BUSY currently processing crawler request"), None);
    }

    #[test]
    fn counters_are_parsed_from_stats() {
        let stats = [
            ("pid", "1"),
            ("bytes", "640"),
            ("limit_maxbytes", "67108864"),
            ("curr_connections", "3"),
            ("cmd_get", "10"),
            ("cmd_set", "4"),
            ("delete_misses", "1"),
            ("get_expired", "2"),
            ("crawler_reclaimed", "5"),
            ("get_extstore", "6"),
            ("version", "1.6.18"),
        ];
        let stats = stats.map(|(name, value)| (name.to_string(), value.to_string()));
        let expected = StoreCounters {
            used_bytes: Some(640),
            limit_bytes: Some(64 << 20),
            connections: Some(3),
            commands: Some(15),
            expired: Some(7),
            flash_hits: Some(6),
            ..StoreCounters::default()
        };
        assert_eq!(counters(&stats), expected);
        assert_eq!(counters(&[]), StoreCounters::default());
    }
}
