//! Redis commands of a scripted server.

use super::{Corruption, Store, corrupted, integer};
use crate::reference::replies::resp::{ConnectionCommand, Resp};
use crate::reference::scan::Request;
use std::fmt::Display;
use std::ops::ControlFlow;

const NOT_A_NUMBER: &str = "-ERR value is not an integer or out of range\r\n";
const WORDS_MISSING: &str = "-ERR wrong number of arguments\r\n";

impl Store {
    /// Answers a request. Breaks if the connection must be closed after the reply.
    pub(super) fn resp(
        &mut self,
        request: Request,
        corruption: &mut Option<Corruption>,
        resp: &mut Resp,
    ) -> ControlFlow<()> {
        let name = request.word(0).to_ascii_lowercase();
        if let Some(about) = ConnectionCommand::named(&name) {
            return about.answer(request, "scripted", resp);
        }
        if request.len() < min_words(&name) {
            resp.say(WORDS_MISSING);
        } else {
            self.run_command(&name, request, corruption, resp);
        }
        ControlFlow::Continue(())
    }

    /// Executes a command that has enough arguments.
    fn run_command(
        &mut self,
        name: &[u8],
        request: Request,
        corruption: &mut Option<Corruption>,
        resp: &mut Resp,
    ) {
        let key = request.key();
        match name {
            b"ping" if request.len() < 2 => resp.say("+PONG\r\n"),
            b"ping" | b"echo" => resp.bulk(key),
            b"get" | b"getex" => self.send(key, corruption, resp),
            b"getset" => {
                self.send(key, corruption, resp);
                self.set(key, request.word(2), 0);
            }
            b"getdel" => {
                self.send(key, corruption, resp);
                self.items.remove(key);
            }
            b"mget" => {
                resp.head(b'*', request.words(1).len());
                request.words(1).for_each(|key| self.send(key, corruption, resp));
            }
            b"set" => self.set_if(request, resp),
            b"setex" | b"psetex" => {
                self.set(key, request.word(3), 0);
                resp.say("+OK\r\n");
            }
            b"setnx" => {
                let new = self.get(key).is_none();
                if new {
                    self.set(key, request.word(2), 0);
                }
                number(resp, i64::from(new));
            }
            b"mset" => {
                for pair in (1..request.len()).step_by(2) {
                    self.set(request.word(pair), request.word(pair + 1), 0);
                }
                resp.say("+OK\r\n");
            }
            b"del" | b"unlink" => {
                let gone = request.words(1).filter(|key| self.items.remove(*key).is_some());
                number(resp, gone.count());
            }
            b"exists" | b"touch" => {
                let there = request.words(1).filter(|key| self.get(key).is_some());
                number(resp, there.count());
            }
            b"strlen" => {
                number(resp, self.get(key).map_or(0, |item| item.value.len()));
            }
            b"expire" | b"pexpire" => number(resp, i64::from(self.get(key).is_some())),
            b"ttl" | b"pttl" => number(resp, if self.get(key).is_some() { -1 } else { -2 }),
            b"incr" | b"incrby" | b"decr" | b"decrby" => self.count(request, name, resp),
            b"dbsize" => number(resp, self.items.len()),
            b"scan" => self.scan(request, resp),
            b"flushall" | b"flushdb" => {
                self.items.clear();
                resp.say("+OK\r\n");
            }
            b"auth" | b"select" | b"readonly" | b"readwrite" => resp.say("+OK\r\n"),
            other => resp.unknown(other),
        }
    }

    fn send(&self, key: &[u8], corruption: &mut Option<Corruption>, resp: &mut Resp) {
        match self.get(key) {
            None => resp.nil(),
            Some(item) => resp.bulk(&corrupted(corruption, &item.value)),
        }
    }

    /// `SET key value [NX | XX] …`.
    fn set_if(&mut self, request: Request, resp: &mut Resp) {
        let key = request.key();
        let has = |option: &[u8]| request.words(3).any(|word| word.eq_ignore_ascii_case(option));
        let there = self.get(key).is_some();
        if (has(b"NX") && there) || (has(b"XX") && !there) {
            return resp.nil();
        }
        self.set(key, request.word(2), 0);
        resp.say("+OK\r\n");
    }

    fn count(&mut self, request: Request, name: &[u8], resp: &mut Resp) {
        let by = if name.ends_with(b"by") { integer(request.word(2)) } else { Some(1) };
        let by = if name.starts_with(b"decr") { by.and_then(i64::checked_neg) } else { by };
        let Some(by) = by else { return resp.say(NOT_A_NUMBER) };
        if self.get(request.key()).is_none() {
            self.set(request.key(), b"0", 0);
        }
        match self.add(request.key(), by) {
            Some(sum) => number(resp, sum),
            None => resp.say(NOT_A_NUMBER),
        }
    }

    /// `SCAN 0 [MATCH pattern] …`: all keys at once.
    fn scan(&self, request: Request, resp: &mut Resp) {
        let mut options = request.words(2);
        let pattern = options
            .position(|word| word.eq_ignore_ascii_case(b"MATCH"))
            .map_or(&b"*"[..], |at| request.word(at + 3));
        let mut keys: Vec<&Vec<u8>> =
            self.items.keys().filter(|key| matches(pattern, key)).collect();
        keys.sort();
        resp.say(&format!("*2\r\n$1\r\n0\r\n*{}\r\n", keys.len()));
        for key in keys {
            resp.bulk(key);
        }
    }
}

/// Minimum number of words of a command, including its name.
fn min_words(name: &[u8]) -> usize {
    match name {
        b"get" | b"getex" | b"getdel" | b"mget" | b"del" | b"unlink" | b"exists" | b"touch"
        | b"strlen" | b"ttl" | b"pttl" | b"incr" | b"decr" | b"echo" | b"scan" => 2,
        b"set" | b"setnx" | b"getset" | b"mset" | b"expire" | b"pexpire" | b"incrby"
        | b"decrby" => 3,
        b"setex" | b"psetex" => 4,
        _ => 1,
    }
}

fn number(resp: &mut Resp, number: impl Display) {
    resp.say(&format!(":{number}\r\n"));
}

/// Whether a pattern of `*`, `?`, escaped and plain characters matches the entire text.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', after @ ..], _) => (0..=text.len()).any(|skipped| matches(after, &text[skipped..])),
        ([b'?', after @ ..], [_, rest @ ..]) => matches(after, rest),
        ([b'\\', plain, after @ ..] | [plain, after @ ..], [first, rest @ ..]) => {
            plain == first && matches(after, rest)
        }
        _ => false,
    }
}
