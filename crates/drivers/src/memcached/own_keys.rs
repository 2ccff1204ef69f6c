//! Commands that only touch the key of the request.
//!
//! The key must be exactly `__key__`: memcached cannot list keys, so a run removes its keys by
//! name. Numbers must be valid: a server that cannot parse the header of `set` interprets the
//! following value as a command.

use crate::command::{EMPTY, foreign};

/// An argument of a command.
#[derive(Clone, Copy, Debug)]
enum Word {
    Key,
    /// An unsigned decimal number of at most this many bits.
    Number(u32),
    /// A lifetime in seconds; a negative one has already expired.
    Lifetime,
    /// A value of any content, sent with its length.
    Value,
    /// The value of a command that old servers do not know. They would interpret it as a command,
    /// so only generated values are allowed, which never are one.
    Generated,
}

/// Text commands with all their arguments, and meta commands with the arguments before their flags.
const TEXT: [(&str, &[Word]); 14] = [
    ("version", &[]),
    ("get", &[Word::Key]),
    ("gets", &[Word::Key]),
    ("gat", &[Word::Lifetime, Word::Key]),
    ("gats", &[Word::Lifetime, Word::Key]),
    ("touch", &[Word::Key, Word::Lifetime]),
    ("delete", &[Word::Key]),
    ("incr", &[Word::Key, Word::Number(64)]),
    ("decr", &[Word::Key, Word::Number(64)]),
    ("set", &STORE),
    ("add", &STORE),
    ("replace", &STORE),
    ("append", &STORE),
    ("prepend", &STORE),
];
const STORE: [Word; 4] = [Word::Key, Word::Number(32), Word::Lifetime, Word::Value];

/// Meta commands with their allowed flags: without a token, with a number, and with a word.
const META: [(&str, &str, &str, &str); 4] = [
    ("mg", "cfhklstv", "ENRT", "O"),
    ("ms", "ckIs", "CEFT", "MO"),
    ("md", "ckIx", "CET", "O"),
    ("ma", "ckItv", "CDEJNT", "MO"),
];

/// Checks that a command touches only its key, which must be `__key__`.
///
/// Errors: names the first invalid argument.
pub(crate) fn check(words: &[Vec<u8>]) -> Result<(), String> {
    let Some((name, rest)) = words.split_first() else { return Err(EMPTY.into()) };
    let text = TEXT.iter().find(|(known, _)| name == known.as_bytes());
    let meta = META.iter().find(|(known, ..)| name == known.as_bytes());
    let faulty = match (text, meta) {
        (Some((_, expected)), _) => fault_in(rest, expected, 1),
        (None, Some(meta)) => meta_fault(meta, rest),
        (None, None) => Some((0, "is not on the list of safe commands")),
    };
    let Some((number, problem)) = faulty else { return Ok(()) };
    Err(foreign(words, number, problem, "a single key, which is `__key__`"))
}

/// Index and problem of the first invalid word; the first word has the index `from`.
fn fault_in(words: &[Vec<u8>], expected: &[Word], from: usize) -> Option<(usize, &'static str)> {
    if words.len() > expected.len() {
        return Some((from + expected.len(), "is one argument too many"));
    }
    let fault = |(at, kind): (usize, &Word)| {
        let problem = match words.get(at) {
            None => "is missing",
            Some(word) => kind.fault(word)?,
        };
        Some((from + at, problem))
    };
    expected.iter().enumerate().find_map(fault)
}

fn meta_fault(
    (name, plain, numbers, tokens): &(&str, &str, &str, &str),
    rest: &[Vec<u8>],
) -> Option<(usize, &'static str)> {
    let value = usize::from(*name == "ms");
    let (head, behind) = rest.split_at(rest.len().min(1));
    let (flags, last) = behind.split_at(behind.len().saturating_sub(value));
    let flag_fault = |(at, flag): (usize, &Vec<u8>)| {
        let (letter, token) = flag.split_first()?;
        let is_of = |letters: &str| letters.as_bytes().contains(letter);
        let is_known = (is_of(plain) && token.is_empty())
            || (is_of(numbers) && Word::Number(64).fault(token).is_none())
            || (is_of(tokens) && !token.is_empty() && token.iter().all(u8::is_ascii_alphanumeric));
        let is_twice = flags[..at].iter().any(|other| other.first() == Some(letter));
        let fault = (!is_known || is_twice).then_some("is not on the list of safe flags");
        Some((2 + at, fault?))
    };
    fault_in(head, &[Word::Key], 1)
        .or_else(|| flags.iter().enumerate().find_map(flag_fault))
        .or_else(|| fault_in(last, &[Word::Generated][..value], 2 + flags.len()))
}

impl Word {
    /// The problem of a word of this kind, if any.
    fn fault(self, word: &[u8]) -> Option<&'static str> {
        let text = std::str::from_utf8(word).unwrap_or_default();
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (is_good, problem) = match self {
            Self::Key => (word == b"__key__", "is a key other than `__key__`"),
            Self::Number(bits) => {
                let number = text.parse::<u64>().ok().filter(|_| are_digits(text));
                let fits = number.is_some_and(|n| n.checked_shr(bits).unwrap_or(0) == 0);
                (fits, "is not a valid number for the command")
            }
            Self::Lifetime => {
                let is_number = are_digits(text.strip_prefix('-').unwrap_or(text));
                (is_number && text.parse::<i32>().is_ok(), "is not a lifetime in seconds")
            }
            Self::Value => (true, ""),
            Self::Generated => (word == b"__data__", "is a value other than `__data__`"),
        };
        (!is_good).then_some(problem)
    }
}

#[cfg(test)]
#[path = "own_keys_tests.rs"]
mod tests;
