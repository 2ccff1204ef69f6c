//! What `INFO server` tells of a server: its name, its version, and whether it is a cluster's.

use model::Kin;

/// Whether the answer of `INFO server` is that of one of a cluster's; Valkey gives the field a name
/// of its own.
pub(super) fn is_of_cluster(info: &str) -> bool {
    info.lines().any(|line| matches!(line, "redis_mode:cluster" | "server_mode:cluster"))
}

/// `Redis 7.0.15` from the answer of `INFO server`, and `Valkey 8.1.1` from a server that speaks
/// as Redis does, and tells Redis' version for the sake of old clients.
pub(super) fn version(info: &str) -> String {
    let field = |name: &str| {
        let of_line = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_string);
        info.lines().find_map(of_line)
    };
    let executable = field("executable").unwrap_or_default();
    let file = executable.rsplit('/').next().unwrap_or_default();
    let of_kin = Kin::all().find_map(|kin| {
        let version = match kin.version_field {
            Some(name) => field(name)?,
            None if file.starts_with(kin.program) => field("redis_version")?,
            None => return None,
        };
        // Dragonfly's is `df-v1.40.1`.
        let number = version.trim_start_matches(|c: char| !c.is_ascii_digit());
        Some(format!("{} {number}", kin.title))
    });
    of_kin.unwrap_or_else(|| {
        format!("Redis {}", field("redis_version").unwrap_or_else(|| "of unknown version".into()))
    })
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
    /// those of the others in the order in which their sources write the fields.
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
    fn one_of_a_cluster_says_so() {
        for mode in ["redis_mode", "server_mode"] {
            assert!(is_of_cluster(&format!("# Server\r\n{mode}:cluster\r\nos:Linux\r\n")));
            assert!(!is_of_cluster(&format!("# Server\r\n{mode}:standalone\r\n")));
        }
    }
}
