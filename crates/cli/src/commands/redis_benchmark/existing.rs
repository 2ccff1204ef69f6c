//! Warns about existing keys on the servers and how the tests change them.
//!
//! A drop-in replacement must not ask for confirmation, since scripts would stall. Instead, one
//! line before the first request names the keys that the tests will change. The queries for it stop
//! after [`TIME_MAX`] and check only a sample of many possible names.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use drivers::redis::{Control, Tree};
use stats::format_bytes;

use super::arguments::Options;
use super::catalogue::{TAG, Test};
use super::server::Deployment;
use super::{numbers, offering};

/// Approximate time limit for all queries together.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Maximum number of names to check per pattern.
const NAMES_MAX: u64 = 1000;
/// The same if the names can be on different servers.
const NAMES_MAX_SPREAD: u64 = 20;
/// Names per query.
const NAMES_AT_ONCE: usize = 100;
/// Number of `RANDOMKEY` queries, to find names outside the sample.
const RANDOM_KEYS: usize = 20;
/// Maximum number of characters shown of a name or an error reply.
const SHOWN_MAX: usize = 60;

/// Read-only commands.
const READ_COMMANDS: &str = "\
    PING ECHO TIME GET MGET EXISTS TTL PTTL TYPE STRLEN GETRANGE LRANGE LLEN LINDEX SCARD \
    SMEMBERS SISMEMBER SRANDMEMBER HGET HGETALL HMGET HLEN HKEYS HVALS ZCARD ZRANGE ZSCORE \
    ZRANK XLEN XRANGE BITCOUNT GETBIT";

/// Effect of a command on an existing key; `None` if it changes nothing.
pub(super) fn effect(command: &str) -> Option<&'static str> {
    Some(match command {
        "SET" | "MSET" | "SETEX" | "PSETEX" | "GETSET" => "overwrites",
        "INCR" => "increments",
        "LPUSH" | "RPUSH" | "SADD" | "ZADD" | "XADD" => "adds elements",
        "HSET" | "HMSET" => "overwrites fields",
        "LPOP" | "RPOP" | "SPOP" | "ZPOPMIN" | "ZPOPMAX" => "removes elements",
        "DEL" | "UNLINK" | "GETDEL" => "removes",
        "" => return None,
        other if READ_COMMANDS.split(' ').any(|known| known == other) => return None,
        _ => "changes",
    })
}

/// One line about the existing keys and how the tests change them; `None` if there are no keys.
pub(super) fn warning(
    deployment: &mut Deployment,
    options: &Options,
    tests: &[Test],
) -> Option<String> {
    let mut queries = Queries { deployment, options, until: Instant::now() + TIME_MAX };
    let holds = match queries.keyspace() {
        Ok((databases, unlisted)) => match (held(&databases), unlisted) {
            (Some(held), None) => held,
            (Some(held), Some(reason)) => {
                format!("{held}; keys in other databases are unknown ({reason})")
            }
            (None, None) => return None,
            (None, Some(reason)) => {
                format!(
                    "the server does not report whether it holds keys in other databases ({reason})"
                )
            }
        },
        Err(reason) => format!("the server does not report whether it holds keys ({reason})"),
    };
    let effects = queries.effects(tests);
    // Even read-only tests use server memory, for replies.
    let transfers_data = tests.iter().any(|test| !["", "PING"].contains(&test.command().as_str()));
    let memory = if transfers_data { queries.memory_risk(tests) } else { None };
    Some([Some(holds), Some(effects), memory].into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// A phrase with the number of keys per database; `None` if there are no keys.
fn held(databases: &BTreeMap<u32, u64>) -> Option<String> {
    let keys: u64 = databases.values().sum();
    let each: Vec<String> =
        databases.iter().map(|(number, keys)| format!("database {number}: {keys}")).collect();
    let noun = if keys == 1 { "key" } else { "keys" };
    (keys > 0).then(|| format!("the server already holds {keys} {noun} ({})", each.join(", ")))
}

/// Queries sent before the tests.
struct Queries<'a> {
    deployment: &'a mut Deployment,
    options: &'a Options,
    until: Instant,
}

/// A result, or the reason why the server did not provide it.
type Answer<T> = Result<T, String>;

/// A key name with placeholders for numbers and tags, and the effects of the tests on such keys.
type Pattern = (Vec<u8>, Vec<String>);

/// Result of checking the names of one pattern.
#[derive(Default)]
struct PatternSearch {
    /// Number of names checked, per tag.
    checked: u64,
    /// Number of names that exist, over all tags.
    existing: u64,
    /// One existing name.
    example: Option<Vec<u8>>,
}

impl Queries<'_> {
    fn ask(&mut self, server: usize, words: &[&[u8]]) -> Answer<Tree> {
        if Instant::now() >= self.until {
            return Err("queries exceeded their time limit".into());
        }
        self.deployment.reconnect(&self.options.server);
        let Some(control) = self.deployment.controls.get_mut(server) else {
            return Err("no such server".into());
        };
        ask(control, words)
    }

    /// Number of keys by database: of all databases in `INFO`, or only of the selected one together
    /// with the reason why the others are not listed.
    fn keyspace(&mut self) -> Answer<(BTreeMap<u32, u64>, Option<String>)> {
        let (mut databases, mut unlisted) = (BTreeMap::new(), None);
        for server in 0..self.deployment.controls.len() {
            let listed = match self.ask(server, &[b"INFO", b"keyspace"]) {
                Ok(Tree::Text(info)) if info.starts_with(b"# Keyspace") => Ok(info),
                Ok(_) => Err("INFO did not return a list".to_string()),
                Err(words) => Err(words),
            };
            match listed {
                Ok(info) => {
                    let info = String::from_utf8_lossy(&info);
                    for (number, keys) in info.lines().filter_map(database) {
                        *databases.entry(number).or_default() += keys;
                    }
                }
                Err(words) => {
                    let Tree::Integer(keys) = self.ask(server, &[b"DBSIZE"])? else {
                        return Err("DBSIZE did not return a number".into());
                    };
                    let own = databases.entry(self.options.server.database).or_default();
                    *own += u64::try_from(keys).unwrap_or(0);
                    // A cluster has only one database.
                    unlisted = (!self.options.server.is_cluster).then_some(words);
                }
            }
        }
        Ok((databases, unlisted))
    }

    /// Patterns of the keys that the tests change. Errors: the title of a command that can change
    /// any key.
    fn patterns(&self, tests: &[Test]) -> Result<Vec<Pattern>, String> {
        let mut patterns: Vec<Pattern> = Vec::new();
        for test in tests {
            let command = test.command();
            let Some(effect) = effect(&command) else { continue };
            let keys = test.keys(&self.options.data, self.options.server.is_cluster);
            let effect = format!("{command} {effect}");
            for key in keys.ok_or_else(|| shown(test.title.as_bytes()))? {
                match patterns.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, effects)) if effects.contains(&effect) => {}
                    Some((_, effects)) => effects.push(effect.clone()),
                    None => patterns.push((key, vec![effect.clone()])),
                }
            }
        }
        Ok(patterns)
    }

    /// A phrase about the keys that the tests change.
    fn effects(&mut self, tests: &[Test]) -> String {
        let patterns = match self.patterns(tests) {
            Ok(patterns) if patterns.is_empty() => return "the tests change none of them".into(),
            Ok(patterns) => patterns,
            Err(title) => return format!("`{title}` can change any of them"),
        };
        let (mut changed, mut unknown, mut partly, mut refusal) = (vec![], vec![], None, None);
        for (pattern, effects) in patterns {
            let effects = effects.join(", ");
            match self.search(&pattern) {
                Ok(found) => {
                    let all = self.names_of(&pattern);
                    partly = partly.or((found.checked < all).then_some((found.checked, all)));
                    let Some(example) = found.example else { continue };
                    let more = match found.existing {
                        0 | 1 => String::new(),
                        existing => format!(" and {} more", existing - 1),
                    };
                    changed.push(format!("`{}`{more} ({effects})", shown(&example)));
                }
                Err(words) => {
                    unknown.push(format!("`{}` ({effects})", shown(&pattern)));
                    refusal = Some(words);
                }
            }
        }
        let mut parts = Vec::new();
        if !changed.is_empty() {
            parts.push(format!("the tests change {}", changed.join(", ")));
        } else if unknown.is_empty() {
            parts.push("no key that the tests change was found".into());
        }
        if let Some((checked, all)) = partly {
            parts.push(format!("{checked} of {all} possible names were checked"));
        }
        if let Some(words) = refusal {
            let unknown = unknown.join(", ");
            parts.push(format!(
                "the tests change {unknown} if they exist, which is unknown ({words})"
            ));
        }
        parts.join("; ")
    }

    /// Number of names that match a pattern, per tag.
    fn names_of(&self, pattern: &[u8]) -> u64 {
        self.options.data.keyspace.filter(|_| numbers::has_placeholder(pattern)).unwrap_or(1)
    }

    /// Searches the selected database for keys that match a pattern.
    fn search(&mut self, pattern: &[u8]) -> Answer<PatternSearch> {
        let is_cluster = self.options.server.is_cluster;
        let patterns: Vec<Vec<u8>> = if numbers::find(pattern, TAG).is_some() && is_cluster {
            let tags = offering::tag_names(self.deployment);
            tags.iter().map(|tag| numbers::replaced(pattern, TAG, tag)).collect()
        } else {
            vec![pattern.to_vec()]
        };
        // Only names with a tag are known to share a server and a slot.
        let is_spread = is_cluster && patterns[0] == pattern;
        let (max, at_once) =
            if is_spread { (NAMES_MAX_SPREAD, 1) } else { (NAMES_MAX, NAMES_AT_ONCE) };
        let mut found = PatternSearch::default();
        let all = self.names_of(pattern);
        for pattern in &patterns {
            let names: Vec<Vec<u8>> = match self.options.data.keyspace {
                Some(_) => sample(all, max).map(|n| numbers::filled(pattern, n)).collect(),
                None => vec![pattern.clone()],
            };
            found.checked = names.len() as u64;
            for batch in names.chunks(at_once) {
                self.count(batch, &mut found)?;
            }
            if found.example.is_none() && all > max {
                self.try_random_keys(pattern, all, &mut found);
            }
        }
        Ok(found)
    }

    /// Counts the existing ones of the names, which must all be on one server.
    fn count(&mut self, names: &[Vec<u8>], found: &mut PatternSearch) -> Answer<()> {
        let server = names.first().map_or(0, |name| self.deployment.servers.route.node(name));
        let existing = self.count_existing(server, names)?;
        found.existing += existing;
        if existing == 0 || found.example.is_some() {
            return Ok(());
        }
        for name in names {
            if names.len() == 1 || self.count_existing(server, std::slice::from_ref(name))? > 0 {
                found.example = Some(name.clone());
                break;
            }
        }
        Ok(())
    }

    fn count_existing(&mut self, server: usize, names: &[Vec<u8>]) -> Answer<u64> {
        let words: Vec<&[u8]> =
            [&b"EXISTS"[..]].into_iter().chain(names.iter().map(Vec::as_slice)).collect();
        match self.ask(server, &words)? {
            Tree::Integer(existing) => Ok(u64::try_from(existing).unwrap_or(0)),
            _ => Err("EXISTS did not return a number".into()),
        }
    }

    /// Looks for a key of the pattern among random keys of the server.
    fn try_random_keys(&mut self, pattern: &[u8], all: u64, found: &mut PatternSearch) {
        let lowest = numbers::filled(pattern, 0);
        let Some(at) =
            lowest.iter().zip(pattern).position(|(digit, placeholder)| digit != placeholder)
        else {
            return;
        };
        let server = self.deployment.servers.route.node(&lowest);
        for _ in 0..RANDOM_KEYS {
            let Ok(Tree::Text(name)) = self.ask(server, &[b"RANDOMKEY"]) else { return };
            let digits = name.get(at..at + numbers::BYTES);
            let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            let is_one =
                number.is_some_and(|n: u64| n < all && numbers::filled(pattern, n) == name);
            if is_one {
                found.existing += 1;
                found.example = Some(name);
                return;
            }
        }
    }

    /// A phrase about evictions or failed writes that a memory limit can cause; `None` without such
    /// a risk.
    fn memory_risk(&mut self, tests: &[Test]) -> Option<String> {
        let (options, mut risks) = (self.options, Vec::new());
        let requests = options.load.requests.unwrap_or(u64::MAX);
        let write_tests = tests.iter().filter(|test| effect(&test.command()).is_some());
        let written_bytes = write_tests
            .map(|test| requests.saturating_mul(test.payload_bytes as u64 + 64))
            .fold(0, u64::saturating_add);
        for server in 0..self.deployment.controls.len() {
            let info = match self.ask(server, &[b"INFO", b"memory"]) {
                Ok(Tree::Text(info)) => String::from_utf8_lossy(&info).into_owned(),
                _ => return Some("it is unknown whether it evicts keys".into()),
            };
            let field = |name: &str| {
                info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            };
            let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok());
            let Some(limit) = number("maxmemory").filter(|limit| *limit > 0) else { continue };
            let used = number("used_memory").unwrap_or(0);
            let policy = shown(field("maxmemory_policy").unwrap_or("unknown").as_bytes());
            let at = format!(
                "with maxmemory {} ({} used) and {policy}",
                format_bytes(limit),
                format_bytes(used)
            );
            if policy != "noeviction" {
                risks.push(format!("{at}, keys of any database can be evicted"));
            } else if used.saturating_add(written_bytes) > limit {
                risks.push(format!("{at}, writes of all clients can fail"));
            }
        }
        risks.into_iter().next()
    }
}

/// Sends a request. Errors: the server's error reply, or a failed connection.
fn ask(control: &mut Control, words: &[&[u8]]) -> Answer<Tree> {
    match control.ask(words).map_err(|e| shown(e.message.as_bytes()))? {
        Tree::Error(words) => Err(shown(&words)),
        tree => Ok(tree),
    }
}

/// Number of a database and its number of keys from a line of `INFO keyspace`, such as
/// `db0:keys=3,expires=0,avg_ttl=0`.
fn database(line: &str) -> Option<(u32, u64)> {
    let (name, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
    Some((name.parse().ok()?, rest.split(',').next()?.parse().ok()?))
}

/// At most `max` numbers below `all`: the first ones, which sequential tests start with, and others
/// at equal distances.
fn sample(all: u64, max: u64) -> impl Iterator<Item = u64> {
    let first = if all <= max { all } else { max / 2 };
    let rest = if all <= max { 0 } else { max - first };
    let spread = move |n: u64| first + ((all - first - 1) as f64 / rest as f64 * n as f64) as u64;
    (0..first).chain((1..=rest).map(spread))
}

/// Bytes as text on one line, without control characters and truncated to [`SHOWN_MAX`].
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN_MAX).collect();
    if text.chars().count() > SHOWN_MAX { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_distinct_and_include_first_and_last() {
        for (all, max) in [(1, 20), (20, 20), (21, 20), (100_000, 1000), (1_000_000_000_000, 1000)]
        {
            let numbers: Vec<u64> = sample(all, max).collect();
            assert_eq!(numbers.len() as u64, all.min(max));
            assert_eq!((numbers[0], *numbers.last().unwrap()), (0, all - 1));
            assert!(numbers.is_sorted_by(|a, b| a < b), "{all}");
        }
    }

    #[test]
    fn parses_database_lines() {
        assert_eq!(database("db3:keys=12,expires=0,avg_ttl=0"), Some((3, 12)));
        assert_eq!(database("# Keyspace"), None);
    }

    #[test]
    fn shown_text_stays_on_one_line() {
        assert_eq!(shown(b"a\r\nb\x1b[2J"), "ab[2J");
        assert_eq!(shown(&[b'x'; 100]).chars().count(), SHOWN_MAX + 1);
    }
}
