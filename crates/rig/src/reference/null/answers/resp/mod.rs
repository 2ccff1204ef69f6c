//! RESP replies of the null server.

mod commands;

pub(super) use commands::{Answer, COMMANDS};

use super::ready::Ready;
use crate::reference::null::commands::Commands;
use crate::reference::replies::resp::Resp;
use crate::reference::scan::{Request, number};
use std::ops::ControlFlow;

/// Maximum number of elements in a reply.
const RANGE_MAX: usize = 4096;
/// Name of every script: a SHA-1 hash in hexadecimal.
const SCRIPT: &[u8] = b"0000000000000000000000000000000000000000";

/// A request and the buffer for its reply.
struct RequestHandler<'a> {
    answers: &'a Ready,
    request: Request<'a>,
    resp: Resp<'a>,
}

/// Answers one request of RESP, which has at least one word. Breaks if the connection must be
/// closed afterwards.
#[inline]
pub(super) fn answer(
    commands: &Commands<Answer>,
    answers: &Ready,
    resp3: &mut bool,
    request: Request<'_>,
    out: &mut Vec<u8>,
) -> ControlFlow<()> {
    let mut resp = Resp { out, is_3: *resp3 };
    match commands.find(request.word(0)) {
        Some(Answer::ConnectionCommand(about)) => {
            let then = about.answer(request, "null", &mut resp);
            *resp3 = resp.is_3;
            return then;
        }
        Some(answer) => RequestHandler { answers, request, resp }.answer(answer),
        None => resp.unknown(request.word(0)),
    }
    ControlFlow::Continue(())
}

impl RequestHandler<'_> {
    fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Ok => self.resp.say("+OK\r\n"),
            Answer::Zero => self.resp.say(":0\r\n"),
            Answer::One => self.resp.say(":1\r\n"),
            Answer::Exists => self.exists(),
            Answer::Delete => self.delete(),
            Answer::Ping if self.request.len() < 2 => self.resp.say("+PONG\r\n"),
            Answer::Ping | Answer::Echo => self.resp.bulk(self.request.word(1)),
            Answer::Get => self.get(self.request.word(1)),
            Answer::Value => self.value(),
            Answer::Pop if self.request.len() < 3 => self.value(),
            Answer::Pop => self.list(count(self.request.word(2))),
            Answer::PopScore => self.pop_score(),
            Answer::Values => self.values(self.request.len().saturating_sub(2)),
            Answer::GetMany => self.get_many(),
            Answer::Range => self.list(range(self.request.word(2), self.request.word(3))),
            Answer::List => self.list(1),
            Answer::Map => self.map(),
            Answer::Scan => self.resp.say("*2\r\n$1\r\n0\r\n*0\r\n"),
            Answer::Set => self.set(2),
            Answer::SetFor => self.set(3),
            Answer::SetMany => self.set_many(),
            Answer::Flush => self.flush(),
            Answer::Type => self.resp.say("+string\r\n"),
            Answer::Script => self.resp.bulk(SCRIPT),
            Answer::Nothing => self.resp.say("*0\r\n"),
            // Handled by the caller, because it can change the connection.
            Answer::ConnectionCommand(_) => {}
        }
    }

    fn value(&mut self) {
        if self.answers.miss {
            self.resp.nil();
        } else {
            self.resp.out.extend_from_slice(&self.answers.bulk);
        }
    }

    /// A value for each name.
    fn values(&mut self, names: usize) {
        self.resp.head(b'*', names);
        (0..names).for_each(|_| self.value());
    }

    /// A list of `length` values; empty if every key is missing.
    fn list(&mut self, length: usize) {
        self.values(if self.answers.miss { 0 } else { length });
    }

    fn map(&mut self) {
        if self.answers.miss {
            return self.resp.pairs(0);
        }
        self.resp.pairs(1);
        self.resp.bulk(b"f");
        self.value();
    }

    fn pop_score(&mut self) {
        if self.answers.miss {
            return self.resp.say("*0\r\n");
        }
        self.resp.head(b'*', 2);
        self.value();
        self.resp.say(if self.resp.is_3 { ",1\r\n" } else { "$1\r\n1\r\n" });
    }

    #[inline]
    fn get(&mut self, key: &[u8]) {
        let Some(memory) = &self.answers.memory else { return self.value() };
        let found = memory.get(key, |_, value| self.resp.bulk(value));
        if found.is_none() {
            self.resp.nil();
        }
    }

    fn get_many(&mut self) {
        self.resp.head(b'*', self.request.len() - 1);
        self.request.words(1).for_each(|key| self.get(key));
    }

    #[inline]
    fn set(&mut self, value: usize) {
        if let Some(memory) = &self.answers.memory {
            memory.set(self.request.word(1), 0, self.request.word(value));
        }
        self.resp.say("+OK\r\n");
    }

    fn set_many(&mut self) {
        if let Some(memory) = &self.answers.memory {
            for key in (1..self.request.len()).step_by(2) {
                memory.set(self.request.word(key), 0, self.request.word(key + 1));
            }
        }
        self.resp.say("+OK\r\n");
    }

    fn delete(&mut self) {
        let keys = self.request.words(1);
        let count = match &self.answers.memory {
            Some(memory) => keys.filter(|key| memory.remove(key)).count(),
            None => self.existing(keys.len()),
        };
        self.resp.head(b':', count);
    }

    fn exists(&mut self) {
        let keys = self.request.words(1);
        let count = match &self.answers.memory {
            Some(memory) => keys.filter(|key| memory.get(key, |_, _| ()).is_some()).count(),
            None => self.existing(keys.len()),
        };
        self.resp.head(b':', count);
    }

    /// Number of existing keys among `keys`.
    fn existing(&self, keys: usize) -> usize {
        if self.answers.miss { 0 } else { keys }
    }

    fn flush(&mut self) {
        if let Some(memory) = &self.answers.memory {
            memory.clear();
        }
        self.resp.say("+OK\r\n");
    }
}

/// Number of requested elements; 0 if it is not a number.
fn count(word: &[u8]) -> usize {
    number(word).unwrap_or(0).min(RANGE_MAX)
}

/// Number of elements between two indices; 1 if an index counts from the end.
fn range(first: &[u8], last: &[u8]) -> usize {
    match (number(first), number(last)) {
        (Some(first), Some(last)) => (last + 1).saturating_sub(first).min(RANGE_MAX),
        _ => 1,
    }
}
