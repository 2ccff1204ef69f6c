//! Which measurements of a rate cover a question, and what is missing if none does.

use model::Slo;
use std::collections::{BTreeMap, BTreeSet};

use super::commands;
use super::deployment::Deployment;
use super::evidence::{Evidence, MeasuredRate, Reach};
use super::origin::LeftOut;
use super::question::{Question, RateAsked, size_for, sizes};
use super::view::Missing;
use crate::show;

/// The measurement that represents a target.
pub(super) struct Base<'a> {
    pub(super) measured: &'a MeasuredRate,
    /// Lower end of its interval, requests per second.
    pub(super) lowest_per_s: f64,
    /// Faster mixes of operations that were measured as well.
    pub(super) faster: Vec<String>,
}

/// One measurement for each target that covers the question, the target's newest. Errors: the first
/// condition that none meets.
pub(super) fn covering<'a>(
    question: &Question,
    rate: &RateAsked,
    evidence: &'a Evidence,
) -> Result<(Vec<Base<'a>>, Vec<LeftOut>), Missing> {
    let command = || commands::highest_rate(question, rate, None);
    let missing = |text: String| Missing { text, commands: vec![command()] };
    let all: Vec<&MeasuredRate> = evidence.rates.iter().collect();
    if all.is_empty() {
        return Err(missing(no_rates(rate, evidence)));
    }
    let with_tls: Vec<&MeasuredRate> =
        all.iter().copied().filter(|m| !question.tls || m.deployment.family.tls).collect();
    if with_tls.is_empty() {
        let targets: BTreeSet<&str> = all.iter().map(|m| &*m.deployment.target).collect();
        return Err(missing(format!(
            "no rate was measured with TLS (without: {})",
            listed(targets.into_iter())
        )));
    }
    let within = |m: &&MeasuredRate| rate.slos.iter().all(|slo| m.keeps(slo));
    let kept: Vec<&MeasuredRate> = with_tls.iter().copied().filter(within).collect();
    if kept.is_empty() {
        return Err(missing(format!(
            "no rate was measured within {} (measured: {})",
            rate.limits(),
            listed(limits(&with_tls).iter().map(String::as_str))
        )));
    }
    let is_asked = |m: &&MeasuredRate| rate.mix.as_ref().is_none_or(|mix| mix.is_same(&m.mix));
    let of_mix: Vec<&MeasuredRate> = kept.iter().copied().filter(is_asked).collect();
    if let (true, Some(mix)) = (of_mix.is_empty(), &rate.mix) {
        let known: BTreeSet<String> = kept.iter().map(|m| m.mix.to_string()).collect();
        return Err(missing(format!(
            "no rate of {mix} was measured within {} (measured: {})",
            rate.limits(),
            listed(known.iter().map(String::as_str))
        )));
    }
    let (newest, superseded) = newest(&of_mix);
    let asked = question.value_bytes.unwrap_or(1);
    let bases = by_target(&newest).into_iter().filter_map(|of_target| base(asked, &of_target));
    let bases: Vec<Base<'_>> = bases.collect();
    if bases.is_empty() {
        let measured: BTreeSet<u64> = newest.iter().map(|m| m.value_bytes).collect();
        return Err(missing(format!(
            "no rate within {} was measured with values of {} (measured: {}; a size counts if it \
             was measured, or lies between two that were measured on the same target)",
            rate.limits(),
            stats::format_bytes(asked),
            sizes(&measured)
        )));
    }
    Ok((bases, superseded))
}

fn no_rates(rate: &RateAsked, evidence: &Evidence) -> String {
    let limits = rate.limits();
    match (evidence.records, evidence.left_out.len()) {
        (0, 0) => format!("there are no records, so no rate within {limits} is known"),
        (_, 0) => format!("no record has a rate within {limits}"),
        (..) => format!("no usable record has a rate within {limits}: see what was left out"),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    show::listed(&names.map(String::from).collect::<Vec<_>>())
}

/// What the measurements kept: limits of searches as given, of planned rates the highest percentile
/// with an interval.
fn limits(measured: &[&MeasuredRate]) -> BTreeSet<String> {
    let of = |m: &&MeasuredRate| {
        if let Some(search) = m.load.search() {
            return search.slos.iter().map(Slo::words).collect::<Vec<_>>().join(" and ");
        }
        let is_time = |slo: &&Slo| slo.time_ns().is_some();
        let kept = m.kept.iter().rfind(is_time).map_or_else(String::new, |slo| {
            format!("{} < {} ", slo.metric(), show::ns(slo.limit_ns() as f64))
        });
        format!("{kept}at {}", show::rate(m.rate.center))
    };
    measured.iter().map(of).collect()
}

/// The newest of all measurements of the same; the others with the run that replaces them.
fn newest<'a>(all: &[&'a MeasuredRate]) -> (Vec<&'a MeasuredRate>, Vec<LeftOut>) {
    let (mut kept, mut superseded): (Vec<&MeasuredRate>, Vec<LeftOut>) = Default::default();
    let mut sorted: Vec<&MeasuredRate> = all.to_vec();
    sorted.sort_by_key(|m| std::cmp::Reverse(m.origin.started_unix_ms));
    for own in sorted {
        let is_same = |newer: &&&MeasuredRate| {
            newer.origin.run != own.origin.run
                && newer.deployment.is_same(&own.deployment)
                && (newer.value_bytes, newer.keys, &newer.load)
                    == (own.value_bytes, own.keys, &own.load)
                && newer.mix.is_same(&own.mix)
        };
        match kept.iter().find(is_same) {
            Some(newer) => superseded.push(LeftOut {
                run: own.origin.run.clone(),
                cell: Some(own.origin.cell.clone()),
                reason: format!("run {} measured the same later", newer.origin.run),
            }),
            None => kept.push(own),
        }
    }
    (kept, superseded)
}

/// Measurements by what was measured, whatever its name.
fn by_target<'a>(all: &[&'a MeasuredRate]) -> Vec<Vec<&'a MeasuredRate>> {
    let mut groups: Vec<Vec<&MeasuredRate>> = Vec::new();
    for own in all {
        let is_own = |group: &&mut Vec<&MeasuredRate>| {
            group.first().is_some_and(|first| first.deployment.is_same(&own.deployment))
        };
        match groups.iter_mut().find(is_own) {
            Some(group) => group.push(own),
            None => groups.push(vec![own]),
        }
    }
    groups.sort_by(|a, b| place(a).cmp(&place(b)));
    groups
}

fn place<'a>(group: &[&'a MeasuredRate]) -> Option<&'a Deployment> {
    group.first().map(|first| &first.deployment)
}

/// The measurement that counts: of each mix that with the highest lower end, of these the lowest.
/// A mix whose highest rate is unknown does not count beside one whose is known: its rate says
/// nothing about how fast the mix is.
fn base<'a>(asked: u64, of_target: &[&'a MeasuredRate]) -> Option<Base<'a>> {
    let measured: BTreeSet<u64> = of_target.iter().map(|m| m.value_bytes).collect();
    let size = size_for(asked, &measured)?;
    let mut by_mix: BTreeMap<String, (f64, &MeasuredRate)> = BTreeMap::new();
    for own in of_target.iter().filter(|m| m.value_bytes == size) {
        let Some(lowest) = own.lowest() else { continue };
        let known = by_mix.entry(own.mix.to_string()).or_insert((lowest, own));
        // The highest rate is known better than that some rate was answered.
        let rank = |m: &MeasuredRate, lo: f64| (m.reach == Reach::Highest, lo);
        if rank(own, lowest) > rank(known.1, known.0) {
            *known = (lowest, own);
        }
    }
    let is_any_highest = by_mix.values().any(|(_, m)| m.reach == Reach::Highest);
    let counted =
        || by_mix.values().filter(|(_, m)| !is_any_highest || m.reach == Reach::Highest).copied();
    let (lowest_per_s, measured) = counted().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let faster = counted().filter(|(_, m)| !m.mix.is_same(&measured.mix));
    let faster = faster.map(|(lowest, m)| format!("{} at {}", m.mix, show::rate(lowest)));
    Some(Base { measured, lowest_per_s, faster: faster.collect() })
}
