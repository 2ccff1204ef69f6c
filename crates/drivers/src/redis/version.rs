//! What `INFO server` tells of a server: its name, its version, and whether it is a cluster's.

/// Whether the answer of `INFO server` is that of one of a cluster's; Valkey gives the field a name
/// of its own.
pub(super) fn is_of_cluster(info: &str) -> bool {
    info.lines().any(|line| matches!(line, "redis_mode:cluster" | "server_mode:cluster"))
}

/// Servers that tell Redis' version for the sake of old clients: the field with their own, and
/// their name. Sources: `INFO server` in their `src/server.c`, `src/server/server_family.cc`,
/// `libs/server/Metrics/Info/GarnetInfoMetrics.cs` and `src/server/server.cc`.
const RELATED: [(&str, &str); 4] = [
    ("valkey_version", "Valkey"),
    ("dragonfly_version", "Dragonfly"),
    ("garnet_version", "Garnet"),
    ("kvrocks_version", "Kvrocks"),
];

/// `Redis 7.0.15` from the answer of `INFO server`, and `Valkey 8.1.1` from a server that speaks
/// as Redis does.
pub(super) fn version(info: &str) -> String {
    let field = |name: &str| {
        let of_line = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_string);
        info.lines().find_map(of_line)
    };
    let own = RELATED.iter().find_map(|(of, name)| Some((*name, field(of)?)));
    // Dragonfly's is `df-v1.40.1`.
    if let Some((name, own)) = &own {
        return format!("{name} {}", own.trim_start_matches("df-").trim_start_matches('v'));
    }
    // KeyDB's own version stands in Redis' field.
    let program = field("executable").unwrap_or_default();
    let is_keydb = program.rsplit('/').next().is_some_and(|file| file.starts_with("keydb"));
    let name = if is_keydb { "KeyDB" } else { "Redis" };
    format!("{name} {}", field("redis_version").unwrap_or_else(|| "of unknown version".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_names_itself() {
        assert_eq!(version("# Server\r\nredis_version:7.0.15\r\nos:Linux"), "Redis 7.0.15");
        assert_eq!(version(""), "Redis of unknown version");
    }

    /// Beginnings of answers, shortened: that of KeyDB from github.com/Snapchat/KeyDB/issues/981,
    /// those of the others in the order in which the sources at [`RELATED`] write the fields.
    #[test]
    fn what_speaks_as_redis_is_told_by_its_own_name() {
        let valkey = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\n\
                      valkey_version:8.1.1\r\nvalkey_release_stage:ga\r\n";
        assert_eq!(version(valkey), "Valkey 8.1.1");
        let keydb = "# Server\r\nredis_version:6.3.4\r\nredis_git_sha1:7e7e5e57\r\n\
                     redis_mode:standalone\r\ngcc_version:9.4.0\r\nlru_clock:9975161\r\n\
                     executable:/data/keydb-server\r\n";
        assert_eq!(version(keydb), "KeyDB 6.3.4");
        let redis = keydb.replace("/data/keydb-server", "/keydb/redis-server");
        assert_eq!(version(&redis), "Redis 6.3.4");
        let dragonfly = "# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.40.1\r\n\
                         redis_mode:standalone\r\narch_bits:64\r\nmultiplexing_api:iouring\r\n";
        assert_eq!(version(dragonfly), "Dragonfly 1.40.1");
        let garnet = "# Server\r\ngarnet_version:1.0.86\r\nos:Unix 6.6.26.0\r\n\
                      monitor_task:disabled\r\nredis_version:7.4.3\r\n";
        assert_eq!(version(garnet), "Garnet 1.0.86");
        let kvrocks = "# Server\r\nversion:2.11.1\r\nkvrocks_version:2.11.1\r\n\
                       redis_version:4.0.0\r\ngit_sha1:dcb1a2f\r\n";
        assert_eq!(version(kvrocks), "Kvrocks 2.11.1");
    }

    #[test]
    fn one_of_a_cluster_says_so() {
        for mode in ["redis_mode", "server_mode"] {
            assert!(is_of_cluster(&format!("# Server\r\n{mode}:cluster\r\nos:Linux\r\n")));
            assert!(!is_of_cluster(&format!("# Server\r\n{mode}:standalone\r\n")));
        }
    }
}
