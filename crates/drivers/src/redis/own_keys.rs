//! Commands that only touch the keys they name, and the positions of these keys.
//!
//! Commands that are not listed here are not sent to a shared server: scripts, transactions, other
//! databases, key listings, blocking commands, administration and module commands. Source of the
//! key positions: the key specifications of <https://redis.io/docs/latest/commands/>.

use model::ErrorClass;
use workloads::store::StoreError;

use super::resp::{Tree, text};
use super::wire::Wire;
use crate::command::{EMPTY, Part, Piece, arguments, foreign, is_one_of, pieces};
use crate::fault;

/// Positions of the keys among a command's arguments; argument 0 is the command's name.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// The command has no keys.
    None,
    /// Every `step`-th argument from `first` to `last`, or to the end.
    At { first: usize, last: Option<usize>, step: usize },
    /// The argument at `number` is the number of keys that follow it. If that is not the first
    /// argument, a destination key precedes it.
    Counted { number: usize },
    /// The first half of the arguments after `STREAMS`.
    Streams,
}

const fn at(first: usize, last: usize) -> Keys {
    Keys::At { first, last: Some(last), step: 1 }
}

const fn from(first: usize, step: usize) -> Keys {
    Keys::At { first, last: None, step }
}

/// Allowed commands by key positions, in upper case.
const ALLOWED: [(Keys, &str); 9] = [
    (Keys::None, "ECHO PING TIME"),
    (at(1, 1), ONE_KEY),
    (at(1, 2), "COPY GEOSEARCHSTORE LCS LMOVE RENAME RENAMENX RPOPLPUSH SMOVE ZRANGESTORE"),
    (from(1, 1), ANY_KEYS),
    (from(1, 2), "MSET MSETNX"),
    (from(2, 1), "BITOP"),
    (Keys::Counted { number: 1 }, "LMPOP SINTERCARD ZDIFF ZINTER ZINTERCARD ZMPOP ZUNION"),
    (Keys::Counted { number: 2 }, "ZDIFFSTORE ZINTERSTORE ZUNIONSTORE"),
    (Keys::Streams, "XREAD XREADGROUP"),
];

/// Commands whose first argument is their only key.
const ONE_KEY: &str = "\
    APPEND BITCOUNT BITFIELD BITFIELD_RO BITPOS DECR DECRBY DUMP EXPIRE EXPIREAT EXPIRETIME \
    GEOADD GEODIST GEOHASH GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETDEL \
    GETEX GETRANGE GETSET HDEL HEXISTS HEXPIRE HEXPIREAT HEXPIRETIME HGET HGETALL HGETDEL HGETEX \
    HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL \
    HRANDFIELD HSCAN HSET HSETEX HSETNX HSTRLEN HTTL HVALS INCR INCRBY INCRBYFLOAT LINDEX \
    LINSERT LLEN LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM PERSIST PEXPIRE PEXPIREAT \
    PEXPIRETIME PFADD PSETEX PTTL RPOP RPUSH RPUSHX SADD SCARD SET SETBIT SETEX SETNX SETRANGE \
    SISMEMBER SMEMBERS SMISMEMBER SORT SORT_RO SPOP SRANDMEMBER SREM SSCAN STRLEN SUBSTR TTL \
    TYPE XACK XADD XAUTOCLAIM XCLAIM XDEL XLEN XPENDING XRANGE XREVRANGE XSETID XTRIM ZADD ZCARD \
    ZCOUNT ZINCRBY ZLEXCOUNT ZMSCORE ZPOPMAX ZPOPMIN ZRANDMEMBER ZRANGE ZRANGEBYLEX \
    ZRANGEBYSCORE ZRANK ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE \
    ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE";

/// Commands all of whose arguments are keys.
const ANY_KEYS: &str = "\
    DEL EXISTS MGET PFCOUNT PFMERGE SDIFF SDIFFSTORE SINTER SINTERSTORE SUNION SUNIONSTORE \
    TOUCH UNLINK";

/// Commands with only these subcommands allowed; the key follows the subcommand.
const CONTAINERS: [(&str, &[&str]); 4] = [
    ("MEMORY", &["USAGE"]),
    ("OBJECT", &["ENCODING", "FREQ", "IDLETIME", "REFCOUNT"]),
    ("XGROUP", &["CREATE", "CREATECONSUMER", "DELCONSUMER", "DESTROY", "SETID"]),
    ("XINFO", &["CONSUMERS", "GROUPS", "STREAM"]),
];

/// Options that access other keys or another database, or that block.
const REFUSED_OPTIONS: [(&[&str], &[&str]); 3] = [
    (&["COPY"], &["DB"]),
    (&["SORT", "SORT_RO"], &["BY", "GET", "STORE"]),
    (&["XREAD", "XREADGROUP"], &["BLOCK"]),
];

/// Largest allowed offset, in bytes or bits.
const OFFSET_MAX: u64 = 1 << 20;

/// Required form of keys, for messages.
const KEYS: &str = "each starting with `__key__`";

/// Indexes of the arguments that name keys, all of which start with `__key__`.
///
/// Errors: as [`key_positions`], or a key that does not start with `__key__`.
pub(crate) fn checked(arguments: &[Vec<u8>]) -> Result<Vec<usize>, String> {
    let keys = key_positions(arguments)?;
    let is_own = |bytes: &[u8]| {
        let part: Part = pieces(bytes, None);
        part.first() == Some(&Piece::Key)
    };
    match keys.iter().find(|number| !is_own(&arguments[**number])) {
        Some(number) => {
            Err(foreign(arguments, *number, "names a key that does not start with `__key__`", KEYS))
        }
        None => Ok(keys),
    }
}

/// Indexes of the arguments that name keys, whatever the keys are.
///
/// Errors: the command is not known to touch only the keys it names.
pub(crate) fn key_positions(arguments: &[Vec<u8>]) -> Result<Vec<usize>, String> {
    let Some(name) = arguments.first() else { return Err(EMPTY.into()) };
    let refused = |number, problem| Err(foreign(arguments, number, problem, KEYS));
    let is_named = |names: &str| names.split(' ').any(|known| is_one_of(name, &[known]));
    let rule = ALLOWED.iter().find(|(_, names)| is_named(names)).map(|(keys, _)| *keys);
    let container = CONTAINERS.iter().find(|(known, _)| is_one_of(name, &[known]));
    let rule = match (rule, container) {
        (Some(rule), _) => rule,
        (None, Some((_, known))) => {
            if !arguments.get(1).is_some_and(|word| is_one_of(word, known)) {
                return refused(1, "is not on the list of safe subcommands");
            }
            at(2, 2)
        }
        (None, None) => {
            return refused(0, "is not on the list of safe commands");
        }
    };
    let Some(keys) = positions(rule, arguments) else {
        return refused(0, "does not name its keys where they are expected");
    };
    let options = REFUSED_OPTIONS.iter().filter(|(names, _)| is_one_of(name, names));
    for (number, word) in arguments.iter().enumerate().filter(|(n, _)| !keys.contains(n)) {
        if options.clone().any(|(_, words)| is_one_of(word, words)) {
            return refused(number, "is an option that accesses other keys or blocks");
        }
    }
    if let Some(number) = far_offset(arguments) {
        return refused(number, "is an offset that makes the value grow by more than 1 MiB");
    }
    Ok(keys)
}

/// Index of an argument that is an offset beyond [`OFFSET_MAX`]: the server allocates all bytes
/// before it.
fn far_offset(arguments: &[Vec<u8>]) -> Option<usize> {
    let numbers = match arguments.first()? {
        name if is_one_of(name, &["SETBIT", "SETRANGE"]) => 1,
        name if is_one_of(name, &["BITFIELD"]) => usize::MAX,
        _ => 0,
    };
    let is_far = |word: &[u8]| {
        let digits = word.strip_prefix(b"#").unwrap_or(word);
        let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<u64>().ok());
        number.is_some_and(|number| number > OFFSET_MAX)
    };
    let mut words = arguments.iter().enumerate().skip(2).take(numbers);
    words.find_map(|(number, word)| is_far(word).then_some(number))
}

/// Sample arguments for querying a server about a command: `__key__` stays, because nobody uses it
/// as a key, and values become a digit.
pub(crate) fn sample(arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let bytes = |piece: Piece| match piece {
        Piece::Literal(bytes) => bytes,
        Piece::Key => b"__key__".to_vec(),
        Piece::Value | Piece::Digits { .. } => b"1".to_vec(),
    };
    let filled = |bytes_of: &Vec<u8>| pieces(bytes_of, None).into_iter().flat_map(bytes).collect();
    arguments.iter().map(filled).collect()
}

/// Indexes of the keys; `None` if required arguments are missing or a count is not a number.
fn positions(keys: Keys, arguments: &[Vec<u8>]) -> Option<Vec<usize>> {
    let end = arguments.len();
    let positions: Vec<usize> = match keys {
        Keys::None => return Some(Vec::new()),
        Keys::At { first, last, step } => {
            let last = last.unwrap_or(end.saturating_sub(1));
            (first..=last).step_by(step).collect()
        }
        Keys::Counted { number } => {
            let count = std::str::from_utf8(arguments.get(number)?).ok()?;
            let count = count.parse::<usize>().ok().filter(|count| *count < end)?;
            (1..number).chain(number + 1..=number + count).collect()
        }
        Keys::Streams => {
            let first = arguments.iter().position(|word| is_one_of(word, &["STREAMS"]))? + 1;
            let rest = end - first;
            if !rest.is_multiple_of(2) {
                return None;
            }
            (first..first + rest / 2).collect()
        }
    };
    (!positions.is_empty() && positions.iter().all(|number| *number < end)).then_some(positions)
}

/// Asks the server which arguments of a command are keys. Errors: its answer differs from ours. A
/// server that does not answer or does not know the command is accepted.
pub(super) fn check_with_server(wire: &mut Wire, command: &str) -> Result<(), StoreError> {
    let denied = |e: String| StoreError::soft(ErrorClass::Denied, e);
    let sample = sample(&arguments::split(command).map_err(denied)?);
    let keys = checked(&sample).map_err(denied)?;
    let mut request: Vec<&[u8]> = vec![b"COMMAND", b"GETKEYS"];
    request.extend(sample.iter().map(Vec::as_slice));
    let mut reported = match wire.ask(&request) {
        Ok(Tree::List(list)) => list.into_iter().map(text).collect(),
        Err(e) if !e.fatal && e.message.contains("has no key arguments") => Vec::new(),
        Ok(_) => return Ok(()),
        Err(e) if !e.fatal => return Ok(()),
        Err(e) => return Err(e),
    };
    let mut known: Vec<String> =
        keys.iter().map(|at| String::from_utf8_lossy(&sample[*at]).into_owned()).collect();
    reported.sort();
    known.sort();
    if reported == known {
        return Ok(());
    }
    let message = format!(
        "`{}`: the server reports the keys `{}` (expected `{}`; --i-own-this-server allows \
         every command)",
        fault::printable(command.as_bytes()),
        fault::printable(reported.join(" ").as_bytes()),
        known.join(" ")
    );
    Err(StoreError::soft(ErrorClass::Denied, message))
}

#[cfg(test)]
#[path = "own_keys_tests.rs"]
mod tests;
