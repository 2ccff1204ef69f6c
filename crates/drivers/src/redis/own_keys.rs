//! Which commands stay with the keys that they name, and where they name them.
//!
//! What is not listed here is not sent to a server that other people use: scripts, transactions,
//! other databases, listings of keys, blocking commands, administration, and what modules add.
//! Source of the positions: the key specifications of <https://redis.io/docs/latest/commands/>.

use model::ErrorClass;
use workloads::store::StoreError;

use super::resp::{Tree, text};
use super::wire::Wire;
use crate::command::{EMPTY, Part, Piece, arguments, foreign, is_one_of, pieces};
use crate::fault;

/// Where a command's arguments name keys; the command's name is argument 0.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Nowhere: it touches none.
    None,
    /// From the first to the last of these, or to the end, each one or every second one.
    At { first: usize, last: Option<usize>, step: usize },
    /// As many as the argument at `number` says, behind it, and where it is not the first argument
    /// a destination before it.
    Counted { number: usize },
    /// The first half of what follows the word `STREAMS`.
    Streams,
}

const fn at(first: usize, last: usize) -> Keys {
    Keys::At { first, last: Some(last), step: 1 }
}

const fn from(first: usize, step: usize) -> Keys {
    Keys::At { first, last: None, step }
}

/// The commands of every kind, in capitals.
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

/// Commands on the key that is their first argument.
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

/// Commands of which only these subcommands are allowed, on the key behind them.
const CONTAINERS: [(&str, &[&str]); 4] = [
    ("MEMORY", &["USAGE"]),
    ("OBJECT", &["ENCODING", "FREQ", "IDLETIME", "REFCOUNT"]),
    ("XGROUP", &["CREATE", "CREATECONSUMER", "DELCONSUMER", "DESTROY", "SETID"]),
    ("XINFO", &["CONSUMERS", "GROUPS", "STREAM"]),
];

/// Options that reach for other keys or another database, or that block.
const REFUSED_OPTIONS: [(&[&str], &[&str]); 3] = [
    (&["COPY"], &["DB"]),
    (&["SORT", "SORT_RO"], &["BY", "GET", "STORE"]),
    (&["XREAD", "XREADGROUP"], &["BLOCK"]),
];

/// Largest offset, in bytes or bits.
const OFFSET_MAX: u64 = 1 << 20;

/// What keys must look like.
const KEYS: &str = "each beginning with `__key__`";

/// Numbers of the arguments that name keys, every one of which begins with `__key__`.
///
/// Errors: as [`named`], or a command that names a key which does not begin so.
pub(crate) fn checked(arguments: &[Vec<u8>]) -> Result<Vec<usize>, String> {
    let keys = named(arguments)?;
    let is_own = |bytes: &[u8]| {
        let part: Part = pieces(bytes, None);
        part.first() == Some(&Piece::Key)
    };
    match keys.iter().find(|number| !is_own(&arguments[**number])) {
        Some(number) => {
            Err(foreign(arguments, *number, "names a key that does not begin with `__key__`", KEYS))
        }
        None => Ok(keys),
    }
}

/// Numbers of the arguments that name keys, whoever's they are.
///
/// Errors: no command that is known to touch only the keys that it names.
pub(crate) fn named(arguments: &[Vec<u8>]) -> Result<Vec<usize>, String> {
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
            return refused(number, "is an option that reaches other keys or blocks");
        }
    }
    if let Some(number) = far_offset(arguments) {
        return refused(number, "is an offset that makes the value grow by more than 1 MiB");
    }
    Ok(keys)
}

/// Number of the argument that is an offset beyond [`OFFSET_MAX`]: the server allocates all that
/// lies before it.
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

/// The arguments as a server may be asked about them: `__key__` stays, which no key of others is, a
/// value is a digit.
pub(crate) fn sample(arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let bytes = |piece: Piece| match piece {
        Piece::Literal(bytes) => bytes,
        Piece::Key => b"__key__".to_vec(),
        Piece::Value | Piece::Digits { .. } => b"1".to_vec(),
    };
    let filled = |bytes_of: &Vec<u8>| pieces(bytes_of, None).into_iter().flat_map(bytes).collect();
    arguments.iter().map(filled).collect()
}

/// Where the keys stand; `None` where arguments that must be there are missing, or no number is
/// where one must be.
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

/// Asks the server which arguments of a command are keys. Errors: others than those that we
/// know. A server that does not say, or knows no such command, contradicts nothing.
pub(super) fn agreed(wire: &mut Wire, command: &str) -> Result<(), StoreError> {
    let unsplit = |e: String| StoreError::soft(ErrorClass::Denied, e);
    let sample = sample(&arguments::split(command).map_err(unsplit)?);
    let keys = checked(&sample).map_err(unsplit)?;
    let mut request: Vec<&[u8]> = vec![b"COMMAND", b"GETKEYS"];
    request.extend(sample.iter().map(Vec::as_slice));
    let mut told = match wire.ask(&request) {
        Ok(Tree::List(list)) => list.into_iter().map(text).collect(),
        Err(e) if !e.fatal && e.message.contains("has no key arguments") => Vec::new(),
        Ok(_) => return Ok(()),
        Err(e) if !e.fatal => return Ok(()),
        Err(e) => return Err(e),
    };
    let mut known: Vec<String> =
        keys.iter().map(|at| String::from_utf8_lossy(&sample[*at]).into_owned()).collect();
    told.sort();
    known.sort();
    if told == known {
        return Ok(());
    }
    let message = format!(
        "`{}`: the server takes `{}` for its keys (expected `{}`; --i-own-this-server allows \
         every command)",
        fault::words(command.as_bytes()),
        fault::words(told.join(" ").as_bytes()),
        known.join(" ")
    );
    Err(StoreError::soft(ErrorClass::Denied, message))
}

#[cfg(test)]
#[path = "own_keys_tests.rs"]
mod tests;
