//! Requests to memcached, as bytes with holes.
//!
//! A text command is a line of words; what stores a value has its length behind the other words and
//! the value in a second line: `set <key> <flags> <lifetime> <bytes>\r\n<value>\r\n`. Of the meta
//! commands `ms <key> <bytes> <flags>*` does so. Here the value is a command's last word, and the
//! length is put where it belongs: `set __key__ 0 60 __data__`, `ms __key__ T60 __data__`. A
//! request must have a reply, so `noreply` and the meta flag `q` are refused.

use load::wire::protocol::{Expect, Greeting, Shape};
use load::wire::template::Segment;
use model::{Secret, Spelling};
use stats::append_number;

use crate::command::{EMPTY, arguments, is_one_of, length, literal, pieces, segment, sum, unknown};

pub use crate::command::{Holes, Part, Piece, Request};

/// Longest name of a key.
pub const KEY_BYTES_MAX: usize = 250;
/// Longest lifetime, 30 days: what is more is taken for a date.
const LIFE_S_MAX: u64 = 60 * 60 * 24 * 30;

/// Operations by name, as text and as meta commands; `@` stands for the lifetime in seconds, 0 for
/// none.
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

/// Text commands that store a value, and how many words they have with it.
const STORING: [&str; 5] = ["set", "add", "replace", "append", "prepend"];
const STORING_WORDS: usize = 5;
/// Commands that read one value.
const READING: [&str; 2] = ["get", "gets"];

/// A named operation on the key that is drawn, such as `get` or `set`; `ttl_s` is the lifetime of
/// what it writes or touches, in seconds. Errors: no operation of that name, or a lifetime of more
/// than 30 days.
pub fn operation(
    spelling: Spelling,
    name: &str,
    ttl_s: Option<u64>,
    holes: &Holes,
) -> Result<Request, String> {
    let Some((_, text, meta)) = OPERATIONS.iter().find(|(known, ..)| *known == name) else {
        return Err(unknown(name, OPERATIONS.iter().map(|(known, ..)| *known)));
    };
    let ttl_s = ttl_s.unwrap_or(0);
    if ttl_s > LIFE_S_MAX {
        return Err(format!(
            "a lifetime of `{ttl_s}` seconds (expected at most {LIFE_S_MAX}: memcached takes more \
             for a date)"
        ));
    }
    let spelled = if spelling == Spelling::Text { text } else { meta };
    custom(&spelled.replace('@', &ttl_s.to_string()), holes)
}

/// A command line, its value last, split as redis-cli splits it. Errors: a sentence for people.
pub fn custom(text: &str, holes: &Holes) -> Result<Request, String> {
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
        // Flags of a meta command come behind the length.
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

/// Checks that a command has what its kind needs, and a reply.
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
        "cas" => {
            wrong("needs a number that the server gave", "set, or ms with a flag C of your own")
        }
        "ms" if rest.len() < 2 => {
            wrong("has no value", "`ms __key__ __data__`, flags between them")
        }
        _ if stores && name != "ms" && rest.len() != STORING_WORDS - 1 => {
            wrong("has more or less than four arguments", "key, flags, lifetime and value")
        }
        _ => Ok(()),
    }
}

/// Checks that words are words, and the key no longer than it may be.
fn check_words(words: &[Part], holes: &Holes) -> Result<(), String> {
    let ends = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
    for (number, word) in words.iter().enumerate() {
        let literals = word.iter().filter_map(|piece| match piece {
            Piece::Literal(bytes) => Some(bytes),
            _ => None,
        });
        if word.is_empty() || literals.flatten().any(ends) {
            return Err(format!(
                "argument {number} holds a blank or a control character (expected none: \
                 memcached's protocol ends words there)"
            ));
        }
        // Names of several lengths are checked by whoever makes them.
        if word.contains(&Piece::Key)
            && let Ok(bytes) = sum(number, word, holes)
            && bytes > KEY_BYTES_MAX
        {
            return Err(long_key(bytes));
        }
    }
    Ok(())
}

/// Why a key of so many bytes cannot be sent.
pub(crate) fn long_key(bytes: usize) -> String {
    format!("a key of `{bytes}` bytes (expected at most {KEY_BYTES_MAX})")
}

/// What the reply to a command must be, as far as its words say.
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

/// What a connection to a server with accounts begins with: a value of the form `user password`,
/// which the server takes for no value; neither may hold blanks. It fits no server without
/// accounts, which would store it.
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
