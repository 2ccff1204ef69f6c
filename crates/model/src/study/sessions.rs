//! The workload `sessions`: sessions of a shop.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::phases::{StopKind, StudyPhase};
use super::planning::{Keys, Run, WorkloadTables};
use super::set::{Key, THINK_MS, VALUE_BYTES, named, number, put};
use super::targets::Stores;
use super::{Fault, StudyError, quoted_list};
use crate::load::Load;
use crate::plan::{
    Cell, Connections, Generation, Layout, Names, Order, SessionGc, Sessions, Workload,
};

const PLAIN_OPERATIONS: [&str; 3] = ["write", "read", "change"];
const PAGE_OPERATIONS: [&str; 2] = ["page", "new"];

/// Lifetimes of a session, seconds.
const LIFETIME_S: RangeInclusive<u64> = 1..=31_536_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    /// Bytes of a value.
    value_bytes: usize,
    /// Lifetime of a session in seconds.
    ttl_s: u64,
    generation: Generation,
    /// Pause within a page, milliseconds.
    think_ms: f64,
    /// In profiles that collect, one in this many requests does; PHP's default if missing.
    #[serde(default = "gc_divisor")]
    gc_divisor: u64,
}

/// `session.gc_divisor` of PHP, with a `session.gc_probability` of 1.
fn gc_divisor() -> u64 {
    100
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// In time-bounded profiles, the sessions that exist, over all clients; in count-bounded ones,
    /// those that each client creates.
    sessions: u64,
    /// Lifetime of a session in profiles that collect, seconds; that of `[defaults]` if missing.
    gc_maxlifetime_s: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    name: Spanned<String>,
    #[serde(rename = "about")]
    _about: IgnoredAny,
    layout: Layout,
    connections: Connections,
    names: Names,
    order: Order,
    stop: StopKind,
    /// Numbers of parallel clients, in place of the study's.
    #[serde(default)]
    clients: Vec<u32>,
    /// True to add a load in which all clients request the same session.
    #[serde(default)]
    one_session: bool,
    /// Phases in which the handlers delete expired sessions.
    #[serde(default)]
    gc: Vec<String>,
    phases: Vec<StudyPhase>,
}

impl Profile {
    /// Describes keys that contradict each other.
    fn contradiction(&self) -> Option<String> {
        let names = || self.phases.iter().map(StudyPhase::name);
        let unknown = self.gc.iter().find(|phase| !names().any(|name| name == *phase));
        if let Some(phase) = unknown {
            let known = quoted_list(names());
            return Some(format!("`gc` names an unknown phase `{phase}` (known: {known})"));
        }
        if !self.gc.is_empty() && (self.layout, self.stop) != (Layout::Page, StopKind::Time) {
            return Some("only pages collect (expected layout `page` and stop `time`)".into());
        }
        let starts_some = self.phases.iter().any(|phase| phase.does("new"));
        (self.one_session && starts_some)
            .then(|| "`one_session` has a single session (expected no operation `new`)".into())
    }
}

impl Keys for Defaults {
    type Size = Size;
    type Profile = Profile;
    const SET: &'static [Key<Self, Size>] = &[
        Key("value_bytes", |own, _, text| number(&mut own.value_bytes, text, VALUE_BYTES, "bytes")),
        Key("ttl_s", |own, _, text| number(&mut own.ttl_s, text, LIFETIME_S, "seconds")),
        Key("generation", |own, _, text| {
            put(&mut own.generation, named(text), "`inside` or `outside`")
        }),
        Key("think_ms", |own, _, text| number(&mut own.think_ms, text, THINK_MS, "milliseconds")),
        Key("gc_divisor", |own, _, text| number(&mut own.gc_divisor, text, 1..=1_000_000, "")),
        Key("gc_maxlifetime_s", |_, size, text| {
            number(size.gc_maxlifetime_s.insert(1), text, LIFETIME_S, "seconds")
        }),
        Key("sessions", |_, size, text| number(&mut size.sessions, text, 1..=100_000_000, "")),
    ];
    const STORES: Stores = Stores::Sessions;
    const OPERATIONS: &'static [&'static str] = &PLAIN_OPERATIONS;

    fn fault(own: &WorkloadTables<Self>) -> Option<Fault> {
        own.profiles.iter().find_map(|profile| {
            let known: &[&str] = match profile.layout {
                Layout::Plain => &PLAIN_OPERATIONS,
                Layout::Page => &PAGE_OPERATIONS,
            };
            let in_phase = profile.phases.iter().find_map(|phase| phase.fault(known, false));
            let at = profile.name.span().start;
            in_phase.or_else(|| Some((at, profile.contradiction()?)))
        })
    }

    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError> {
        let mut cells = Vec::new();
        for profile in run.chosen() {
            for load in loads(profile, run) {
                let workload = Workload::Sessions(sessions(profile, &load, run));
                cells.extend(run.on_each_target(&load, |_| workload.clone()));
            }
        }
        Ok(cells)
    }
}

fn loads(profile: &Profile, run: &Run<'_, Defaults>) -> Vec<Load> {
    let clients = run.clients(&profile.clients);
    let mut loads: Vec<Load> = clients.iter().map(|c| Load::closed(*c)).collect();
    if let Some(&clients) = clients.last().filter(|c| profile.one_session && **c > 1) {
        loads.push(Load { one_session: true, ..Load::closed(clients) });
    }
    loads
}

fn sessions(profile: &Profile, load: &Load, run: &Run<'_, Defaults>) -> Sessions {
    let Run { defaults, size, scale, study, .. } = run;
    let collects = !profile.gc.is_empty();
    let ttl_s = size.gc_maxlifetime_s.filter(|_| collects).unwrap_or(defaults.ttl_s);
    let phase = |phase: &StudyPhase| phase.planned(profile.stop, size.sessions, scale);
    Sessions {
        profile: profile.name.get_ref().clone(),
        layout: profile.layout,
        connections: profile.connections,
        names: profile.names,
        order: profile.order,
        generation: defaults.generation,
        filled: match profile.stop {
            StopKind::Time => size.sessions.max(u64::from(load.clients)),
            StopKind::Count => 0,
        },
        value_bytes: defaults.value_bytes,
        ttl_s,
        verify_one_in: study.verify_one_in,
        think_ns: (defaults.think_ms * 1e6) as u64,
        gc: collects
            .then(|| SessionGc { divisor: defaults.gc_divisor, phases: profile.gc.clone() }),
        phases: profile.phases.iter().map(phase).collect(),
    }
}
