//! Starts, limits, monitors and stops real servers; records host facts and noise.
//!
//! - [`measurement_lock`]: one measurement at a time on a machine.
//! - [`guard`]: a second process that cleans up after this one, however it ends.
//! - [`orphaned`]: finds and removes the leftovers of killed runs.
//! - [`scratch`]: owned temporary directories for sockets and data.
//! - [`trial_dirs`]: directories for the files of trials, on unused disk blocks.
//! - [`server`]: a started server; [`servers`]: a table of all servers that can be started.
//! - [`search`] and [`mod@installed`]: the program search path and the installed servers.
//! - [`size`]: memory and disk space used by a store.
//! - [`usage`], [`interface`], [`device`] and `pressure`: resource usage of processes, network
//!   traffic of a server, use of its disk, and how long tasks waited, sampled during a trial.
//! - [`cpu`]: CPU pinning, and CPU time from the process CPU clock; `own_cpus`: CPUs that workers
//!   keep apart; [`tree`]: CPU time of a server including its children.
//! - [`noise`]: disturbances during a trial.
//! - [`host`]: the conditions under which a run was measured.
//! - `cpu_group`, `disk_group`, `network`: limits of a server's CPU time, disk and bandwidth.
//! - [`memory_group`]: a control group with a memory limit; [`page_cache`]: emptying the page
//!   cache.
//! - `relay`: distance between clients and a server; [`neighbour`]: another tenant of its CPU.
//! - [`mod@reference`]: servers with known speed, response times and faults, to validate the
//!   generator.
//!
//! Everything that a run starts or creates is owned by a [`Guard`], which removes it on drop, on a
//! panic, and even after `kill -9`.

mod active_swap;
mod cable;
mod child;
mod control_group;
pub mod cpu;
mod cpu_group;
pub mod device;
mod disk_group;
pub mod error;
mod free;
pub mod guard;
pub mod host;
mod host_mark;
pub mod installed;
pub mod interface;
mod listeners;
pub mod measurement_lock;
pub mod memory_group;
pub mod neighbour;
mod network;
pub mod noise;
pub mod orphaned;
mod own_cpus;
mod own_process;
mod owner;
pub mod page_cache;
mod pressure;
mod process;
mod procfs;
mod random;
pub mod reference;
mod relay;
mod removal;
pub mod scratch;
pub mod search;
pub mod server;
pub mod servers;
mod settings;
mod shell;
pub mod size;
mod template;
pub mod tree;
pub mod trial_dirs;
pub mod usage;

pub use cable::Cable;
pub use control_group::GroupMembership;
pub use cpu::{Pinning, pin_current_thread, process_cpu_ns};
pub use cpu_group::{CpuGroup, cpu_throttled_ns};
pub use device::DeviceReader;
pub use disk_group::DiskGroup;
pub use error::RigError;
pub use free::{FreeSpace, memory_bytes};
pub use guard::{GUARD_ARGUMENT, Guard, guard_main};
pub use host::{conditions, disk_conditions, refuses_swap};
pub use host_mark::{host_mark, host_name};
pub use installed::{Installed, installed};
pub use interface::{InterfaceReader, stays_here};
pub use listeners::listeners;
pub use memory_group::{MemoryGroup, anonymous_bytes, killed_by_limit};
pub use neighbour::{NEIGHBOUR_ARGUMENT, RunningNeighbour, neighbour_main};
pub use network::{Network, Purpose};
pub use noise::{NoiseRecorder, StolenCpuReader, StolenCpuTime};
pub use own_cpus::OwnCpus;
pub use own_process::OwnProcess;
pub use page_cache::empty_page_cache;
pub use pressure::PressureReader;
pub use random::random;
pub use relay::Relay;
pub use scratch::Scratch;
pub use search::SearchPath;
pub use server::{Role, Server, ServerProcess, ServerSpec};
pub use servers::{StartedServers, check_settings, free_port, server_program, start_server};
pub use shell::run_shell;
pub use size::{directory_bytes, process_memory_bytes};
pub use template::Templates;
pub use tree::ProcessTree;
pub use trial_dirs::{FilesLeft, TrialDirs};
pub use usage::UsageReader;
