//! Verdicts and outcomes. Each has a name that is used in JSON and in tables.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares an enum with a fixed name for each variant.
macro_rules! words {
    ($(#[$about:meta])* $name:ident {
        $($(#[$meaning:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$meaning])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The name in JSON and tables.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

words! {
    /// Verdict on a claim.
    ClaimVerdict {
        /// The claim is true here.
        Confirmed = "confirmed",
        /// The claim is false here.
        Refuted = "refuted",
        /// The data does not show either.
        Undecided = "undecided",
        /// The subject of the claim was not measured.
        NotRun = "not run",
    }
}

words! {
    /// What the measured value of a claim is.
    ClaimUnit {
        /// A ratio of two figures.
        Ratio = "ratio",
        /// A number of clients.
        Clients = "clients",
        /// A time in nanoseconds.
        Ns = "ns",
        /// An exponent of a power law.
        Exponent = "exponent",
        /// A number per second.
        PerSecond = "per_s",
        /// A share, 0 to 1.
        Share = "share",
        /// Bytes.
        Bytes = "bytes",
        /// A number without a unit.
        Count = "count",
    }
}

words! {
    /// Agreement of a recommendation with that of the study's source.
    Agreement {
        /// The same store.
        Same = "same",
        /// Another store.
        Different = "different",
        /// The measurements are inconclusive.
        Undecided = "undecided",
    }
}

words! {
    /// Final status of a run.
    Status {
        /// As planned.
        Complete = "complete",
        /// Stopped by the user; can be resumed.
        Interrupted = "interrupted",
        /// Still running.
        Running = "running",
        /// Killed.
        Unsealed = "unsealed",
    }
}

words! {
    /// Outcome of a ramp.
    RampOutcome {
        /// The highest rate that the store sustains was found.
        Found = "found",
        /// Every stage was sustained, so the rates are lower bounds.
        NeverMissed = "never-missed",
        /// The generator was the limit, so the rates are lower bounds.
        Generator = "generator",
        /// Some block did not sustain even the lowest stage.
        NeverHeld = "never-held",
        /// No ramp completed.
        Broken = "broken",
    }
}

words! {
    /// Outcome of a search for the highest rate within limits.
    SearchOutcome {
        /// The highest rate was found.
        Found = "found",
        /// Even the lowest rate tried violated the limits.
        Missed = "missed",
        /// As `Missed`, but the generator was late even at that rate.
        NotJudged = "not-judged",
        /// No rate saturated the store, so the answer is a lower bound.
        NeverMissed = "never-missed",
        /// The clients were the limit, so the answer is a lower bound.
        Clients = "clients",
        /// The generator was the limit, so the answer is a lower bound.
        Generator = "generator",
        /// The rate that the store sustains changed during the search.
        Unsettled = "unsettled",
        /// Short probes were within the limits, long ones were not.
        NotHeld = "not-held",
        /// The store failed repeatedly under probes.
        Broken = "broken",
        /// The store did not answer any request.
        Nothing = "nothing",
        /// No search completed.
        EndedEarly = "ended-early",
    }
}

words! {
    /// Verdict of a probe on the limits.
    ProbeVerdict {
        /// Within the limits.
        Holds = "holds",
        /// Beyond the limits, or a queue grew.
        Missed = "missed",
        /// Neither is certain.
        Undecided = "undecided",
        /// The probe failed, or no request was answered.
        Broke = "broke",
    }
}

words! {
    /// Reason for a probe's verdict, or for another cool-down.
    ProbeReason {
        /// Its last replies were late.
        QueueGrew = "queue grew",
        /// After a cool-down the store was not yet back at its idle latency.
        StillSlow = "still slow",
        /// Other processes could have caused the miss.
        OthersHadCpus = "others had CPUs",
        /// The generator could have caused the miss.
        GeneratorLate = "generator late",
    }
}

words! {
    /// The way of a ramp to which a stage belongs.
    StageWay {
        /// Up to the highest stage.
        Up = "up",
        /// Down from it.
        Down = "down",
    }
}
