//! Resource usage of server and generator up to the last sample, and the store's own statistics.

use model::{ProcessUse, Sample, StoreCounters};
use std::collections::BTreeMap;

use super::family::Kind::{Counter, Gauge};
use super::family::{Family, Kind, Labels};

/// A store statistic: name, help, kind and how to read it.
type StoreMetric = (&'static str, &'static str, Kind, fn(&StoreCounters) -> Option<f64>);

const STORE: [StoreMetric; 14] = [
    (
        "cachedyno_store_used_memory_bytes",
        "Memory of the store's data, as the store reports it.",
        Gauge,
        |s| number(s.used_bytes),
    ),
    ("cachedyno_store_memory_limit_bytes", "Limit of that memory.", Gauge, |s| {
        number(s.limit_bytes)
    }),
    (
        "cachedyno_store_memory_fragmentation_ratio",
        "Resident memory divided by used memory, as the store reports it.",
        Gauge,
        |s| s.fragmentation,
    ),
    ("cachedyno_store_keys", "Keys in the store.", Gauge, |s| number(s.keys)),
    ("cachedyno_store_connections", "Open connections.", Gauge, |s| number(s.connections)),
    (
        "cachedyno_store_refused_connections_total",
        "Connections refused because of the connection limit.",
        Counter,
        |s| number(s.refused),
    ),
    ("cachedyno_store_commands_total", "Commands served.", Counter, |s| number(s.commands)),
    ("cachedyno_store_hits_total", "Reads that found their key.", Counter, |s| number(s.hits)),
    ("cachedyno_store_misses_total", "Reads that did not find their key.", Counter, |s| {
        number(s.misses)
    }),
    (
        "cachedyno_store_evicted_keys_total",
        "Keys evicted because of the memory limit.",
        Counter,
        |s| number(s.evicted),
    ),
    (
        "cachedyno_store_expired_keys_total",
        "Keys removed because their lifetime had expired.",
        Counter,
        |s| number(s.expired),
    ),
    ("cachedyno_store_received_bytes_total", "Bytes received from clients.", Counter, |s| {
        number(s.received_bytes)
    }),
    ("cachedyno_store_sent_bytes_total", "Bytes sent to clients.", Counter, |s| {
        number(s.sent_bytes)
    }),
    (
        "cachedyno_store_flash_hits_total",
        "Values read from the store's file of values, not from memory.",
        Counter,
        |s| number(s.flash_hits),
    ),
];

fn number(count: Option<u64>) -> Option<f64> {
    count.map(|number| number as f64)
}

/// Families of a sample from a trial of `target`.
pub(super) fn families(target: &str, sample: &Sample) -> Vec<Family> {
    let sides = [("server", sample.server.as_ref()), ("generator", Some(&sample.generator))];
    let sides: Vec<(Labels, &ProcessUse)> = sides
        .into_iter()
        .filter_map(|(side, used)| {
            Some((vec![("target", target.into()), ("side", side.into())], used?))
        })
        .collect();
    let mut families = of_processes(&sides);
    families.push(of_threads(&sides));
    for (name, help, kind, read) in STORE {
        let value = sample.store.as_ref().and_then(read);
        let labels = || vec![("target", target.to_string())];
        families.extend(value.map(|number| Family::new(kind, name, help).with(labels(), number)));
    }
    families.extend(of_network(target, sample));
    families.extend(of_device(target, sample));
    families.extend(of_pressure(target, sample));
    families
}

/// Families of metrics per process.
fn of_processes(sides: &[(Labels, &ProcessUse)]) -> Vec<Family> {
    let one = |kind, name, help, read: fn(&ProcessUse) -> f64| {
        sides.iter().fold(Family::new(kind, name, help), |family, (labels, used)| {
            family.with(labels.clone(), read(used))
        })
    };
    let mut switches = Family::new(
        Counter,
        "cachedyno_process_context_switches_total",
        "Context switches of the current threads.",
    );
    for (labels, used) in sides {
        let kinds =
            [("voluntary", used.voluntary_switches), ("involuntary", used.involuntary_switches)];
        for (kind, count) in kinds {
            let labels = [&labels[..], &[("kind", kind.to_string())]].concat();
            switches = switches.with(labels, count as f64);
        }
    }
    vec![
        one(
            Counter,
            "cachedyno_process_cpu_seconds_total",
            "CPU time of the processes of server and generator.",
            |used| used.cpu_ns as f64 / 1e9,
        ),
        one(
            Counter,
            "cachedyno_process_run_delay_seconds_total",
            "Time that runnable threads waited for a CPU.",
            |used| used.run_delay_ns as f64 / 1e9,
        ),
        one(Gauge, "cachedyno_process_resident_memory_bytes", "Resident memory.", |used| {
            used.resident_bytes as f64
        }),
        one(Gauge, "cachedyno_process_swapped_memory_bytes", "Memory swapped out.", |used| {
            used.swapped_bytes as f64
        }),
        one(
            Counter,
            "cachedyno_process_major_faults_total",
            "Page faults that waited for a disk.",
            |used| used.major_faults as f64,
        ),
        one(
            Counter,
            "cachedyno_process_read_write_calls_total",
            "Calls of read and write and their variants.",
            |used| used.calls as f64,
        ),
        switches,
    ]
}

fn of_threads(sides: &[(Labels, &ProcessUse)]) -> Family {
    let name = "cachedyno_thread_cpu_seconds_total";
    let mut family = Family::new(Counter, name, "CPU time of the current threads.");
    for (labels, used) in sides {
        for (thread, cpu_ns) in threads(used) {
            let labels = [&labels[..], &[("thread", thread)]].concat();
            family = family.with(labels, cpu_ns as f64 / 1e9);
        }
    }
    family
}

/// CPU time by thread name. Thread ids differ between servers; threads that share a name are
/// numbered in the order of their ids.
pub(crate) fn threads(used: &ProcessUse) -> Vec<(String, u64)> {
    let mut sorted: Vec<_> = used.threads.iter().collect();
    sorted.sort_by_key(|thread| thread.id);
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let named = sorted.into_iter().map(|thread| {
        let number = counts.entry(&thread.name).or_default();
        *number += 1;
        let name = match number {
            1 => thread.name.clone(),
            number => format!("{} {number}", thread.name),
        };
        (name, thread.cpu_ns)
    });
    named.collect()
}

fn of_device(target: &str, sample: &Sample) -> Option<Family> {
    let device = sample.device?;
    let labels = |direction: &str| {
        vec![("target", target.to_string()), ("direction", direction.to_string())]
    };
    let name = "cachedyno_device_bytes_total";
    let family = Family::new(Counter, name, "Bytes read from and written to the disk under test.");
    Some(
        family
            .with(labels("read"), device.read_bytes as f64)
            .with(labels("written"), device.written_bytes as f64),
    )
}

fn of_pressure(target: &str, sample: &Sample) -> Option<Family> {
    let scopes = [("machine", sample.pressure), ("group", sample.group_pressure)];
    let name = "cachedyno_pressure_waiting_seconds_total";
    let help = "Time in which some or all tasks waited for memory, disks or CPUs.";
    let mut family = Family::new(Counter, name, help);
    for (scope, pressure) in scopes {
        let Some(pressure) = pressure else { continue };
        let kinds = [
            ("memory", "some", pressure.memory_some_ns),
            ("memory", "full", pressure.memory_full_ns),
            ("io", "some", pressure.io_some_ns),
            ("io", "full", pressure.io_full_ns),
            ("cpu", "some", pressure.cpu_some_ns),
        ];
        for (resource, tasks, ns) in kinds {
            let labels =
                [("target", target), ("scope", scope), ("resource", resource), ("tasks", tasks)];
            let labels = labels.map(|(label, value)| (label, value.to_string()));
            family = family.with(labels.to_vec(), ns as f64 / 1e9);
        }
    }
    sample.pressure.or(sample.group_pressure).map(|_| family)
}

fn of_network(target: &str, sample: &Sample) -> Vec<Family> {
    let Some(network) = &sample.network else { return Vec::new() };
    let both = |name, help, received: u64, sent: u64| {
        let labels = |direction: &str| {
            vec![
                ("target", target.to_string()),
                ("interface", network.interface.clone()),
                ("direction", direction.to_string()),
            ]
        };
        Family::new(Counter, name, help)
            .with(labels("received"), received as f64)
            .with(labels("sent"), sent as f64)
    };
    vec![
        both(
            "cachedyno_network_bytes_total",
            "Bytes through the interface that leads to the server.",
            network.received_bytes,
            network.sent_bytes,
        ),
        both(
            "cachedyno_network_packets_total",
            "Packets through the interface that leads to the server.",
            network.received_packets,
            network.sent_packets,
        ),
    ]
}
