//! The place of a tier on this machine: CPUs for its server and for a neighbour, and whether the
//! machine is large enough.

use model::tier::{NeighbourCpu, Tier};
use model::{ErrorClass, Failure};
use rig::{Guard, Pinning, RunningNeighbour};
use stats::format_bytes;

/// CPUs of a private server and of its neighbour.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) server: Vec<usize>,
    /// `None` without a neighbour.
    pub(crate) neighbour: Option<usize>,
}

impl Places {
    /// Chooses CPUs among those of servers. Errors: the tier needs more than the machine has;
    /// `memory_bytes` is the memory of the machine.
    pub(crate) fn new(
        tier: &Tier,
        pinning: &Pinning,
        memory_bytes: Option<u64>,
    ) -> Result<Self, Failure> {
        let all = &pinning.server;
        let is_apart = tier.neighbour.is_some() && tier.neighbour_cpu == Some(NeighbourCpu::Other);
        let apart = usize::from(is_apart);
        let wanted = tier.cpus.map_or(all.len().saturating_sub(apart).max(1), |cpus| cpus as usize);
        let needed = wanted + apart;
        if needed > all.len() {
            let and = if is_apart { ", one of them for the neighbour" } else { "" };
            return Err(too_small(&format!(
                "it needs {needed} CPUs{and}, and this machine has {} for servers besides {} for \
                 the load generator",
                all.len(),
                pinning.generator.len()
            )));
        }
        if let Some(quota) = tier.quota.filter(|quota| *quota > wanted as f64) {
            return Err(too_small(&format!(
                "it needs {quota} CPUs of CPU time, and its server has {wanted}"
            )));
        }
        let missing = tier.memory.zip(memory_bytes).filter(|(limit, has)| limit.bytes() > *has);
        if let Some((limit, has)) = missing {
            return Err(too_small(&format!(
                "it needs {limit} of memory, and this machine has {}",
                format_bytes(has)
            )));
        }
        let server = all[..wanted].to_vec();
        let neighbour = if is_apart { all.get(wanted) } else { all.first() };
        let neighbour = neighbour.copied().filter(|_| tier.neighbour.is_some());
        Ok(Self { server, neighbour })
    }

    /// Starts the neighbour; `None` without one.
    pub(crate) fn start_neighbour(
        &self,
        guard: &Guard,
        tier: &Tier,
    ) -> Result<Option<RunningNeighbour>, Failure> {
        let Some((neighbour, cpu)) = tier.neighbour.zip(self.neighbour) else { return Ok(None) };
        Ok(Some(RunningNeighbour::start(guard, neighbour, cpu)?))
    }
}

fn too_small(problem: &str) -> Failure {
    let message = format!("this machine is too small for the tier: {problem}");
    Failure { class: ErrorClass::Missing, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn places(tier: &str, server: &[usize]) -> Result<Places, String> {
        let pinning = Pinning { generator: vec![0], server: server.to_vec(), note: None };
        let tier = Tier::parse(tier).unwrap();
        Places::new(&tier, &pinning, Some(8 * GIB)).map_err(|failure| failure.message)
    }

    #[test]
    fn servers_and_neighbours_get_their_cpus() {
        let found = |server: &[usize], neighbour| Ok(Places { server: server.into(), neighbour });
        assert_eq!(places("memory=1GiB", &[1, 2, 3]), found(&[1, 2, 3], None));
        assert_eq!(places("cpus=2,quota=1.5", &[1, 2, 3]), found(&[1, 2], None));
        assert_eq!(places("cpus=2,neighbour=1s/2s", &[1, 2, 3]), found(&[1, 2], Some(1)));
        let apart = "neighbour=1s/2s,neighbour_cpu=other";
        assert_eq!(places(apart, &[1, 2, 3]), found(&[1, 2], Some(3)));
        assert_eq!(places(&format!("cpus=1,{apart}"), &[1, 2, 3]), found(&[1], Some(2)));
    }

    #[test]
    fn what_the_machine_does_not_have_is_named() {
        for (tier, problem) in [
            ("cpus=2", "it needs 2 CPUs, and this machine has 1 for servers besides 1 for the"),
            ("neighbour=1s/2s,neighbour_cpu=other", "2 CPUs, one of them for the neighbour, and"),
            ("quota=1.5", "it needs 1.5 CPUs of CPU time, and its server has 1"),
            ("memory=16GiB", "it needs 16 GiB of memory, and this machine has 8 GiB"),
        ] {
            let refused = places(tier, &[1]).unwrap_err();
            assert!(refused.starts_with("this machine is too small for the tier: "), "{refused}");
            assert!(refused.contains(problem), "{tier}: {refused}");
        }
    }
}
