//! Requests of the built-in tests, in the original's order, and of the user's own command.
//!
//! Arguments of a request can contain `__rand_int__` (twelve digits below `-r`, drawn separately
//! for each occurrence), `__rand_1st__` to `__rand_9th__` (the same within a request), `__data__`
//! (the value) and, in a cluster, `{tag}` (selects the key's server). Values are byte-identical to
//! the original's, so both programs fill a database with the same values.

use drivers::redis::requests::{self, Placeholders};
use lab::RequestForm;
use load::wire::protocol::Shape;
use load::wire::template::Segment;
use model::target::mask_text;

use super::arguments::Data;
use super::error::ArgumentError;
use super::numbers::{self, replaced};

/// A test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// Its name in results.
    pub(super) title: String,
    /// Its arguments, as listed or given; empty for the inline `PING`.
    words: Vec<Vec<u8>>,
    /// Reported payload in bytes: of a value, or of the user's whole request.
    pub(super) payload_bytes: usize,
    /// True if `-r` spreads its requests over keys; without `-r` they all use one key.
    pub(super) could_spread: bool,
    /// True for the user's own command.
    pub(super) is_own: bool,
}

/// Inputs for building requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestContext<'a> {
    pub(super) data: &'a Data,
    pub(super) is_cluster: bool,
    /// Seed of the numbers shared within a request.
    pub(super) seed: u64,
}

/// A built-in test: names that select it, title, arguments.
type TestEntry = (&'static [&'static str], &'static str, &'static str);

/// Built-in tests in the order in which they run. `:{tag}` is omitted outside clusters.
const TESTS: [TestEntry; 22] = [
    (&["ping", "ping_inline"], "PING_INLINE", ""),
    (&["ping", "ping_mbulk"], "PING_MBULK", "PING"),
    (&["set"], "SET", "SET key:{tag}:__rand_int__ __data__"),
    (&["get"], "GET", "GET key:{tag}:__rand_int__"),
    (&["incr"], "INCR", "INCR counter:{tag}:__rand_int__"),
    (&["lpush"], "LPUSH", "LPUSH mylist:{tag} __data__"),
    (&["rpush"], "RPUSH", "RPUSH mylist:{tag} __data__"),
    (&["lpop"], "LPOP", "LPOP mylist:{tag}"),
    (&["rpop"], "RPOP", "RPOP mylist:{tag}"),
    (&["sadd"], "SADD", "SADD myset:{tag} element:__rand_int__"),
    (&["hset"], "HSET", "HSET myhash:{tag} element:__rand_int__ __data__"),
    (&["spop"], "SPOP", "SPOP myset:{tag}"),
    (&["zadd"], "ZADD", "ZADD myzset:{tag} __score__ element:__rand_int__"),
    (&["zpopmin"], "ZPOPMIN", "ZPOPMIN myzset:{tag}"),
    (
        &["lrange", "lrange_100", "lrange_300", "lrange_500", "lrange_600"],
        "LPUSH (needed to benchmark LRANGE)",
        "LPUSH mylist:{tag} __data__",
    ),
    (&["lrange", "lrange_100"], "LRANGE_100 (first 100 elements)", "LRANGE mylist:{tag} 0 99"),
    (&["lrange", "lrange_300"], "LRANGE_300 (first 300 elements)", "LRANGE mylist:{tag} 0 299"),
    (&["lrange", "lrange_500"], "LRANGE_500 (first 500 elements)", "LRANGE mylist:{tag} 0 499"),
    (&["lrange", "lrange_600"], "LRANGE_600 (first 600 elements)", "LRANGE mylist:{tag} 0 599"),
    (&["mset"], "MSET (10 keys)", "MSET key:{tag}:__rand_int__ __data__"),
    (&["mget"], MGET, "MGET key:{tag}:__rand_int__"),
    (&["xadd"], "XADD", "XADD mystream:{tag} * myfield __data__"),
];
/// A test of valkey-benchmark; runs only if selected by name.
const MGET: &str = "MGET (10 keys)";
/// Keys of `MSET` and `MGET`.
const KEYS_AT_ONCE: usize = 10;
/// Names of unsupported tests of valkey-benchmark.
const UNSUPPORTED: [&str; 2] = ["function_load", "fcall"];

/// Placeholder of the hash tag of a cluster's key.
pub(super) const TAG: &[u8] = b"{tag}";
/// Placeholder of a value.
const VALUE: &[u8] = b"__data__";
/// Maximum length in bytes of a value within a key's name.
const KEY_VALUE_MAX: usize = 512;

/// The selected tests, and warnings about unknown test names.
pub(super) fn tests(data: &Data) -> (Vec<Test>, Vec<String>) {
    let names = data.tests.as_deref();
    let selected = |(by, title, _): &&TestEntry| match names {
        Some(names) => by.iter().any(|name| names.iter().any(|wanted| wanted == name)),
        None => *title != MGET,
    };
    let tests = TESTS.iter().filter(selected).map(|listed| listed_test(listed, data));
    let known = |name: &&String| TESTS.iter().any(|(by, ..)| by.contains(&name.as_str()));
    let unknown = names.unwrap_or_default().iter().filter(|name| !known(name) && !name.is_empty());
    let warnings = unknown.map(|name| {
        if UNSUPPORTED.contains(&name.as_str()) {
            format!("test `{name}` of valkey-benchmark is not supported and is skipped")
        } else {
            let name = mask_text(name);
            format!("-t: unknown test `{name}` is skipped")
        }
    });
    (tests.collect(), warnings.collect())
}

fn listed_test((_, title, words): &TestEntry, data: &Data) -> Test {
    let score = if data.keyspace.is_some() { "__rand_int__" } else { "0" };
    let words = words.replace("__score__", score);
    let mut words: Vec<&str> = words.split_whitespace().collect();
    if words.first().is_some_and(|name| name.starts_with('M')) {
        let of_one_key = words.split_off(1);
        words.extend(of_one_key.repeat(KEYS_AT_ONCE));
    }
    Test {
        title: (*title).into(),
        payload_bytes: data.bytes,
        could_spread: words.iter().any(|word| numbers::has_placeholder(word.as_bytes())),
        is_own: false,
        words: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
    }
}

/// The user's own command, followed by the argument from standard input, if any.
pub(super) fn own_command(data: &Data, from_stdin: Option<Vec<u8>>) -> Result<Test, ArgumentError> {
    let given = &data.command;
    if given.iter().any(|word| word == b";") {
        let message = "a sequence of commands, as of valkey-benchmark, is not supported (expected \
                       one command, without `;`)";
        return Err(ArgumentError::Other(message.into()));
    }
    let first = given.first().map(|word| String::from_utf8_lossy(word)).unwrap_or_default();
    if mask_text(&first) != first || first.contains("://") {
        let message = "found an address instead of a command (pass the address with `-u`)";
        return Err(ArgumentError::Other(message.into()));
    }
    let title =
        given.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
    let words: Vec<Vec<u8>> = given.iter().cloned().chain(from_stdin).collect();
    Ok(Test {
        title,
        payload_bytes: array_bytes(&words, data.bytes),
        could_spread: words.iter().any(|word| numbers::has_placeholder(word)),
        is_own: true,
        words,
    })
}

impl Test {
    /// The command in upper case; empty for the inline `PING`.
    pub(super) fn command(&self) -> String {
        let name = self.words.first().map(|word| String::from_utf8_lossy(word).to_uppercase());
        name.unwrap_or_default()
    }

    /// Names of the keys that it accesses, without duplicates, with placeholders for numbers and
    /// tags; `None` if the command can access other keys.
    pub(super) fn keys(&self, data: &Data, is_cluster: bool) -> Option<Vec<Vec<u8>>> {
        if self.words.is_empty() {
            return Some(Vec::new());
        }
        let value = value(data.bytes.min(KEY_VALUE_MAX));
        let numbers = drivers::kv::named_keys(&self.words)?;
        let key = |at: &usize| replaced(&self.tagged(&self.words[*at], is_cluster), VALUE, &value);
        let mut keys: Vec<Vec<u8>> = numbers.iter().map(key).collect();
        keys.dedup();
        Some(keys)
    }

    /// An argument as sent: the tag of a built-in test is omitted outside clusters.
    fn tagged(&self, word: &[u8], is_cluster: bool) -> Vec<u8> {
        if self.is_own || is_cluster { word.to_vec() } else { replaced(word, b":{tag}", b"") }
    }

    /// The request as segments, and the shape of its reply. Built on demand, since values can be
    /// large.
    pub(super) fn request(
        &self,
        context: &RequestContext<'_>,
    ) -> Result<(Vec<Segment>, Shape), ArgumentError> {
        if self.words.is_empty() {
            return Ok((vec![Segment::Literal(b"PING\r\n".to_vec())], Shape::Any));
        }
        let value = value(context.data.bytes);
        let word = |word: &Vec<u8>| {
            let tagged = self.tagged(word, context.is_cluster);
            let hole = if context.is_cluster { &b"{__key__}"[..] } else { TAG };
            replaced(&replaced(&tagged, TAG, hole), VALUE, &value)
        };
        let words: Vec<Vec<u8>> = self.words.iter().map(word).collect();
        let below = context.data.keyspace;
        let holes =
            Placeholders { key_bytes: Some(RequestForm::TAG_BYTES), value_bytes: None, below };
        let request = requests::split(&words, &holes);
        let request = request.map_err(|e| ArgumentError::Other(e.clone()))?;
        let segments = match below {
            Some(below) => {
                numbers::place(request.segments, below, context.data.is_sequential, context.seed)
            }
            None => request.segments,
        };
        Ok((segments, request.shape))
    }
}

/// The original's value: the upper bits of a linear congruential generator, as 64 characters from
/// `0`.
fn value(bytes: usize) -> Vec<u8> {
    let mut state = 1234_u32;
    let mut next = || {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        b'0' + (state >> 16 & 63) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Length in bytes of a request (an array of strings) with values of `value_bytes`.
fn array_bytes(words: &[Vec<u8>], value_bytes: usize) -> usize {
    let head = |number: usize| number.to_string().len() + "$\r\n".len();
    let word = |word: &Vec<u8>| {
        let values = word.windows(VALUE.len()).filter(|part| *part == VALUE).count();
        let bytes = word.len() + values * value_bytes - values * VALUE.len();
        head(bytes) + bytes + "\r\n".len()
    };
    head(words.len()) + words.iter().map(word).sum::<usize>()
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
