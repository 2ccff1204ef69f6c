//! Workers that the driver places: processes on this machine, each with its own CPUs, or on the
//! nodes of a Ray cluster.

use rig::{Guard, OwnProcess, Scratch};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::FleetError;
use super::ray::OnRay;
use super::token::{Token, TokenFile};

/// Processes of workers, and the directory with their token. Dropping it ends them.
#[derive(Debug, Default)]
pub(super) struct Placed {
    // Dropped in this order.
    processes: Vec<OwnProcess>,
    on_ray: Option<OnRay>,
    token: Option<(TokenFile, Scratch)>,
}

impl Placed {
    /// Writes the token to a private directory, for workers placed from this machine, and returns
    /// its path.
    pub(super) fn keep(&mut self, token: &Token, guard: &Guard) -> Result<PathBuf, FleetError> {
        let directory = Scratch::for_sockets(guard).map_err(|e| FleetError(e.to_string()))?;
        let file = token.write(&directory.path().join("token"))?;
        let path = file.path().to_path_buf();
        self.token = Some((file, directory));
        Ok(path)
    }

    /// Starts workers that join `address`, on the CPUs of the generator.
    pub(super) fn start(
        &mut self,
        guard: &Guard,
        (workers, cpus): (u32, &[usize]),
        (address, token): (SocketAddr, &Path),
    ) -> Result<(), FleetError> {
        for number in 0..workers {
            let own = cpus_of(number, workers, cpus);
            let mut arguments: Vec<OsString> =
                ["worker", "--join", &address.to_string(), "--token-file"].map(Into::into).into();
            arguments.push(token.into());
            let process = OwnProcess::start(guard, "worker", arguments, &own);
            self.processes.push(process.map_err(|e| FleetError(e.to_string()))?);
        }
        Ok(())
    }

    /// Places workers on a Ray cluster; they join a port of this machine within a time.
    pub(super) fn start_on_ray(
        &mut self,
        guard: &Guard,
        wanted: (u32, u32, Duration),
        (port, token): (u16, &Path),
    ) -> Result<(), FleetError> {
        self.on_ray = Some(OnRay::start(guard, wanted, (port, token))?);
        Ok(())
    }

    /// Process ids of the workers on this machine.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(OwnProcess::pid).collect()
    }

    /// How a worker ended, if one has.
    pub(super) fn death(&self) -> Option<String> {
        let of_process = || self.processes.iter().find_map(OwnProcess::death);
        self.on_ray.as_ref().and_then(OnRay::failure).or_else(of_process)
    }
}

/// CPUs of one of `workers` workers: an equal share, or all of them if there are fewer than
/// workers.
fn cpus_of(number: u32, workers: u32, cpus: &[usize]) -> Vec<usize> {
    let each = cpus.len() / workers.max(1) as usize;
    if each == 0 {
        return cpus.to_vec();
    }
    cpus.iter().skip(number as usize * each).take(each).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_their_own_cpus_if_there_are_enough() {
        let cpus = [0, 1, 4, 5, 6];
        assert_eq!(cpus_of(0, 2, &cpus), [0, 1]);
        assert_eq!(cpus_of(1, 2, &cpus), [4, 5]);
        assert_eq!(cpus_of(7, 8, &cpus), cpus);
        assert!(cpus_of(0, 3, &[]).is_empty());
    }
}
