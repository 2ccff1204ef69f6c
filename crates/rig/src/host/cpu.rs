//! CPU, kernel, and causes of stolen CPU time.

use super::facts::{Facts, Root, chosen, warn_if};
use crate::cpu::parse_list;
use crate::noise::CpuTicks;
use std::collections::BTreeSet;
use std::fs;

const CPU_DIR: &str = "sys/devices/system/cpu";

/// Clock sources that can be read (almost) without a system call.
const FAST_CLOCKS: [&str; 5] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource"];

pub(super) fn facts(root: &Root, allowed: &[usize], facts: &mut Facts) {
    let info = root.text("proc/cpuinfo").unwrap_or_default();
    facts.fact("host", "kernel", root.text("proc/sys/kernel/osrelease").unwrap_or_default());
    virtualisation(root, &info, facts);
    load(root, allowed.len(), facts);
    steal(root, facts);
    pressure(root, facts);
    clock(root, facts);
    facts.fact("cpu", "model", model(&info));
    count(root, allowed, facts);
    threads(root, facts);
    mitigations(root, facts);
    governor(root, allowed, facts);
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// CPU model; on ARM the kernel reports numbers instead of a name.
fn model(info: &str) -> String {
    match (field(info, "model name"), field(info, "CPU implementer"), field(info, "CPU part")) {
        (Some(name), _, _) => name.into(),
        (None, Some(implementer), Some(part)) => format!("implementer {implementer} part {part}"),
        _ => "unknown".into(),
    }
}

fn virtualisation(root: &Root, info: &str, facts: &mut Facts) {
    let flagged = field(info, "flags").is_some_and(|f| f.split(' ').any(|f| f == "hypervisor"));
    let name: Vec<String> = ["sys_vendor", "product_name"]
        .into_iter()
        .filter_map(|name| root.text(&format!("sys/class/dmi/id/{name}")))
        .collect();
    let name = name.join(" ");
    let value = match (flagged, name.is_empty()) {
        (true, true) => "virtual machine".into(),
        (true, false) => format!("virtual machine ({name})"),
        (false, true) => "none detected".into(),
        (false, false) => format!("none detected ({name})"),
    };
    facts.fact("host", "hypervisor", value);
}

fn load(root: &Root, cpus: usize, facts: &mut Facts) {
    let Some(text) = root.text("proc/loadavg") else { return };
    let averages: Vec<&str> = text.split(' ').take(3).collect();
    let last_minute: f64 = averages.first().and_then(|a| a.parse().ok()).unwrap_or(0.0);
    // The last minute can be our own load, so another process must be running now as well.
    let running = text.split(' ').nth(3).and_then(|tasks| tasks.split('/').next()?.parse().ok());
    let others = running.map_or(u64::MAX, |running: u64| running.saturating_sub(1));
    let warning = warn_if(
        last_minute > 0.5 * cpus.max(1) as f64 && others > 0,
        "other processes take CPU time from generator and server; stop them or wait: `uptime`, \
         `top`",
    );
    let value = format!("{} (1, 5 and 15 minutes)", averages.join(" "));
    facts.judged("host", "load average", value, warning);
}

fn steal(root: &Root, facts: &mut Facts) {
    let Some(ticks) = root.text("proc/stat").and_then(|t| CpuTicks::parse(&t)) else { return };
    let share = ticks.steal_share();
    let warning = warn_if(
        share > 0.01,
        "the hypervisor gives CPU time to other machines, which shows as slow operations; \
         take a machine with dedicated CPUs, or measure more blocks",
    );
    let value = format!("{:.2} % of CPU time since boot", share * 100.0);
    facts.judged("host", "steal", value, warning);
}

fn pressure(root: &Root, facts: &mut Facts) {
    if root.text("proc/pressure/cpu").is_some() {
        facts.fact("host", "pressure stall information", "available");
        return;
    }
    let warning = "waits for CPU, disk and memory are missing in the noise record; \
                   boot with the kernel parameter `psi=1`";
    facts.judged("host", "pressure stall information", "not available", Some(warning.into()));
}

fn clock(root: &Root, facts: &mut Facts) {
    let path = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Some(source) = root.text(path) else { return };
    let warning = warn_if(
        !FAST_CLOCKS.contains(&source.as_str()),
        "each reading of the clock is a slow system call and adds to every operation; where `tsc` \
         is listed in available_clocksource: \
         `echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource`",
    );
    facts.judged("host", "clock source", source, warning);
}

fn count(root: &Root, allowed: &[usize], facts: &mut Facts) {
    let online = parse_list(&root.text(&format!("{CPU_DIR}/online")).unwrap_or_default());
    let cores: BTreeSet<_> = online
        .iter()
        .map(|cpu| {
            let part = |name| root.text(&format!("{CPU_DIR}/cpu{cpu}/topology/{name}"));
            match (part("physical_package_id"), part("core_id")) {
                (Some(package), Some(core)) => (package, core),
                _ => (String::new(), cpu.to_string()),
            }
        })
        .collect();
    let value = format!(
        "{} online on {} cores, {} allowed to this process",
        online.len(),
        cores.len(),
        allowed.len()
    );
    let warning = warn_if(
        allowed.len() < 2,
        "generator and server share one CPU and slow each other down; allow two CPUs (`taskset`, \
         cpuset) or take a larger machine",
    );
    facts.judged("cpu", "CPUs", value, warning);
}

fn threads(root: &Root, facts: &mut Facts) {
    let Some(active) = root.text(&format!("{CPU_DIR}/smt/active")) else { return };
    let warning = warn_if(
        active == "1",
        "two threads of a core slow each other down, so results depend on placement; for stable \
         results: `echo off > /sys/devices/system/cpu/smt/control`",
    );
    let value = if active == "1" { "active" } else { "not active" };
    facts.judged("cpu", "simultaneous multithreading", value, warning);
}

/// Mitigations make system calls slower on every host, so they are counted without a warning.
fn mitigations(root: &Root, facts: &mut Facts) {
    let directory = root.path(&format!("{CPU_DIR}/vulnerabilities"));
    let Ok(entries) = fs::read_dir(directory) else { return };
    let texts: Vec<String> =
        entries.filter_map(|e| fs::read_to_string(e.ok()?.path()).ok()).collect();
    let starting = |word: &str| texts.iter().filter(|t| t.starts_with(word)).count();
    let value = format!(
        "{} mitigated, {} vulnerable, {} not affected",
        starting("Mitigation"),
        starting("Vulnerable"),
        starting("Not affected")
    );
    facts.fact("cpu", "mitigations", value);
}

fn governor(root: &Root, allowed: &[usize], facts: &mut Facts) {
    let governors: BTreeSet<String> = allowed
        .iter()
        .filter_map(|cpu| root.text(&format!("{CPU_DIR}/cpu{cpu}/cpufreq/scaling_governor")))
        .collect();
    if governors.is_empty() {
        facts.fact("cpu", "frequency governor", "none (not controlled by this kernel)");
        return;
    }
    let warning = warn_if(
        governors.iter().any(|g| chosen(g) != "performance"),
        "the clock frequency follows the load, so light loads look slower than they are; \
         `cpupower frequency-set -g performance`",
    );
    let value = governors.into_iter().collect::<Vec<_>>().join(", ");
    facts.judged("cpu", "frequency governor", value, warning);
}
