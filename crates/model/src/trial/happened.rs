//! Events of a target.

use serde::{Deserialize, Serialize};

/// An event of a target during a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialEvent {
    /// Time since the start of the trial, nanoseconds: the clock of
    /// [`Sample::at_ns`](crate::Sample::at_ns).
    pub at_ns: u64,
    /// Kind of event.
    pub kind: EventKind,
    /// Address of the server, or a device; empty if the target has only one.
    pub subject: String,
}

/// Kind of event of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A server started to save its data to disk, on request or on its own.
    SaveBegan,
    /// A save ended, successfully or not.
    SaveEnded,
    /// A server started to rewrite its log of changes, on request or on its own.
    RewriteBegan,
    /// A rewrite ended, successfully or not.
    RewriteEnded,
    /// A server's memory started to be swapped out.
    SwapBegan,
    /// A server's memory is no longer in swap.
    SwapEnded,
    /// The plan killed a server.
    Killed,
    /// The plan stopped a server with `SIGSTOP`, so that it hangs.
    Hung,
    /// The plan cut the primary off from the other servers, but not from clients.
    Partitioned,
    /// The plan shut a server down to start it again.
    ShutDown,
    /// The plan asked for a failover.
    FailoverRequested,
    /// The user's command that interrupts service was started.
    FaultCommandBegan,
    /// The user's command ended, with exit code 0.
    FaultCommandEnded,
    /// Slots started to move to another shard.
    MigrationBegan,
    /// Slots stopped moving.
    MigrationEnded,
    /// The plan started a server again, let it continue, or connected it with the others again.
    Restored,
    /// A server no longer reports its role: it hangs or is unreachable.
    Silent,
    /// A server's process exited without being killed by the plan.
    Ended,
    /// A silent server reports its role again.
    Back,
    /// A server became the primary.
    Promoted,
    /// A server became a replica.
    Demoted,
    /// A replica has all data of its primary and follows it.
    ReplicaAttached,
    /// A replica lost its primary.
    ReplicaDetached,
    /// A Sentinel reports a new primary, the subject.
    Named,
    /// The first role that a server reports is that of a primary.
    IsPrimary,
    /// The first role that a server reports is that of a replica.
    IsReplica,
    /// The server is a Sentinel.
    IsSentinel,
}

impl EventKind {
    /// Interruptions of service by the plan; one that ends has its end.
    pub const FAULTS: [(Self, Option<Self>); 7] = [
        (Self::Killed, None),
        (Self::Hung, None),
        (Self::Partitioned, None),
        (Self::ShutDown, None),
        (Self::FailoverRequested, None),
        (Self::FaultCommandBegan, None),
        (Self::MigrationBegan, Some(Self::MigrationEnded)),
    ];

    /// True if the plan interrupted service.
    pub fn is_fault(self) -> bool {
        Self::FAULTS.iter().any(|(fault, _)| *fault == self)
    }

    /// True for the role of a server before anything happened to it.
    pub fn is_first_role(self) -> bool {
        matches!(self, Self::IsPrimary | Self::IsReplica | Self::IsSentinel)
    }

    /// Description.
    pub fn words(self) -> &'static str {
        match self {
            Self::SaveBegan => "save began",
            Self::SaveEnded => "save ended",
            Self::RewriteBegan => "rewrite of the log began",
            Self::RewriteEnded => "rewrite of the log ended",
            Self::SwapBegan => "started to swap",
            Self::SwapEnded => "left swap",
            Self::Killed => "killed",
            Self::Hung => "stopped, so that it hangs",
            Self::Partitioned => "cut off from the other servers",
            Self::ShutDown => "shut down",
            Self::FailoverRequested => "asked to fail over",
            Self::FaultCommandBegan => "fault command began",
            Self::FaultCommandEnded => "fault command ended",
            Self::MigrationBegan => "slots began to move",
            Self::MigrationEnded => "slots stopped moving",
            Self::Restored => "restored",
            Self::Silent => "stopped answering",
            Self::Ended => "exited unexpectedly",
            Self::Back => "answers again",
            Self::Promoted => "promoted to primary",
            Self::Demoted => "became a replica",
            Self::ReplicaAttached => "replica in sync",
            Self::ReplicaDetached => "replica lost its primary",
            Self::Named => "named as the primary by a Sentinel",
            Self::IsPrimary => "is a primary",
            Self::IsReplica => "is a replica",
            Self::IsSentinel => "is a Sentinel",
        }
    }
}

/// What a server writes to disk in the background: a child process has a copy of its memory, and
/// the kernel copies each page that the server changes meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundWrite {
    /// A snapshot of its data.
    Save,
    /// A new log of changes, with only what the data need.
    Rewrite,
}

impl BackgroundWrite {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Save, Self::Rewrite];

    /// Its name in events and facts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Save => "save",
            Self::Rewrite => "rewrite",
        }
    }

    /// Events at its start and end.
    pub fn events(self) -> [EventKind; 2] {
        match self {
            Self::Save => [EventKind::SaveBegan, EventKind::SaveEnded],
            Self::Rewrite => [EventKind::RewriteBegan, EventKind::RewriteEnded],
        }
    }

    /// Name of the fact that counts the memory copied meanwhile, in bytes.
    pub fn copied_bytes(self) -> &'static str {
        match self {
            Self::Save => "save_copied_bytes",
            Self::Rewrite => "rewrite_copied_bytes",
        }
    }
}
