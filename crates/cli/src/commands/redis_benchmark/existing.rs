//! The keys that servers hold before the tests, and what the tests do to them.
//!
//! A drop-in asks for no permission: a script that runs twice goes on. So whoever points it at a
//! server with data reads in one line, before the first request, which keys change. A few questions
//! answer that; they end after [`TIME_MAX`], and of many names some are looked for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use drivers::redis::{Control, Tree};
use stats::format_bytes;

use super::arguments::Options;
use super::catalogue::{TAG, Test};
use super::server::Site;
use super::{numbers, offering};

/// How long all questions take together, about.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Names that are looked for where numbers make more.
const NAMES_MAX: u64 = 1000;
/// The same where each name may live on another server.
const NAMES_MAX_APART: u64 = 20;
/// Names in one question.
const NAMES_AT_ONCE: usize = 100;
/// Keys that the server chooses, to find names that were not looked for.
const DRAWN: usize = 20;
/// Characters that are shown of a name or of a server's words.
const SHOWN: usize = 60;

/// Commands that change no key.
const READING: &str = "\
    PING ECHO TIME GET MGET EXISTS TTL PTTL TYPE STRLEN GETRANGE LRANGE LLEN LINDEX SCARD \
    SMEMBERS SISMEMBER SRANDMEMBER HGET HGETALL HMGET HLEN HKEYS HVALS ZCARD ZRANGE ZSCORE \
    ZRANK XLEN XRANGE BITCOUNT GETBIT";

/// What a command does to a key that is there; `None` where it changes nothing.
pub(super) fn effect(command: &str) -> Option<&'static str> {
    Some(match command {
        "SET" | "MSET" | "SETEX" | "PSETEX" | "GETSET" => "overwrites",
        "INCR" => "increments",
        "LPUSH" | "RPUSH" | "SADD" | "ZADD" | "XADD" => "adds elements",
        "HSET" | "HMSET" => "overwrites fields",
        "LPOP" | "RPOP" | "SPOP" | "ZPOPMIN" | "ZPOPMAX" => "removes elements",
        "DEL" | "UNLINK" | "GETDEL" => "removes",
        "" => return None,
        other if READING.split(' ').any(|known| known == other) => return None,
        _ => "changes",
    })
}

/// What the servers hold and what becomes of it, in one line; `None` when they hold nothing.
pub(super) fn warning(site: &mut Site, options: &Options, tests: &[Test]) -> Option<String> {
    let mut questions = Questions { site, options, until: Instant::now() + TIME_MAX };
    let holds = match questions.keyspace() {
        Ok((databases, unlisted)) => match (held(&databases), unlisted) {
            (Some(held), None) => held,
            (Some(held), Some(words)) => format!("{held}; other databases are unknown ({words})"),
            (None, None) => return None,
            (None, Some(words)) => {
                format!(
                    "the server does not say whether it holds keys in other databases ({words})"
                )
            }
        },
        Err(words) => format!("the server does not say whether it holds keys ({words})"),
    };
    let effects = questions.effects(tests);
    // Replies take memory as well.
    let moves = tests.iter().any(|test| !["", "PING"].contains(&test.command().as_str()));
    let room = if moves { questions.room(tests) } else { None };
    Some([Some(holds), Some(effects), room].into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// How many keys databases hold, in words; `None` where that is none.
fn held(databases: &BTreeMap<u32, u64>) -> Option<String> {
    let keys: u64 = databases.values().sum();
    let each: Vec<String> =
        databases.iter().map(|(number, keys)| format!("database {number}: {keys}")).collect();
    let noun = if keys == 1 { "key" } else { "keys" };
    (keys > 0).then(|| format!("the server already holds {keys} {noun} ({})", each.join(", ")))
}

/// What is asked before the tests.
struct Questions<'a> {
    site: &'a mut Site,
    options: &'a Options,
    until: Instant,
}

/// A number, or the server's words for not giving it.
type Answer<T> = Result<T, String>;

/// Names of keys, with holes for numbers and tags, and what each test does to them.
type Pattern = (Vec<u8>, Vec<String>);

/// What became of looking for the names of one pattern.
#[derive(Default)]
struct Found {
    /// Names that were looked for, and how many of them exist.
    asked: u64,
    there: u64,
    /// One that exists.
    example: Option<Vec<u8>>,
}

impl Questions<'_> {
    fn ask(&mut self, server: usize, words: &[&[u8]]) -> Answer<Tree> {
        if Instant::now() >= self.until {
            return Err("no time was left to ask".into());
        }
        let Some(control) = self.site.controls.get_mut(server) else {
            return Err("nobody to ask".into());
        };
        ask(control, words)
    }

    /// Keys by database: of all that `INFO` lists, or of the selected one with the server's words
    /// for not listing the others.
    fn keyspace(&mut self) -> Answer<(BTreeMap<u32, u64>, Option<String>)> {
        let (mut databases, mut unlisted) = (BTreeMap::new(), None);
        for server in 0..self.site.controls.len() {
            let listed = match self.ask(server, &[b"INFO", b"keyspace"]) {
                Ok(Tree::Text(info)) if info.starts_with(b"# Keyspace") => Ok(info),
                Ok(_) => Err("INFO was not answered by a list".to_string()),
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
                        return Err("DBSIZE was not answered by a number".into());
                    };
                    let own = databases.entry(self.options.server.database).or_default();
                    *own += u64::try_from(keys).unwrap_or(0);
                    // A cluster has but one database.
                    unlisted = (!self.options.server.is_cluster).then_some(words);
                }
            }
        }
        Ok((databases, unlisted))
    }

    /// Names of the keys that the tests change, with holes, and what each test does to them.
    /// Errors: the title of a command that may change any key.
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

    /// The keys that the tests change, in words.
    fn effects(&mut self, tests: &[Test]) -> String {
        let patterns = match self.patterns(tests) {
            Ok(patterns) if patterns.is_empty() => return "the tests change none of them".into(),
            Ok(patterns) => patterns,
            Err(title) => return format!("`{title}` may change any of them"),
        };
        let (mut changed, mut unknown, mut partly, mut refusal) = (vec![], vec![], None, None);
        for (pattern, effects) in patterns {
            let effects = effects.join(", ");
            match self.look_for(&pattern) {
                Ok(found) => {
                    let all = self.names_of(&pattern);
                    partly = partly.or((found.asked < all).then_some((found.asked, all)));
                    let Some(example) = found.example else { continue };
                    let more = match found.there {
                        0 | 1 => String::new(),
                        there => format!(" and {} more", there - 1),
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
            parts.push("none was found that the tests change".into());
        }
        if let Some((asked, all)) = partly {
            parts.push(format!("{asked} of {all} possible names were checked"));
        }
        if let Some(words) = refusal {
            let unknown = unknown.join(", ");
            parts.push(format!(
                "the tests change {unknown} if they exist, which is unknown ({words})"
            ));
        }
        parts.join("; ")
    }

    /// How many names a pattern stands for, those of one tag.
    fn names_of(&self, pattern: &[u8]) -> u64 {
        self.options.data.keyspace.filter(|_| numbers::occurs(pattern)).unwrap_or(1)
    }

    /// Looks for keys of a pattern in the selected database.
    fn look_for(&mut self, pattern: &[u8]) -> Answer<Found> {
        let is_cluster = self.options.server.is_cluster;
        let patterns: Vec<Vec<u8>> = if numbers::find(pattern, TAG).is_some() && is_cluster {
            let tags = offering::tag_names(self.site);
            tags.iter().map(|tag| numbers::replaced(pattern, TAG, tag)).collect()
        } else {
            vec![pattern.to_vec()]
        };
        // Only names with a tag are known to live on one server, in one slot.
        let is_apart = is_cluster && patterns[0] == pattern;
        let (most, at_once) =
            if is_apart { (NAMES_MAX_APART, 1) } else { (NAMES_MAX, NAMES_AT_ONCE) };
        let mut found = Found::default();
        let all = self.names_of(pattern);
        for pattern in &patterns {
            let names: Vec<Vec<u8>> = match self.options.data.keyspace {
                Some(_) => sample(all, most).map(|n| numbers::filled(pattern, n)).collect(),
                None => vec![pattern.clone()],
            };
            found.asked = names.len() as u64;
            for batch in names.chunks(at_once) {
                self.count(batch, &mut found)?;
            }
            if found.example.is_none() && all > most {
                self.draw(pattern, all, &mut found);
            }
        }
        Ok(found)
    }

    /// Counts those of the names that exist, which all live on one server.
    fn count(&mut self, names: &[Vec<u8>], found: &mut Found) -> Answer<()> {
        let server = names.first().map_or(0, |name| self.site.servers.route.node(name));
        let there = self.exist(server, names)?;
        found.there += there;
        if there == 0 || found.example.is_some() {
            return Ok(());
        }
        for name in names {
            if names.len() == 1 || self.exist(server, std::slice::from_ref(name))? > 0 {
                found.example = Some(name.clone());
                break;
            }
        }
        Ok(())
    }

    fn exist(&mut self, server: usize, names: &[Vec<u8>]) -> Answer<u64> {
        let words: Vec<&[u8]> =
            [&b"EXISTS"[..]].into_iter().chain(names.iter().map(Vec::as_slice)).collect();
        match self.ask(server, &words)? {
            Tree::Integer(there) => Ok(u64::try_from(there).unwrap_or(0)),
            _ => Err("EXISTS was not answered by a number".into()),
        }
    }

    /// Looks for a key of the pattern among some that the server draws.
    fn draw(&mut self, pattern: &[u8], all: u64, found: &mut Found) {
        let lowest = numbers::filled(pattern, 0);
        let Some(at) = lowest.iter().zip(pattern).position(|(filled, hole)| filled != hole) else {
            return;
        };
        let server = self.site.servers.route.node(&lowest);
        for _ in 0..DRAWN {
            let Ok(Tree::Text(name)) = self.ask(server, &[b"RANDOMKEY"]) else { return };
            let digits = name.get(at..at + numbers::BYTES);
            let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            let is_one =
                number.is_some_and(|n: u64| n < all && numbers::filled(pattern, n) == name);
            if is_one {
                found.there += 1;
                found.example = Some(name);
                return;
            }
        }
    }

    /// What a memory limit means for all keys of the server, in words.
    fn room(&mut self, tests: &[Test]) -> Option<String> {
        let (options, mut rooms) = (self.options, Vec::new());
        let requests = options.offered.requests.unwrap_or(u64::MAX);
        let writing = tests.iter().filter(|test| effect(&test.command()).is_some());
        let written_bytes = writing
            .map(|test| requests.saturating_mul(test.payload_bytes as u64 + 64))
            .fold(0, u64::saturating_add);
        for server in 0..self.site.controls.len() {
            let info = match self.ask(server, &[b"INFO", b"memory"]) {
                Ok(Tree::Text(info)) => String::from_utf8_lossy(&info).into_owned(),
                _ => return Some("whether it evicts keys cannot be known".into()),
            };
            let field = |name: &str| {
                info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            };
            let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok());
            let Some(limit) = number("maxmemory").filter(|limit| *limit > 0) else { continue };
            let used = number("used_memory").unwrap_or(0);
            let policy = shown(field("maxmemory_policy").unwrap_or("unknown").as_bytes());
            let at = format!(
                "with maxmemory {}, of which {} are used, and {policy}",
                format_bytes(limit),
                format_bytes(used)
            );
            if policy != "noeviction" {
                rooms.push(format!("{at}, keys of any database can be evicted"));
            } else if used.saturating_add(written_bytes) > limit {
                rooms.push(format!("{at}, writes of all clients can fail"));
            }
        }
        rooms.into_iter().next()
    }
}

/// Asks; an error reply is an error, in the server's words.
fn ask(control: &mut Control, words: &[&[u8]]) -> Answer<Tree> {
    match control.ask(words).map_err(|e| shown(e.message.as_bytes()))? {
        Tree::Error(words) => Err(shown(&words)),
        tree => Ok(tree),
    }
}

/// Number of a database and of its keys in a line of `INFO keyspace`, such as
/// `db0:keys=3,expires=0,avg_ttl=0`.
fn database(line: &str) -> Option<(u32, u64)> {
    let (name, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
    Some((name.parse().ok()?, rest.split(',').next()?.parse().ok()?))
}

/// Numbers below `all`, at most `most`: the first ones, which counting begins with, and others at
/// equal distances.
fn sample(all: u64, most: u64) -> impl Iterator<Item = u64> {
    let first = if all <= most { all } else { most / 2 };
    let others = if all <= most { 0 } else { most - first };
    let spread = move |n: u64| first + ((all - first - 1) as f64 / others as f64 * n as f64) as u64;
    (0..first).chain((1..=others).map(spread))
}

/// Bytes for people, on one line.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    if text.chars().count() > SHOWN { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_different_numbers_from_first_to_last() {
        for (all, most) in [(1, 20), (20, 20), (21, 20), (100_000, 1000), (1_000_000_000_000, 1000)]
        {
            let numbers: Vec<u64> = sample(all, most).collect();
            assert_eq!(numbers.len() as u64, all.min(most));
            assert_eq!((numbers[0], *numbers.last().unwrap()), (0, all - 1));
            assert!(numbers.is_sorted_by(|a, b| a < b), "{all}");
        }
    }

    #[test]
    fn databases_are_read_from_their_lines() {
        assert_eq!(database("db3:keys=12,expires=0,avg_ttl=0"), Some((3, 12)));
        assert_eq!(database("# Keyspace"), None);
    }

    #[test]
    fn what_a_server_says_stays_on_one_line() {
        assert_eq!(shown(b"a\r\nb\x1b[2J"), "ab[2J");
        assert_eq!(shown(&[b'x'; 100]).chars().count(), SHOWN + 1);
    }
}
