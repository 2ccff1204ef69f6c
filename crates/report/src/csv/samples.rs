//! Samples of server and generator as comma-separated values.

use model::{NetworkUse, ProcessUse, Sample, StoreCounters, ThreadCpu};

use super::line;

const PLACE: [&str; 4] = ["run", "block", "cell", "at_ns"];

/// Of the server with `server_` before them, then of the generator with `generator_`.
const PROCESS: [&str; 6] = [
    "cpu_ns",
    "resident_bytes",
    "swapped_bytes",
    "voluntary_switches",
    "involuntary_switches",
    "run_delay_ns",
];

/// With `store_` before them.
const STORE: [&str; 13] = [
    "used_bytes",
    "limit_bytes",
    "fragmentation",
    "keys",
    "connections",
    "refused",
    "commands",
    "hits",
    "misses",
    "evicted",
    "expired",
    "received_bytes",
    "sent_bytes",
];

/// With `network_` before them.
const NETWORK: [&str; 5] =
    ["interface", "received_bytes", "sent_bytes", "received_packets", "sent_packets"];

/// The line of column names. The last two columns hold the CPU time of threads as `name/id=ns`,
/// joined by `;`.
pub fn samples_header() -> String {
    let mut header: Vec<String> = PLACE.map(String::from).into();
    for (side, names) in [
        ("server", &PROCESS[..]),
        ("generator", &PROCESS[..]),
        ("store", &STORE[..]),
        ("network", &NETWORK[..]),
    ] {
        header.extend(names.iter().map(|name| format!("{side}_{name}")));
    }
    header.extend(["server_threads", "generator_threads"].map(String::from));
    line(&header)
}

/// The line of a sample of a trial, which is named by run, block and id of the cell; counters as
/// they were read.
pub fn samples_line((run, block, cell): (&str, u32, &str), sample: &Sample) -> String {
    let place = [run.into(), block.to_string(), cell.into(), sample.at_ns.to_string()];
    let mut fields: Vec<String> = place.into();
    let server = sample.server.as_ref();
    fields.extend(process(server));
    fields.extend(process(Some(&sample.generator)));
    fields.extend(store(sample.store.as_ref()));
    fields.extend(network(sample.network.as_ref()));
    fields.push(server.map(|s| threads(&s.threads)).unwrap_or_default());
    fields.push(threads(&sample.generator.threads));
    line(&fields)
}

fn process(used: Option<&ProcessUse>) -> [String; PROCESS.len()] {
    let Some(used) = used else { return Default::default() };
    let ProcessUse { cpu_ns, threads: _, resident_bytes, swapped_bytes, run_delay_ns, .. } = used;
    let switches = (used.voluntary_switches, used.involuntary_switches);
    [*cpu_ns, *resident_bytes, *swapped_bytes, switches.0, switches.1, *run_delay_ns]
        .map(|n| n.to_string())
}

fn store(told: Option<&StoreCounters>) -> [String; STORE.len()] {
    let Some(told) = told else { return Default::default() };
    let number = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    [
        number(told.used_bytes),
        number(told.limit_bytes),
        told.fragmentation.map(|f| f.to_string()).unwrap_or_default(),
        number(told.keys),
        number(told.connections),
        number(told.refused),
        number(told.commands),
        number(told.hits),
        number(told.misses),
        number(told.evicted),
        number(told.expired),
        number(told.received_bytes),
        number(told.sent_bytes),
    ]
}

fn network(used: Option<&NetworkUse>) -> [String; NETWORK.len()] {
    let Some(used) = used else { return Default::default() };
    [
        used.interface.clone(),
        used.received_bytes.to_string(),
        used.sent_bytes.to_string(),
        used.received_packets.to_string(),
        used.sent_packets.to_string(),
    ]
}

fn threads(threads: &[ThreadCpu]) -> String {
    let one = |t: &ThreadCpu| format!("{}/{}={}", t.name, t.id, t.cpu_ns);
    threads.iter().map(one).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_field_for_each_column() {
        let thread = ThreadCpu { id: 7, name: "redis-server".into(), cpu_ns: 5 };
        let idle = Sample { at_ns: 9, ..Sample::default() };
        let busy = Sample {
            at_ns: 100_000_009,
            server: Some(ProcessUse {
                cpu_ns: 5,
                threads: vec![thread.clone(), ThreadCpu { id: 8, ..thread }],
                resident_bytes: 4096,
                swapped_bytes: 1,
                voluntary_switches: 2,
                involuntary_switches: 3,
                run_delay_ns: 4,
            }),
            store: Some(StoreCounters {
                fragmentation: Some(1.25),
                sent_bytes: Some(99),
                ..StoreCounters::default()
            }),
            network: Some(NetworkUse { interface: "lo".into(), ..NetworkUse::default() }),
            ..Sample::default()
        };
        let line = |sample| samples_line(("aabb", 3, "redis/steady/8"), sample);
        let text = samples_header() + &line(&idle) + &line(&busy);
        let lines: Vec<&str> = text.split("\r\n").collect();
        let [header, idle, busy, ""] = lines[..] else { panic!("{text}") };
        let columns = header.split(',').count();
        assert_eq!(columns, 36);
        for line in [idle, busy] {
            assert_eq!(line.split(',').count(), columns, "{line}");
        }
        let field = |line: &str, name: &str| {
            let at = header.split(',').position(|column| column == name);
            line.split(',').nth(at.unwrap()).unwrap().to_string()
        };
        assert!(idle.starts_with("aabb,3,redis/steady/8,9,,,,,,,0,0,"), "{idle}");
        let told = [
            ("server_cpu_ns", "5"),
            ("server_swapped_bytes", "1"),
            ("server_involuntary_switches", "3"),
            ("server_run_delay_ns", "4"),
            ("store_used_bytes", ""),
            ("store_fragmentation", "1.25"),
            ("store_sent_bytes", "99"),
            ("network_interface", "lo"),
            ("network_sent_packets", "0"),
            ("server_threads", "redis-server/7=5;redis-server/8=5"),
            ("generator_threads", ""),
        ];
        for (name, value) in told {
            assert_eq!(field(busy, name), value, "{name}");
        }
    }
}
