//! Collections of a profile, such as lists and hashes: how they are filled, and what is done with
//! them.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

use super::Fault;
use crate::load::FILL;
use crate::plan::KvOperation;

/// Most elements of a collection; each adds to the one request that writes them all.
const ELEMENTS_MAX: u64 = 1_000;
/// What stands for the key, the number of an element and its value.
const KEY: &str = "__key__";
const NUMBER: &str = "__n__";
const VALUE: &str = "__data__";

/// The collections behind all keys of a profile. All have the same size, which no operation should
/// change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Collections {
    /// Start of the command that creates one: `RPUSH __key__`.
    create: Spanned<String>,
    /// What follows for each element: `__data__`, or `f__n__ __data__` with its number.
    element: Spanned<String>,
    /// Number of elements.
    elements: Spanned<u64>,
    /// Command of each operation.
    commands: Spanned<BTreeMap<String, String>>,
}

impl Collections {
    /// What contradicts itself.
    pub(super) fn fault(&self) -> Option<Fault> {
        let Self { create, element, elements, commands } = self;
        let lacks = |text: &String, part| !text.split_whitespace().any(|word| word == part);
        if lacks(create.get_ref(), KEY) {
            return Some((create.span().start, format!("create must have the argument `{KEY}`")));
        }
        if lacks(element.get_ref(), VALUE) {
            let problem = format!("element must have the argument `{VALUE}`");
            return Some((element.span().start, problem));
        }
        if !(1..=ELEMENTS_MAX).contains(elements.get_ref()) {
            let problem = format!("elements must be 1 to {ELEMENTS_MAX}");
            return Some((elements.span().start, problem));
        }
        let is_wrong = |(name, command): &(&String, &String)| {
            let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
            *name == FILL || !name.chars().all(is_name) || lacks(command, KEY)
        };
        let (name, _) = commands.get_ref().iter().find(is_wrong)?;
        let problem = format!(
            "command `{name}` must have a name of lower-case letters other than `{FILL}`, and the \
             argument `{KEY}`"
        );
        Some((commands.span().start, problem))
    }

    /// Names of the operations.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.commands.get_ref().keys()
    }

    /// The operation that fills a key, and those of the phases.
    pub(super) fn operations(&self) -> Vec<KvOperation> {
        let Self { create, element, elements, commands } = self;
        let numbered = |n: u64| format!(" {}", element.get_ref().replace(NUMBER, &n.to_string()));
        let all: String = (0..*elements.get_ref()).map(numbered).collect();
        let fill = (FILL.to_string(), format!("{}{all}", create.get_ref()));
        let own = commands.get_ref().iter().map(|(name, text)| (name.clone(), text.clone()));
        let operation = |(name, command)| KvOperation { name, command: Some(command) };
        std::iter::once(fill).chain(own).map(operation).collect()
    }

    /// Approximate memory of the elements with values of this size in Redis, in place of a string's
    /// bytes. Redis keeps a small hash, and up to 8 KiB of a list, as one string: its head and end
    /// have 7 bytes, one more than those of others, and an element up to two bytes before it and
    /// one or two after it (`listpack.c` of Redis 7).
    pub(super) fn bytes(&self, value_bytes: u64) -> u64 {
        let words = self.element.get_ref().split_whitespace();
        let of_word = |word: &str| match word {
            VALUE => value_bytes + 3,
            other => other.replace(NUMBER, "0").len() as u64 + 2,
        };
        1 + self.elements.get_ref() * words.map(of_word).sum::<u64>()
    }
}
