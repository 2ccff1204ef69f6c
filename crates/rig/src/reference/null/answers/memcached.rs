//! Replies of memcached's text protocol and meta commands.

use super::ready::Ready;
use crate::reference::null::commands::Commands;
use crate::reference::replies::text::{self, Item, flag};
use crate::reference::scan::Request;
use stats::append_number;
use std::ops::ControlFlow;

/// Kind of reply for a group of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A value for each key from this word on, with a unique number or without.
    Get {
        from: usize,
        unique: bool,
    },
    Store,
    Delete,
    Count,
    Touch,
    Flush,
    Ok,
    Version,
    Stats,
    MetaGet,
    MetaSet,
    MetaDelete,
    MetaCount,
    MetaNothing,
    Quit,
}

/// All known commands by kind of reply.
pub(super) const COMMANDS: [(Answer, &str); 18] = [
    (Answer::Get { from: 1, unique: false }, "get"),
    (Answer::Get { from: 1, unique: true }, "gets"),
    (Answer::Get { from: 2, unique: false }, "gat"),
    (Answer::Get { from: 2, unique: true }, "gats"),
    (Answer::Store, "set add replace append prepend cas"),
    (Answer::Delete, "delete"),
    (Answer::Count, "incr decr"),
    (Answer::Touch, "touch"),
    (Answer::Flush, "flush_all"),
    (Answer::Ok, "verbosity"),
    (Answer::Version, "version"),
    (Answer::Stats, "stats"),
    (Answer::MetaGet, "mg"),
    (Answer::MetaSet, "ms"),
    (Answer::MetaDelete, "md"),
    (Answer::MetaCount, "ma"),
    (Answer::MetaNothing, "mn"),
    (Answer::Quit, "quit"),
];

/// The `cas unique` number of every value.
const UNIQUE: u64 = 1;

/// A request and the buffer for its reply.
struct RequestHandler<'a> {
    answers: &'a Ready,
    request: Request<'a>,
    out: &'a mut Vec<u8>,
}

/// Answers one request of memcached's text protocol, which has at least one word. Breaks if the
/// connection must be closed afterwards.
#[inline]
pub(super) fn answer(
    commands: &Commands<Answer>,
    answers: &Ready,
    request: Request<'_>,
    out: &mut Vec<u8>,
) -> ControlFlow<()> {
    let mut handler = RequestHandler { answers, request, out };
    match commands.find(request.word(0)) {
        Some(Answer::Quit) => return ControlFlow::Break(()),
        Some(answer) => handler.answer(answer),
        None => handler.say("ERROR\r\n"),
    }
    ControlFlow::Continue(())
}

impl RequestHandler<'_> {
    fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Get { from, unique } => self.get(from, unique),
            Answer::Store => {
                self.keep();
                self.say_unless_quiet("STORED\r\n");
            }
            Answer::Delete => {
                let there = self.forget();
                self.say_unless_quiet(if there { "DELETED\r\n" } else { "NOT_FOUND\r\n" });
            }
            Answer::Count => {
                self.say_unless_quiet(if self.key_exists() { "1\r\n" } else { "NOT_FOUND\r\n" });
            }
            Answer::Touch => {
                self.say_unless_quiet(if self.key_exists() {
                    "TOUCHED\r\n"
                } else {
                    "NOT_FOUND\r\n"
                });
            }
            Answer::Flush => {
                if let Some(memory) = &self.answers.memory {
                    memory.clear();
                }
                self.say_unless_quiet("OK\r\n");
            }
            Answer::Ok => self.say_unless_quiet("OK\r\n"),
            Answer::Version => self.say("VERSION 0.0.0-null\r\n"),
            Answer::Stats => self.stats(),
            Answer::MetaGet => self.meta_get(),
            Answer::MetaSet => {
                self.keep();
                self.meta("HD", 3);
            }
            Answer::MetaDelete => {
                let there = self.forget();
                self.meta(if there { "HD" } else { "NF" }, 2);
            }
            Answer::MetaCount => self.meta_count(),
            Answer::MetaNothing => self.say("MN\r\n"),
            // Handled by the caller: closes the connection without a reply.
            Answer::Quit => {}
        }
    }

    fn say(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Appends the reply, unless the request says `noreply`.
    fn say_unless_quiet(&mut self, text: &str) {
        if self.request.word(self.request.len() - 1) != b"noreply" {
            self.say(text);
        }
    }

    /// Whether the key, the word after the command, exists.
    fn key_exists(&self) -> bool {
        match &self.answers.memory {
            Some(memory) => memory.get(self.request.word(1), |_, _| ()).is_some(),
            None => !self.answers.miss,
        }
    }

    /// Stores the data and its flags if values are remembered.
    fn keep(&mut self) {
        let Some(memory) = &self.answers.memory else { return };
        let flags = match self.request.word(0) {
            b"ms" => flag(self.request, 3, b'F').unwrap_or_default(),
            _ => self.request.word(2),
        };
        let flags = std::str::from_utf8(flags).ok().and_then(|text| text.parse().ok());
        memory.set(self.request.word(1), flags.unwrap_or(0), self.request.data());
    }

    /// Deletes the key; true if it existed.
    fn forget(&mut self) -> bool {
        match &self.answers.memory {
            Some(memory) => memory.remove(self.request.word(1)),
            None => !self.answers.miss,
        }
    }

    #[inline]
    fn get(&mut self, from: usize, unique: bool) {
        let (answers, out) = (self.answers, &mut *self.out);
        let unique = unique.then_some(UNIQUE);
        for key in self.request.words(from) {
            if let Some(memory) = &answers.memory {
                memory.get(key, |flags, bytes| {
                    text::name(out, key);
                    text::value(out, flags, bytes, unique);
                });
            } else if !answers.miss {
                text::name(out, key);
                if unique.is_some() {
                    text::value(out, 0, &answers.value, unique);
                } else {
                    out.extend_from_slice(&answers.text);
                }
            }
        }
        out.extend_from_slice(b"END\r\n");
    }

    fn stats(&mut self) {
        let settings = matches!(self.request.word(1), b"settings");
        let lines: &[&str] = if settings {
            &["STAT maxbytes 0\r\n", "STAT evictions off\r\n"]
        } else {
            &[
                "STAT version 0.0.0-null\r\n",
                "STAT curr_items 0\r\n",
                "STAT evictions 0\r\n",
                "STAT bytes 0\r\n",
                "STAT limit_maxbytes 0\r\n",
            ]
        };
        let plain = self.request.len() < 2 || settings;
        lines.iter().filter(|_| plain).for_each(|line| self.say(line));
        self.say("END\r\n");
    }

    fn meta_get(&mut self) {
        let wants_value = flag(self.request, 2, b'v').is_some();
        let (answers, key) = (self.answers, self.request.word(1));
        let found = if let Some(memory) = &answers.memory {
            memory.get(key, |flags, value| self.meta_value(flags, value, wants_value))
        } else {
            (!answers.miss).then(|| self.meta_value(0, &answers.value, wants_value))
        };
        // A quiet request is answered only if the key exists.
        if found.is_none() && flag(self.request, 2, b'q').is_none() {
            self.say("EN\r\n");
        }
    }

    fn meta_value(&mut self, flags: u32, value: &[u8], wants_value: bool) {
        if wants_value {
            self.say("VA ");
            append_number(self.out, value.len() as u64);
        } else {
            self.say("HD");
        }
        text::meta_flags(self.out, self.request, 2, Some(item(flags, value.len())));
        if wants_value {
            text::data(self.out, value);
        }
    }

    fn meta_count(&mut self) {
        let loud = flag(self.request, 2, b'q').is_none();
        if self.key_exists() && flag(self.request, 2, b'v').is_some() && loud {
            self.say("VA 1");
            text::meta_flags(self.out, self.request, 2, Some(item(0, 1)));
            self.say("1\r\n");
        } else {
            self.meta(if self.key_exists() { "HD" } else { "NF" }, 2);
        }
    }

    /// Appends a code and the returned flags, unless the request is quiet.
    fn meta(&mut self, code: &str, from: usize) {
        text::meta(self.out, code, self.request, from, Some(item(0, 0)));
    }
}

/// Metadata of a value.
fn item(flags: u32, length: usize) -> Item {
    Item { flags, length, unique: UNIQUE }
}
