//! The first requests on a connection to a server of the Redis protocol.

use std::fmt;

use load::wire::protocol::{Expect, Greeting, Shape};
use model::Secret;

use super::resp::encode;

/// Login and settings of a new connection.
#[derive(Clone, Debug, Default)]
pub struct Login<'a> {
    /// ACL user; `None` for the default user.
    pub user: Option<&'a str>,
    /// Its password; `None` skips the login.
    pub password: Option<&'a Secret>,
    /// Number of the database; 0 needs no `SELECT`.
    pub database: u32,
    /// True to use RESP3, which Redis 6 and later support.
    pub resp3: bool,
    /// Name under which the server lists the connection, without spaces.
    pub client_name: Option<&'a str>,
    /// True to fail on a server that is a replica, as clients of Sentinel must.
    pub primary_only: bool,
}

/// The first requests of a connection and their expected replies.
pub struct Hello {
    /// All requests; can contain a password.
    pub bytes: Vec<u8>,
    /// One for each request, in order.
    pub replies: Vec<Greeting>,
}

impl fmt::Debug for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hello").field("replies", &self.replies).finish_non_exhaustive()
    }
}

/// Builds the first requests of a connection: `AUTH`, `HELLO 3`, `SELECT`, `CLIENT SETNAME` and
/// `WAIT 0 0`, each if needed. The password is sent with `AUTH` instead of `HELLO`, because older
/// servers reject `HELLO` with an error that repeats its arguments. A primary answers `WAIT 0 0`
/// with a number at once and a replica with an error
/// (<https://redis.io/docs/latest/commands/wait/>).
pub fn hello(login: &Login<'_>) -> Hello {
    let mut greeting = Hello { bytes: Vec::new(), replies: Vec::new() };
    if let Some(password) = login.password {
        let mut request: Vec<&[u8]> = vec![b"AUTH"];
        request.extend(login.user.map(str::as_bytes));
        request.push(password.reveal().as_bytes());
        greeting.push(&request, Shape::Done, false, true);
    }
    if login.resp3 {
        greeting.push(&[b"HELLO", b"3"], Shape::Any, false, false);
    }
    if login.database != 0 {
        let database = login.database.to_string();
        greeting.push(&[b"SELECT", database.as_bytes()], Shape::Done, false, false);
    }
    if let Some(name) = login.client_name {
        greeting.push(&[b"CLIENT", b"SETNAME", name.as_bytes()], Shape::Done, true, false);
    }
    if login.primary_only {
        greeting.push(&[b"WAIT", b"0", b"0"], Shape::Any, false, false);
    }
    greeting
}

impl Hello {
    fn push(&mut self, request: &[&[u8]], shape: Shape, harmless: bool, secret: bool) {
        encode(&mut self.bytes, request);
        let expect = Expect { shape, bytes: None, verify: false, key: 0 };
        self.replies.push(Greeting { expect, harmless, secret });
    }
}
