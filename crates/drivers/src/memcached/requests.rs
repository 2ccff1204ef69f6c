//! Requests to memcached, as bytes with placeholders.
//!
//! A text command is a line of words. A command that stores a value has its length after the other
//! words and the value on a second line: `set <key> <flags> <lifetime> <bytes>\r\n<value>\r\n`.
//! Among the meta commands only `ms <key> <bytes> <flags>*` does so. In a command line here, the
//! value is the last word and the length is inserted where it belongs: `set __key__ 0 60 __data__`,
//! `ms __key__ T60 __data__`. A request must have a reply, so `noreply` and the meta flag `q` are
//! rejected.

use load::wire::protocol::{Expect, Greeting, Shape};
use load::wire::template::Segment;
use model::{MemcachedProtocol, Secret};
use stats::append_number;

use crate::command::{EMPTY, arguments, is_one_of, length, literal, pieces, segment, sum, unknown};

pub use crate::command::{Part, Piece, Placeholders, Request};

/// Longest key name, bytes.
pub const KEY_BYTES_MAX: usize = 250;
/// Longest lifetime, 30 days: memcached interprets larger numbers as a date.
const LIFETIME_S_MAX: u64 = 60 * 60 * 24 * 30;

/// Operations by name, as text and as meta commands. `@` is the lifetime in seconds, or 0 for none.
const OPERATIONS: [(&str, &str, &str); 12] = [
    ("get", "get __key__", "mg __key__ v"),
    ("gets", "gets __key__", "mg __key__ c v"),
    ("gat", "gat @ __key__", "mg __key__ v T@"),
    ("set", "set __key__ 0 @ __data__", "ms __key__ T@ __data__"),
    ("add", "add __key__ 0 @ __data__", "ms __key__ ME T@ __data__"),
    ("replace", "replace __key__ 0 @ __data__", "ms __key__ MR T@ __data__"),
    ("append", "append __key__ 0 @ __data__", "ms __key__ MA T@ __data__"),
    ("del", "delete __key__", "md __key__"),
    ("incr", "incr __key__ 1", "ma __key__"),
    ("decr", "decr __key__ 1", "ma __key__ MD"),
    ("touch", "touch __key__ @", "mg __key__ T@"),
    ("ping", "version", "mn"),
];

/// Text commands that store a value, and their number of words including it.
const STORING: [&str; 5] = ["set", "add", "replace", "append", "prepend"];
const STORING_WORDS: usize = 5;
/// Commands that read one value.
const READING: [&str; 2] = ["get", "gets"];

/// Builds a named operation on the drawn key, such as `get` or `set`. `ttl_s` is the lifetime in
/// seconds of what it writes or touches. Errors: an unknown name, or a lifetime of more than 30
/// days.
pub fn operation(
    protocol: MemcachedProtocol,
    name: &str,
    ttl_s: Option<u64>,
    holes: &Placeholders,
) -> Result<Request, String> {
    let Some((_, text, meta)) = OPERATIONS.iter().find(|(known, ..)| *known == name) else {
        return Err(unknown(name, OPERATIONS.iter().map(|(known, ..)| *known)));
    };
    let ttl_s = ttl_s.unwrap_or(0);
    if ttl_s > LIFETIME_S_MAX {
        return Err(format!(
            "a lifetime of `{ttl_s}` seconds (expected at most {LIFETIME_S_MAX}: memcached treats \
             larger numbers as a date)"
        ));
    }
    let spelled = if protocol == MemcachedProtocol::Text { text } else { meta };
    custom(&spelled.replace('@', &ttl_s.to_string()), holes)
}

/// Builds a request from a command line with its value last, split as by redis-cli. Errors: a
/// readable message.
pub fn custom(text: &str, holes: &Placeholders) -> Result<Request, String> {
    let words = arguments::split(text)?;
    let Some((name, rest)) = words.split_first() else { return Err(EMPTY.into()) };
    let name = String::from_utf8_lossy(name).into_owned();
    let stores = STORING.contains(&name.as_str()) || name == "ms";
    check(&name, rest, stores)?;
    let parts: Vec<Part> = words.iter().map(|word| pieces(word, holes.below)).collect();
    let (head, value) = parts.split_at(parts.len() - usize::from(stores));
    check_words(head, holes)?;
    let mut segments = Vec::new();
    for (number, part) in head.iter().enumerate() {
        if number > 0 {
            segments.push(literal(" "));
        }
        segments.extend(part.iter().map(segment));
        // Flags of a meta command follow the length.
        if name == "ms" && number == 1 {
            segments.push(literal(" "));
            segments.push(length(parts.len() - 1, &value[0], holes)?);
        }
    }
    if let [value] = value {
        if name != "ms" {
            segments.push(literal(" "));
            segments.push(length(head.len(), value, holes)?);
        }
        segments.push(literal("\r\n"));
        segments.extend(value.iter().map(segment));
    }
    segments.push(literal("\r\n"));
    let own_key = |at: usize| parts.get(at).is_some_and(|key| *key == [Piece::Key]);
    let shape = shape(&name, rest);
    Ok(Request {
        writes: segments.contains(&Segment::Value),
        reads_whole: shape == Shape::Value && own_key(1 + usize::from(name.starts_with("gat"))),
        segments,
        shape,
    })
}

/// Checks that a command has the arguments it needs and that the server replies to it.
fn check(name: &str, rest: &[Vec<u8>], stores: bool) -> Result<(), String> {
    let wrong = |problem, expected| Err(format!("`{name}` {problem} (expected {expected})"));
    let is_meta = matches!(name, "mg" | "ms" | "md" | "ma");
    if is_meta && rest.iter().skip(1).any(|word| word == b"q") {
        return wrong("with the flag q has no reply", "it without q");
    }
    if rest.last().is_some_and(|word| word == b"noreply") {
        return wrong("with noreply has no reply", "it without noreply");
    }
    match name {
        "cas" => wrong("needs a number from the server", "set, or ms with your own flag C"),
        "ms" if rest.len() < 2 => {
            wrong("has no value", "`ms __key__ __data__`, flags between them")
        }
        _ if stores && name != "ms" && rest.len() != STORING_WORDS - 1 => {
            wrong("does not have four arguments", "key, flags, lifetime and value")
        }
        _ => Ok(()),
    }
}

/// Rejects empty words, words with spaces or control characters, and keys that are too long.
fn check_words(words: &[Part], holes: &Placeholders) -> Result<(), String> {
    let ends = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
    for (number, word) in words.iter().enumerate() {
        let literals = word.iter().filter_map(|piece| match piece {
            Piece::Literal(bytes) => Some(bytes),
            _ => None,
        });
        if word.is_empty() || literals.flatten().any(ends) {
            return Err(format!(
                "argument {number} contains a space or a control character (expected neither: \
                 they end words in memcached's protocol)"
            ));
        }
        // Key names of varying length are checked where they are generated.
        if word.contains(&Piece::Key)
            && let Ok(bytes) = sum(number, word, holes)
            && bytes > KEY_BYTES_MAX
        {
            return Err(long_key(bytes));
        }
    }
    Ok(())
}

/// The error for a key of this many bytes.
pub(crate) fn long_key(bytes: usize) -> String {
    format!("a key of `{bytes}` bytes (expected at most {KEY_BYTES_MAX})")
}

/// The expected reply to a command, as determined by its arguments.
fn shape(name: &str, rest: &[Vec<u8>]) -> Shape {
    let flag = |letters: &[u8]| {
        rest.iter().skip(1).any(|word| word.first().is_some_and(|letter| letters.contains(letter)))
    };
    let conditional = || rest.iter().skip(1).any(|word| is_one_of(word, &["ME", "MR", "MA", "MP"]));
    match name {
        _ if READING.contains(&name) && rest.len() == 1 => Shape::Value,
        "gat" | "gats" if rest.len() == 2 => Shape::Value,
        "mg" if flag(b"v") => Shape::Value,
        "set" | "delete" | "touch" | "md" | "mg" => Shape::Done,
        "ms" if !conditional() && !flag(b"C") => Shape::Done,
        _ => Shape::Any,
    }
}

/// The first request to a server with accounts: a `set` with the value `user password`, which the
/// server treats as a login. Neither may contain spaces. A server without accounts would store it,
/// so do not send it there.
pub fn hello(user: &str, password: &Secret) -> (Vec<u8>, Vec<Greeting>) {
    let password = password.reveal();
    let mut bytes = b"set login 0 0 ".to_vec();
    append_number(&mut bytes, (user.len() + 1 + password.len()) as u64);
    for part in ["\r\n", user, " ", password, "\r\n"] {
        bytes.extend_from_slice(part.as_bytes());
    }
    let expect = Expect { shape: Shape::Done, bytes: None, verify: false, key: 0 };
    (bytes, vec![Greeting { expect, harmless: false, secret: true }])
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
