//! Settings of the null server and their limits.

use crate::cpu::{allowed_by_the_system, cpu_set};
use crate::error::{Result, RigError};
use crate::reference::listen::Listen;

/// Name of this server in errors.
pub(super) const NAME: &str = "null-server";
/// Maximum number of threads.
const THREADS_MAX: usize = 1024;
/// Maximum length of a value in bytes.
const VALUE_BYTES_MAX: usize = 64 << 20;
/// Maximum number of remembered keys.
const REMEMBER_MAX: usize = 1 << 28;

/// Settings of a null server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NullSettings {
    /// Listening address.
    pub listen: Listen,
    /// Threads that answer, 1 to 1024.
    pub threads: usize,
    /// CPUs for the threads, assigned round-robin; empty for all CPUs available to the caller.
    pub cpus: Vec<usize>,
    /// Length of the values in replies, 0 to 64 MiB.
    pub value_bytes: usize,
    /// Whether every read misses and returns nil. Excludes `remember`.
    pub miss: bool,
    /// Number of keys whose last value is kept, at most 2²⁸; 0 keeps none.
    pub remember: usize,
}

impl Default for NullSettings {
    /// One thread on any CPU, a free port of 127.0.0.1, values of 1 KiB, nothing remembered.
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            threads: 1,
            cpus: Vec::new(),
            value_bytes: 1024,
            miss: false,
            remember: 0,
        }
    }
}

impl NullSettings {
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |name: &str, problem, expected| {
            Err(RigError::Setting { program: NAME, name: name.into(), problem, expected })
        };
        match self {
            Self { threads: 0, .. } => wrong("threads", "is 0", "1 to 1024"),
            Self { threads, .. } if *threads > THREADS_MAX => {
                wrong("threads", "is too large", "1 to 1024")
            }
            Self { value_bytes, .. } if *value_bytes > VALUE_BYTES_MAX => {
                wrong("value", "is too large", "0 B to 64 MiB")
            }
            Self { remember, .. } if *remember > REMEMBER_MAX => {
                wrong("remember", "is too large", "0 to 268435456")
            }
            Self { miss: true, remember: 1.., .. } => {
                wrong("miss", "contradicts `remember`", "one of them")
            }
            _ => cpu_set(&self.cpus, &allowed_by_the_system()).map(drop),
        }
    }
}
