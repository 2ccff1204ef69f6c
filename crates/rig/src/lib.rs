//! Starts, limits, watches and stops real servers; host facts; noise.
//!
//! - [`measurement_lock`]: one measurement at a time on a machine.
//! - [`guard`]: a second process that cleans up after this one, however it ends.
//! - [`ownerless`]: finds and removes the leftovers of killed runs.
//! - [`scratch`]: owned temporary directories for sockets and data.
//! - [`trial_dirs`]: directories for the files of trials, in fresh places of the disk.
//! - [`server`]: a started server; [`servers`]: those that can be started, a row each.
//! - [`search`] and [`mod@installed`]: where programs are found, and which servers are there.
//! - [`size`]: memory and disk space used by a store.
//! - [`usage`] and [`interface`]: what processes use, and the traffic to a server, read again and
//!   again while a trial lasts.
//! - [`cpu`]: which CPUs whom, and CPU time by the process CPU clock; [`tree`]: that of a server
//!   with its children.
//! - [`noise`]: disturbances of a trial.
//! - [`host`]: the conditions under which a run was measured.
//! - [`memory_group`]: a control group with a memory limit; [`page_cache`]: emptied.
//! - [`mod@reference`]: servers with known speed, times and faults, to judge a generator by.
//!
//! Everything that a run starts or creates is owned by a [`Guard`]: it is removed on drop, on a
//! panic, and after `kill -9` as well.

mod child;
pub mod cpu;
pub mod error;
mod free;
pub mod guard;
pub mod host;
mod host_mark;
pub mod installed;
pub mod interface;
pub mod measurement_lock;
pub mod memory_group;
pub mod noise;
mod owner;
pub mod ownerless;
pub mod page_cache;
mod process;
mod procfs;
mod random;
pub mod reference;
mod removal;
pub mod scratch;
pub mod search;
pub mod server;
pub mod servers;
mod settings;
pub mod size;
mod template;
pub mod tree;
pub mod trial_dirs;
pub mod usage;

pub use cpu::{Pinning, pin_current_thread, process_cpu_ns};
pub use error::RigError;
pub use free::{Free, memory_bytes};
pub use guard::{GUARD_ARGUMENT, Guard, guard_main};
pub use host::conditions;
pub use host_mark::host_mark;
pub use installed::{Installed, installed};
pub use interface::{InterfaceReader, stays_here};
pub use memory_group::{Inside, MemoryGroup, anonymous_bytes};
pub use noise::{NoiseRecorder, Taken, TakenReader};
pub use page_cache::empty_page_cache;
pub use scratch::Scratch;
pub use search::SearchPath;
pub use server::{Role, Server, ServerSpec};
pub use servers::{Started, check_settings, server_program, start_server};
pub use size::{directory_bytes, process_memory_bytes};
pub use template::Templates;
pub use tree::ProcessTree;
pub use trial_dirs::{FilesLeft, TrialDirs};
pub use usage::UsageReader;
