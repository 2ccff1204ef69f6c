//! The shipped session study, for its benches.

use crate::study;
use model::{Cell, Plan, Sessions, Workload};
use std::error::Error;

/// A plan of it, as [`study::plan`].
pub(crate) fn plan(
    seed: u64,
    targets: &[&str],
    sets: &[(&str, String)],
) -> Result<Plan, Box<dyn Error>> {
    let text = include_str!("../../../../studies/sessions.toml");
    study::plan(("sessions", text), seed, targets, sets)
}

/// The session workload of a cell; these benches use no other.
pub(crate) fn of(cell: &Cell) -> Result<&Sessions, String> {
    match &cell.workload {
        Workload::Sessions(sessions) => Ok(sessions),
        other => Err(format!("cell `{}` is of `{}`, no sessions", cell.id, other.profile())),
    }
}
