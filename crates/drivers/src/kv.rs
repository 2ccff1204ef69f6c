//! Key-value operations in any dialect: native commands, and operations composed of them.

use load::wire::Operation;
use std::collections::BTreeSet;
use workloads::kv::{KeyNames, Sizes};

use crate::command::arguments;
use crate::wire::Dialect;
use crate::{fault, memcached, redis};

/// Writes a new key.
pub const INSERT: &str = "insert";
/// Reads a key, then writes it once the value has arrived.
pub const READ_MODIFY_WRITE: &str = "rmw";

/// Commands of Redis and memcached that work on a key with any string value.
const ON_STRINGS: [&str; 44] = [
    "get", "set", "setnx", "getset", "getdel", "getex", "setex", "psetex", "append", "strlen",
    "setrange", "getrange", "substr", "mget", "mset", "setbit", "getbit", "bitcount", "bitpos",
    "del", "unlink", "exists", "touch", "ttl", "pttl", "expire", "pexpire", "persist", "type",
    "dump", "copy", "rename", "object", "echo", "ping", "gets", "add", "replace", "prepend",
    "delete", "gat", "mg", "ms", "md",
];

/// Whether an operation works on the keys of a fill, which are strings of arbitrary content. False
/// for operations on other types or numbers, and for unknown commands.
pub fn works_on_strings(name: &str, command: Option<&str>) -> bool {
    let word = command.map_or(name, |text| text.split_whitespace().next().unwrap_or_default());
    let word = word.to_lowercase();
    [INSERT, READ_MODIFY_WRITE].contains(&&*word) || ON_STRINGS.contains(&&*word)
}

/// Checks that a command touches only keys of the run: it is known to touch no keys except those it
/// names, and each of these starts with `__key__` and so with the run's name. Errors: a readable
/// message.
pub fn check_own_keys(dialect: Dialect, command: &str) -> Result<(), String> {
    let checked = arguments::split(command).and_then(|words| match dialect {
        Dialect::Redis => redis::own_keys::checked(&words).map(drop),
        Dialect::Memcached(_) => memcached::own_keys::check(&words),
    });
    checked.map_err(|e| format!("`{}`: {e}", fault::printable(command.as_bytes())))
}

/// Whether an operation leaves each key unchanged or replaces its whole value with the load's own.
/// False for custom commands.
pub fn keeps_values(name: &str, command: Option<&str>) -> bool {
    const KEEPING: [&str; 6] = [INSERT, READ_MODIFY_WRITE, "set", "get", "gets", "ping"];
    command.is_none() && KEEPING.contains(&name)
}

/// Write commands that do not make a key grow when they are repeated.
const REPLACING: [&str; 13] = [
    "set", "setnx", "getset", "setex", "psetex", "mset", "getdel", "rename", "copy", "hset",
    "hsetnx", "add", "replace",
];

/// Commands that add data on every call, even without `__data__`.
const ADDING: [&str; 12] = [
    "append", "lpush", "rpush", "lpushx", "rpushx", "linsert", "sadd", "zadd", "xadd", "pfadd",
    "geoadd", "prepend",
];

/// Commands with a short reply regardless of what their keys contain.
const SHORT_REPLIES: &str = "\
    set setex psetex setnx mset msetnx append prepend add replace cas setrange incr incrby decr \
    decrby incrbyfloat strlen exists touch expire pexpire expireat pexpireat persist ttl pttl \
    expiretime pexpiretime type del delete unlink copy rename renamenx setbit getbit bitcount \
    bitpos bitop pfadd pfcount pfmerge lpush rpush lpushx rpushx linsert llen lset lrem ltrim \
    sadd srem scard sismember smove sunionstore sinterstore sdiffstore hset hsetnx hmset hdel \
    hlen hexists hincrby hincrbyfloat hstrlen zadd zrem zcard zcount zlexcount zscore zrank \
    zrevrank zincrby zunionstore zinterstore zdiffstore zrangestore xadd xlen xdel xtrim xack \
    geoadd geodist ms md ma";

/// Commands that return as many elements as requested, even more than exist.
const DRAWING: [&str; 3] = ["srandmember", "hrandfield", "zrandmember"];

/// Upper bound of the bytes that a command transfers, request and reply. `value_bytes` is the size
/// of a key's value, `element_bytes` the longest value sent.
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

/// Number of distinct keys that a command derives from one key name.
pub fn names(command: &str) -> usize {
    let words = command.split_whitespace().filter(|word| word.contains("__key__"));
    words.collect::<BTreeSet<_>>().len()
}

/// Whether an operation adds data on every call: a key, an element or a part of a value. True for
/// unknown commands.
pub fn adds(name: &str, command: Option<&str>) -> bool {
    let Some(text) = command else {
        return [INSERT, "lpush", "rpush", "sadd", "zadd", "append"].contains(&name);
    };
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let word = words.first().map_or("", String::as_str);
    let is_drawn = text.contains("__rand_int__");
    // The field names of a hash, each followed by its value.
    let draws_fields = word.starts_with("hset")
        && words.iter().skip(2).step_by(2).any(|field| field.contains("__data__"));
    ADDING.contains(&word)
        || draws_fields
        || text.contains("__data__") && (is_drawn || !REPLACING.contains(&word))
}

/// Bytes of a `HyperLogLog` with many elements. Source: the documentation of `PFCOUNT`.
const HYPERLOGLOG_BYTES: u64 = 12 << 10;

/// Size in bytes to which a command grows a value, whatever its arguments; 0 for other commands.
pub fn grows_to_bytes(command: &str) -> u64 {
    let mut words = command.split_whitespace();
    let word = words.next().unwrap_or_default().to_lowercase();
    if ["pfadd", "pfmerge"].contains(&&*word) {
        return HYPERLOGLOG_BYTES;
    }
    if !["setrange", "setbit", "bitfield"].contains(&&*word) {
        return 0;
    }
    // Offsets of `BITFIELD` can have a `#` prefix and then count integers of up to eight bytes.
    let numbers = words.filter_map(|word| {
        let (number, times) = word.strip_prefix('#').map_or((word, 1), |number| (number, 8));
        Some(number.parse::<u64>().ok()?.saturating_mul(times))
    });
    numbers.max().unwrap_or(0)
}

/// Indexes of the arguments of a Redis command that name keys (the command's name is 0). `None` for
/// an unknown command, or one that can touch other keys.
pub fn named_keys(arguments: &[Vec<u8>]) -> Option<Vec<usize>> {
    redis::own_keys::key_positions(arguments).ok()
}

/// Like [`Dialect::operation`], but also knows [`INSERT`] and [`READ_MODIFY_WRITE`]. The load
/// chooses the keys to insert. Errors: a readable message.
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
