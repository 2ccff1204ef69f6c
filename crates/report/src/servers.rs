//! CPU use and roles of each server in a phase with a fault, for its time line.

use model::{SAMPLE_NS, Sample, Trial};
use std::collections::BTreeSet;

use crate::fault_facts;
use crate::series::InBlock;
use crate::server_roles;
use crate::view::{RoleSpan, ServerCharts, ServerCourse, ServerRole};

/// Shortest interval over which CPU use is averaged, nanoseconds, and the largest number of them.
const INTERVAL_NS_MIN: u64 = 500_000_000;
const INTERVALS_MAX: u64 = 200;

/// The servers in all blocks of a phase; `None` unless the plan caused a fault in one of them.
/// `limit_ns` is the limit of the 99th percentile.
pub(crate) fn over_time(
    blocks: &[(&InBlock<'_>, &[Sample])],
    limit_ns: Option<u64>,
) -> Option<ServerCharts> {
    let has_fault = |block: &&InBlock<'_>| {
        block.series().and_then(|series| fault_facts::fault_in(block.trial, series)).is_some()
    };
    let faulty = blocks.iter().map(|(block, _)| *block).filter(has_fault);
    let worst = faulty.max_by_key(|block| affected_ns(block, limit_ns))?.block;
    let longest_ns = blocks.iter().map(|(block, _)| block.point.length_ns).max()?;
    let interval_ns =
        longest_ns.div_ceil(INTERVALS_MAX).next_multiple_of(SAMPLE_NS).max(INTERVAL_NS_MIN);
    let courses = |(block, samples): &(&InBlock<'_>, &[Sample])| {
        let (begun_ns, length_ns) = (block.point.begun_ns, block.point.length_ns);
        let course = |name: String| {
            let roles = server_roles::spans(&block.trial.events, &name, (begun_ns, length_ns));
            let share = |number: u64| {
                let end_ns = number * interval_ns;
                let ends = [end_ns - interval_ns, end_ns].map(|ns| ns as f64 / 1e9);
                // A killed process keeps its counters until its parent has noticed.
                let is_gone = |span: &RoleSpan| {
                    span.role == ServerRole::Gone && span.from_s <= ends[0] && ends[1] <= span.to_s
                };
                let until_ns = begun_ns + end_ns;
                let share = cpu_share(samples, &name, (until_ns - interval_ns, until_ns));
                share.filter(|_| !roles.iter().any(is_gone))
            };
            let cpu_share = (1..=length_ns / interval_ns).map(share).collect();
            ServerCourse { name, cpu_share, roles }
        };
        names(block.trial, samples).into_iter().map(course).collect()
    };
    Some(ServerCharts {
        interval_s: interval_ns as f64 / 1e9,
        worst,
        blocks: blocks.iter().map(courses).collect(),
    })
}

/// How long a fault affected clients: until the 99th percentile was within the limit, and then its
/// highest value.
fn affected_ns(block: &InBlock<'_>, limit_ns: Option<u64>) -> (u64, u64) {
    let Some(series) = block.series() else { return (0, 0) };
    let back =
        limit_ns.and_then(|limit_ns| fault_facts::back_within(block.trial, series, limit_ns));
    let until_ns = back.map_or(0, |back| back.after_ns.unwrap_or(u64::MAX));
    (until_ns, series.p99.iter().map(|(_, ns)| *ns).max().unwrap_or(0))
}

/// Addresses of all servers of a trial.
fn names(trial: &Trial, samples: &[Sample]) -> Vec<String> {
    let known = samples.iter().flat_map(|sample| &sample.servers).map(|server| &server.name);
    let subjects = trial.events.iter().map(|event| &event.subject).filter(|name| !name.is_empty());
    known.chain(subjects).collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// Use of one CPU by a server in a span of time; `None` if it did not run in most of it.
fn cpu_share(samples: &[Sample], name: &str, (from_ns, to_ns): (u64, u64)) -> Option<f64> {
    let first = samples.partition_point(|sample| sample.at_ns + SAMPLE_NS < from_ns);
    let within = samples[first..].iter().take_while(|sample| sample.at_ns <= to_ns);
    // A single server is not listed: all CPU time is its own.
    let reading = |sample: &Sample| {
        let of_server = sample.servers.iter().find(|server| server.name == name);
        let alone = || sample.server.as_ref().filter(|_| sample.servers.is_empty());
        let (id, cpu_ns) = of_server
            .map(|server| (server.id, server.cpu_ns))
            .or_else(|| alone().map(|server| (0, server.cpu_ns)))?;
        Some((sample.at_ns, id, cpu_ns))
    };
    let readings: Vec<(u64, u32, u64)> = within.filter_map(reading).collect();
    let (last_ns, id, last_cpu_ns) = *readings.last()?;
    // A server that was started again is another process.
    let (begun_ns, _, cpu_ns) = *readings.iter().find(|(_, own, _)| *own == id)?;
    let is_most = 2 * (last_ns - begun_ns) >= to_ns - from_ns;
    let used_ns = last_cpu_ns.checked_sub(cpu_ns).filter(|_| is_most)?;
    Some(used_ns as f64 / (last_ns - begun_ns) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ProcessUse, ThreadCpu};

    const MS: u64 = 1_000_000;

    fn sample(at_ms: u64, servers: &[(u32, &str, u64)]) -> Sample {
        let server = |(id, name, ms): &(u32, &str, u64)| ThreadCpu {
            id: *id,
            name: (*name).into(),
            cpu_ns: ms * MS,
        };
        let servers = servers.iter().map(server).collect();
        Sample { at_ns: at_ms * MS, servers, ..Sample::default() }
    }

    #[test]
    fn a_server_has_a_share_while_it_runs() {
        // `a` uses half a CPU until 500 ms, and as another process a fifth from 1,000 ms on.
        let samples: Vec<Sample> = (0..=15_u64)
            .map(|i| match i {
                0..=5 => sample(i * 100, &[(1, "a", i * 50), (2, "b", i * 10)]),
                6..=9 => sample(i * 100, &[(2, "b", i * 10)]),
                _ => sample(i * 100, &[(3, "a", (i - 10) * 20), (2, "b", i * 10)]),
            })
            .collect();
        let share = |name: &str, from: u64| {
            let share = cpu_share(&samples, name, (from * MS, (from + 500) * MS));
            share.map(|share| (share * 100.0).round())
        };
        assert_eq!([0, 500, 1_000].map(|from| share("a", from)), [Some(50.0), None, Some(20.0)]);
        assert_eq!(share("b", 500), Some(10.0));
    }

    #[test]
    fn a_single_server_has_all_cpu_time() {
        let samples: Vec<Sample> = (0..=5_u64)
            .map(|i| {
                let server = ProcessUse { cpu_ns: i * 30 * MS, ..ProcessUse::default() };
                Sample { server: Some(server), ..sample(i * 100, &[]) }
            })
            .collect();
        let share = cpu_share(&samples, "a", (0, 500 * MS)).unwrap();
        assert!((share - 0.3).abs() < 1e-9, "{share}");
    }
}
