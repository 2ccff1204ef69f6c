//! memcached servers around a run.

use std::path::PathBuf;
use std::time::Duration;

use load::wire::route::Route;
use model::{ErrorClass, Failure, Layout, Memcached, NetAddress};
use workloads::store::StoreError;

use super::line::{Line, unexpected};
use super::requests::KEY_BYTES_MAX;
use crate::{Admin, Facts, SessionOptions, admin, fault, tls};

struct MemcachedAdmin {
    /// Address and connection of each server.
    servers: Vec<(String, Line)>,
    route: Box<dyn Route>,
}

pub(crate) fn open_admin(
    memcached: &Memcached,
    timeout: Duration,
) -> Result<Box<dyn Admin>, StoreError> {
    // As in the load, there is one name for the certificates of all.
    let tls = tls::of_target(memcached.tls.as_ref(), &memcached.servers[0])?;
    let connect = |address: &NetAddress| {
        let line = Line::connect(memcached, address, tls.as_ref(), timeout)?;
        Ok((address.to_string(), line))
    };
    let servers = memcached.servers.iter().map(connect).collect::<Result<_, StoreError>>()?;
    Ok(Box::new(MemcachedAdmin { servers, route: super::route(memcached)? }))
}

impl MemcachedAdmin {
    fn ask(&mut self) -> Result<Facts, StoreError> {
        let (mut versions, mut settings, mut empty) = (Vec::new(), Vec::new(), true);
        for (address, line) in &mut self.servers {
            line.send(b"version\r\n")?;
            let answer = line.next()?;
            let Some(version) = answer.strip_prefix(b"VERSION ") else {
                return Err(unexpected(&answer));
            };
            versions.push(format!("memcached {}", fault::words(version)));
            let stats = line.stats(b"stats\r\n")?;
            empty &= stats.iter().any(|(name, value)| name == "curr_items" && value == "0");
            let mut own = line.stats(b"stats settings\r\n")?;
            own.sort();
            settings.push((address.clone(), own));
        }
        Ok(Facts {
            version: admin::versions(versions),
            empty,
            configuration: admin::together(settings),
        })
    }

    /// Writes a value, reads it, compares it and removes it.
    fn round_trip(&mut self, name: &str) -> Result<(), StoreError> {
        if name.len() > KEY_BYTES_MAX {
            let message = format!("key `{name}` is too long (expected at most {KEY_BYTES_MAX})");
            return Err(StoreError::soft(ErrorClass::Other, message));
        }
        let written = format!("cachedyno verifies {name}");
        let (_, line) = &mut self.servers[self.route.node(name.as_bytes())];
        line.send(format!("set {name} 0 60 {}\r\n{written}\r\n", written.len()).as_bytes())?;
        let mut answer = line.next()?;
        if answer != b"STORED" {
            return Err(unexpected(&answer));
        }
        line.send(format!("get {name}\r\n").as_bytes())?;
        answer = line.next()?;
        if answer != format!("VALUE {name} 0 {}", written.len()).as_bytes() {
            return Err(unexpected(&answer));
        }
        let read = line.block(written.len())?;
        let end = line.next()?;
        line.send(format!("delete {name}\r\n").as_bytes())?;
        let removed = line.next()?;
        if read == written.as_bytes() && end == b"END" && removed == b"DELETED" {
            return Ok(());
        }
        let message = format!("key `{name}` was written but came back as something else");
        Err(StoreError::fatal(ErrorClass::Protocol, message))
    }

    fn remove_all(&mut self, names: &[Vec<u8>]) -> Result<u64, StoreError> {
        let mut requests = vec![(Vec::new(), 0_usize); self.servers.len()];
        for name in names {
            let (request, number) = &mut requests[self.route.node(name)];
            for part in [b"delete ", &name[..], b"\r\n"] {
                request.extend_from_slice(part);
            }
            *number += 1;
        }
        let mut there = 0;
        for ((_, line), (request, number)) in self.servers.iter_mut().zip(requests) {
            line.send(&request)?;
            for _ in 0..number {
                let answer = line.next()?;
                match answer.as_slice() {
                    b"DELETED" => there += 1,
                    b"NOT_FOUND" => {}
                    _ => return Err(unexpected(&answer)),
                }
            }
        }
        Ok(there)
    }
}

impl Admin for MemcachedAdmin {
    fn facts(&mut self) -> Result<Facts, Failure> {
        self.ask().map_err(fault::failure)
    }

    fn prepare(&mut self, _: Layout, _: &str, _: usize) -> Result<PathBuf, Failure> {
        Ok(PathBuf::new())
    }

    fn verify(&mut self, _: Layout, _: &SessionOptions, id: &str) -> Result<(), Failure> {
        self.probe(id)
    }

    fn probe(&mut self, key: &str) -> Result<(), Failure> {
        self.round_trip(key).map_err(fault::failure)
    }

    /// Keys cannot be listed: those of a run are removed by [`Admin::remove_names`].
    fn clean(&mut self, _: Layout, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    fn remove_names(&mut self, names: &[Vec<u8>]) -> Result<u64, Failure> {
        self.remove_all(names).map_err(fault::failure)
    }
}
