//! Starts the installed `redis-server`, or a program that accepts its configuration file, on a Unix
//! socket.
//!
//! The configuration file is in the socket's scratch directory: our lines first, then the plan's
//! settings as spelled in the product's redis.conf.

use super::listen::{LISTEN, PROXY, Port, TCP, TLS, quoted};
use super::own::Executable;
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::scratch::Scratch;
use crate::server::{Server, ServerSpec, answers};
use crate::settings::Form::{self, Count, Number, Servers, Words, YesNo};
use crate::settings::Names;
use model::{Endpoint, NetAddress};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::iter;
use std::path::Path;
use std::time::Duration;

/// Redis, as packaged by Debian.
pub(super) const EXECUTABLE: Executable =
    Executable { name: "redis-server", package: "redis-server" };

/// Its settings; programs in its place also accept their own ones from [`model::program`].
/// Source: `redis.conf` of 6.0 to 8.0.
pub(super) const SETTINGS: [Names; 7] = [
    // Numbers of shards, replicas and Sentinels, and the timeouts of Sentinels and clusters.
    (Servers, "shards replicas sentinels"),
    (Form::Listen, LISTEN),
    (Form::Proxy, PROXY),
    (Count, "cluster-node-timeout down-after-milliseconds failover-timeout parallel-syncs"),
    (
        Number,
        "active-defrag-cycle-max active-defrag-cycle-min active-defrag-ignore-bytes \
         active-defrag-max-scan-fields active-defrag-threshold-lower \
         active-defrag-threshold-upper active-expire-effort auto-aof-rewrite-min-size \
         auto-aof-rewrite-percentage busy-reply-threshold client-query-buffer-limit \
         hash-max-listpack-entries hash-max-listpack-value hash-max-ziplist-entries \
         hash-max-ziplist-value hll-sparse-max-bytes hz io-threads latency-monitor-threshold \
         lfu-decay-time lfu-log-factor list-compress-depth list-max-listpack-size \
         list-max-ziplist-size lua-time-limit maxclients maxmemory maxmemory-clients \
         maxmemory-eviction-tenacity maxmemory-samples proto-max-bulk-len \
         set-max-intset-entries set-max-listpack-entries set-max-listpack-value \
         slowlog-log-slower-than slowlog-max-len stream-node-max-bytes \
         stream-node-max-entries tcp-backlog tcp-keepalive timeout tracking-table-max-keys \
         zset-max-listpack-entries zset-max-listpack-value zset-max-ziplist-entries \
         zset-max-ziplist-value",
    ),
    (
        YesNo,
        "activedefrag activerehashing aof-rewrite-incremental-fsync aof-timestamp-enabled \
         aof-use-rdb-preamble appendonly disable-thp dynamic-hz io-threads-do-reads \
         jemalloc-bg-thread latency-tracking lazyfree-lazy-eviction lazyfree-lazy-expire \
         lazyfree-lazy-server-del lazyfree-lazy-user-del lazyfree-lazy-user-flush \
         no-appendfsync-on-rewrite rdb-del-sync-files rdb-save-incremental-fsync rdbchecksum \
         rdbcompression stop-writes-on-bgsave-error",
    ),
    (
        Words,
        "appendfsync client-output-buffer-limit latency-tracking-info-percentiles loglevel \
         maxmemory-policy notify-keyspace-events save",
    ),
];

/// The kernel's mode, and the setting of Redis 6.2 and later that opts out of huge pages.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const HUGE_PAGES_OFF: &str = "disable-thp";

const READY_WITHIN: Duration = Duration::from_secs(10);

/// Starts a server and waits until it replies to `PING` on its socket (10 seconds unless the spec
/// has a deadline). Call it from a thread that lives as long as the run; see [`Server`].
///
/// Errors: the program is missing; we or the server reject a setting (the message then contains the
/// server's log); no reply in time.
pub fn start_redis(guard: &Guard, spec: &ServerSpec) -> Result<Server> {
    let sockets = Scratch::for_sockets(guard)?;
    let socket = sockets.socket("server.sock")?;
    let mut lines = b"unixsocketperm 700\nunixsocket ".to_vec();
    lines.extend(quoted(&socket));
    lines.push(b'\n');
    let program = EXECUTABLE.or(spec.program).name;
    let usual = spec.bind.map(|_| TCP);
    let own = match spec.settings.get(LISTEN).map(String::as_str).or(usual) {
        None | Some("unix") => None,
        Some(way) => Some(Port::open(spec.address(), way == TLS, program, &sockets)?),
    };
    lines.extend(own.as_ref().map_or(&b"port 0"[..], |port| &port.lines));
    let (endpoint, password) = own.map_or_else(
        || (Endpoint::redis(NetAddress::Unix(socket.clone())), None),
        |port| (port.endpoint, Some(port.password)),
    );
    let mut server = spawn(guard, spec, sockets, endpoint, (&lines, &[]))?;
    let deadline = spec.deadline.unwrap_or(READY_WITHIN);
    // It replies with an error while it loads its data; without its password it says so.
    let expected = if password.is_some() { "-NOAUTH" } else { "+PONG\r\n" };
    let pong = |left| answers(&socket, "PING", expected, left);
    server.process.wait_until_ready(deadline, pong)?;
    if password.is_none() {
        server.settings.insert("port".into(), "0".into());
    }
    Ok(server)
}

/// Starts the program without waiting for it. The `lines` of its configuration define where it
/// listens; `arguments` follow the configuration file.
pub(super) fn spawn(
    guard: &Guard,
    spec: &ServerSpec,
    sockets: Scratch,
    endpoint: Endpoint,
    (lines, arguments): (&[u8], &[&str]),
) -> Result<Server> {
    let mode = fs::read_to_string(HUGE_PAGES).unwrap_or_default();
    if lacks_huge_pages(&spec.settings, &mode) {
        return Err(RigError::Host {
            problem: format!(
                "servers get no transparent huge pages here, so `{HUGE_PAGES_OFF} no` changes \
                 nothing: {HUGE_PAGES} is `{}`",
                mode.trim()
            ),
            expected: "`[always]`".into(),
        });
    }
    let own = EXECUTABLE.or(spec.program);
    let program = own.find(&spec.search)?;
    let data = Scratch::new(guard, &spec.data_parent)?;
    let directory = data.subdirectory("data")?;
    let configuration = sockets.path().join("redis.conf");
    fs::write(&configuration, configuration_text(lines, &directory, &spec.settings))
        .map_err(RigError::io("write", &configuration))?;
    let arguments =
        iter::once((&configuration).into()).chain(arguments.iter().map(OsString::from)).collect();
    let process = spec.launch(guard, (own.name, program), arguments, &directory, &sockets)?;
    Ok(Server { process: process.into(), endpoint, settings: spec.settings.clone(), data, sockets })
}

/// True if the settings keep huge pages, but the kernel's mode gives none to a server that does not
/// ask for them, so that a comparison would be with itself.
fn lacks_huge_pages(settings: &BTreeMap<String, String>, mode: &str) -> bool {
    let keeps = settings.get(HUGE_PAGES_OFF).is_some_and(|off| off.eq_ignore_ascii_case("no"));
    keeps && !mode.contains("[always]")
}

fn configuration_text(
    lines: &[u8],
    directory: &Path,
    settings: &BTreeMap<String, String>,
) -> Vec<u8> {
    let mut text = [lines, b"\ndaemonize no\nlogfile \"\"\ndir "].concat();
    text.extend(quoted(directory));
    text.push(b'\n');
    for (name, value) in settings.iter().filter(|(name, _)| *name != LISTEN) {
        let value = if value.is_empty() { "\"\"" } else { value };
        text.extend_from_slice(format!("{name} {value}\n").as_bytes());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_kept_only_where_the_kernel_gives_them() {
        let settings = |value: &str| BTreeMap::from([("disable-thp".into(), value.into())]);
        let modes = ["[always] madvise never", "always [madvise] never", "always madvise [never]"];
        let lacks = |value: &str| modes.map(|mode| lacks_huge_pages(&settings(value), mode));
        assert_eq!(lacks("no"), [false, true, true]);
        assert_eq!(lacks("yes"), [false; 3]);
        assert!(!lacks_huge_pages(&BTreeMap::new(), modes[1]));
    }

    #[test]
    fn the_configuration_contains_our_lines_and_the_plans_settings() {
        let settings = BTreeMap::from([
            ("appendonly".to_string(), "yes".to_string()),
            ("save".to_string(), String::new()),
        ]);
        let text = configuration_text(b"port 0", Path::new("/d\"\n"), &settings);
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("port 0\n"));
        assert!(text.contains("\ndir \"/d\\x22\\x0a\"\n"));
        assert!(text.ends_with("\nappendonly yes\nsave \"\"\n"));
    }
}
