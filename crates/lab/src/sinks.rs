//! Event listeners of a run.

use model::{Event, Sink};

/// Sends each event to all sinks. A sink that fails is dropped with a warning; the others and the
/// run continue.
#[derive(Default)]
pub struct Sinks<'a> {
    sinks: Vec<&'a mut dyn Sink>,
}

impl<'a> Sinks<'a> {
    /// Has no listeners yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a listener for all later events.
    pub fn add(&mut self, sink: &'a mut dyn Sink) {
        self.sinks.push(sink);
    }

    /// Sends an event to all listeners in the order in which they were added.
    pub fn emit(&mut self, event: &Event) {
        let mut warnings = Vec::new();
        self.sinks.retain_mut(|sink| match sink.event(event) {
            Ok(()) => true,
            Err(e) => {
                warnings.push(Event::Warning(format!("{} is given up: {e}", sink.name())));
                false
            }
        });
        for warning in warnings {
            self.emit(&warning);
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
    fn a_failing_sink_is_dropped_with_a_warning_to_the_others() {
        let mut broken = Ears { heard: Vec::new(), fails: true };
        let mut good = Ears { heard: Vec::new(), fails: false };
        let mut sinks = Sinks::new();
        sinks.add(&mut broken);
        sinks.add(&mut good);
        sinks.emit(&Event::Warning("first".into()));
        sinks.emit(&Event::Warning("second".into()));
        drop(sinks);
        assert_eq!(good.heard, ["first", "ears is given up: disk full", "second"]);
    }
}
