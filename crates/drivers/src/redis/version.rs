//! Parses `INFO server`: product, version, and whether the server is part of a cluster.

use model::RedisCompatible;

/// Whether the reply to `INFO server` is that of a cluster member; Valkey uses its own field name.
pub(super) fn is_of_cluster(info: &str) -> bool {
    info.lines().any(|line| matches!(line, "redis_mode:cluster" | "server_mode:cluster"))
}

/// Product and version from the reply to `INFO server`: `Redis 7.0.15`, or `Valkey 8.1.1` for a
/// compatible server that also reports a Redis version for old clients.
pub(super) fn version(info: &str) -> String {
    let field = |name: &str| {
        let of_line = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_string);
        info.lines().find_map(of_line)
    };
    let executable = field("executable").unwrap_or_default();
    let file = executable.rsplit('/').next().unwrap_or_default();
    let compatible = RedisCompatible::all().find_map(|server| {
        let version = match server.version_field {
            Some(name) => field(name)?,
            None if file.starts_with(server.program) => field("redis_version")?,
            None => return None,
        };
        // Dragonfly reports `df-v1.40.1`.
        let number = version.trim_start_matches(|c: char| !c.is_ascii_digit());
        Some(format!("{} {number}", server.title))
    });
    compatible.unwrap_or_else(|| {
        format!("Redis {}", field("redis_version").unwrap_or_else(|| "of unknown version".into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_reports_its_version() {
        assert_eq!(version("# Server\r\nredis_version:7.0.15\r\nos:Linux"), "Redis 7.0.15");
        assert_eq!(version(""), "Redis of unknown version");
    }

    /// Shortened replies: that of KeyDB from github.com/Snapchat/KeyDB/issues/981, the others with
    /// the fields in the order of their sources.
    #[test]
    fn compatible_servers_are_reported_by_their_own_name() {
        let valkey = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\n\
                      valkey_version:8.1.1\r\nvalkey_release_stage:ga\r\n";
        assert_eq!(version(valkey), "Valkey 8.1.1");
        let keydb = "# Server\r\nredis_version:6.3.4\r\nredis_git_sha1:7e7e5e57\r\n\
                     redis_mode:standalone\r\ngcc_version:9.4.0\r\nlru_clock:9975161\r\n\
                     executable:/data/keydb-server\r\n";
        assert_eq!(version(keydb), "KeyDB 6.3.4");
        let redis = keydb.replace("/data/keydb-server", "/keydb/redis-server");
        assert_eq!(version(&redis), "Redis 6.3.4");
        let redict = "# Server\r\nredis_version:7.2.4\r\nredict_version:7.3.2\r\n";
        assert_eq!(version(redict), "Redict 7.3.2");
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
    fn cluster_members_are_detected() {
        for mode in ["redis_mode", "server_mode"] {
            assert!(is_of_cluster(&format!("# Server\r\n{mode}:cluster\r\nos:Linux\r\n")));
            assert!(!is_of_cluster(&format!("# Server\r\n{mode}:standalone\r\n")));
        }
    }
}
