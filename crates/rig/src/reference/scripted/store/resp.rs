//! The commands of Redis that a scripted server knows.

use super::{Reply, Request, Store, integer};
use std::fmt::Display;

/// What it calls itself.
const NAME: &str = "cachedyno-scripted";
/// Its version, which is none.
const VERSION: &str = "0.0.0-scripted";
const INFO: &str = "# Server\r\nredis_version:0.0.0-scripted\r\nserver_name:cachedyno-scripted\r\n\
    redis_mode:standalone\r\nos:Linux\r\n\r\n# Memory\r\nused_memory:0\r\nmaxmemory:0\r\n\
    total_system_memory:1099511627776\r\n\r\n# Persistence\r\n\
    loading:0\r\n\r\n# Stats\r\nevicted_keys:0\r\n\r\n# Replication\r\nrole:master\r\n";
const NOT_A_NUMBER: &str = "-ERR value is not an integer or out of range\r\n";
const WORDS_MISSING: &str = "-ERR wrong number of arguments\r\n";

impl Store {
    pub(super) fn resp(&mut self, request: Request, resp3: &mut bool, reply: &mut Reply) {
        let name = request.word(0).to_ascii_lowercase();
        if request.parts.len() < least_words(&name) {
            return reply.say(WORDS_MISSING);
        }
        let key = request.key();
        match name.as_slice() {
            b"ping" if request.parts.len() < 2 => reply.say("+PONG\r\n"),
            b"ping" | b"echo" => bulk(reply, key),
            b"get" | b"getex" => self.send(key, *resp3, reply),
            b"getset" => {
                self.send(key, *resp3, reply);
                self.set(key, request.word(2), 0);
            }
            b"getdel" => {
                self.send(key, *resp3, reply);
                self.items.remove(key);
            }
            b"mget" => {
                reply.say(&format!("*{}\r\n", request.words(1).len()));
                request.words(1).for_each(|key| self.send(key, *resp3, reply));
            }
            b"set" => self.set_if(request, *resp3, reply),
            b"setex" | b"psetex" => {
                self.set(key, request.word(3), 0);
                reply.say("+OK\r\n");
            }
            b"setnx" => {
                let new = self.get(key).is_none();
                if new {
                    self.set(key, request.word(2), 0);
                }
                number(reply, i64::from(new));
            }
            b"mset" => {
                for pair in (1..request.parts.len()).step_by(2) {
                    self.set(request.word(pair), request.word(pair + 1), 0);
                }
                reply.say("+OK\r\n");
            }
            b"del" | b"unlink" => {
                let gone = request.words(1).filter(|key| self.items.remove(*key).is_some());
                number(reply, gone.count());
            }
            b"exists" | b"touch" => {
                let there = request.words(1).filter(|key| self.get(key).is_some());
                number(reply, there.count());
            }
            b"strlen" => {
                number(reply, self.get(key).map_or(0, |item| item.value.len()));
            }
            b"expire" | b"pexpire" => number(reply, i64::from(self.get(key).is_some())),
            b"ttl" | b"pttl" => number(reply, if self.get(key).is_some() { -1 } else { -2 }),
            b"incr" | b"incrby" | b"decr" | b"decrby" => self.count(request, &name, reply),
            b"dbsize" => number(reply, self.items.len()),
            b"scan" => self.scan(request, reply),
            b"flushall" | b"flushdb" => {
                self.items.clear();
                reply.say("+OK\r\n");
            }
            other => connection(other, request, resp3, reply),
        }
    }

    fn send(&self, key: &[u8], resp3: bool, reply: &mut Reply) {
        match self.get(key) {
            None => nil(reply, resp3),
            Some(item) => {
                let value = reply.spoiled(&item.value);
                bulk(reply, &value);
            }
        }
    }

    /// `SET key value [NX | XX] …`.
    fn set_if(&mut self, request: Request, resp3: bool, reply: &mut Reply) {
        let key = request.key();
        let has = |option: &[u8]| request.words(3).any(|word| word.eq_ignore_ascii_case(option));
        let there = self.get(key).is_some();
        if (has(b"NX") && there) || (has(b"XX") && !there) {
            return nil(reply, resp3);
        }
        self.set(key, request.word(2), 0);
        reply.say("+OK\r\n");
    }

    fn count(&mut self, request: Request, name: &[u8], reply: &mut Reply) {
        let by = if name.ends_with(b"by") { integer(request.word(2)) } else { Some(1) };
        let by = if name.starts_with(b"decr") { by.and_then(i64::checked_neg) } else { by };
        let Some(by) = by else { return reply.say(NOT_A_NUMBER) };
        if self.get(request.key()).is_none() {
            self.set(request.key(), b"0", 0);
        }
        match self.add(request.key(), by) {
            Some(sum) => number(reply, sum),
            None => reply.say(NOT_A_NUMBER),
        }
    }

    /// `SCAN 0 [MATCH pattern] …`: all keys at once.
    fn scan(&self, request: Request, reply: &mut Reply) {
        let mut options = request.words(2);
        let pattern = options
            .position(|word| word.eq_ignore_ascii_case(b"MATCH"))
            .map_or(&b"*"[..], |at| request.word(at + 3));
        let mut keys: Vec<&Vec<u8>> =
            self.items.keys().filter(|key| matches(pattern, key)).collect();
        keys.sort();
        reply.say(&format!("*2\r\n$1\r\n0\r\n*{}\r\n", keys.len()));
        for key in keys {
            bulk(reply, key);
        }
    }
}

/// Words that a command has at least, itself among them.
fn least_words(name: &[u8]) -> usize {
    match name {
        b"get" | b"getex" | b"getdel" | b"mget" | b"del" | b"unlink" | b"exists" | b"touch"
        | b"strlen" | b"ttl" | b"pttl" | b"incr" | b"decr" | b"echo" | b"scan" => 2,
        b"set" | b"setnx" | b"getset" | b"mset" | b"expire" | b"pexpire" | b"incrby"
        | b"decrby" => 3,
        b"setex" | b"psetex" => 4,
        _ => 1,
    }
}

/// Commands that are about the connection or the server.
fn connection(name: &[u8], request: Request, resp3: &mut bool, reply: &mut Reply) {
    let is = |option: &[u8]| request.word(1).eq_ignore_ascii_case(option);
    match name {
        b"client" if is(b"id") => number(reply, 1),
        b"config" if is(b"get") => reply.say(if *resp3 { "%0\r\n" } else { "*0\r\n" }),
        b"auth" | b"select" | b"readonly" | b"readwrite" | b"client" | b"config" => {
            reply.say("+OK\r\n");
        }
        b"command" => reply.say("*0\r\n"),
        b"info" => bulk(reply, INFO.as_bytes()),
        b"cluster" => reply.say("-ERR This instance has cluster support disabled\r\n"),
        b"hello" => hello(request, resp3, reply),
        b"reset" => {
            *resp3 = false;
            reply.say("+RESET\r\n");
        }
        b"quit" => {
            reply.say("+OK\r\n");
            reply.close = true;
        }
        other => {
            let shown = String::from_utf8_lossy(&other[..other.len().min(64)]);
            reply.say(&format!("-ERR unknown command '{}'\r\n", shown.escape_default()));
        }
    }
}

fn hello(request: Request, resp3: &mut bool, reply: &mut Reply) {
    match request.word(1) {
        b"" => {}
        b"2" => *resp3 = false,
        b"3" => *resp3 = true,
        _ => return reply.say("-NOPROTO unsupported protocol version\r\n"),
    }
    reply.say(if *resp3 { "%4\r\n" } else { "*8\r\n" });
    for (name, text) in [("server", NAME), ("version", VERSION), ("mode", "standalone")] {
        bulk(reply, name.as_bytes());
        bulk(reply, text.as_bytes());
    }
    bulk(reply, b"proto");
    number(reply, if *resp3 { 3 } else { 2 });
}

fn bulk(reply: &mut Reply, bytes: &[u8]) {
    reply.say(&format!("${}\r\n", bytes.len()));
    reply.bytes.extend_from_slice(bytes);
    reply.say("\r\n");
}

fn number(reply: &mut Reply, number: impl Display) {
    reply.say(&format!(":{number}\r\n"));
}

fn nil(reply: &mut Reply, resp3: bool) {
    reply.say(if resp3 { "_\r\n" } else { "$-1\r\n" });
}

/// Whether a pattern of `*`, `?`, escaped and plain characters matches a whole text.
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
