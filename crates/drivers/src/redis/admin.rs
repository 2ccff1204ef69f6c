//! A Redis server around a run.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use load::wire::route::Route;
use model::{Endpoint, ErrorClass, Failure, Layout, StoreCounters};
use workloads::store::StoreError;

use super::InTurn;
use super::counters::{counters, info, room};
use super::members;
use super::own_keys;
use super::page::{KEY_PREFIX, LOCK_SUFFIX};
use super::resp::Tree;
use super::wire::Wire;
use crate::wire::Dialect;
use crate::{Admin, Facts, Patience, Room, SessionOptions, admin, fault};

/// Keys that one `SCAN` looks at, about.
const BATCH: &[u8] = b"1000";
/// Names that are asked for to see whether a server has all keys.
const SLOTS_TRIED: u32 = 32;
/// How long a server may be away, or busy, when a run's keys are to be removed.
const AWAY_MAX: Duration = Duration::from_secs(10);
/// How soon it is asked again.
const PAUSE: Duration = Duration::from_millis(100);

struct RedisAdmin {
    /// Each server by itself, of a cluster every primary.
    servers: Vec<Server>,
    route: Box<dyn Route>,
    /// For one question.
    timeout: Duration,
}

struct Server {
    endpoint: Endpoint,
    /// True for one of a cluster's.
    is_member: bool,
    wire: Wire,
    timeout: Duration,
    /// True once it was seen to take a single section of `INFO` at a time.
    takes_one_section: bool,
}

pub(crate) fn open_admin(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<Box<dyn Admin>, StoreError> {
    let (route, endpoints) = members(endpoint, timeout)?;
    let is_member = matches!(endpoint, Endpoint::Redis { way, .. } if way.is_cluster);
    let in_turn = InTurn::new(timeout);
    let server = |endpoint: Endpoint| {
        in_turn.check().map_err(|e| StoreError::fatal(e.class, e.message))?;
        let wire = Wire::connect(&endpoint, timeout)?;
        Ok(Server { endpoint, is_member, wire, timeout, takes_one_section: false })
    };
    let servers = endpoints.into_iter().map(server).collect::<Result<_, StoreError>>()?;
    Ok(Box::new(RedisAdmin { servers, route, timeout }))
}

impl Server {
    fn address(&self) -> String {
        match &self.endpoint {
            Endpoint::Redis { address, .. } => address.to_string(),
            other => other.to_string(),
        }
    }

    /// `INFO server`; empty where the server does not know that.
    fn info(&mut self) -> Result<String, StoreError> {
        known(self.wire.ask(&[b"INFO", b"server"])).map(|reply| reply.map(text).unwrap_or_default())
    }

    /// Writes a key, reads it back and removes it, as far as the server knows the commands.
    fn probe(&mut self, key: &str) -> Result<(), StoreError> {
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
                    "a key was written as `{value}` and came back as `{}` (expected what was \
                     written)",
                    fault::words(text(other).as_bytes())
                ),
            )),
        }
    }

    /// Errors: it has keys and knows no `SCAN`, by which those of a run are found. What has no keys
    /// either is a stand-in for a server.
    fn lists_keys(&mut self) -> Result<(), StoreError> {
        let size = known(self.wire.ask(&[b"DBSIZE"]))?;
        let has_keys = matches!(size, Some(Tree::Integer(1..)));
        if has_keys && known(self.wire.ask(&[b"SCAN", b"0"]))?.is_none() {
            let message = "the server knows no `SCAN`, by which the keys of a run are found and \
                           removed (expected a server that does: it may be renamed there)";
            return Err(StoreError::fatal(ErrorClass::Other, message));
        }
        Ok(())
    }

    fn configuration(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        let list = match self.wire.ask(&[b"CONFIG", b"GET", b"*"]) {
            Ok(Tree::List(list)) => list,
            Ok(_) => Vec::new(),
            // Managed servers forbid it; an account may not be allowed to.
            Err(e) if !e.fatal => Vec::new(),
            Err(e) => return Err(e),
        };
        let texts: Vec<String> = list.into_iter().map(text).collect();
        let pairs = texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let mut told: Vec<_> = pairs.filter(|(name, _)| !may_be_secret(name)).collect();
        told.sort();
        Ok(told)
    }

    /// Asks a server that may be one of a cluster's for names of many slots: a single name may be
    /// one of its own.
    fn has_every_slot(&mut self, name: &str) -> Result<(), StoreError> {
        let info = self.info()?;
        if self.is_member || !is_of_cluster(&info) {
            return Ok(());
        }
        let names: Vec<String> = (0..SLOTS_TRIED).map(|n| format!("{name}-{n}")).collect();
        let requests: Vec<Vec<&[u8]>> =
            names.iter().map(|name| vec![&b"EXISTS"[..], name.as_bytes()]).collect();
        let asked = self.wire.all(&requests);
        if asked.is_err() {
            // On the old one replies to the rest are still under way.
            self.wire = Wire::connect(&self.endpoint, self.timeout)?;
        }
        asked
    }

    /// Removes keys also from a server that is away for a moment.
    fn remove_patiently(
        &mut self,
        prefix: &str,
        patience: &mut Patience<'_>,
    ) -> Result<(), StoreError> {
        let since = Instant::now();
        let mut removed = self.remove_matching(prefix, patience);
        while let Err(e) = &removed
            && passes(e)
            && since.elapsed() < AWAY_MAX
        {
            out_of(patience)?;
            thread::sleep(PAUSE);
            removed = Wire::connect(&self.endpoint, self.timeout).and_then(|wire| {
                self.wire = wire;
                self.remove_matching(prefix, patience)
            });
        }
        removed
    }

    fn remove_matching(
        &mut self,
        prefix: &str,
        patience: &mut Patience<'_>,
    ) -> Result<(), StoreError> {
        let mut pattern = escape(prefix);
        pattern.push('*');
        let mut cursor = b"0".to_vec();
        let size = known(self.wire.ask(&[b"DBSIZE"]))?;
        let keys = if let Some(Tree::Integer(keys)) = size { keys } else { 0 };
        for _ in 0..scans_max(keys) {
            out_of(patience)?;
            let request: [&[u8]; 6] =
                [b"SCAN", &cursor, b"MATCH", pattern.as_bytes(), b"COUNT", BATCH];
            let Some(reply) = known(self.wire.ask(&request))? else { return self.lists_keys() };
            let (next, keys) = scanned(reply)?;
            // The server matched; nothing is removed on its word alone.
            let ours = keys.iter().filter(|key| key.starts_with(prefix.as_bytes()));
            // One by one: a cluster refuses keys of several slots in one request, and those of a
            // slot that is on its way to this server without being asked specially.
            let mut requests: Vec<Vec<&[u8]>> = Vec::new();
            for key in ours {
                if self.is_member {
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
        let message = format!("`SCAN` does not end, though `DBSIZE` is {keys}");
        Err(StoreError::fatal(ErrorClass::Protocol, message))
    }
}

/// How often `SCAN` may go on: a table of keys has at least one of its places in ten taken, but for
/// a while after most were removed.
fn scans_max(keys: i64) -> u64 {
    10_000 + u64::try_from(keys).unwrap_or_default() / 10
}

fn out_of(patience: &mut Patience<'_>) -> Result<(), StoreError> {
    patience.check().map_err(|e| StoreError::fatal(e.class, e.message))
}

/// True for an error that may be gone a little later: the server starts anew, or is busy.
fn passes(e: &StoreError) -> bool {
    let passing = ["`LOADING ", "`BUSY ", "`MASTERDOWN ", "`TRYAGAIN "];
    matches!(e.class, ErrorClass::Timeout | ErrorClass::Closed | ErrorClass::Refused)
        || passing.iter().any(|code| e.message.contains(code))
}

/// The reply; `None` where the server does not know the command.
pub(super) fn known(reply: Result<Tree, StoreError>) -> Result<Option<Tree>, StoreError> {
    match reply {
        Ok(tree) => Ok(Some(tree)),
        Err(e) if !e.fatal && e.message.to_lowercase().contains("unknown command") => Ok(None),
        Err(e) => Err(e),
    }
}

fn scanned(tree: Tree) -> Result<(Vec<u8>, Vec<Vec<u8>>), StoreError> {
    if let Tree::List(parts) = tree
        && let Ok([Tree::Text(cursor), Tree::List(keys)]) = <[Tree; 2]>::try_from(parts)
    {
        let bytes = |t| if let Tree::Text(key) = t { Some(key) } else { None };
        return Ok((cursor, keys.into_iter().filter_map(bytes).collect()));
    }
    Err(StoreError::fatal(ErrorClass::Protocol, "`SCAN` was not answered by a cursor and keys"))
}

pub(super) fn text(tree: Tree) -> String {
    match tree {
        Tree::Text(bytes) | Tree::Error(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Tree::Integer(n) => n.to_string(),
        Tree::Nil | Tree::List(_) => String::new(),
    }
}

/// Says how a cluster is reached, of which one server alone was given.
fn of_cluster(failure: Failure) -> Failure {
    if !failure.message.contains("`MOVED ") {
        return failure;
    }
    let message = format!(
        "{}: it is a member of a cluster (expected redis+cluster://host:port, which `bench` \
         reaches)",
        failure.message
    );
    Failure { message, ..failure }
}

/// `requirepass`, `tls-key-file-pass`, `masterauth`, `masteruser`, `primaryauth` and the like.
fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("pass")
        || name.contains("secret")
        || name.ends_with("auth")
        || name.ends_with("user")
}

/// A text as a pattern of `SCAN MATCH` that matches itself only.
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

/// Whether the answer of `INFO server` is that of one of a cluster's; Valkey gives the field a name
/// of its own.
fn is_of_cluster(info: &str) -> bool {
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
fn version(info: &str) -> String {
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

impl Admin for RedisAdmin {
    fn facts(&mut self) -> Result<Facts, Failure> {
        let (mut versions, mut settings, mut empty) = (Vec::new(), Vec::new(), Some(true));
        let in_turn = InTurn::new(self.timeout);
        for server in &mut self.servers {
            in_turn.check()?;
            versions.push(version(&server.info().map_err(fault::failure)?));
            let size = known(server.wire.ask(&[b"DBSIZE"])).map_err(fault::failure)?;
            empty = Facts::both_empty(empty, size.map(|size| size == Tree::Integer(0)));
            let configuration = server.configuration().map_err(fault::failure)?;
            settings.push((server.address(), configuration));
        }
        Ok(Facts {
            version: admin::versions(versions),
            empty,
            configuration: admin::together(settings),
        })
    }

    fn prepare(&mut self, _: Layout, _: &str, _: usize) -> Result<PathBuf, Failure> {
        Ok(PathBuf::new())
    }

    fn probe(&mut self, key: &str) -> Result<(), Failure> {
        let server = &mut self.servers[self.route.node(key.as_bytes())];
        let probed = server.probe(key).and_then(|()| server.has_every_slot(key));
        probed.map_err(fault::failure).map_err(of_cluster)
    }

    fn verify(
        &mut self,
        layout: Layout,
        options: &SessionOptions,
        id: &str,
    ) -> Result<(), Failure> {
        let server = &mut self.servers[self.route.node(id.as_bytes())];
        let result = admin::round_trip(&server.endpoint, layout, options, id);
        let key = match layout {
            Layout::Plain => id.to_string(),
            Layout::Page => format!("{KEY_PREFIX}{id}"),
        };
        let lock = format!("{key}{LOCK_SUFFIX}");
        let mut request: Vec<&[u8]> = vec![b"UNLINK", key.as_bytes()];
        if layout == Layout::Page {
            request.push(lock.as_bytes());
        }
        let result = result.and(server.lists_keys().map_err(fault::failure));
        let result = result.and(server.wire.ask(&request).map(drop).map_err(fault::failure));
        result.and_then(|()| server.has_every_slot(id).map_err(fault::failure)).map_err(of_cluster)
    }

    fn check_commands(&mut self, commands: &[&str]) -> Result<(), Failure> {
        for command in commands {
            admin::check_own_keys(Dialect::Redis, command)?;
            own_keys::agreed(&mut self.servers[0].wire, command).map_err(fault::failure)?;
        }
        Ok(())
    }

    fn clean(
        &mut self,
        layout: Layout,
        prefix: &str,
        patience: &mut Patience<'_>,
    ) -> Result<(), Failure> {
        if prefix.is_empty() {
            let message = "an empty prefix would remove the keys of others (expected the run's)";
            return Err(Failure { class: ErrorClass::NotOurs, message: message.into() });
        }
        let keys = match layout {
            Layout::Plain => prefix.to_string(),
            Layout::Page => format!("{KEY_PREFIX}{prefix}"),
        };
        let mut servers = self.servers.iter_mut();
        servers.try_for_each(|s| s.remove_patiently(&keys, patience)).map_err(fault::failure)
    }

    fn counters(&mut self) -> Result<Option<StoreCounters>, Failure> {
        let of_server = |server: &mut Server| {
            let text = info(&mut server.wire, &mut server.takes_one_section)?;
            Ok(counters(&text))
        };
        admin::counted(self.servers.iter_mut().map(of_server))
    }

    fn room(&mut self) -> Result<Vec<Room>, Failure> {
        let of_server = |server: &mut Server| {
            let text = info(&mut server.wire, &mut server.takes_one_section)?;
            Ok(Room { server: server.address(), ..room(&text) })
        };
        let rooms: Result<Vec<Room>, StoreError> = self.servers.iter_mut().map(of_server).collect();
        rooms.map_err(fault::failure)
    }
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

    #[test]
    fn secrets_are_known_by_name() {
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
