//! Answers of memcached's text protocol and of its meta commands
//! (<https://github.com/memcached/memcached/blob/master/doc/protocol.txt>).

use super::ready::{Ready, push_number};
use crate::reference::null::commands::Commands;
use crate::reference::scan::Parts;
use std::ops::ControlFlow;

/// How the commands of a group are answered.
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

/// Every command that is known, by its answer.
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

/// One request and where its answer goes.
struct Asked<'a> {
    answers: &'a Ready,
    bytes: &'a [u8],
    parts: &'a Parts,
    out: &'a mut Vec<u8>,
}

/// Answers one request of memcached's text protocol, which has at least one word. Breaks where the
/// connection ends after it.
#[inline]
pub(super) fn answer(
    commands: &Commands<Answer>,
    answers: &Ready,
    bytes: &[u8],
    parts: &Parts,
    out: &mut Vec<u8>,
) -> ControlFlow<()> {
    let mut asked = Asked { answers, bytes, parts, out };
    match commands.find(parts.word(bytes, 0)) {
        Some(Answer::Quit) => return ControlFlow::Break(()),
        Some(answer) => asked.answer(answer),
        None => asked.say("ERROR\r\n"),
    }
    ControlFlow::Continue(())
}

impl<'a> Asked<'a> {
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
                self.say_unless_quiet(if self.there() { "1\r\n" } else { "NOT_FOUND\r\n" });
            }
            Answer::Touch => {
                self.say_unless_quiet(if self.there() { "TOUCHED\r\n" } else { "NOT_FOUND\r\n" });
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
            // It ends the connection and is not answered.
            Answer::Quit => {}
        }
    }

    fn word(&self, number: usize) -> &'a [u8] {
        self.parts.word(self.bytes, number)
    }

    fn say(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Says it, unless the client has asked for no reply.
    fn say_unless_quiet(&mut self, text: &str) {
        if self.word(self.parts.len() - 1) != b"noreply" {
            self.say(text);
        }
    }

    /// Whether the key, the word after the command, is there.
    fn there(&self) -> bool {
        match &self.answers.memory {
            Some(memory) => memory.get(self.word(1), |_, _| ()).is_some(),
            None => !self.answers.miss,
        }
    }

    /// Keeps the data, with its flags, where values are remembered.
    fn keep(&mut self) {
        let Some(memory) = &self.answers.memory else { return };
        let flags = match self.word(0) {
            b"ms" => self.flag(3, b'F').unwrap_or_default(),
            _ => self.word(2),
        };
        let flags = std::str::from_utf8(flags).ok().and_then(|text| text.parse().ok());
        memory.set(self.word(1), flags.unwrap_or(0), self.parts.data(self.bytes));
    }

    /// Forgets the key; whether it was there.
    fn forget(&mut self) -> bool {
        match &self.answers.memory {
            Some(memory) => memory.remove(self.word(1)),
            None => !self.answers.miss,
        }
    }

    #[inline]
    fn get(&mut self, from: usize, unique: bool) {
        let (answers, out) = (self.answers, &mut *self.out);
        for key in self.parts.words(self.bytes, from) {
            if let Some(memory) = &answers.memory {
                memory.get(key, |flags, bytes| {
                    name(out, key);
                    value(out, flags, bytes, unique);
                });
            } else if !answers.miss {
                name(out, key);
                if unique {
                    value(out, 0, &answers.value, true);
                } else {
                    out.extend_from_slice(&answers.text);
                }
            }
        }
        out.extend_from_slice(b"END\r\n");
    }

    fn stats(&mut self) {
        let settings = matches!(self.word(1), b"settings");
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
        let plain = self.parts.len() < 2 || settings;
        lines.iter().filter(|_| plain).for_each(|line| self.say(line));
        self.say("END\r\n");
    }

    /// What a meta flag says, from the word on with which flags begin; `None` without that flag.
    fn flag(&self, from: usize, flag: u8) -> Option<&'a [u8]> {
        let mut flags = self.parts.words(self.bytes, from);
        flags.find_map(|word| word.strip_prefix(&[flag]))
    }

    fn meta_get(&mut self) {
        let wants_value = self.flag(2, b'v').is_some();
        let (answers, key) = (self.answers, self.word(1));
        let found = if let Some(memory) = &answers.memory {
            memory.get(key, |flags, value| self.meta_value(flags, value, wants_value))
        } else {
            (!answers.miss).then(|| self.meta_value(0, &answers.value, wants_value))
        };
        // A quiet request is answered only when the key is there.
        if found.is_none() && self.flag(2, b'q').is_none() {
            self.say("EN\r\n");
        }
    }

    fn meta_value(&mut self, flags: u32, value: &[u8], wants_value: bool) {
        if wants_value {
            self.say("VA ");
            push_number(self.out, value.len());
        } else {
            self.say("HD");
        }
        self.meta_flags(2, flags, value.len());
        if wants_value {
            self.out.extend_from_slice(value);
            self.say("\r\n");
        }
    }

    fn meta_count(&mut self) {
        let loud = self.flag(2, b'q').is_none();
        if self.there() && self.flag(2, b'v').is_some() && loud {
            self.say("VA 1");
            self.meta_flags(2, 0, 1);
            self.say("1\r\n");
        } else {
            self.meta(if self.there() { "HD" } else { "NF" }, 2);
        }
    }

    /// A code with the flags that are sent back, unless the request is a quiet one.
    fn meta(&mut self, code: &str, from: usize) {
        if self.flag(from, b'q').is_none() {
            self.say(code);
            self.meta_flags(from, 0, 0);
        }
    }

    /// Sends back what each flag asks for, and ends the line.
    fn meta_flags(&mut self, from: usize, client_flags: u32, length: usize) {
        let key = self.word(1);
        for word in self.parts.words(self.bytes, from) {
            let number = match word.first() {
                Some(b'O') => {
                    self.out.push(b' ');
                    self.out.extend_from_slice(word);
                    continue;
                }
                Some(b'k') => {
                    self.say(" k");
                    self.out.extend_from_slice(key);
                    continue;
                }
                Some(b't') => {
                    self.say(" t-1");
                    continue;
                }
                Some(b'f') => client_flags as usize,
                Some(b's') => length,
                Some(b'c') => 1,
                Some(b'h' | b'l') => 0,
                _ => continue,
            };
            self.out.extend_from_slice(&[b' ', word[0]]);
            push_number(self.out, number);
        }
        self.say("\r\n");
    }
}

/// Appends the beginning of a value's answer.
fn name(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
}

/// Appends what follows the key in a value's answer: flags, length, perhaps a unique number, data.
pub(super) fn value(out: &mut Vec<u8>, flags: u32, bytes: &[u8], unique: bool) {
    out.push(b' ');
    push_number(out, flags as usize);
    out.push(b' ');
    push_number(out, bytes.len());
    out.extend_from_slice(if unique { b" 1\r\n" } else { b"\r\n" });
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
