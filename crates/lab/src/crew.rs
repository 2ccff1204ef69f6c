//! The clients of a trial while they are connected, here or on workers.

use load::{Clients, Engine, Finished, Meter, Progress, Threads};
use model::{Endpoint, Failure};
use std::sync::atomic::AtomicBool;

use crate::clients;
use crate::fleet::{Fleet, OpenedByFleet};
use crate::opening::{Opening, Those};

/// Clients that are connected, in this process or in a fleet.
pub(crate) enum Opened<'a> {
    Here(Clients),
    ByFleet(OpenedByFleet<'a>),
}

impl<'a> Opened<'a> {
    /// Opens all clients.
    pub(crate) fn open(
        opening: &'a Opening<Endpoint>,
        fleet: Option<&'a Fleet>,
        stop: &AtomicBool,
    ) -> Result<Self, Failure> {
        if let Some(fleet) = fleet {
            return Ok(Self::ByFleet(fleet.open(opening, stop)?));
        }
        let those = Those::all(opening.load.clients);
        Ok(Self::Here(Clients::new(clients::open(opening, those)?)))
    }

    /// Fills, then runs every phase.
    pub(crate) fn run(
        &mut self,
        engine: &Engine<'_>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Finished {
        match self {
            Self::Here(clients) => {
                engine.run_by(&mut Threads::new(clients, engine.settings), meter, progress)
            }
            Self::ByFleet(opened) => {
                engine.run_by(&mut opened.crew(engine.settings.stop), meter, progress)
            }
        }
    }
}
