//! Live state of a run, as JSON for the page; docs/FORMAT.md describes it.

use model::{Event, Recorded};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::course::{Course, Point, Usage};
use crate::metrics::Metrics;
use crate::state::State;

/// Version of the JSON.
const FORMAT: u32 = 1;

/// An update for readers: an event name and its data as JSON.
#[derive(Clone, Debug)]
pub(crate) struct News {
    pub(crate) name: &'static str,
    pub(crate) json: Arc<str>,
}

impl News {
    fn new(name: &'static str, data: &impl Serialize) -> Self {
        let json = serde_json::to_string(data).expect("plain data with text as keys serialises");
        Self { name, json: json.into() }
    }
}

/// Live state of a run in progress.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) metrics: Metrics,
    state: State,
    course: Course,
}

#[derive(Serialize)]
struct Snapshot<'a> {
    format: u32,
    /// Seconds since the start of the run.
    at_s: f64,
    state: &'a State,
    points: &'a VecDeque<Point>,
    usage: &'a VecDeque<Usage>,
}

impl Watched {
    /// Applies an event that happened `at_s` seconds into the run; returns the updates for readers.
    pub(crate) fn take(&mut self, event: &Event, at_s: f64) -> Vec<News> {
        self.metrics.take(event);
        match event {
            Event::Recorded(recorded) => return self.recorded(recorded, at_s),
            Event::Sampled { cell, sample } => {
                let target = self.state.target_of(cell);
                let usage = self.course.sampled(&target, sample, at_s);
                return usage.iter().map(|usage| News::new("usage", usage)).collect();
            }
            Event::Progress { phase, .. } => {
                if !self.state.set_phase(phase, None) {
                    return Vec::new();
                }
            }
            Event::RunStarted(header) => {
                self.course.run_started(header.plan.timeout_ns);
                self.state.take(event);
            }
            Event::TrialStarted { block, cell, done_share, left_ns } => {
                self.course.trial_started();
                self.state.trial_started((*block, cell), (*done_share, *left_ns), at_s);
            }
            Event::TrialEnded(trial) => {
                self.state.trial_ended(trial);
            }
            other => {
                if !self.state.take(other) {
                    return Vec::new();
                }
            }
        }
        // The unfinished point is sent before the new state.
        let ends = matches!(event, Event::TrialEnded(_) | Event::RunEnded(_));
        let point = if ends { self.course.cut(at_s) } else { None };
        let mut news: Vec<News> = point.iter().map(|point| News::new("point", point)).collect();
        news.push(self.state_news());
        news
    }

    fn recorded(&mut self, recorded: &Recorded, at_s: f64) -> Vec<News> {
        let target = self.state.target_of(&recorded.cell);
        let points = self.course.recorded(&target, recorded, at_s);
        let mut news: Vec<News> = points.iter().map(|point| News::new("point", point)).collect();
        if self.state.set_phase(&recorded.phase, recorded.stage) {
            news.push(self.state_news());
        }
        news
    }

    /// Notes whether a report is available after the run; returns the update for readers.
    pub(crate) fn set_report_available(&mut self, available: bool) -> News {
        self.state.set_report_available(available);
        self.state_news()
    }

    fn state_news(&self) -> News {
        News::new("state", &self.state)
    }

    /// The full state, for a reader that has just connected.
    pub(crate) fn snapshot(&self, at_s: f64) -> News {
        let (points, usage) = (self.course.points(), self.course.usage());
        let snapshot = Snapshot { format: FORMAT, at_s, state: &self.state, points, usage };
        News::new("snapshot", &snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use serde_json::Value;

    fn parsed(news: &[News]) -> Vec<(&'static str, Value)> {
        news.iter().map(|n| (n.name, serde_json::from_str(&n.json).unwrap())).collect()
    }

    #[test]
    fn readers_get_changes_and_new_readers_get_a_snapshot() {
        let mut watched = Watched::default();
        let mut at_s = 0.0;
        let mut names = Vec::new();
        for event in fixture::run() {
            at_s += 1.0;
            names.extend(parsed(&watched.take(&event, at_s)).into_iter().map(|(name, _)| name));
        }
        // Run, two targets, trial and phase; a point and its stage; then the end of the trial, a
        // warning and the end of the run.
        let state = ["state"; 5];
        let rest = ["point", "state", "usage", "state", "state", "state"];
        assert_eq!(names, [&state[..], &rest].concat());
        let snapshot = watched.snapshot(20.0);
        let snapshot: Value = serde_json::from_str(&snapshot.json).unwrap();
        assert_eq!((&snapshot["format"], &snapshot["at_s"]), (&1.into(), &20.0.into()));
        assert_eq!(snapshot["points"][0]["operations"][0]["operation"], "get");
        assert_eq!(snapshot["usage"][0]["server_cpus"], 0.5);
        assert_eq!(snapshot["points"][0]["trial"], 1);
        assert_eq!(snapshot["usage"][0]["trial"], 1);
        let state = &snapshot["state"];
        assert_eq!(state["targets"][0]["version"], "Redis 7.0.15");
        assert_eq!(state["targets"][1]["unavailable"], "memcached is not installed");
        assert_eq!((&state["trials"], &state["now"]), (&1.into(), &Value::Null));
        assert_eq!(state["failed"][0]["message"], "the server died");
        assert_eq!(state["warnings"][0], "something");
        assert_eq!(state["ended"]["status"], "complete");
        assert_eq!(state["ended"]["report"], Value::Null);
        assert!(state.get("cells").is_none());
        let [(_, state)] = &parsed(&[watched.set_report_available(true)])[..] else {
            panic!("expected one update")
        };
        assert_eq!(state["ended"]["report"], true);
    }
}
