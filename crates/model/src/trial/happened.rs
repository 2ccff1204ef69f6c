//! What happened to a target at a time.

use serde::{Deserialize, Serialize};

/// Something that happened to a target in the course of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialEvent {
    /// When, nanoseconds since the trial began: the clock of
    /// [`Sample::at_ns`](crate::Sample::at_ns).
    pub at_ns: u64,
    /// What.
    pub kind: EventKind,
    /// To whom: the address of a server, a device; empty where the target has only one.
    pub subject: String,
}

/// What can happen to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A server began to save its data to disk, because it was asked to or by itself.
    SaveBegan,
    /// A server ended saving its data, well or not.
    SaveEnded,
    /// The first of a server's memory went to swap.
    SwapBegan,
    /// None of a server's memory is on swap any more.
    SwapEnded,
    /// A server was killed by the plan.
    Killed,
    /// A server no longer says what it is: it hangs or is cut off.
    Silent,
    /// A server's process is over, and the plan did not kill it.
    Ended,
    /// A silent server says what it is again.
    Back,
    /// A server became the primary.
    Promoted,
    /// A server became a replica.
    Demoted,
    /// A replica has all data of its primary and follows it.
    ReplicaAttached,
    /// A replica lost its primary.
    ReplicaDetached,
    /// A Sentinel tells clients of another primary, which is the subject.
    Named,
}

impl EventKind {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::SaveBegan => "save began",
            Self::SaveEnded => "save ended",
            Self::SwapBegan => "began to swap",
            Self::SwapEnded => "left swap",
            Self::Killed => "killed",
            Self::Silent => "stopped answering",
            Self::Ended => "ended by itself or from outside",
            Self::Back => "answers again",
            Self::Promoted => "promoted to primary",
            Self::Demoted => "became a replica",
            Self::ReplicaAttached => "replica in sync",
            Self::ReplicaDetached => "replica lost its primary",
            Self::Named => "named as the primary by a Sentinel",
        }
    }
}
