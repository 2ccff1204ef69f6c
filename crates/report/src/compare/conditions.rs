//! Conditions in which two runs differ.

use std::collections::{BTreeMap, BTreeSet};

use model::Condition;
use model::record::DISK;

use super::searches;
use crate::show;
use crate::view::{RampView, TargetView, View};

/// Facts about the moment at which a run started, by group and name. They differ between any two
/// runs, so a difference counts only if one of the runs has a warning for it.
const MOMENTARY: [(&str, &str); 4] =
    [("host", "load average"), ("host", "steal"), ("memory", "available"), (DISK, "free space")];

/// One sentence per different condition.
pub(super) fn differences(a: &View, b: &View) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |name: &str, one: &str, two: &str| {
        if one != two {
            found.push(format!("{name}: A {}, B {}", named(one), named(two)));
        }
    };
    check("study", &a.asked.study, &b.asked.study);
    check("scale", &a.asked.scale, &b.asked.scale);
    check("cachedyno", &a.setup.tool, &b.setup.tool);
    check("arguments", &arguments(a), &arguments(b));
    check("validity", a.validity.heading(), b.validity.heading());
    search_differences(a, b, &mut check);
    ramp_differences(a, b, &mut check);
    for target in &a.setup.targets {
        if let Some(twin) = b.setup.targets.iter().find(|t| t.name == target.name) {
            target_differences(target, twin, &mut check);
        }
    }
    let (one, two) = (facts(a), facts(b));
    let keys: BTreeSet<_> = one.keys().chain(two.keys()).collect();
    for key in keys {
        let both = [one.get(key), two.get(key)];
        let has_warning = both.iter().flatten().any(|c| c.warning.is_some());
        let group = if key.0.starts_with(DISK) { DISK } else { key.0 };
        if has_warning || !MOMENTARY.contains(&(group, key.1)) {
            let [a, b] = both.map(|c| c.map_or("", |c| &c.value));
            check(&format!("{} {}", key.0, key.1), a, b);
        }
    }
    found
}

/// The facts of a run, by group and name.
fn facts(view: &View) -> BTreeMap<(&str, &str), &Condition> {
    view.setup.conditions.facts.iter().map(|c| ((&*c.group, &*c.name), c)).collect()
}

/// The command line without the program's name.
fn arguments(view: &View) -> String {
    view.setup.command.get(1..).unwrap_or_default().join(" ")
}

fn search_differences(a: &View, b: &View, check: &mut impl FnMut(&str, &str, &str)) {
    let targets = |view: &View| {
        let targets: Vec<&str> = view.searches.iter().map(|s| s.target.as_str()).collect();
        targets.join(", ")
    };
    let (Some(one), Some(two)) = (a.searches.first(), b.searches.first()) else { return };
    check("targets of the search", &targets(a), &targets(b));
    for ((name, one), (_, two)) in searches::parameters(one).iter().zip(&searches::parameters(two))
    {
        check(&format!("{name} of the search"), one, two);
    }
}

/// Differences in loads and limits of ramps with the same target and profile.
fn ramp_differences(a: &View, b: &View, check: &mut impl FnMut(&str, &str, &str)) {
    for ramp in &a.ramps {
        let alike =
            |other: &&RampView| other.target == ramp.target && other.workload == ramp.workload;
        let mut others = b.ramps.iter().filter(alike).peekable();
        let Some(first) = others.peek().map(|other| other.load.to_string()) else { continue };
        if others.all(|other| other.load != ramp.load) {
            let name = format!("load of {}, {}", ramp.target, ramp.workload);
            check(&name, &ramp.load.to_string(), &first);
        }
    }
    let limit = |view: &View| view.ramps.first().map(|ramp| ramp.limit_ns);
    if let (Some(one), Some(two)) = (limit(a), limit(b)) {
        let text = |ns: Option<u64>| ns.map_or_else(String::new, |ns| show::ns(ns as f64));
        check("limit of p99", &text(one), &text(two));
    }
}

fn target_differences(a: &TargetView, b: &TargetView, check: &mut impl FnMut(&str, &str, &str)) {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    check(&format!("version of {}", a.name), &text(&a.product), &text(&b.product));
    check(&format!("place of {}", a.name), &a.place, &b.place);
    let keys: BTreeSet<_> = a.settings.keys().chain(b.settings.keys()).collect();
    for key in keys {
        let value = |t: &TargetView| t.settings.get(key).cloned().unwrap_or_default();
        check(&format!("setting {key} of {}", a.name), &value(a), &value(b));
    }
}

/// A value in backticks, or `nothing`.
fn named(value: &str) -> String {
    if value.is_empty() { "nothing".into() } else { format!("`{value}`") }
}
