//! Requests to servers of the Redis protocol, as bytes with placeholders.
//!
//! A request is an array of strings, `*<n>\r\n` and n times `$<length>\r\n<bytes>\r\n`
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use load::wire::protocol::Shape;
use load::wire::template::Segment;

use crate::command::{EMPTY, arguments, is_one_of, length, literal, pieces, segment, unknown};

pub use crate::command::{Part, Piece, Placeholders, Request};

/// Operations by name, on the drawn key.
const OPERATIONS: [(&str, &str); 28] = [
    ("get", "GET __key__"),
    ("set", "SET __key__ __data__"),
    ("setnx", "SET __key__ __data__ NX"),
    ("getset", "SET __key__ __data__ GET"),
    ("getdel", "GETDEL __key__"),
    ("append", "APPEND __key__ __data__"),
    ("strlen", "STRLEN __key__"),
    ("del", "DEL __key__"),
    ("unlink", "UNLINK __key__"),
    ("exists", "EXISTS __key__"),
    ("touch", "TOUCH __key__"),
    ("ttl", "TTL __key__"),
    ("expire", "EXPIRE __key__ 3600"),
    ("incr", "INCR __key__"),
    ("decr", "DECR __key__"),
    ("lpush", "LPUSH __key__ __data__"),
    ("rpush", "RPUSH __key__ __data__"),
    ("lpop", "LPOP __key__"),
    ("rpop", "RPOP __key__"),
    ("sadd", "SADD __key__ __data__"),
    ("spop", "SPOP __key__"),
    ("hset", "HSET __key__ field __data__"),
    ("hget", "HGET __key__ field"),
    ("zadd", "ZADD __key__ 0 __data__"),
    ("zpopmin", "ZPOPMIN __key__"),
    ("xadd", "XADD __key__ * field __data__"),
    ("echo", "ECHO __data__"),
    ("ping", "PING"),
];

/// Builds a named operation on the drawn key, such as `get` or `set`. `ttl_s` is the lifetime in
/// seconds of what `set` writes. Errors: an unknown name.
pub fn operation(name: &str, ttl_s: Option<u64>, holes: &Placeholders) -> Result<Request, String> {
    let Some((_, text)) = OPERATIONS.iter().find(|(known, _)| *known == name) else {
        return Err(unknown(name, OPERATIONS.iter().map(|(known, _)| *known)));
    };
    match ttl_s {
        Some(ttl_s) if name == "set" => custom(&format!("{text} EX {ttl_s}"), holes),
        _ => custom(text, holes),
    }
}

/// Builds a request from a command line, split as by redis-cli. Errors: a readable message.
pub fn custom(text: &str, holes: &Placeholders) -> Result<Request, String> {
    split(&arguments::split(text)?, holes)
}

/// Builds a request from separate arguments. Errors: a readable message.
pub fn split(arguments: &[Vec<u8>], holes: &Placeholders) -> Result<Request, String> {
    let parts: Vec<Part> = arguments.iter().map(|bytes| pieces(bytes, holes.below)).collect();
    let segments = command(&parts, holes)?;
    let own_key = parts.get(1).is_some_and(|key| *key == [Piece::Key]);
    let shape = shape(arguments);
    Ok(Request {
        writes: segments.contains(&Segment::Value),
        reads_whole: shape == Shape::Value && own_key && is_one_of(&arguments[0], &WHOLE_VALUES),
        segments,
        shape,
    })
}

/// Encodes these arguments. Errors: no arguments, or an argument of varying length.
pub fn command(parts: &[Part], holes: &Placeholders) -> Result<Vec<Segment>, String> {
    if parts.is_empty() {
        return Err(EMPTY.into());
    }
    let mut segments = vec![literal(format!("*{}\r\n", parts.len()))];
    for (number, part) in parts.iter().enumerate() {
        segments.push(literal("$"));
        segments.push(length(number, part, holes)?);
        segments.push(literal("\r\n"));
        segments.extend(part.iter().map(segment));
        segments.push(literal("\r\n"));
    }
    Ok(segments)
}

/// Commands whose reply is the whole value of the key in their first argument.
const WHOLE_VALUES: [&str; 4] = ["GET", "GETEX", "GETDEL", "GETSET"];
/// Other commands whose reply is always one string or nil.
const STRINGS: [&str; 7] =
    ["HGET", "LINDEX", "GETRANGE", "SUBSTR", "RPOPLPUSH", "LMOVE", "RANDOMKEY"];
/// Commands whose reply is one string or nil if they have a key and no count.
const STRINGS_OF_ONE: [&str; 4] = ["LPOP", "RPOP", "SPOP", "SRANDMEMBER"];
/// Commands whose only success reply is `+OK`.
const DONE: [&str; 8] = ["MSET", "SETEX", "PSETEX", "HMSET", "LSET", "LTRIM", "RENAME", "SELECT"];

/// The expected reply to a command, as determined by its name and arguments.
fn shape(arguments: &[Vec<u8>]) -> Shape {
    let Some((name, rest)) = arguments.split_first() else { return Shape::Any };
    let conditional = || rest.iter().skip(2).any(|word| is_one_of(word, &["NX", "XX", "GET"]));
    if is_one_of(name, &WHOLE_VALUES)
        || is_one_of(name, &STRINGS)
        || (is_one_of(name, &STRINGS_OF_ONE) && rest.len() == 1)
    {
        Shape::Value
    } else if is_one_of(name, &DONE) || (is_one_of(name, &["SET"]) && !conditional()) {
        Shape::Done
    } else {
        Shape::Any
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
