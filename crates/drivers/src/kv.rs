//! Key-value operations of any dialect: those that it has a word for, and those made of them.

use load::wire::Operation;
use std::collections::BTreeSet;
use workloads::kv::{KeyNames, Sizes};

use crate::command::arguments;
use crate::wire::Dialect;
use crate::{fault, memcached, redis};

/// Writes a key that nobody wrote before.
pub const INSERT: &str = "insert";
/// Reads a key and, when its value has come, writes it.
pub const READ_MODIFY_WRITE: &str = "rmw";

/// Commands of Redis and memcached that work on a key whatever string it holds.
const ON_STRINGS: [&str; 44] = [
    "get", "set", "setnx", "getset", "getdel", "getex", "setex", "psetex", "append", "strlen",
    "setrange", "getrange", "substr", "mget", "mset", "setbit", "getbit", "bitcount", "bitpos",
    "del", "unlink", "exists", "touch", "ttl", "pttl", "expire", "pexpire", "persist", "type",
    "dump", "copy", "rename", "object", "echo", "ping", "gets", "add", "replace", "prepend",
    "delete", "gat", "mg", "ms", "md",
];

/// Whether an operation finds what a fill wrote as it needs it: a string of any content. False for
/// those of other types, for numbers, and for what is not known.
pub fn works_on_strings(name: &str, command: Option<&str>) -> bool {
    let word = command.map_or(name, |text| text.split_whitespace().next().unwrap_or_default());
    let word = word.to_lowercase();
    [INSERT, READ_MODIFY_WRITE].contains(&&*word) || ON_STRINGS.contains(&&*word)
}

/// Checks that a command touches only keys of the run: it is one that is known to touch no keys but
/// those it names, and every key that it names begins with `__key__`, and so with the run's name.
/// Errors: a sentence for people.
pub fn check_own_keys(dialect: Dialect, command: &str) -> Result<(), String> {
    let checked = arguments::split(command).and_then(|words| match dialect {
        Dialect::Redis => redis::own_keys::checked(&words).map(drop),
        Dialect::Memcached(_) => memcached::own_keys::check(&words),
    });
    checked.map_err(|e| format!("`{}`: {e}", fault::words(command.as_bytes())))
}

/// Whether an operation leaves each key as it is, or replaces its whole value by the load's own.
/// False for commands of a user.
pub fn keeps_values(name: &str, command: Option<&str>) -> bool {
    const KEEPING: [&str; 6] = [INSERT, READ_MODIFY_WRITE, "set", "get", "gets", "ping"];
    command.is_none() && KEEPING.contains(&name)
}

/// Commands of those that write, but leave a key no larger however often they are sent.
const REPLACING: [&str; 13] = [
    "set", "setnx", "getset", "setex", "psetex", "mset", "getdel", "rename", "copy", "hset",
    "hsetnx", "add", "replace",
];

/// Commands that store something more each time, also without `__data__`.
const ADDING: [&str; 12] = [
    "append", "lpush", "rpush", "lpushx", "rpushx", "linsert", "sadd", "zadd", "xadd", "pfadd",
    "geoadd", "prepend",
];

/// Commands whose reply is short, whatever their keys hold.
const SHORT_REPLIES: &str = "\
    set setex psetex setnx mset msetnx append prepend add replace cas setrange incr incrby decr \
    decrby incrbyfloat strlen exists touch expire pexpire expireat pexpireat persist ttl pttl \
    expiretime pexpiretime type del delete unlink copy rename renamenx setbit getbit bitcount \
    bitpos bitop pfadd pfcount pfmerge lpush rpush lpushx rpushx linsert llen lset lrem ltrim \
    sadd srem scard sismember smove sunionstore sinterstore sdiffstore hset hsetnx hmset hdel \
    hlen hexists hincrby hincrbyfloat hstrlen zadd zrem zcard zcount zlexcount zscore zrank \
    zrevrank zincrby zunionstore zinterstore zdiffstore zrangestore xadd xlen xdel xtrim xack \
    geoadd geodist ms md ma";

/// Commands that return as many elements as they are asked for, also more than there are.
const DRAWING: [&str; 3] = ["srandmember", "hrandfield", "zrandmember"];

/// What a command moves at most, bytes; `value_bytes` is what a key holds, `element_bytes` the
/// longest value that is sent.
pub fn in_flight_bytes(command: &str, value_bytes: u64, element_bytes: u64) -> u64 {
    let words: Vec<String> = command.split_whitespace().map(str::to_lowercase).collect();
    let word = words.first().map_or("", String::as_str);
    let data = command.matches("__data__").count() as u64;
    let request_bytes = data.saturating_mul(element_bytes).saturating_add(command.len() as u64);
    let is_short = SHORT_REPLIES.split(' ').any(|short| short == word);
    let gets = words.iter().skip(1).any(|option| option == "get");
    let reply_bytes = if is_short && !gets {
        0
    } else {
        let keys = command.matches("__key__").count().max(1) as u64;
        let numbers = words.iter().skip(1).filter_map(|w| w.parse::<i64>().ok());
        let drawn = numbers.map(i64::unsigned_abs).max().unwrap_or(0);
        let drawn = if DRAWING.contains(&word) { drawn } else { 0 };
        keys.saturating_mul(value_bytes).max(drawn.saturating_mul(element_bytes + 64))
    };
    request_bytes.saturating_add(reply_bytes)
}

/// How many different keys a command makes of one name.
pub fn names(command: &str) -> usize {
    let words = command.split_whitespace().filter(|word| word.contains("__key__"));
    words.collect::<BTreeSet<_>>().len()
}

/// Whether an operation stores something more each time that it is sent: a key, an element, a
/// part. True for what is not known.
pub fn adds(name: &str, command: Option<&str>) -> bool {
    let Some(text) = command else {
        return [INSERT, "lpush", "rpush", "sadd", "zadd", "append"].contains(&name);
    };
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let word = words.first().map_or("", String::as_str);
    let is_drawn = text.contains("__rand_int__");
    // The names of a hash's fields, each before its value.
    let draws_fields = word.starts_with("hset")
        && words.iter().skip(2).step_by(2).any(|field| field.contains("__data__"));
    ADDING.contains(&word)
        || draws_fields
        || text.contains("__data__") && (is_drawn || !REPLACING.contains(&word))
}

/// Bytes of a `HyperLogLog` with many elements. Source: the documentation of `PFCOUNT`.
const HYPERLOGLOG_BYTES: u64 = 12 << 10;

/// Bytes that a command makes a value grow to, whatever it is sent; 0 for the others.
pub fn grows_to_bytes(command: &str) -> u64 {
    let mut words = command.split_whitespace();
    let word = words.next().unwrap_or_default().to_lowercase();
    if ["pfadd", "pfmerge"].contains(&&*word) {
        return HYPERLOGLOG_BYTES;
    }
    if !["setrange", "setbit", "bitfield"].contains(&&*word) {
        return 0;
    }
    // Offsets of `BITFIELD` may have a `#` before them, and count integers of up to eight bytes.
    let numbers = words.filter_map(|word| {
        let (number, times) = word.strip_prefix('#').map_or((word, 1), |number| (number, 8));
        Some(number.parse::<u64>().ok()?.saturating_mul(times))
    });
    numbers.max().unwrap_or(0)
}

/// Numbers of the arguments of a Redis command that name keys, from 0 for its name; `None` for a
/// command that may touch others, or that is not known.
pub fn named_keys(arguments: &[Vec<u8>]) -> Option<Vec<usize>> {
    redis::own_keys::named(arguments).ok()
}

/// As [`Dialect::operation`], which it asks, and besides [`INSERT`] and [`READ_MODIFY_WRITE`].
/// Which keys are inserted is the load's to say. Errors: a sentence for people.
pub fn operation(
    dialect: Dialect,
    name: &str,
    command: Option<&str>,
    ttl_s: Option<u64>,
    names: &KeyNames,
    sizes: &Sizes,
) -> Result<Operation, String> {
    let spelled = |name, command| dialect.operation(name, command, ttl_s, names, sizes);
    match (name, command) {
        (INSERT, None) => Ok(Operation { name: name.into(), ..spelled("set", None)? }),
        (READ_MODIFY_WRITE, None) => {
            let then = Some(Box::new(spelled("set", None)?));
            Ok(Operation { name: name.into(), then, ..spelled("get", None)? })
        }
        _ => spelled(name, command),
    }
}
