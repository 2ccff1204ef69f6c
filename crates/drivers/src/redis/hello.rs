//! What is said first on a connection to a server of the Redis protocol.

use std::fmt;

use load::wire::protocol::{Expect, Greeting, Shape};
use model::Secret;

use super::resp::encode;

/// How one logs in, and what else a connection begins with.
#[derive(Clone, Debug, Default)]
pub struct Login<'a> {
    /// Account of the access control list; `None` for the default one.
    pub user: Option<&'a str>,
    /// Its password; `None` says nothing of accounts.
    pub password: Option<&'a Secret>,
    /// Number of the database; 0 is there without asking.
    pub database: u32,
    /// True to speak RESP3, which servers know from Redis 6 on.
    pub resp3: bool,
    /// Name under which the server lists the connection: no blanks.
    pub client_name: Option<&'a str>,
}

/// Bytes that are said first, and what they are answered by.
pub struct Hello {
    /// All requests; may hold a password.
    pub bytes: Vec<u8>,
    /// One for each request, in order.
    pub replies: Vec<Greeting>,
}

impl fmt::Debug for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hello").field("replies", &self.replies).finish_non_exhaustive()
    }
}

/// What a connection begins with: `AUTH`, `HELLO 3`, `SELECT` and `CLIENT SETNAME`, each where it
/// is needed. The password goes by `AUTH` and not by `HELLO`, which older servers refuse by
/// repeating its arguments.
pub fn hello(login: &Login<'_>) -> Hello {
    let mut said = Hello { bytes: Vec::new(), replies: Vec::new() };
    if let Some(password) = login.password {
        let mut request: Vec<&[u8]> = vec![b"AUTH"];
        request.extend(login.user.map(str::as_bytes));
        request.push(password.reveal().as_bytes());
        said.say(&request, Shape::Done, false, true);
    }
    if login.resp3 {
        said.say(&[b"HELLO", b"3"], Shape::Any, false, false);
    }
    if login.database != 0 {
        let database = login.database.to_string();
        said.say(&[b"SELECT", database.as_bytes()], Shape::Done, false, false);
    }
    if let Some(name) = login.client_name {
        said.say(&[b"CLIENT", b"SETNAME", name.as_bytes()], Shape::Done, true, false);
    }
    said
}

impl Hello {
    fn say(&mut self, request: &[&[u8]], shape: Shape, harmless: bool, secret: bool) {
        encode(&mut self.bytes, request);
        let expect = Expect { shape, bytes: None, verify: false, key: 0 };
        self.replies.push(Greeting { expect, harmless, secret });
    }
}
