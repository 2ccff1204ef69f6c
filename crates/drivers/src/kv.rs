//! Key-value operations of any dialect: those that it has a word for, and those made of them.

use load::wire::Operation;
use workloads::kv::{KeyNames, Sizes};

use crate::wire::Dialect;

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

/// Commands that reach beyond the keys that they name.
const BEYOND_KEYS: [&str; 15] = [
    "flushall",
    "flushdb",
    "swapdb",
    "shutdown",
    "debug",
    "config",
    "replicaof",
    "slaveof",
    "failover",
    "cluster",
    "acl",
    "module",
    "function",
    "flush_all",
    "monitor",
];

/// The first word of a command that would change a server, or data of others, beyond the keys that
/// it names; `None` for all others.
pub fn beyond_keys(command: &str) -> Option<&str> {
    let word = command.split_whitespace().next()?;
    BEYOND_KEYS.contains(&&*word.to_lowercase()).then_some(word)
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
