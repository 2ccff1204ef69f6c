//! Answers of RESP.

mod commands;

pub(super) use commands::{Answer, COMMANDS};

use super::ready::{Ready, push_number};
use crate::reference::null::commands::Commands;
use crate::reference::scan::{Parts, number};
use std::ops::ControlFlow;

/// Elements of the longest range that is answered.
const RANGE_MAX: usize = 4096;
/// What `INFO` says: the fields that clients ask for.
const INFO: &str = "# Server\r\nredis_version:0.0.0-null\r\nserver_name:cachedyno-null\r\n\
    redis_mode:standalone\r\nos:Linux\r\ntcp_port:0\r\n\r\n# Clients\r\nconnected_clients:1\r\n\
    \r\n# Memory\r\nused_memory:0\r\nmaxmemory:0\r\n\
    total_system_memory:1099511627776\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Stats\
    \r\nevicted_keys:0\r\nexpired_keys:0\r\n\r\n# Replication\r\nrole:master\r\n\
    connected_slaves:0\r\n\r\n# Keyspace\r\n";
/// What it calls itself.
const NAME: &str = "cachedyno-null";
/// Its version, which is none.
const VERSION: &str = "0.0.0-null";
/// What `CONFIG GET` knows.
const CONFIG: [(&str, &str); 3] = [("save", ""), ("appendonly", "no"), ("maxmemory", "0")];
/// A SHA-1 sum in hexadecimal digits, the name of every script.
const SCRIPT: &[u8] = b"0000000000000000000000000000000000000000";

/// One request and where its answer goes.
struct Asked<'a> {
    answers: &'a Ready,
    resp3: bool,
    bytes: &'a [u8],
    parts: &'a Parts,
    out: &'a mut Vec<u8>,
}

/// Answers one request of RESP, which has at least one word. Breaks where the connection ends after
/// it.
#[inline]
pub(super) fn answer(
    commands: &Commands<Answer>,
    answers: &Ready,
    resp3: &mut bool,
    bytes: &[u8],
    parts: &Parts,
    out: &mut Vec<u8>,
) -> ControlFlow<()> {
    let mut asked = Asked { answers, resp3: *resp3, bytes, parts, out };
    match commands.find(parts.word(bytes, 0)) {
        Some(Answer::Hello) => *resp3 = asked.hello(),
        Some(Answer::Reset) => {
            *resp3 = false;
            asked.say("+RESET\r\n");
        }
        Some(Answer::Quit) => {
            asked.say("+OK\r\n");
            return ControlFlow::Break(());
        }
        Some(answer) => asked.answer(answer),
        None => asked.unknown(),
    }
    ControlFlow::Continue(())
}

impl<'a> Asked<'a> {
    fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Ok => self.say("+OK\r\n"),
            Answer::Zero => self.say(":0\r\n"),
            Answer::One => self.say(":1\r\n"),
            Answer::Exists => self.exists(),
            Answer::Delete => self.delete(),
            Answer::Ping if self.parts.len() < 2 => self.say("+PONG\r\n"),
            Answer::Ping | Answer::Echo => bulk(self.out, self.word(1)),
            Answer::Get => self.get(self.word(1)),
            Answer::Value => self.value(),
            Answer::Pop if self.parts.len() < 3 => self.value(),
            Answer::Pop => self.list(count(self.word(2))),
            Answer::PopScore => self.pop_score(),
            Answer::Values => self.values(self.parts.len().saturating_sub(2)),
            Answer::GetMany => self.get_many(),
            Answer::Range => self.list(range(self.word(2), self.word(3))),
            Answer::List => self.list(1),
            Answer::Map => self.map(),
            Answer::Scan => self.say("*2\r\n$1\r\n0\r\n*0\r\n"),
            Answer::Set => self.set(2),
            Answer::SetFor => self.set(3),
            Answer::SetMany => self.set_many(),
            Answer::Flush => self.flush(),
            Answer::Type => self.say("+string\r\n"),
            Answer::Client => self.client(),
            Answer::Config => self.config(),
            Answer::Info => bulk(self.out, INFO.as_bytes()),
            Answer::Script => bulk(self.out, SCRIPT),
            Answer::Command if self.is(1, b"count") => self.say(":0\r\n"),
            Answer::Command | Answer::Nothing => self.say("*0\r\n"),
            Answer::Cluster => self.say("-ERR This instance has cluster support disabled\r\n"),
            // These change the connection and are answered before.
            Answer::Hello | Answer::Reset | Answer::Quit => {}
        }
    }

    fn word(&self, number: usize) -> &'a [u8] {
        self.parts.word(self.bytes, number)
    }

    fn is(&self, number: usize, name: &[u8]) -> bool {
        self.word(number).eq_ignore_ascii_case(name)
    }

    fn say(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// A type's sign with a number.
    fn head(&mut self, sign: u8, number: usize) {
        self.out.push(sign);
        push_number(self.out, number);
        self.say("\r\n");
    }

    fn nil(&mut self) {
        self.say(if self.resp3 { "_\r\n" } else { "$-1\r\n" });
    }

    fn value(&mut self) {
        if self.answers.miss {
            self.nil();
        } else {
            self.out.extend_from_slice(&self.answers.bulk);
        }
    }

    /// A value for each name.
    fn values(&mut self, names: usize) {
        self.head(b'*', names);
        (0..names).for_each(|_| self.value());
    }

    /// So many values of a list, which is empty when every key is missing.
    fn list(&mut self, length: usize) {
        self.values(if self.answers.miss { 0 } else { length });
    }

    /// The head of a map: of an array of twice the length in RESP 2.
    fn pairs(&mut self, length: usize) {
        if self.resp3 { self.head(b'%', length) } else { self.head(b'*', length * 2) }
    }

    fn map(&mut self) {
        if self.answers.miss {
            return self.pairs(0);
        }
        self.pairs(1);
        bulk(self.out, b"f");
        self.value();
    }

    fn pop_score(&mut self) {
        if self.answers.miss {
            return self.say("*0\r\n");
        }
        self.head(b'*', 2);
        self.value();
        self.say(if self.resp3 { ",1\r\n" } else { "$1\r\n1\r\n" });
    }

    #[inline]
    fn get(&mut self, key: &[u8]) {
        let Some(memory) = &self.answers.memory else { return self.value() };
        let found = memory.get(key, |_, value| bulk(self.out, value));
        if found.is_none() {
            self.nil();
        }
    }

    fn get_many(&mut self) {
        self.head(b'*', self.parts.len() - 1);
        self.parts.words(self.bytes, 1).for_each(|key| self.get(key));
    }

    #[inline]
    fn set(&mut self, value: usize) {
        if let Some(memory) = &self.answers.memory {
            memory.set(self.word(1), 0, self.word(value));
        }
        self.say("+OK\r\n");
    }

    fn set_many(&mut self) {
        if let Some(memory) = &self.answers.memory {
            for key in (1..self.parts.len()).step_by(2) {
                memory.set(self.word(key), 0, self.word(key + 1));
            }
        }
        self.say("+OK\r\n");
    }

    fn delete(&mut self) {
        let keys = self.parts.words(self.bytes, 1);
        let count = match &self.answers.memory {
            Some(memory) => keys.filter(|key| memory.remove(key)).count(),
            None => self.there(keys.len()),
        };
        self.head(b':', count);
    }

    fn exists(&mut self) {
        let keys = self.parts.words(self.bytes, 1);
        let count = match &self.answers.memory {
            Some(memory) => keys.filter(|key| memory.get(key, |_, _| ()).is_some()).count(),
            None => self.there(keys.len()),
        };
        self.head(b':', count);
    }

    /// How many of so many keys there are.
    fn there(&self, keys: usize) -> usize {
        if self.answers.miss { 0 } else { keys }
    }

    fn flush(&mut self) {
        if let Some(memory) = &self.answers.memory {
            memory.clear();
        }
        self.say("+OK\r\n");
    }

    fn client(&mut self) {
        if self.is(1, b"id") {
            self.say(":1\r\n");
        } else if self.is(1, b"getname") {
            self.nil();
        } else if self.is(1, b"list") || self.is(1, b"info") {
            bulk(self.out, b"id=1 addr=127.0.0.1:0 name= db=0\n");
        } else {
            self.say("+OK\r\n");
        }
    }

    fn config(&mut self) {
        if !self.is(1, b"get") {
            return self.say("+OK\r\n");
        }
        let wanted = |name: &str| (2..self.parts.len()).any(|n| self.is(n, name.as_bytes()));
        let known =
            CONFIG.map(|(name, value)| (wanted("*") || wanted(name)).then_some((name, value)));
        self.pairs(known.iter().flatten().count());
        for (name, value) in known.into_iter().flatten() {
            bulk(self.out, name.as_bytes());
            bulk(self.out, value.as_bytes());
        }
    }

    /// Answers `HELLO`; whether RESP 3 is spoken from now on.
    fn hello(&mut self) -> bool {
        match self.word(1) {
            b"" => {}
            b"2" => self.resp3 = false,
            b"3" => self.resp3 = true,
            _ => {
                self.say("-NOPROTO unsupported protocol version\r\n");
                return self.resp3;
            }
        }
        self.pairs(7);
        let texts =
            [("server", NAME), ("version", VERSION), ("mode", "standalone"), ("role", "master")];
        for (name, text) in texts {
            bulk(self.out, name.as_bytes());
            bulk(self.out, text.as_bytes());
        }
        for (name, number) in [("proto", if self.resp3 { 3 } else { 2 }), ("id", 1)] {
            bulk(self.out, name.as_bytes());
            self.head(b':', number);
        }
        bulk(self.out, b"modules");
        self.say("*0\r\n");
        self.resp3
    }

    fn unknown(&mut self) {
        let name = self.word(0);
        self.say("-ERR unknown command '");
        // A name that is no text could break the line.
        let shown = name.iter().take(64).map(|b| if b.is_ascii_graphic() { *b } else { b'?' });
        self.out.extend(shown);
        self.say("'\r\n");
    }
}

/// Appends a bulk string.
#[inline]
pub(super) fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'$');
    push_number(out, bytes.len());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// How many elements are asked for; none where that is not a number.
fn count(word: &[u8]) -> usize {
    number(word).unwrap_or(0).min(RANGE_MAX)
}

/// How many elements lie between two indices; one where an index counts from the end.
fn range(first: &[u8], last: &[u8]) -> usize {
    match (number(first), number(last)) {
        (Some(first), Some(last)) => (last + 1).saturating_sub(first).min(RANGE_MAX),
        _ => 1,
    }
}
