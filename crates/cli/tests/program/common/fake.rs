//! A faulty server of the Redis protocol, for defects that a real server does not show.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The server's defect.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Defect {
    /// Every n-th read returns a value with one altered byte.
    AlteredOneIn(u64),
    /// Every n-th read returns a value without its last byte.
    ShortenedOneIn(u64),
    /// Every n-th overwrite is acknowledged, but the old value is kept.
    KeepsOldOneIn(u64),
    /// Every n-th write is acknowledged, but the key is removed.
    ForgetsOneIn(u64),
    /// Of twelve overwrites, the old value is kept at four and the key removed at two, though all
    /// are acknowledged; two, one of which is applied, end with a closed connection.
    Loses,
    /// After this many reads, sends these bytes instead of a reply.
    BytesAfter(u64, &'static [u8]),
    /// `SCAN` finds no key and never ends; `DBSIZE` returns the largest integer.
    EndlessScan,
    /// Supports only `SET`, `GET`, `SELECT` and `PING`, without a defect.
    KnowsLittle,
    /// Its version and settings contain terminal escape sequences.
    WithEscapes,
}

/// What a server acknowledged and what it had of it before its keys were removed.
#[derive(Debug, Default)]
struct Accounts {
    /// The last acknowledged value of each key.
    acknowledged: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Values without a reply. Clients cannot know whether the store has them.
    unknown: BTreeSet<Vec<u8>>,
    truth: Option<Truth>,
}

/// Keys whose last acknowledged value a server lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    /// Keys with an acknowledged value.
    pub(crate) keys: u64,
    /// Those with a value that an acknowledged one replaced.
    pub(crate) older: u64,
    /// Those without a value.
    pub(crate) missing: u64,
    /// Values without a reply.
    pub(crate) unknown: u64,
}

impl Accounts {
    /// Called before keys are removed; the state with the most keys counts.
    fn settle(&mut self, keys: &BTreeMap<Vec<u8>, Vec<u8>>) {
        if self.truth.is_some_and(|truth| truth.keys >= self.acknowledged.len() as u64) {
            return;
        }
        let mut truth = Truth {
            keys: self.acknowledged.len() as u64,
            unknown: self.unknown.len() as u64,
            ..Truth::default()
        };
        for (name, last) in &self.acknowledged {
            match keys.get(name) {
                None => truth.missing += 1,
                Some(value) if value == last || self.unknown.contains(value) => {}
                Some(_) => truth.older += 1,
            }
        }
        self.truth = Some(truth);
    }
}

/// Listens on a port of 127.0.0.1 until it is dropped.
pub(crate) struct Fake {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    defect: Defect,
    keys: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    accounts: Mutex<Accounts>,
    reads: AtomicU64,
    writes: AtomicU64,
    scans: AtomicU64,
    ended: AtomicBool,
}

impl Fake {
    pub(crate) fn new(defect: Defect) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            defect,
            keys: Mutex::default(),
            accounts: Mutex::default(),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            scans: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        let own = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if own.ended.load(Ordering::Relaxed) {
                    return;
                }
                let shared = own.clone();
                // Ignore clients that disconnect in the middle.
                thread::spawn(move || shared.serve(stream).ok());
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/3", self.address)
    }

    /// Number of `SCAN` requests so far.
    pub(crate) fn scans(&self) -> u64 {
        self.shared.scans.load(Ordering::Relaxed)
    }

    /// What was lost before keys were removed.
    pub(crate) fn truth(&self) -> Truth {
        self.shared.accounts.lock().unwrap().truth.unwrap()
    }

    /// Number of stored keys.
    pub(crate) fn keys(&self) -> usize {
        self.shared.keys.lock().unwrap().len()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // Wakes the listener so that it stops.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut requests = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        while let Some(request) = request(&mut requests)? {
            let answer = self.answer(&request);
            if answer.is_empty() {
                return Ok(());
            }
            stream.write_all(&answer)?;
        }
        Ok(())
    }

    /// The reply to a request; empty to close the connection.
    fn answer(&self, request: &[Vec<u8>]) -> Vec<u8> {
        let mut keys = self.keys.lock().unwrap();
        let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        let is_basic = matches!(words[..], [b"SET" | b"GET" | b"SELECT" | b"PING", ..]);
        if matches!(self.defect, Defect::KnowsLittle) && !is_basic {
            return b"-ERR unknown command\r\n".to_vec();
        }
        if matches!(self.defect, Defect::WithEscapes) {
            match words[..] {
                [b"INFO", ..] => {
                    return bulk(
                        b"# Server\r\nredis_version:0.0.7\x1b]0;t\x07\x1b[2J\r\nused_memory:1000\r\n\
                          maxmemory:1000000000\r\n",
                    );
                }
                [b"CONFIG", _, name] => {
                    return [b"*2\r\n", &bulk(name)[..], &bulk(b"\x1b[2J\x1b[31m")].concat();
                }
                _ => {}
            }
        }
        match words[..] {
            [b"PING"] => b"+PONG\r\n".to_vec(),
            [b"INFO", ..] => bulk(
                b"# Server\r\nredis_version:0.0.7\r\nserver_name:liar\r\n# Memory\r\n\
                  used_memory:1000\r\nmaxmemory:1000000000\r\n",
            ),
            [b"DBSIZE"] if matches!(self.defect, Defect::EndlessScan) => {
                format!(":{}\r\n", i64::MAX).into()
            }
            [b"SCAN", ..] if matches!(self.defect, Defect::EndlessScan) => {
                self.scans.fetch_add(1, Ordering::Relaxed);
                b"*2\r\n$1\r\n7\r\n*0\r\n".to_vec()
            }
            [b"DBSIZE"] => format!(":{}\r\n", keys.len()).into(),
            [b"CONFIG", ..] => b"*0\r\n".to_vec(),
            [b"SCAN", ..] => {
                let found: Vec<u8> = keys.keys().flat_map(|k| bulk(k)).collect();
                [b"*2\r\n$1\r\n0\r\n", format!("*{}\r\n", keys.len()).as_bytes(), &found].concat()
            }
            [b"UNLINK", ref names @ ..] => {
                let mut accounts = self.accounts.lock().unwrap();
                accounts.settle(&keys);
                for name in names {
                    accounts.acknowledged.remove(*name);
                }
                let removed = names.iter().filter(|name| keys.remove(**name).is_some()).count();
                format!(":{removed}\r\n").into()
            }
            [b"SETEX", name, _, value]
            | [b"SET", name, value]
            | [b"SET", name, value, b"EX", _] => {
                let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
                if matches!(self.defect, Defect::Loses) {
                    return self.lose(&mut keys, (name, value), number);
                }
                let is_lost = match self.defect {
                    Defect::KeepsOldOneIn(n) => number.is_multiple_of(n) && keys.contains_key(name),
                    Defect::ForgetsOneIn(n) => {
                        let is_lost = number.is_multiple_of(n);
                        is_lost.then(|| keys.remove(name));
                        is_lost
                    }
                    _ => false,
                };
                if !is_lost {
                    keys.insert(name.into(), value.into());
                }
                b"+OK\r\n".to_vec()
            }
            [b"GET", name] => self.read(keys.get(name).cloned()),
            [b"SELECT", b"3"] => b"+OK\r\n".to_vec(),
            _ => b"-ERR unknown command\r\n".to_vec(),
        }
    }

    fn lose(
        &self,
        keys: &mut BTreeMap<Vec<u8>, Vec<u8>>,
        (name, value): (&[u8], &[u8]),
        number: u64,
    ) -> Vec<u8> {
        let turn = if keys.contains_key(name) { number % 12 } else { 0 };
        match turn {
            0..=3 | 10 => drop(keys.insert(name.into(), value.into())),
            8 | 9 => drop(keys.remove(name)),
            _ => {}
        }
        let mut accounts = self.accounts.lock().unwrap();
        if turn >= 10 {
            accounts.unknown.insert(value.into());
            return Vec::new();
        }
        accounts.acknowledged.insert(name.into(), value.into());
        b"+OK\r\n".to_vec()
    }

    fn read(&self, value: Option<Vec<u8>>) -> Vec<u8> {
        let Some(mut value) = value else { return b"$-1\r\n".to_vec() };
        let number = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
        match self.defect {
            Defect::AlteredOneIn(n) if number.is_multiple_of(n) => {
                let middle = value.len() / 2;
                value[middle] ^= 1;
            }
            Defect::ShortenedOneIn(n) if number.is_multiple_of(n) => drop(value.pop()),
            Defect::BytesAfter(n, bytes) if number > n => return bytes.to_vec(),
            _ => {}
        }
        bulk(&value)
    }
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Reads an array of bulk strings; `None` at the end of the stream.
fn request(from: &mut impl BufRead) -> io::Result<Option<Vec<Vec<u8>>>> {
    let Some(parts) = number(from)? else { return Ok(None) };
    let mut request = Vec::new();
    for _ in 0..parts {
        let length = number(from)?.unwrap_or(0);
        let mut part = vec![0; length + 2];
        from.read_exact(&mut part)?;
        part.truncate(length);
        request.push(part);
    }
    Ok(Some(request))
}

/// Reads the number of a line such as `*3` or `$5`.
fn number(from: &mut impl BufRead) -> io::Result<Option<usize>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    line[1..].trim_end().parse().map(Some).map_err(io::Error::other)
}
