//! Two sinks of a run: the progress display, and the collector of the result's data.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::{Event, Failure, Sink, SinkError, TargetState, Trial};
use stats::Time;
use std::time::{Duration, Instant};

use crate::output;

/// Steps of the bar: tenths of a percent.
const STEPS: u64 = 1000;
/// How far a run must exceed its estimate before the display shows it.
const LATE_NS: u64 = 5_000_000_000;
/// Interval of progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The same while files are removed.
const REMOVAL_LINE_EVERY: Duration = Duration::from_secs(30);

/// Collects trials and targets in memory, so that the result does not depend on the record's disk.
#[derive(Default)]
pub(crate) struct Collector {
    pub(crate) targets: Vec<TargetState>,
    pub(crate) trials: Vec<Trial>,
}

impl Sink for Collector {
    fn name(&self) -> &'static str {
        "result"
    }

    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::TargetChecked(state) => self.targets.push(state.clone()),
            Event::PointEnded(part) => Trial::merge_part(&mut self.trials, part.as_ref().clone()),
            Event::TrialEnded(trial) => {
                self.trials.retain(|known| !known.repeats(trial));
                self.trials.push(trial.as_ref().clone());
            }
            _ => {}
        }
        Ok(())
    }
}

/// A bar of that many steps on standard error.
fn bar(steps: u64, is_visible: bool) -> ProgressBar {
    let target =
        if is_visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(steps), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:12.cyan/dim} {percent:>3} %  {wide_msg}")
    {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar
}

/// Progress of a removal of files: a bar on a terminal, lines elsewhere.
pub(crate) struct RemovalDisplay {
    bar: ProgressBar,
    last_line: Instant,
}

impl RemovalDisplay {
    /// Interval at which the display should be updated.
    pub(crate) const UPDATE_EVERY: Duration = Duration::from_secs(1);

    pub(crate) fn new(files: u64) -> Self {
        Self { bar: bar(files, output::stderr_is_terminal()), last_line: Instant::now() }
    }

    pub(crate) fn show(&mut self, left: u64) {
        let all = self.bar.length().unwrap_or(left);
        self.bar.set_position(all.saturating_sub(left));
        self.bar.set_message(format!("{left} of {all} files left"));
        if self.bar.is_hidden() && self.last_line.elapsed() >= REMOVAL_LINE_EVERY {
            self.last_line = Instant::now();
            output::say(&format!("{left} of {all} files left"));
        }
    }
}

impl Drop for RemovalDisplay {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Progress display: a bar on a terminal, lines elsewhere, or nothing.
pub(crate) struct Display {
    bar: ProgressBar,
    terminal: bool,
    quiet: bool,
    last_line: Instant,
    position: String,
    /// The current stage or probe, from 0; `None` if the load has none.
    point: Option<u32>,
    /// Completed share of the run and remaining time at the start of the trial.
    done_share: f64,
    left_ns: u64,
    estimated_at: Instant,
}

impl Display {
    pub(crate) fn new(quiet: bool) -> Self {
        let terminal = output::stderr_is_terminal();
        let bar = bar(STEPS, terminal && !quiet);
        let now = Instant::now();
        Self {
            bar,
            terminal,
            quiet,
            last_line: now,
            position: String::new(),
            point: None,
            done_share: 0.0,
            left_ns: 0,
            estimated_at: now,
        }
    }

    /// Prints a permanent line, above the bar if there is one.
    fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        if self.terminal {
            self.bar.suspend(|| output::say(text));
        } else {
            output::say(text);
        }
    }

    /// Sets the message after the bar: the remaining time, and what a narrow terminal may cut off.
    fn message(&self, text: &str) {
        let text = format!("{}  {text}", self.left());
        self.bar.set_message(output::plain(&text).into_owned());
    }

    fn left(&self) -> String {
        let elapsed_ns = self.estimated_at.elapsed().as_nanos() as u64;
        let left_ns = self.left_ns.saturating_sub(elapsed_ns);
        match left_ns / 1_000_000_000 {
            0 if elapsed_ns > self.left_ns + LATE_NS => "longer than estimated".into(),
            0 => "nearly done".into(),
            s @ 1..=99 => format!("{s} s left"),
            s => format!("{} min left", s.div_ceil(60)),
        }
    }

    fn progress(&mut self, phase: &str, rate_per_s: f64, response_ns_p99: Option<Time>) {
        let point = self.point.map_or_else(String::new, |n| format!(", point {}", n + 1));
        let text =
            format!("{} {phase}{point}  {}", self.position, pace(rate_per_s, response_ns_p99));
        let of_left = self.estimated_at.elapsed().as_nanos() as f64 / self.left_ns.max(1) as f64;
        let share = self.done_share + (1.0 - self.done_share) * of_left.min(1.0);
        self.bar.set_position((share * STEPS as f64) as u64);
        self.message(&text);
        if !self.terminal && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            self.say(&format!("{text}{}", self.left()));
        }
    }
}

/// Rate and 99th percentile, if any request was answered or failed.
fn pace(rate_per_s: f64, response_ns_p99: Option<Time>) -> String {
    match response_ns_p99 {
        Some(p99) if rate_per_s > 0.0 || matches!(p99, Time::Bound { .. }) => {
            format!("{}  p99 {p99}  ", stats::format_rate(rate_per_s))
        }
        _ => String::new(),
    }
}

impl Sink for Display {
    fn name(&self) -> &'static str {
        "progress display"
    }

    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::RunStarted(header) => {
                let plan = &header.plan;
                let scale = plan.scale.name();
                self.say(&format!("{} ({scale} scale, run {})", plan.question, header.run));
                self.bar.set_message("checking the targets");
            }
            Event::TargetChecked(TargetState { target, version, unavailable, .. }) => {
                let not_run = unavailable.as_ref().map(|e| format!("not run: {}", e.reason()));
                let state = not_run.or_else(|| version.clone()).unwrap_or_default();
                self.say(&format!("  {target}: {state}"));
            }
            Event::TrialStarted { block, cell, done_share, left_ns } => {
                self.bar.set_position((done_share * STEPS as f64) as u64);
                self.done_share = *done_share;
                (self.left_ns, self.estimated_at) = (*left_ns, Instant::now());
                self.position = format!("block {}  {cell}", block + 1);
                self.point = None;
                self.message(&format!("{}  starting", self.position));
            }
            Event::Progress { phase, rate_per_s, response_ns_p99, .. } => {
                self.progress(phase, *rate_per_s, *response_ns_p99);
            }
            Event::PointEnded(part) => {
                for point in &part.points {
                    let number = point.stage.map_or(0, |stage| stage + 1);
                    if let Some(failure) = &point.failure {
                        let place = format!("{} in block {}", part.cell, part.block + 1);
                        self.say(&format!("  {place}, probe {number}: {}", brief(failure)));
                    }
                }
            }
            Event::TrialEnded(trial) => {
                if let Some(failure) = &trial.failure {
                    let place = format!("{} in block {}", trial.cell, trial.block + 1);
                    self.say(&format!("  {place}: {}", brief(failure)));
                }
            }
            Event::Recorded(recorded) => self.point = recorded.stage,
            Event::Intervals { .. } | Event::Sampled { .. } | Event::Samples { .. } => {}
            Event::Warning(text) => self.say(&format!("warning: {text}")),
            Event::RunEnded(_) => self.bar.finish_and_clear(),
        }
        Ok(())
    }
}

/// A failure without the server's log, which is in the report.
fn brief(failure: &Failure) -> String {
    format!("{}: {}", failure.class, failure.reason())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_hidden_by_failures_is_shown_as_a_lower_bound() {
        assert_eq!(pace(0.0, None), "");
        assert_eq!(pace(0.0, Some(Time::Of(12_300))), "");
        assert_eq!(pace(950.0, Some(Time::Of(12_300))), "950 /s  p99 12.3 µs  ");
        let bound = Some(Time::Bound { at_least: 5_000_000_000 });
        assert_eq!(pace(950.0, bound), "950 /s  p99 ≥ 5.00 s  ");
        // A hanging server must not look like a run that has not started.
        assert!(pace(0.0, bound).contains("p99 ≥ 5.00 s"));
    }
}
