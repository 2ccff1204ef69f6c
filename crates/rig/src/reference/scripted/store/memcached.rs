//! The commands of memcached that a scripted server knows: its text protocol and meta get, set and
//! delete.

use super::{Reply, Request, Store, integer};

impl Store {
    pub(super) fn memcached(&mut self, request: Request, reply: &mut Reply) {
        let key = request.key();
        // What is said unless the client wants to hear nothing.
        let said = match request.word(0) {
            b"get" => return self.get_all(request, 1, false, reply),
            b"gets" => return self.get_all(request, 1, true, reply),
            b"gat" => return self.get_all(request, 2, false, reply),
            b"gats" => return self.get_all(request, 2, true, reply),
            b"mg" => return self.meta_get(request, reply),
            b"ms" => return self.meta_set(request, reply),
            b"md" => {
                let there = self.items.remove(key).is_some();
                return meta(if there { "HD" } else { "NF" }, request, 2, reply);
            }
            b"mn" => return reply.say("MN\r\n"),
            b"version" => return reply.say("VERSION 0.0.0-scripted\r\n"),
            b"stats" => return self.stats(request, reply),
            b"quit" => {
                reply.close = true;
                return;
            }
            b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => self.store(request),
            b"delete" if self.items.remove(key).is_some() => "DELETED\r\n".into(),
            b"touch" if self.get(key).is_some() => "TOUCHED\r\n".into(),
            b"delete" | b"touch" => "NOT_FOUND\r\n".into(),
            b"incr" | b"decr" => self.count_text(request),
            b"flush_all" => {
                self.items.clear();
                "OK\r\n".into()
            }
            b"verbosity" => "OK\r\n".into(),
            _ => "ERROR\r\n".into(),
        };
        if request.word(request.parts.len() - 1) != b"noreply" {
            reply.say(&said);
        }
    }

    fn get_all(&self, request: Request, from: usize, unique: bool, reply: &mut Reply) {
        for key in request.words(from) {
            let Some(item) = self.get(key) else { continue };
            let value = reply.spoiled(&item.value);
            reply.say("VALUE ");
            reply.bytes.extend_from_slice(key);
            reply.say(&format!(" {} {}", item.flags, value.len()));
            if unique {
                reply.say(&format!(" {}", item.unique));
            }
            data(reply, &value);
        }
        reply.say("END\r\n");
    }

    /// A storage command; what is said to it.
    fn store(&mut self, request: Request) -> String {
        let (key, data) = (request.key(), request.parts.data(request.bytes));
        let flags = flags(request.word(2));
        let old = self.get(key);
        let joined = match (request.word(0), old) {
            (b"set", _) | (b"add", None) | (b"replace", Some(_)) => data.to_vec(),
            (b"append", Some(item)) => [&item.value, data].concat(),
            (b"prepend", Some(item)) => [data, &item.value].concat(),
            (b"cas", None) => return "NOT_FOUND\r\n".into(),
            (b"cas", Some(item)) if request.word(5) == item.unique.to_string().as_bytes() => {
                data.to_vec()
            }
            (b"cas", Some(_)) => return "EXISTS\r\n".into(),
            _ => return "NOT_STORED\r\n".into(),
        };
        self.set(key, &joined, flags);
        "STORED\r\n".into()
    }

    fn count_text(&mut self, request: Request) -> String {
        let (key, by) = (request.key(), integer(request.word(2)).filter(|by| *by >= 0));
        let now = self.get(key).map(|item| integer(&item.value).filter(|now| *now >= 0));
        let (Some(by), Some(Some(now))) = (by, now) else {
            let wrong = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
            return if now.is_none() { "NOT_FOUND\r\n" } else { wrong }.into();
        };
        // Down to zero and not beyond.
        let by = if request.word(0) == b"decr" { -by.min(now) } else { by };
        match self.add(key, by) {
            Some(sum) => format!("{sum}\r\n"),
            None => "CLIENT_ERROR the sum is too large\r\n".into(),
        }
    }

    fn stats(&self, request: Request, reply: &mut Reply) {
        if request.parts.len() < 2 {
            reply.say("STAT version 0.0.0-scripted\r\n");
            reply.say(&format!("STAT curr_items {}\r\n", self.items.len()));
        }
        reply.say("END\r\n");
    }

    fn meta_get(&self, request: Request, reply: &mut Reply) {
        let has = |flag: u8| request.words(2).any(|word| word.starts_with(&[flag]));
        let Some(item) = self.get(request.key()) else {
            if !has(b'q') {
                reply.say("EN\r\n");
            }
            return;
        };
        if !has(b'v') {
            reply.say("HD");
            meta_flags(request, 2, Some((item.flags, item.value.len(), item.unique)), reply);
            return;
        }
        let value = reply.spoiled(&item.value);
        reply.say(&format!("VA {}", value.len()));
        meta_flags(request, 2, Some((item.flags, value.len(), item.unique)), reply);
        reply.bytes.extend_from_slice(&value);
        reply.say("\r\n");
    }

    fn meta_set(&mut self, request: Request, reply: &mut Reply) {
        let client_flags = request.words(3).find_map(|word| word.strip_prefix(b"F"));
        let data = request.parts.data(request.bytes);
        self.set(request.key(), data, client_flags.map_or(0, flags));
        meta("HD", request, 3, reply);
    }
}

fn flags(word: &[u8]) -> u32 {
    integer(word).and_then(|flags| flags.try_into().ok()).unwrap_or(0)
}

/// The end of a value's line, and its data.
fn data(reply: &mut Reply, value: &[u8]) {
    reply.say("\r\n");
    reply.bytes.extend_from_slice(value);
    reply.say("\r\n");
}

/// A code with the flags that are sent back, unless the request is a quiet one.
fn meta(code: &str, request: Request, from: usize, reply: &mut Reply) {
    if !request.words(from).any(|word| word.starts_with(b"q")) {
        reply.say(code);
        meta_flags(request, from, None, reply);
    }
}

/// Sends back what each flag asks for, and ends the line. `item` is flags, length and number of the
/// value that the reply is about.
fn meta_flags(request: Request, from: usize, item: Option<(u32, usize, u64)>, reply: &mut Reply) {
    for word in request.words(from) {
        match (word, item) {
            ([b'O', ..], _) => {
                reply.say(" ");
                reply.bytes.extend_from_slice(word);
            }
            ([b'k', ..], _) => {
                reply.say(" k");
                reply.bytes.extend_from_slice(request.key());
            }
            ([b'f', ..], Some((flags, ..))) => reply.say(&format!(" f{flags}")),
            ([b's', ..], Some((_, length, _))) => reply.say(&format!(" s{length}")),
            ([b'c', ..], Some((.., unique))) => reply.say(&format!(" c{unique}")),
            ([b't', ..], Some(_)) => reply.say(" t-1"),
            _ => {}
        }
    }
    reply.say("\r\n");
}
