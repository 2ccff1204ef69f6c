//! RESP replies, and the answers to commands about the connection and the server.

use crate::reference::scan::Request;
use stats::append_number;
use std::ops::ControlFlow;

/// Settings that `CONFIG GET` returns.
const CONFIG: [(&str, &str); 3] = [("save", ""), ("appendonly", "no"), ("maxmemory", "0")];

/// Reply buffer and protocol version of a connection.
#[derive(Debug)]
pub(crate) struct Resp<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    /// RESP 3, after `HELLO 3`.
    pub(crate) is_3: bool,
}

impl Resp<'_> {
    pub(crate) fn say(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// A type prefix, a number and a line end.
    pub(crate) fn head(&mut self, prefix: u8, number: usize) {
        self.out.push(prefix);
        append_number(self.out, number as u64);
        self.say("\r\n");
    }

    pub(crate) fn nil(&mut self) {
        self.say(if self.is_3 { "_\r\n" } else { "$-1\r\n" });
    }

    /// A bulk string.
    #[inline]
    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.say("\r\n");
    }

    /// The head of a map; in RESP 2, of an array of twice the length.
    pub(crate) fn pairs(&mut self, length: usize) {
        if self.is_3 { self.head(b'%', length) } else { self.head(b'*', length * 2) }
    }

    pub(crate) fn unknown(&mut self, name: &[u8]) {
        self.say("-ERR unknown command '");
        // Control characters in a name could break the line.
        let shown = name.iter().take(64).map(|b| if b.is_ascii_graphic() { *b } else { b'?' });
        self.out.extend(shown);
        self.say("'\r\n");
    }
}

/// Commands about the connection or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionCommand {
    Client,
    Cluster,
    Command,
    Config,
    Hello,
    Info,
    Quit,
    Reset,
}

impl ConnectionCommand {
    /// From a command's name in lower case; `None` for a data command.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"client" => Self::Client,
            b"cluster" => Self::Cluster,
            b"command" => Self::Command,
            b"config" => Self::Config,
            b"hello" => Self::Hello,
            b"info" => Self::Info,
            b"quit" => Self::Quit,
            b"reset" => Self::Reset,
            _ => return None,
        })
    }

    /// Answers the request as a server of this kind, `null` or `scripted`. Breaks if the connection
    /// must be closed afterwards.
    pub(crate) fn answer(self, request: Request, kind: &str, resp: &mut Resp) -> ControlFlow<()> {
        match self {
            Self::Client => client(request, resp),
            Self::Cluster => resp.say("-ERR This instance has cluster support disabled\r\n"),
            Self::Command if request.is(1, b"count") => resp.say(":0\r\n"),
            Self::Command => resp.say("*0\r\n"),
            Self::Config => config(request, resp),
            Self::Hello => hello(request, kind, resp),
            Self::Info => resp.bulk(info(kind).as_bytes()),
            Self::Quit => {
                resp.say("+OK\r\n");
                return ControlFlow::Break(());
            }
            Self::Reset => {
                resp.is_3 = false;
                resp.say("+RESET\r\n");
            }
        }
        ControlFlow::Continue(())
    }
}

fn client(request: Request, resp: &mut Resp) {
    if request.is(1, b"id") {
        resp.say(":1\r\n");
    } else if request.is(1, b"getname") {
        resp.nil();
    } else if request.is(1, b"list") || request.is(1, b"info") {
        resp.bulk(b"id=1 addr=127.0.0.1:0 name= db=0\n");
    } else {
        resp.say("+OK\r\n");
    }
}

fn config(request: Request, resp: &mut Resp) {
    if !request.is(1, b"get") {
        return resp.say("+OK\r\n");
    }
    let wanted = |name: &str| request.words(2).any(|w| w.eq_ignore_ascii_case(name.as_bytes()));
    let known = CONFIG.map(|(name, value)| (wanted("*") || wanted(name)).then_some((name, value)));
    resp.pairs(known.iter().flatten().count());
    for (name, value) in known.into_iter().flatten() {
        resp.bulk(name.as_bytes());
        resp.bulk(value.as_bytes());
    }
}

/// Answers `HELLO`, which can change the connection's protocol version.
fn hello(request: Request, kind: &str, resp: &mut Resp) {
    match request.word(1) {
        b"" => {}
        b"2" => resp.is_3 = false,
        b"3" => resp.is_3 = true,
        _ => return resp.say("-NOPROTO unsupported protocol version\r\n"),
    }
    resp.pairs(7);
    let (name, version) = (format!("cachedyno-{kind}"), format!("0.0.0-{kind}"));
    let texts =
        [("server", &*name), ("version", &version), ("mode", "standalone"), ("role", "master")];
    for (name, text) in texts {
        resp.bulk(name.as_bytes());
        resp.bulk(text.as_bytes());
    }
    for (name, number) in [("proto", if resp.is_3 { 3 } else { 2 }), ("id", 1)] {
        resp.bulk(name.as_bytes());
        resp.head(b':', number);
    }
    resp.bulk(b"modules");
    resp.say("*0\r\n");
}

/// The reply to `INFO`: the fields that clients use.
fn info(kind: &str) -> String {
    format!(
        "# Server\r\nredis_version:0.0.0-{kind}\r\nserver_name:cachedyno-{kind}\r\n\
         redis_mode:standalone\r\nos:Linux\r\ntcp_port:0\r\n\r\n# Clients\r\n\
         connected_clients:1\r\n\r\n# Memory\r\nused_memory:0\r\nmaxmemory:0\r\n\
         total_system_memory:1099511627776\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Stats\r\n\
         evicted_keys:0\r\nexpired_keys:0\r\n\r\n# Replication\r\nrole:master\r\n\
         connected_slaves:0\r\n\r\n# Keyspace\r\n"
    )
}
