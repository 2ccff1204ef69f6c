//! Requests to servers of the Redis protocol, as bytes with holes.
//!
//! A request is an array of strings, `*<n>\r\n` and n times `$<length>\r\n<bytes>\r\n`
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use load::wire::protocol::Shape;
use load::wire::template::Segment;

use crate::command::{EMPTY, arguments, is_one_of, length, literal, pieces, segment, unknown};

pub use crate::command::{Holes, Part, Piece, Request};

/// Operations by name: on the key that is drawn.
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

/// A named operation on the key that is drawn, such as `get` or `set`; `ttl_s` gives what `set`
/// writes a lifetime in seconds. Errors: no operation of that name.
pub fn operation(name: &str, ttl_s: Option<u64>, holes: &Holes) -> Result<Request, String> {
    let Some((_, text)) = OPERATIONS.iter().find(|(known, _)| *known == name) else {
        return Err(unknown(name, OPERATIONS.iter().map(|(known, _)| *known)));
    };
    match ttl_s {
        Some(ttl_s) if name == "set" => custom(&format!("{text} EX {ttl_s}"), holes),
        _ => custom(text, holes),
    }
}

/// A command line, split as redis-cli splits it. Errors: a sentence for people.
pub fn custom(text: &str, holes: &Holes) -> Result<Request, String> {
    split(&arguments::split(text)?, holes)
}

/// A command whose arguments were split before. Errors: a sentence for people.
pub fn split(arguments: &[Vec<u8>], holes: &Holes) -> Result<Request, String> {
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

/// The request of these arguments. Errors: none of them, or a length that varies.
pub fn command(parts: &[Part], holes: &Holes) -> Result<Vec<Segment>, String> {
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

/// Commands whose reply is the whole value of the key that is their first argument.
const WHOLE_VALUES: [&str; 4] = ["GET", "GETEX", "GETDEL", "GETSET"];
/// Other commands whose reply is one string or nil, whatever their arguments.
const STRINGS: [&str; 7] =
    ["HGET", "LINDEX", "GETRANGE", "SUBSTR", "RPOPLPUSH", "LMOVE", "RANDOMKEY"];
/// Commands whose reply is one string or nil where they are given a key and no count.
const STRINGS_OF_ONE: [&str; 4] = ["LPOP", "RPOP", "SPOP", "SRANDMEMBER"];
/// Commands whose good reply is `+OK`, whatever their arguments.
const DONE: [&str; 8] = ["MSET", "SETEX", "PSETEX", "HMSET", "LSET", "LTRIM", "RENAME", "SELECT"];

/// What the reply to a command must be, as far as its name and its arguments say.
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
