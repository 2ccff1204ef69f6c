//! Memcached commands of a scripted server: the text protocol, and meta get, set and delete.

use super::{Item, Reply, Store, corrupted, integer};
use crate::reference::replies::text::{self, flag};
use crate::reference::scan::Request;

impl Store {
    pub(super) fn memcached(&mut self, request: Request, reply: &mut Reply) {
        let key = request.key();
        // The reply, unless the client does not want one.
        let answer = match request.word(0) {
            b"get" => return self.get_all(request, 1, false, reply),
            b"gets" => return self.get_all(request, 1, true, reply),
            b"gat" => return self.get_all(request, 2, false, reply),
            b"gats" => return self.get_all(request, 2, true, reply),
            b"mg" => return self.meta_get(request, reply),
            b"ms" => return self.meta_set(request, reply),
            b"md" => {
                let there = self.items.remove(key).is_some();
                let code = if there { "HD" } else { "NF" };
                return text::meta(&mut reply.bytes, code, request, 2, None);
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
        if request.word(request.len() - 1) != b"noreply" {
            reply.say(&answer);
        }
    }

    fn get_all(&self, request: Request, from: usize, unique: bool, reply: &mut Reply) {
        for key in request.words(from) {
            let Some(item) = self.get(key) else { continue };
            let value = corrupted(&mut reply.corruption, &item.value);
            text::name(&mut reply.bytes, key);
            let unique = unique.then_some(item.unique);
            text::value(&mut reply.bytes, item.flags, &value, unique);
        }
        reply.say("END\r\n");
    }

    /// Executes a storage command and returns its reply.
    fn store(&mut self, request: Request) -> String {
        let (key, data) = (request.key(), request.data());
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
        // Not below zero.
        let by = if request.word(0) == b"decr" { -by.min(now) } else { by };
        match self.add(key, by) {
            Some(sum) => format!("{sum}\r\n"),
            None => "CLIENT_ERROR the sum is too large\r\n".into(),
        }
    }

    fn stats(&self, request: Request, reply: &mut Reply) {
        if request.len() < 2 {
            reply.say("STAT version 0.0.0-scripted\r\n");
            reply.say(&format!("STAT curr_items {}\r\n", self.items.len()));
        }
        reply.say("END\r\n");
    }

    fn meta_get(&self, request: Request, reply: &mut Reply) {
        let Some(item) = self.get(request.key()) else {
            if flag(request, 2, b'q').is_none() {
                reply.say("EN\r\n");
            }
            return;
        };
        if flag(request, 2, b'v').is_none() {
            reply.say("HD");
            return text::meta_flags(
                &mut reply.bytes,
                request,
                2,
                Some(item_with(item, &item.value)),
            );
        }
        let value = corrupted(&mut reply.corruption, &item.value);
        reply.say(&format!("VA {}", value.len()));
        text::meta_flags(&mut reply.bytes, request, 2, Some(item_with(item, &value)));
        text::data(&mut reply.bytes, &value);
    }

    fn meta_set(&mut self, request: Request, reply: &mut Reply) {
        let client_flags = flag(request, 3, b'F');
        self.set(request.key(), request.data(), client_flags.map_or(0, flags));
        text::meta(&mut reply.bytes, "HD", request, 3, None);
    }
}

/// Metadata of an item that is sent with this value.
fn item_with(item: &Item, value: &[u8]) -> text::Item {
    text::Item { flags: item.flags, length: value.len(), unique: item.unique }
}

fn flags(word: &[u8]) -> u32 {
    integer(word).and_then(|flags| flags.try_into().ok()).unwrap_or(0)
}
