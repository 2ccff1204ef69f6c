//! Statistics of a Redis server, from the sections of `INFO` that contain counters.
//!
//! Source: <https://redis.io/docs/latest/commands/info/>. Version 7 and later return several
//! sections per request; older versions and some compatible servers only one.

use std::str::FromStr;

use model::{BackgroundWrite, ErrorClass, Fact, StoreCounters};
use workloads::store::StoreError;

use super::errors::known;
use super::resp::text;
use super::wire::Wire;
use crate::MemoryStats;

const SECTIONS: [&[u8]; 5] = [b"clients", b"memory", b"persistence", b"stats", b"keyspace"];

/// The sections with counters, concatenated. `takes_one_section` is kept from call to call. Empty
/// if the server does not know `INFO` or denies access.
pub(super) fn info(wire: &mut Wire, takes_one_section: &mut bool) -> Result<String, StoreError> {
    let is_denied = |e: &StoreError| e.class == ErrorClass::Denied && !e.fatal;
    if !*takes_one_section {
        let [clients, memory, persistence, stats, keyspace] = SECTIONS;
        match known(wire.ask(&[b"INFO", clients, memory, persistence, stats, keyspace])) {
            Ok(reply) => return Ok(reply.map(text).unwrap_or_default()),
            Err(e) if is_denied(&e) => return Ok(String::new()),
            // A syntax error, whatever its wording; other errors, such as `BUSY`, are returned.
            Err(e) if !e.fatal && e.message.contains("`ERR ") => *takes_one_section = true,
            Err(e) => return Err(e),
        }
    }
    let mut all = String::new();
    for section in SECTIONS {
        match known(wire.ask(&[b"INFO", section])) {
            Ok(reply) => all += &reply.map(text).unwrap_or_default(),
            Err(e) if is_denied(&e) => return Ok(String::new()),
            Err(e) => return Err(e),
        }
        all.push('\n');
    }
    Ok(all)
}

/// The value of a field.
fn field<T: FromStr>(info: &str, name: &str) -> Option<T> {
    let of_line = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok();
    info.lines().find_map(of_line)
}

/// Memory statistics from these sections, without the server's address.
pub(super) fn memory_stats(info: &str) -> MemoryStats {
    MemoryStats {
        server: String::new(),
        used_bytes: field(info, "used_memory"),
        limit_bytes: field(info, "maxmemory"),
        system_bytes: field(info, "total_system_memory").filter(|bytes| *bytes > 0),
        policy: field(info, "maxmemory_policy"),
        keys: keys(info),
        evicted: field(info, "evicted_keys"),
        by_size_class: false,
    }
}

/// Counters from these sections. Keys are those of all databases.
pub(super) fn counters(info: &str) -> StoreCounters {
    let field = |name: &str| field(info, name);
    let used_bytes: Option<u64> = field("used_memory");
    let fragmentation = field("used_memory_rss").zip(used_bytes);
    StoreCounters {
        used_bytes,
        limit_bytes: field("maxmemory").filter(|bytes| *bytes > 0),
        fragmentation: fragmentation
            .and_then(|(resident, used)| StoreCounters::fragmentation_of(resident, used)),
        keys: keys(info),
        connections: field("connected_clients"),
        refused: field("rejected_connections"),
        commands: field("total_commands_processed"),
        hits: field("keyspace_hits"),
        misses: field("keyspace_misses"),
        evicted: field("evicted_keys"),
        expired: field("expired_keys"),
        saving: field("rdb_bgsave_in_progress"),
        rewriting: field("aof_rewrite_in_progress"),
        received_bytes: field("total_net_input_bytes"),
        sent_bytes: field("total_net_output_bytes"),
        flash_hits: None,
    }
}

/// Fewest keys for which the bytes per key are those of keys: buffers of connections are some
/// hundred kilobytes.
const KEYS_MIN: u64 = 1_000;

/// Facts from these sections: the last save and the last rewrite, if any, and the bytes per key.
pub(super) fn facts(info: &str) -> Vec<Fact> {
    let number = |name: &str| field::<f64>(info, name);
    // The time of the last one is -1 if there was none.
    let saved = number("rdb_last_bgsave_time_sec") >= Some(0.0);
    let rewritten = number("aof_last_rewrite_time_sec") >= Some(0.0);
    let of_last = |name, happened: bool| number(name).filter(|_| happened);
    let fork_us = of_last("latest_fork_usec", saved || rewritten);
    let data_bytes = number("used_memory").zip(number("used_memory_startup")).map(|(a, b)| a - b);
    let keys = keys(info).filter(|keys| *keys >= KEYS_MIN);
    let values = [
        (BackgroundWrite::Save.copied_bytes(), of_last("rdb_last_cow_size", saved)),
        (BackgroundWrite::Rewrite.copied_bytes(), of_last("aof_last_cow_size", rewritten)),
        (Fact::FORK_NS, fork_us.map(|us| us * 1e3)),
        (Fact::BYTES_PER_KEY, data_bytes.zip(keys).map(|(bytes, keys)| bytes / keys as f64)),
    ];
    let fact = |(name, value): (&str, Option<f64>)| {
        Some(Fact { name: name.into(), value: value?, source: "INFO".into() })
    };
    values.into_iter().filter_map(fact).collect()
}

/// True if the last write of this kind that ended failed.
pub(super) fn last_failed(info: &str, what: BackgroundWrite) -> bool {
    let status = match what {
        BackgroundWrite::Save => "rdb_last_bgsave_status",
        BackgroundWrite::Rewrite => "aof_last_bgrewrite_status",
    };
    field::<String>(info, status).is_some_and(|status| status == "err")
}

/// Sums `db0:keys=1,expires=0,…` over the databases; an empty one has no line.
fn keys(info: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let (number, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
        number.parse::<u32>().ok()?;
        rest.split(',').next()?.trim().parse::<u64>().ok()
    };
    let has_section = info.lines().any(|line| line.trim_end().eq_ignore_ascii_case("# keyspace"));
    has_section.then(|| info.lines().filter_map(of_line).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_parsed_from_info() {
        let info = "# Clients\r\nconnected_clients:3\r\n\r\n# Memory\r\nused_memory:1000000\r\n\
                    used_memory_human:976.56K\r\nused_memory_rss:2500000\r\nmaxmemory:0\r\n\r\n\
                    # Stats\r\ntotal_commands_processed:17\r\nkeyspace_hits:5\r\n\
                    keyspace_misses:2\r\nevicted_keys:0\r\n\r\n# Keyspace\r\n\
                    db0:keys=7,expires=1,avg_ttl=9\r\ndb12:keys=2,expires=0,avg_ttl=0\r\n";
        let expected = StoreCounters {
            used_bytes: Some(1_000_000),
            fragmentation: Some(2.5),
            keys: Some(9),
            connections: Some(3),
            commands: Some(17),
            hits: Some(5),
            misses: Some(2),
            evicted: Some(0),
            ..StoreCounters::default()
        };
        assert_eq!(counters(info), expected);
        assert_eq!(counters("maxmemory:4096\r\n").limit_bytes, Some(4096));
        assert_eq!(counters("# Keyspace\r\n").keys, Some(0));
        assert_eq!(counters("redis_version:7.0.15\r\n"), StoreCounters::default());
    }

    #[test]
    fn save_facts_need_a_save() {
        let info = "used_memory:2000000\r\nused_memory_startup:1000000\r\n\
                    rdb_last_bgsave_time_sec:-1\r\nrdb_last_cow_size:0\r\n\
                    latest_fork_usec:0\r\n# Keyspace\r\ndb0:keys=10000,expires=0\r\n";
        let names = |info: &str| {
            facts(info).into_iter().map(|fact| (fact.name, fact.value)).collect::<Vec<_>>()
        };
        assert_eq!(names(info), [("bytes_per_key".to_string(), 100.0)]);
        assert_eq!(names(&info.replace("keys=10000", "keys=999")), []);
        let saved = info.replace("sec:-1", "sec:0").replace("cow_size:0", "cow_size:4096");
        let saved = saved.replace("usec:0", "usec:250");
        let first = &names(&saved)[..2];
        assert_eq!(first, [("save_copied_bytes".into(), 4096.0), ("fork_ns".into(), 250_000.0)]);
        let rewritten = format!("aof_last_rewrite_time_sec:2\r\naof_last_cow_size:7\r\n{saved}");
        assert_eq!(names(&rewritten)[1], ("rewrite_copied_bytes".into(), 7.0));
        assert_eq!(names(&rewritten).len(), 4);
    }

    #[test]
    fn memory_fields_are_unknown_if_missing() {
        let info = "# Memory\r\nused_memory:7\r\ntotal_system_memory:64\r\nmaxmemory:0\r\n\
                    maxmemory_policy:noeviction\r\n# Stats\r\nevicted_keys:3\r\n\
                    # Keyspace\r\ndb0:keys=2,expires=0\r\ndb9:keys=1,expires=0\r\n";
        let expected = MemoryStats {
            used_bytes: Some(7),
            limit_bytes: Some(0),
            system_bytes: Some(64),
            policy: Some("noeviction".into()),
            keys: Some(3),
            evicted: Some(3),
            ..MemoryStats::default()
        };
        assert_eq!(memory_stats(info), expected);
        assert_eq!(memory_stats(""), MemoryStats::default());
    }
}
