//! Samples of server and generator as comma-separated values.

use model::{COUNTERS, Sample, ThreadCpu};

use super::line;

/// The line of column names. The last three columns hold the CPU time of servers and threads as
/// `name/id=ns`, joined by `;`.
pub fn samples_header() -> String {
    let counters = COUNTERS.iter().map(|counter| counter.name);
    let header = ["run", "block", "cell", "at_ns"].into_iter().chain(counters);
    let last = ["network_interface", "servers", "server_threads", "generator_threads"];
    let header = header.chain(last);
    line(&header.map(String::from).collect::<Vec<_>>())
}

/// The line of a sample of a trial, which is named by run, block and id of the cell; counters as
/// they were read.
pub fn samples_line((run, block, cell): (&str, u32, &str), sample: &Sample) -> String {
    let mut fields = vec![run.into(), block.to_string(), cell.into(), sample.at_ns.to_string()];
    let number = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    fields.extend(COUNTERS.iter().map(|counter| number((counter.read)(sample))));
    fields.push(sample.network.as_ref().map(|n| n.interface.clone()).unwrap_or_default());
    fields.push(threads(&sample.servers));
    fields.push(sample.server.as_ref().map(|s| threads(&s.threads)).unwrap_or_default());
    fields.push(threads(&sample.generator.threads));
    line(&fields)
}

fn threads(threads: &[ThreadCpu]) -> String {
    let one = |t: &ThreadCpu| format!("{}/{}={}", t.name, t.id, t.cpu_ns);
    threads.iter().map(one).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{NetworkUse, ProcessUse, ProxyUse, StoreCounters};

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
                major_faults: 6,
                calls: 7,
            }),
            servers: vec![ThreadCpu { id: 7, name: "127.0.0.1:7001".into(), cpu_ns: 4 }],
            proxy: Some(ProxyUse { cpu_ns: 3, resident_bytes: 2048 }),
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
        assert_eq!(columns, 62);
        for line in [idle, busy] {
            assert_eq!(line.split(',').count(), columns, "{line}");
        }
        let field = |line: &str, name: &str| {
            let at = header.split(',').position(|column| column == name);
            line.split(',').nth(at.unwrap()).unwrap().to_string()
        };
        assert!(idle.starts_with("aabb,3,redis/steady/8,9,,,,,,,,,0,0,"), "{idle}");
        let told = [
            ("server_cpu_ns", "5"),
            ("server_swapped_bytes", "1"),
            ("server_involuntary_switches", "3"),
            ("server_run_delay_ns", "4"),
            ("store_used_bytes", ""),
            ("store_fragmentation_permille", "1250"),
            ("store_sent_bytes", "99"),
            ("proxy_cpu_ns", "3"),
            ("network_interface", "lo"),
            ("network_sent_packets", "0"),
            ("servers", "127.0.0.1:7001/7=4"),
            ("server_threads", "redis-server/7=5;redis-server/8=5"),
            ("generator_threads", ""),
        ];
        for (name, value) in told {
            assert_eq!(field(busy, name), value, "{name}");
        }
    }
}
