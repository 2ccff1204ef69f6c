//! Workers on the nodes of a Ray cluster.
//!
//! Ray places processes and takes no part in the measurement: a command of the Python package asks
//! it for one bundle of CPUs per worker, each on another node, and starts `cachedyno worker` there.

use nix::sys::signal::Signal;
use rig::{Guard, run_shell};
use serde::{Deserialize, Serialize};
use std::env;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{FleetError, counted_workers};

/// The command. The interpreter is that of the Python package if it started this program.
const COMMAND: &str = "exec \"${CACHEDYNO_PYTHON:-python3}\" -m cachedyno._ray \"$PLAN\"";
/// How long the command may take to end after the workers, until it is asked to, and until it is
/// killed.
const ASK_AFTER: Duration = Duration::from_secs(1);
const KILL_AFTER: Duration = Duration::from_secs(20);
/// How long other jobs may occupy the CPUs of nodes that are large enough, at most.
const OTHERS_END_WITHIN: Duration = Duration::from_secs(20);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const INSTALL: &str = " (expected the Python package: pip install 'cachedyno[ray]'; \
    CACHEDYNO_PYTHON names another Python)";
/// Port of `ray://HOST`.
const DEFAULT_PORT: u16 = 10_001;

/// Where workers go: the argument of the command, as its module describes it.
#[derive(Debug, Serialize)]
struct Plan {
    program: PathBuf,
    token_file: PathBuf,
    join: String,
    workers: u32,
    cpus: u32,
    autoscaler_s: u32,
    others_s: f64,
    /// `RAY_ADDRESS`, if it is set.
    #[serde(skip)]
    address: Option<String>,
}

/// How the command failed: the last line of its standard error.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlacementFailure {
    /// Nodes, by their numbers of CPUs, are too few or too small.
    Missing {
        nodes: Vec<f64>,
    },
    /// Other jobs use the CPUs of nodes.
    Busy {
        nodes: Vec<f64>,
        free: f64,
        after_s: f64,
    },
    /// A node or Ray's process on it has failed.
    Lost {
        worker: u32,
        error: String,
    },
    Ended {
        worker: u32,
        exit_code: i32,
        said: String,
    },
    NoRay {
        error: String,
    },
    NoCluster {
        error: String,
    },
}

/// The command that places workers and watches them. Dropping it waits until it has ended.
#[derive(Debug)]
pub(super) struct OnRay {
    /// Closed to end the command.
    running: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

impl OnRay {
    /// Starts the command for workers that have `within` to join.
    pub(super) fn start(
        guard: &Guard,
        (workers, cpus, within): (u32, u32, Duration),
        (port, token): (u16, &Path),
    ) -> Result<Self, FleetError> {
        let program =
            env::current_exe().map_err(|e| FleetError(format!("cannot find this program: {e}")))?;
        let plan = Plan {
            program,
            token_file: token.into(),
            join: format!(":{port}"),
            workers,
            cpus,
            autoscaler_s: autoscaler_s(env::var("CACHEDYNO_RAY_WAIT").ok().as_deref())?,
            // Without a limit, the driver would give up without the reason.
            others_s: OTHERS_END_WITHIN.min(within / 2).as_secs_f64(),
            address: env::var("RAY_ADDRESS").ok().filter(|address| !address.is_empty()),
        };
        let (running, over) = channel();
        let failure = Arc::new(Mutex::default());
        let (guard, found) = (guard.clone(), Arc::clone(&failure));
        let thread = thread::spawn(move || {
            if let Err(how) = plan.carry_out(&guard, &over) {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
            }
        });
        Ok(Self { running: Some(running), thread: Some(thread), failure })
    }

    /// How the command failed; `None` while it runs.
    pub(super) fn failure(&self) -> Option<String> {
        let how = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        how.map(|how| format!("workers on Ray: {how}"))
    }
}

impl Drop for OnRay {
    fn drop(&mut self) {
        self.running = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

impl Plan {
    /// Runs the command until it ends, or some time after `over` is closed. Errors: why no worker
    /// can be placed, or how one failed.
    fn carry_out(&self, guard: &Guard, over: &Receiver<()>) -> Result<(), String> {
        // Ray itself tries for minutes.
        reach(self.address.as_deref())
            .map_err(|error| self.words(&PlacementFailure::NoCluster { error }))?;
        let plan = serde_json::to_string(self).map_err(|e| format!("unusable path: {e}"))?;
        let mut closed = None::<Instant>;
        let mut is_asked = false;
        let end = &mut |wait| {
            let Some(since) = closed else {
                if over.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
                    closed = Some(Instant::now());
                }
                return None;
            };
            thread::sleep(wait);
            if since.elapsed() > KILL_AFTER {
                return Some(Signal::SIGKILL);
            }
            let asks = !is_asked && since.elapsed() > ASK_AFTER;
            is_asked |= asks;
            asks.then_some(Signal::SIGTERM)
        };
        run_shell(guard, COMMAND, &[("PLAN", &plan)], end).map_err(|how| self.reason(&how))
    }

    /// The words for a failed command, given its exit code and its last line.
    fn reason(&self, how: &str) -> String {
        let known = how.split_once(": ").and_then(|(_, line)| serde_json::from_str(line).ok());
        let cure = if how.contains("No module named") { INSTALL } else { "" };
        known.map_or_else(
            || format!("`python3 -m cachedyno._ray` {how}{cure}"),
            |failure| self.words(&failure),
        )
    }

    fn words(&self, failure: &PlacementFailure) -> String {
        match failure {
            PlacementFailure::Missing { nodes } => {
                let large = nodes.iter().filter(|cpus| **cpus >= f64::from(self.cpus)).count();
                let mut sorted = nodes.clone();
                sorted.sort_by(|a, b| b.total_cmp(a));
                let all: Vec<String> = sorted.iter().map(ToString::to_string).collect();
                format!(
                    "{}; the cluster has {} (CPUs: {}), {large} of them large enough, so {} \
                     missing (start fewer workers, add nodes, or let an autoscaler add them: \
                     CACHEDYNO_RAY_WAIT=300 waits for them, in seconds)",
                    self.needs(""),
                    nodes.len(),
                    if all.is_empty() { "none".into() } else { all.join(", ") },
                    (self.workers as usize).saturating_sub(large)
                )
            }
            PlacementFailure::Busy { nodes, free, after_s } => format!(
                "{}; after {after_s} s, the cluster's nodes ({}) have {free} free CPU{} in all \
                 (wait until other jobs end, or start fewer workers)",
                self.needs("free "),
                nodes.len(),
                if (*free - 1.0).abs() < f64::EPSILON { "" } else { "s" }
            ),
            PlacementFailure::Lost { worker, error } => {
                format!("{} was lost: {error}", self.worker(*worker))
            }
            PlacementFailure::Ended { worker, exit_code, said } => {
                let last = said.trim_end().lines().next_back();
                let said = last.map_or_else(String::new, |line| format!(": {line}"));
                format!("{} ended with exit code {exit_code}{said}", self.worker(*worker))
            }
            PlacementFailure::NoRay { error } => format!("{error}{INSTALL}"),
            PlacementFailure::NoCluster { error } => format!(
                "no Ray cluster at `{}`: {error} (start one with `ray start --head`, or name its \
                 address by RAY_ADDRESS)",
                self.address.as_deref().unwrap_or("auto")
            ),
        }
    }

    /// "worker 2 of 3".
    fn worker(&self, number: u32) -> String {
        format!("worker {} of {}", number + 1, self.workers)
    }

    /// "2 workers with 1 CPU each need 2 nodes with 1 free CPU".
    fn needs(&self, free: &str) -> String {
        let workers = counted_workers(self.workers);
        let plural = |number| if number == 1 { "" } else { "s" };
        let (each, need) = if self.workers == 1 { ("", "needs") } else { (" each", "need") };
        let (nodes, cpus) = (plural(self.workers), plural(self.cpus));
        format!(
            "{workers} with {} CPU{cpus}{each} {need} {} node{nodes} with {} {free}CPU{cpus}",
            self.cpus, self.workers, self.cpus
        )
    }
}

/// Seconds for an autoscaler to add nodes: the value of `CACHEDYNO_RAY_WAIT`, 0 without one.
fn autoscaler_s(value: Option<&str>) -> Result<u32, FleetError> {
    value.filter(|text| !text.is_empty()).map_or(Ok(0), |text| {
        text.parse().map_err(|_| {
            FleetError(format!(
                "CACHEDYNO_RAY_WAIT is `{text}` (expected whole seconds, for example 300)"
            ))
        })
    })
}

/// Connects once to the address of a cluster: `HOST:PORT` or `ray://HOST[:PORT]`. Errors: why that
/// fails.
fn reach(address: Option<&str>) -> Result<(), String> {
    let Some(address) = address.filter(|address| *address != "auto") else { return Ok(()) };
    let place = address.split_once("://").map_or(address, |(_, place)| place);
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let default = format!("{place}:{DEFAULT_PORT}");
    let place = if has_port { place } else { &default };
    let mut error = "the name has no address".to_owned();
    for at in place.to_socket_addrs().map_err(|e| e.to_string())? {
        match TcpStream::connect_timeout(&at, CONNECT_WITHIN) {
            Ok(_) => return Ok(()),
            Err(e) => error = e.to_string(),
        }
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(workers: u32, cpus: u32) -> Plan {
        Plan {
            program: "cachedyno".into(),
            token_file: "token".into(),
            join: ":7000".into(),
            workers,
            cpus,
            autoscaler_s: 0,
            others_s: 20.0,
            address: None,
        }
    }

    #[test]
    fn missing_nodes_are_counted() {
        let said = plan(8, 2).reason(r#"ended with exit code 1: {"missing":{"nodes":[2,4.0,1]}}"#);
        let words = "8 workers with 2 CPUs each need 8 nodes with 2 CPUs; the cluster has 3 (CPUs: \
                     4, 2, 1), 2 of them large enough, so 6 missing (start fewer workers, ";
        assert!(said.starts_with(words), "{said}");
        let said = plan(1, 2).words(&PlacementFailure::Missing { nodes: Vec::new() });
        let words = "1 worker with 2 CPUs needs 1 node with 2 CPUs; the cluster has 0 (CPUs: none)";
        assert!(said.starts_with(words), "{said}");
    }

    #[test]
    fn failures_name_the_worker_and_its_last_line() {
        let said = plan(3, 1).reason(
            r#"ended with exit code 1: {"ended":{"worker":1,"exit_code":7,"said":"a\nerror: b\n"}}"#,
        );
        assert_eq!(said, "worker 2 of 3 ended with exit code 7: error: b");
        let lost = PlacementFailure::Lost { worker: 2, error: "node died".into() };
        assert_eq!(plan(3, 1).words(&lost), "worker 3 of 3 was lost: node died");
        let busy = PlacementFailure::Busy { nodes: vec![1.0, 1.0], free: 1.0, after_s: 1.5 };
        let words = "2 workers with 1 CPU each need 2 nodes with 1 free CPU; after 1.5 s, the \
                     cluster's nodes (2) have 1 free CPU in all";
        assert!(plan(2, 1).words(&busy).starts_with(words));
    }

    #[test]
    fn an_unknown_failure_is_repeated() {
        let said = plan(1, 1).reason("ended with exit code 1: /usr/bin/python3: No module named x");
        assert!(said.starts_with("`python3 -m cachedyno._ray` ended with exit code 1: /usr"));
        assert!(said.contains("pip install 'cachedyno[ray]'"), "{said}");
        assert!(plan(1, 1).reason("was killed by signal 9").ends_with("was killed by signal 9"));
    }

    #[test]
    fn a_cluster_that_does_not_answer_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(reach(Some(&format!("ray://{address}"))), Ok(()));
        assert_eq!(reach(Some("auto")), Ok(()));
        drop(listener);
        let error = reach(Some(&address.to_string())).unwrap_err();
        let plan = Plan { address: Some(address.to_string()), ..plan(1, 1) };
        let said = plan.words(&PlacementFailure::NoCluster { error });
        let words = format!("no Ray cluster at `{address}`: Connection refused");
        assert!(said.starts_with(&words), "{said}");
    }

    #[test]
    fn the_wait_for_an_autoscaler_is_a_number_of_seconds() {
        assert_eq!(autoscaler_s(None).unwrap(), 0);
        assert_eq!(autoscaler_s(Some("300")).unwrap(), 300);
        for wrong in ["soon", "-1", "2.5"] {
            let said = autoscaler_s(Some(wrong)).unwrap_err().to_string();
            assert!(said.contains(&format!("CACHEDYNO_RAY_WAIT is `{wrong}`")), "{said}");
        }
    }
}
