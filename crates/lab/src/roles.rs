//! Watches the roles of a store's servers while a phase runs.

use drivers::redis::sentinel::{Role, RoleReader};
use model::{Endpoint, EventKind};
use std::collections::BTreeSet;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::address::place;

/// Time, kind and server of an event.
pub(crate) type Happened = (Instant, EventKind, String);

/// Polling interval per server.
const EVERY: Duration = Duration::from_millis(20);
/// Timeout of a poll.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Watches each server in a separate thread until `done`. Returns their events in order of time.
pub(crate) fn watch(servers: &[Endpoint], done: &AtomicBool) -> Vec<Happened> {
    let mut happened: Vec<Happened> = thread::scope(|scope| {
        let watch = |server| scope.spawn(move || one(server, done));
        let threads: Vec<_> = servers.iter().map(watch).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    happened.sort_by_key(|(at, ..)| *at);
    // Report a new primary once, by the first Sentinel that names it.
    let mut named = BTreeSet::new();
    happened
        .retain(|(_, kind, subject)| *kind != EventKind::Named || named.insert(subject.clone()));
    happened
}

fn one(server: &Endpoint, done: &AtomicBool) -> Vec<Happened> {
    let mut reader = RoleReader::new(server.clone(), TIMEOUT);
    let (mut before, mut is_silent, mut happened) = (None, false, Vec::new());
    while !done.load(Ordering::Relaxed) {
        let asked = Instant::now();
        // Retry once: a Sentinel closes the connections of a server that it promotes.
        let now = reader.role().or_else(|_| reader.role()).ok();
        // A server that never reports its role may not be allowed to.
        let is_known = now.is_some() || before.is_some();
        let was_silent = mem::replace(&mut is_silent, is_known && now.is_none());
        let of_silence = match (was_silent, is_silent) {
            (false, true) => Some(EventKind::Silent),
            (true, false) => Some(EventKind::Back),
            _ => None,
        };
        let changed = now.as_ref().and_then(|now| match &before {
            Some(before) => change(before, now),
            None => Some((first(now), None)),
        });
        let all = of_silence.map(|kind| (kind, None)).into_iter().chain(changed);
        // Silence starts with the first unanswered request.
        let at = if is_silent { asked } else { Instant::now() };
        happened.extend(all.map(|(kind, of)| (at, kind, of.unwrap_or_else(|| place(server)))));
        before = now.or(before);
        thread::sleep(EVERY);
    }
    happened
}

/// The event of the first reply.
fn first(role: &Role) -> EventKind {
    match role {
        Role::Primary { .. } => EventKind::IsPrimary,
        Role::Replica { .. } => EventKind::IsReplica,
        Role::Sentinel { .. } => EventKind::IsSentinel,
    }
}

/// The event between two roles, and the server it concerns if that is another one.
fn change(before: &Role, now: &Role) -> Option<(EventKind, Option<String>)> {
    let is_attached = |link: &str| link == "connected";
    match (before, now) {
        (Role::Replica { .. }, Role::Primary { .. }) => Some((EventKind::Promoted, None)),
        (Role::Primary { .. }, Role::Replica { .. }) => Some((EventKind::Demoted, None)),
        (Role::Replica { link: before, .. }, Role::Replica { link: now, .. }) => {
            match (is_attached(before), is_attached(now)) {
                (false, true) => Some((EventKind::ReplicaAttached, None)),
                (true, false) => Some((EventKind::ReplicaDetached, None)),
                _ => None,
            }
        }
        (Role::Sentinel { primary: before }, Role::Sentinel { primary: now }) => {
            (before != now).then(|| (EventKind::Named, Some(now.to_string())))
        }
        _ => None,
    }
}
