//! Those who listen to a run.

use model::{Event, Sink};

/// Fans each event out to all sinks. One that fails is warned about and dropped; the others, and
/// the run, go on.
#[derive(Default)]
pub struct Sinks<'a> {
    sinks: Vec<&'a mut dyn Sink>,
}

impl<'a> Sinks<'a> {
    /// Nobody listens yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a listener; it hears events from now on.
    pub fn add(&mut self, sink: &'a mut dyn Sink) {
        self.sinks.push(sink);
    }

    /// Tells everyone, in the order in which they were added.
    pub fn tell(&mut self, event: &Event) {
        let mut warnings = Vec::new();
        self.sinks.retain_mut(|sink| match sink.event(event) {
            Ok(()) => true,
            Err(e) => {
                warnings.push(Event::Warning(format!("{} is given up: {e}", sink.name())));
                false
            }
        });
        for warning in warnings {
            self.tell(&warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SinkError;

    struct Ears {
        heard: Vec<String>,
        fails: bool,
    }

    impl Sink for Ears {
        fn name(&self) -> &'static str {
            "ears"
        }
        fn event(&mut self, event: &Event) -> Result<(), SinkError> {
            if self.fails {
                return Err(SinkError("disk full".into()));
            }
            if let Event::Warning(text) = event {
                self.heard.push(text.clone());
            }
            Ok(())
        }
    }

    #[test]
    fn a_sink_that_fails_is_dropped_and_the_others_hear_of_it() {
        let mut broken = Ears { heard: Vec::new(), fails: true };
        let mut good = Ears { heard: Vec::new(), fails: false };
        let mut sinks = Sinks::new();
        sinks.add(&mut broken);
        sinks.add(&mut good);
        sinks.tell(&Event::Warning("first".into()));
        sinks.tell(&Event::Warning("second".into()));
        drop(sinks);
        assert_eq!(good.heard, ["first", "ears is given up: disk full", "second"]);
    }
}
