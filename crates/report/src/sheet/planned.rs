//! Whether the plan sets the rates of loads, which decides how their times are counted.

use model::Load;

/// How many of several loads have a rate that the plan sets.
#[derive(Clone, Copy)]
pub(super) enum Planned {
    All,
    Some,
    None,
}

impl Planned {
    pub(super) fn of<'a>(mut loads: impl Iterator<Item = &'a Load> + Clone) -> Self {
        match (loads.clone().all(Load::is_planned), loads.any(Load::is_planned)) {
            (true, _) => Self::All,
            (_, true) => Self::Some,
            _ => Self::None,
        }
    }

    /// Kind of the times of loads whose connections stay open.
    pub(super) fn times(self) -> &'static str {
        match self {
            Self::All => "response times, from when a request was due",
            Self::Some => {
                "service times, at a planned rate response times, from when a request was due"
            }
            Self::None => "service times",
        }
    }
}
