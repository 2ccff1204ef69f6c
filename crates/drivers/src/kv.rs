//! Key-value operations of any dialect: those that it has a word for, and those made of them.

use load::wire::Operation;
use workloads::kv::{KeyNames, Sizes};

use crate::wire::Dialect;

/// Writes a key that nobody wrote before.
pub const INSERT: &str = "insert";
/// Reads a key and, when its value has come, writes it.
pub const READ_MODIFY_WRITE: &str = "rmw";

/// As [`Dialect::operation`], which it asks, and besides [`INSERT`] and [`READ_MODIFY_WRITE`].
/// Which keys are inserted is the load's to say. Errors: a sentence for people.
pub fn operation(
    dialect: Dialect,
    name: &str,
    command: Option<&str>,
    ttl_s: Option<u64>,
    names: &KeyNames,
    sizes: &Sizes,
) -> Result<Operation, String> {
    let spelled = |name, command| dialect.operation(name, command, ttl_s, names, sizes);
    match (name, command) {
        (INSERT, None) => Ok(Operation { name: name.into(), ..spelled("set", None)? }),
        (READ_MODIFY_WRITE, None) => {
            let then = Some(Box::new(spelled("set", None)?));
            Ok(Operation { name: name.into(), then, ..spelled("get", None)? })
        }
        _ => spelled(name, command),
    }
}
