//! Verdicts and outcomes: each a word that JSON, tables and people read.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares an enum each of whose variants is one word.
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
            /// The word.
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
    /// What was found about a statement.
    ClaimVerdict {
        /// It holds here.
        Confirmed = "confirmed",
        /// It does not hold here.
        Refuted = "refuted",
        /// Neither is shown.
        Undecided = "undecided",
        /// What it is about was not measured.
        NotRun = "not run",
    }
}

words! {
    /// How a recommendation stands to that of the study's source.
    Agreement {
        /// It is the same.
        Same = "same",
        /// It is another one.
        Different = "different",
        /// The measurements cannot say.
        Undecided = "undecided",
    }
}

words! {
    /// How a run ended.
    Status {
        /// As planned.
        Complete = "complete",
        /// It was stopped, and can be resumed.
        Interrupted = "interrupted",
        /// It has not.
        Running = "running",
        /// It was killed.
        Unsealed = "unsealed",
    }
}

words! {
    /// What a ramp found.
    RampOutcome {
        /// The most that the store sustains.
        Found = "found",
        /// Every stage held: rates are the least that the store sustains.
        NeverMissed = "never-missed",
        /// The generator was the limit: rates are the least that the store sustains.
        Generator = "generator",
        /// Not even the lowest stage held in a block.
        NeverHeld = "never-held",
        /// No ramp came to its end.
        Broken = "broken",
    }
}

words! {
    /// What a search for the highest rate within limits found.
    SearchOutcome {
        /// The highest rate.
        Found = "found",
        /// Not even the lowest rate tried keeps the limits.
        Missed = "missed",
        /// The same, and the generator was late even there.
        NotJudged = "not-judged",
        /// No rate was too much: it is the least that the store sustains.
        NeverMissed = "never-missed",
        /// The clients were the limit: the rate is the least that the store sustains.
        Clients = "clients",
        /// The generator was the limit: the rate is the least that the store sustains.
        Generator = "generator",
        /// What the store sustains changed while it was searched.
        Unsettled = "unsettled",
        /// Short probes kept the limits, long ones did not.
        NotHeld = "not-held",
        /// The store broke under probe after probe.
        Broken = "broken",
        /// The store answered nothing.
        Nothing = "nothing",
        /// No search came to its end.
        EndedEarly = "ended-early",
    }
}

words! {
    /// What a probe of a search says of the limits.
    ProbeVerdict {
        /// No more requests are beyond them than may be.
        Holds = "holds",
        /// More are, or a queue grew.
        Missed = "missed",
        /// Neither is certain.
        Undecided = "undecided",
        /// It failed, or answered nothing.
        Broke = "broke",
    }
}

words! {
    /// Why a probe came to its verdict, or another rest follows it.
    ProbeReason {
        /// Its last answers came late.
        QueueGrew = "queue grew",
        /// A rest in which the store did not answer yet as it does without load.
        StillSlow = "still slow",
        /// Others may have made it miss.
        OthersHadCpus = "others had CPUs",
        /// The generator may have made it miss.
        GeneratorLate = "generator late",
    }
}

words! {
    /// Which way of a ramp a stage is a part of.
    StageWay {
        /// Up to the highest stage.
        Up = "up",
        /// Down from it.
        Down = "down",
    }
}
