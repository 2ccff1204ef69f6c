//! A worker of a fleet, and the CPUs of all.

use model::Condition;
use std::collections::BTreeMap;

use super::link::Link;

/// Most workers whose CPUs are listed.
const LISTED_MAX: usize = 16;

/// A worker of the fleet.
pub(super) struct Member {
    /// From 1.
    pub(super) number: u32,
    /// Number of its connection.
    pub(super) connection: usize,
    pub(super) name: String,
    pub(super) link: Link,
    /// Its process id, if it runs on this machine.
    pub(super) pid: Option<u32>,
    /// Its host and CPUs.
    pub(super) place: (String, Vec<usize>),
    /// True if another one may run on one of its CPUs.
    pub(super) shares_cpus: bool,
}

impl Member {
    /// Its host with each of its CPUs.
    fn cpus(&self) -> impl Iterator<Item = (String, usize)> {
        let (host, cpus) = &self.place;
        cpus.iter().map(|cpu| (host.clone(), *cpu))
    }

    /// True if it runs on this machine on one of these CPUs.
    fn is_on(&self, cpus: &[usize]) -> bool {
        self.pid.is_some() && self.place.1.iter().any(|cpu| cpus.contains(cpu))
    }
}

/// Finds the workers that share CPUs with others. Returns what is wrong with the CPUs of workers;
/// `server` are those of private servers on this machine.
pub(super) fn place(members: &mut [Member], server: &[usize]) -> Vec<String> {
    let mut users: BTreeMap<(String, usize), usize> = BTreeMap::new();
    for cpu in members.iter().flat_map(Member::cpus) {
        *users.entry(cpu).or_default() += 1;
    }
    for member in &mut *members {
        let shares_cpus = member.cpus().any(|cpu| users[&cpu] > 1);
        member.shares_cpus = shares_cpus;
    }
    let sharing = members.iter().filter(|member| member.shares_cpus).count();
    let cpus = users.values().filter(|users| **users > 1).count();
    let mut warnings = Vec::new();
    if sharing > cpus {
        let plural = if cpus == 1 { "" } else { "s" };
        warnings.push(format!(
            "{sharing} workers share {cpus} CPU{plural}: they wait for each other, which delays \
             requests, and offer no more load than {cpus} would (expected at most {cpus} of them)"
        ));
    }
    if let Some(member) = members.iter().find(|member| member.is_on(server)) {
        warnings.push(format!(
            "{} may use the CPUs of the servers ({}): start it on others, with its --cpus",
            member.name,
            list(server)
        ));
    }
    warnings
}

/// The CPUs of workers, with what is wrong with them.
pub(super) fn condition(members: &[Member], warnings: &[String]) -> Condition {
    let of = |member: &Member| format!("{}: {}", member.name, list(&member.place.1));
    let mut listed: Vec<String> = members.iter().take(LISTED_MAX).map(of).collect();
    let more = members.len().saturating_sub(LISTED_MAX);
    listed.extend((more > 0).then(|| format!("{more} more")));
    Condition {
        group: "pinning".into(),
        name: "CPUs of the workers".into(),
        value: listed.join("; "),
        warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
    }
}

pub(super) fn list(cpus: &[usize]) -> String {
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    cpus.join(", ")
}
