//! A separate network for servers, whose bandwidth the kernel can limit. Sources: namespaces(7),
//! veth(4), tc-tbf(8), and RFC 2544, which reserves 198.18.0.0/15 for benchmarks.
//!
//! The servers run in a new network namespace. A pair of virtual interfaces connects it with this
//! host, and a token bucket at each end can limit the traffic that leaves there. The namespace has
//! no name: the kernel removes it, with both interfaces, when this process and the servers have
//! ended, however they end. So nothing of it can be left behind.

use crate::child;
use crate::error::{Result, RigError};
use crate::random::random;
use crate::search::SearchPath;
use model::ErrorClass;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::geteuid;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

/// Name of the server's end in its namespace.
const INSIDE: &str = "server";
/// Bytes of a bucket: at least one large segment, or a millisecond's traffic.
const BURST_BYTES_MIN: f64 = 65_536.0;
const BURST_S: f64 = 0.001;
/// How long data may wait for tokens before packets are dropped.
const QUEUE: &str = "50ms";
/// First of the addresses for benchmarks, of which each pair takes four.
const ADDRESSES: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const PAIRS: u32 = 1 << 15;

/// What a network is for, which its errors name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To limit the bandwidth of a tier.
    Bandwidth,
    /// To cut servers off from each other.
    Partition,
}

/// The network of a server. Dropping it removes it; its server must have ended before.
#[derive(Debug)]
pub struct Network {
    purpose: Purpose,
    namespace: Arc<File>,
    /// Our end of the pair.
    interface: String,
    address: Ipv4Addr,
    ip: PathBuf,
    tc: PathBuf,
}

impl Network {
    /// Creates a network, with a bandwidth in each direction in Mbit/s of 1,000,000 bits, or
    /// without a limit.
    ///
    /// Errors: this process is not root, or `ip` or `tc` is missing or fails. The message names the
    /// purpose and suggests a fix.
    pub fn new(purpose: Purpose, bandwidth_mbit: Option<f64>, search: &SearchPath) -> Result<Self> {
        let find = |name| {
            let missing = || purpose.error(MISSING_PROGRAMS);
            search.find(&[name]).ok_or_else(missing)
        };
        let (ip, tc) = (find("ip")?, find("tc")?);
        if !geteuid().is_root() {
            let problem = "only root may create network namespaces (expected root)";
            return Err(purpose.error(problem));
        }
        let namespace = Arc::new(new_namespace().map_err(|error| {
            let problem = format!(
                "no network namespace could be created: {error} (expected a kernel with \
                 CONFIG_NET_NS, and in a container the capability CAP_SYS_ADMIN)"
            );
            purpose.error(&problem)
        })?);
        let first = ADDRESSES + 4 * (random() % PAIRS);
        let [outside, address] = [1, 2].map(|number| Ipv4Addr::from(first + number));
        // Names have at most 15 characters, and process ids at most seven digits.
        let interface = format!("cd-{}-{:04x}", std::process::id(), random() % (1 << 16));
        // From here on, a drop removes it.
        let network = Self { purpose, namespace, interface, address, ip, tc };
        let own = &network.interface;
        let path = network.namespace_path();
        let pair = ["link", "add", own, "type", "veth", "peer", "name", INSIDE, "netns", &path];
        network.ip(&pair, false)?;
        for (name, address, is_inside) in [(own.as_str(), outside, false), (INSIDE, address, true)]
        {
            network.ip(&["address", "add", &format!("{address}/30"), "dev", name], is_inside)?;
            network.ip(&["link", "set", name, "up"], is_inside)?;
            if let Some(mbit) = bandwidth_mbit {
                network.limit(name, mbit, is_inside)?;
            }
        }
        // Servers there reach each other at their address.
        network.ip(&["link", "set", "lo", "up"], true)?;
        Ok(network)
    }

    /// The server's address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Name of the interface of this host that leads to the server.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The namespace.
    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }

    /// Its path, for programs that this process starts.
    pub(crate) fn namespace_path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.namespace.as_raw_fd())
    }

    fn limit(&self, interface: &str, mbit: f64, is_inside: bool) -> Result<()> {
        let rate = format!("{}bit", (mbit * 1e6) as u64);
        let burst = (mbit * 1e6 / 8.0 * BURST_S).max(BURST_BYTES_MIN) as u64;
        let burst = burst.to_string();
        let bucket = ["tbf", "rate", &rate, "burst", &burst, "latency", QUEUE];
        let arguments = [&["qdisc", "add", "dev", interface, "root"][..], &bucket].concat();
        self.call(&self.tc, &arguments, is_inside)
    }

    /// Runs `tc` in the namespace.
    pub(crate) fn tc_inside(&self, arguments: &[&str]) -> Result<()> {
        self.call(&self.tc, arguments, true)
    }

    /// Runs `ip` in the namespace.
    pub(crate) fn ip_inside(&self, arguments: &[&str]) -> Result<()> {
        self.ip(arguments, true)
    }

    fn ip(&self, arguments: &[&str], is_inside: bool) -> Result<()> {
        self.call(&self.ip, arguments, is_inside)
    }

    /// Runs `ip` or `tc` here or in the namespace.
    fn call(&self, program: &Path, arguments: &[&str], is_inside: bool) -> Result<()> {
        let mut command = child::command(program);
        command.args(arguments).stdin(Stdio::null());
        if is_inside {
            enter_before_exec(&mut command, &self.namespace);
        }
        let problem = match command.output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_string(),
            Err(error) => error.to_string(),
        };
        let line = format!("{} {}", program.display(), arguments.join(" "));
        let problem = format!(
            "`{line}` failed: {problem} (expected the capability CAP_NET_ADMIN, and a kernel with \
             CONFIG_VETH and CONFIG_NET_SCH_TBF)"
        );
        Err(self.purpose.error(&problem))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Also removes the other end. Without this the kernel removes both a moment later.
        let _ = self.ip(&["link", "delete", &self.interface], false);
    }
}

const MISSING_PROGRAMS: &str =
    "the programs `ip` and `tc` are not both installed (apt-get install iproute2)";

/// A new network namespace, which exists as long as the file is open or a process is in it.
fn new_namespace() -> io::Result<File> {
    // Only the calling thread moves, so a thread of its own does, and ends.
    let create = || {
        unshare(CloneFlags::CLONE_NEWNET)?;
        File::open("/proc/thread-self/ns/net")
    };
    let created = thread::Builder::new().name("new-network".into()).spawn(create)?;
    created.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

/// Makes a child enter the namespace before it executes its program.
#[expect(unsafe_code, reason = "Command::pre_exec has no safe wrapper")]
fn enter_before_exec(command: &mut Command, namespace: &Arc<File>) {
    let namespace = Arc::clone(namespace);
    let enter = move || Ok(setns(&*namespace, CloneFlags::CLONE_NEWNET)?);
    // SAFETY: only setns is called; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(enter);
    }
}

impl Purpose {
    /// The error that this machine or user lacks what a network takes.
    fn error(self, problem: &str) -> RigError {
        let problem = problem.into();
        match self {
            Self::Bandwidth => {
                RigError::Tier { what: "bandwidth", class: ErrorClass::Missing, problem }
            }
            Self::Partition => RigError::Partition { problem },
        }
    }
}
