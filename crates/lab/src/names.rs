//! Key names of a workload.

use model::{ErrorClass, Failure, Kv};
use std::fmt::Display;
use workloads::kv::{KEYS_MAX, KeyNames, Sizes, UUID};

/// Key names: the run's prefix `own`, the workload's prefix, and the number.
pub(crate) fn of(kv: &Kv, own: &str, seed: u64) -> Result<KeyNames, String> {
    let prefix = format!("{own}{}", kv.key_prefix);
    match &kv.key_bytes {
        None => KeyNames::new(&prefix).map_err(|e| e.to_string()),
        Some(text) if text == UUID => KeyNames::uuids(&prefix, seed).map_err(|e| e.to_string()),
        Some(text) => {
            let sizes: Sizes = text.parse().map_err(|e| format!("{e}"))?;
            let inserts = kv.operations.iter().any(|o| o.name == drivers::kv::INSERT);
            let keys = if inserts { KEYS_MAX } else { kv.keys };
            KeyNames::sized(&prefix, sizes, seed, keys).map_err(|e| e.to_string())
        }
    }
}

/// Bytes of the longest value; 0 if the plan does not say.
pub(crate) fn value_bytes_max(kv: &Kv) -> usize {
    kv.value_bytes.parse().map_or(0, |sizes: Sizes| sizes.max())
}

/// The failure for a workload with an invalid part.
pub(crate) fn unreadable(e: impl Display) -> Failure {
    Failure { class: ErrorClass::Other, message: e.to_string() }
}
