//! The stages of a load: their spans within the measurement, and the records and resource use of
//! each.

use model::{Disturbance, Point, SETTLE_SHARE};

use super::offer::{Offer, Pacing};
use super::pacer::Stage;
use super::protocol::Judged;
use super::row::{Row, Times, results};
use super::work::Work;
use crate::meter::ReadAt;
use crate::watch::ThreadUse;

/// A stage with a changing level is split into slices, each judged at its own mean level, so a knee
/// within the stage is found. Shortest slice, nanoseconds, and most slices.
const SLICE_NS: u64 = 500_000_000;
const SLICES_MAX: u64 = 20;

/// A stage, or a slice of one, as measured; times are nanoseconds from the start of the
/// measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    starts_ns: u64,
    /// When it has settled.
    from_ns: u64,
    ends_ns: u64,
    /// Planned requests per second, averaged over the settled part.
    planned_per_s: Option<f64>,
    /// Active clients, averaged over the settled part.
    clients: u32,
}

impl Span {
    fn new(starts_ns: u64, ends_ns: u64, clients: u32) -> Self {
        let settling_ns = ((ends_ns - starts_ns) as f64 * SETTLE_SHARE) as u64;
        Self { starts_ns, from_ns: starts_ns + settling_ns, ends_ns, planned_per_s: None, clients }
    }

    pub(super) fn planned_per_s(&self) -> Option<f64> {
        self.planned_per_s
    }

    pub(super) fn clients(&self) -> u32 {
        self.clients
    }

    fn length_ns(&self) -> u64 {
        self.ends_ns - self.from_ns
    }

    fn seconds(&self) -> f64 {
        self.length_ns() as f64 / 1e9
    }
}

/// Mean over the settled part of a level that changes linearly from `from` to `to`.
fn settled_mean(from: f64, to: f64) -> f64 {
    f64::midpoint(from + (to - from) * SETTLE_SHARE, to)
}

/// Slices of equal length of a stage whose level changes from `from` to `to`: the levels at both
/// ends and the length of each, nanoseconds. A single slice if the level is constant.
fn slices(from: f64, to: f64, length_ns: u64) -> impl Iterator<Item = ((f64, f64), u64)> {
    let changes = (to - from).abs() > f64::EPSILON;
    let count = if changes { (length_ns / SLICE_NS).clamp(1, SLICES_MAX) } else { 1 };
    let level = move |slice: u64| from + (to - from) * slice as f64 / count as f64;
    let at_ns =
        move |slice: u64| (u128::from(length_ns) * u128::from(slice) / u128::from(count)) as u64;
    (0..count).map(move |i| ((level(i), level(i + 1)), at_ns(i + 1) - at_ns(i)))
}

/// The measured stages of a load, without the warm-up, split into slices where the level changes;
/// empty if the load is constant.
pub(crate) fn spans(offer: &Offer, work: &Work) -> Vec<Span> {
    let (mut ends_ns, warmup_ns) = (0_u64, offer.warmup_ns);
    let mut behind = |length_ns: u64| {
        let starts_ns = ends_ns;
        ends_ns = ends_ns.saturating_add(length_ns);
        // The warm-up is not part of the stage.
        let measured = (starts_ns.saturating_sub(warmup_ns), ends_ns.saturating_sub(warmup_ns));
        (measured.1 > measured.0).then_some(measured)
    };
    match &offer.pacing {
        Pacing::Closed { stages, .. } => {
            let parts = stages.iter().flat_map(|s| slices(s.from as f64, s.to as f64, s.length_ns));
            let span = |((from, to), length_ns)| {
                let (starts_ns, ends_ns) = behind(length_ns)?;
                let clients = settled_mean(from, to) * offer.own_share();
                Some(Span::new(starts_ns, ends_ns, clients.round() as u32))
            };
            parts.filter_map(span).collect()
        }
        // A single stage is a constant rate.
        Pacing::Open { stages, .. } if stages.len() < 2 => Vec::new(),
        Pacing::Open { stages, .. } => {
            let slices = |s: &Stage| slices(s.rate_from_per_s, s.rate_to_per_s, s.length_ns);
            let span = |((from, to), length_ns)| {
                let (starts_ns, ends_ns) = behind(length_ns)?;
                // Each paced request leads to the chained ones after it.
                let each = work.requests_each() as f64 * offer.own_share();
                let planned_per_s = Some(settled_mean(from, to) * each);
                Some(Span { planned_per_s, ..Span::new(starts_ns, ends_ns, offer.own_clients()) })
            };
            stages.iter().flat_map(slices).filter_map(span).collect()
        }
    }
}

/// Records of one stage.
#[derive(Clone, Debug)]
pub(crate) struct StageRows {
    span: Span,
    /// Warm-up of the stage, all operations together: until it has settled and, for the last stage,
    /// after its end.
    outside: Row,
    /// Records of the settled part, by operation.
    rows: Vec<Row>,
    /// Requests answered in the settled part, whenever they were due, by operation.
    answered: Vec<u64>,
    /// Requests due in the settled part and never sent.
    unsent: u64,
}

impl StageRows {
    /// Empty records, from empty `rows`.
    pub(crate) fn new(span: Span, rows: &[Row]) -> Self {
        Self {
            span,
            outside: rows.first().cloned().unwrap_or_default(),
            rows: rows.to_vec(),
            answered: vec![0; rows.len()],
            unsent: 0,
        }
    }

    /// Whether a time is in the settled part.
    fn records(&self, at_ns: u64) -> bool {
        (self.span.from_ns..self.span.ends_ns).contains(&at_ns)
    }

    /// The row for a request that was due at `at_ns`, or answered then under a closed load.
    fn row(&mut self, operation: usize, at_ns: u64) -> &mut Row {
        if self.records(at_ns) { &mut self.rows[operation] } else { &mut self.outside }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Row> {
        self.rows.iter_mut().chain([&mut self.outside])
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.outside.merge(&other.outside);
        self.rows.iter_mut().zip(&other.rows).for_each(|(own, theirs)| own.merge(theirs));
        self.answered.iter_mut().zip(&other.answered).for_each(|(own, theirs)| *own += theirs);
        self.unsent += other.unsent;
    }

    pub(crate) fn close(&mut self) {
        self.all().for_each(Row::end_run);
    }

    pub(crate) fn clear(&mut self) {
        self.all().for_each(Row::clear);
        self.answered.fill(0);
        self.unsent = 0;
    }
}

/// Index of the stage at `at_ns` from the start of the measurement. The first and the last stage
/// also cover the time before and after. `stages` is not empty.
fn of_time(stages: &[StageRows], at_ns: u64) -> usize {
    let index = stages.partition_point(|stage| stage.span.ends_ns <= at_ns);
    index.min(stages.len() - 1)
}

/// The stage whose settled part contains `at_ns` from the start of the measurement.
fn recording(stages: &mut [StageRows], at_ns: u64) -> Option<&mut StageRows> {
    if stages.is_empty() {
        return None;
    }
    let stage = of_time(stages, at_ns);
    Some(&mut stages[stage]).filter(|stage| stage.records(at_ns))
}

/// Records `requests` identical replies in their stage, in a measurement that started at `from_ns`.
pub(crate) fn replied(
    stages: &mut [StageRows],
    operation: usize,
    (times, judged): (&Times, &Judged),
    (requests, from_ns): (u64, u64),
) {
    if stages.is_empty() {
        return;
    }
    let (intended_ns, done_ns) =
        (times.intended_ns.saturating_sub(from_ns), times.done_ns.saturating_sub(from_ns));
    let open = stages[0].outside.lag().is_some();
    let at_ns = if open { intended_ns } else { done_ns };
    let stage = of_time(stages, at_ns);
    let stage = &mut stages[stage];
    if !stage.row(operation, at_ns).reply(times, judged, (requests, from_ns)) {
        return;
    }
    if let Some(stage) = recording(stages, done_ns) {
        stage.answered[operation] += requests;
    }
}

/// The row in its stage of a request that was never answered.
pub(crate) fn unanswered(
    stages: &mut [StageRows],
    operation: usize,
    (intended_ns, from_ns): (u64, u64),
) -> Option<&mut Row> {
    if stages.is_empty() {
        return None;
    }
    let at_ns = intended_ns.saturating_sub(from_ns);
    let stage = of_time(stages, at_ns);
    Some(stages[stage].row(operation, at_ns))
}

/// Counts requests that were due `due_ns` after the start of the measurement and never sent.
pub(crate) fn unsent(stages: &mut [StageRows], due_ns: u64, requests: u64) {
    if let Some(stage) = recording(stages, due_ns) {
        stage.unsent += requests;
    }
}

/// Resource use in the settled part of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StageUse {
    generator: ThreadUse,
    server_cpu_ns: Option<u64>,
    disturbance: Disturbance,
}

/// The times at which stages have settled and end, in order, with a reading for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks<T> {
    /// Ascending, on the engine's clock.
    times_ns: Vec<u64>,
    read: Vec<T>,
}

impl<T: Copy> Marks<T> {
    /// Times for the stages of a measurement that starts at `from_ns`.
    pub(crate) fn new(spans: &[Span], from_ns: u64) -> Self {
        let times_ns = spans.iter().flat_map(|s| [from_ns + s.from_ns, from_ns + s.ends_ns]);
        Self { times_ns: times_ns.collect(), read: Vec::new() }
    }

    /// When the next reading is due; `u64::MAX` for never.
    pub(crate) fn next_ns(&self) -> u64 {
        self.times_ns.get(self.read.len()).copied().unwrap_or(u64::MAX)
    }

    /// Takes a reading if one is due.
    pub(crate) fn read_if_due(&mut self, now_ns: u64, read: impl FnOnce() -> T) {
        if now_ns < self.next_ns() {
            return;
        }
        let reading = read();
        while self.next_ns() <= now_ns {
            self.read.push(reading);
        }
    }

    /// Takes the last reading.
    pub(crate) fn end(&mut self, read: impl FnOnce() -> T) {
        self.read_if_due(u64::MAX - 1, read);
    }

    /// Readings from when each stage had settled and when it ended.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (T, T)> {
        self.read.chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }
}

/// Resource use of each stage, from the readings of the coordinator and of each thread.
pub(crate) fn uses<'a>(
    spans: &[Span],
    read: &Marks<ReadAt>,
    threads: impl Iterator<Item = &'a Marks<ThreadUse>>,
) -> Vec<StageUse> {
    let mut uses = vec![StageUse::default(); spans.len()];
    let mut count = 0;
    for marks in threads {
        count += 1;
        for (stage, (before, after)) in uses.iter_mut().zip(marks.pairs()) {
            stage.generator = stage.generator.plus(after.since(before));
        }
    }
    for ((stage, span), (before, after)) in uses.iter_mut().zip(spans).zip(read.pairs()) {
        stage.server_cpu_ns = before.server_cpu_ns(&after, span.length_ns());
        let waited_ns = stage.generator.run_delay_ns / u64::max(count, 1);
        stage.disturbance = before.disturbance(&after, waited_ns);
    }
    uses
}

/// The points of the stages that had ended `until_ns` after the start of the measurement.
pub(crate) fn stage_points(
    stages: &[StageRows],
    uses: &[StageUse],
    (phase, names): (&str, &[&str]),
    until_ns: u64,
) -> Vec<Point> {
    let over = stages.iter().zip(uses).enumerate();
    let over = over.take_while(|(_, (stage, _))| stage.span.ends_ns <= until_ns);
    let point = |(number, (stage, used)): (usize, (&StageRows, &StageUse))| {
        let Span { from_ns, planned_per_s, clients, .. } = stage.span;
        let mut operations = results(&stage.rows, (phase, names), stage.span.seconds());
        // The rate counts the answers in the stage, even if they were due in an earlier one and are
        // counted there.
        let all: u64 = stage.answered.iter().sum();
        for operation in &mut operations {
            let own = names.iter().position(|name| *name == operation.operation);
            let answered = own.map_or(all, |own| stage.answered[own]);
            operation.rate_per_s = answered as f64 / stage.span.seconds();
            if let Some(slowest) = &mut operation.slowest {
                slowest.drop_before(from_ns);
            }
        }
        Point {
            phase: phase.into(),
            stage: Some(number as u32),
            begun_ns: from_ns,
            length_ns: stage.span.length_ns(),
            planned_per_s,
            clients,
            operations,
            unsent: stage.unsent,
            warmup: stage.outside.counts().clone(),
            generator_cpu_ns: used.generator.cpu_ns,
            generator_run_delay_ns: used.generator.run_delay_ns,
            server_cpu_ns: used.server_cpu_ns,
            disturbance: used.disturbance,
            ..Point::default()
        }
    };
    over.map(point).collect()
}

/// Planned requests per second if the rate is constant; `None` under a closed load.
pub(crate) fn steady_rate_per_s(offer: &Offer, work: &Work) -> Option<f64> {
    let Pacing::Open { stages, .. } = &offer.pacing else { return None };
    let [stage] = &stages[..] else { return None };
    let rate_per_s = f64::midpoint(stage.rate_from_per_s, stage.rate_to_per_s);
    Some(rate_per_s * work.requests_each() as f64 * offer.own_share())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Reading;

    fn span(from_ns: u64, ends_ns: u64) -> Span {
        Span { starts_ns: 0, from_ns, ends_ns, planned_per_s: None, clients: 1 }
    }

    #[test]
    fn each_mark_is_read_once_and_overdue_ones_share_a_reading() {
        let mut marks = Marks::new(&[span(2, 10), span(12, 20)], 100);
        let mut reads = 0;
        for now in [101, 102, 103, 109, 111, 112] {
            marks.read_if_due(now, || {
                reads += 1;
                now
            });
        }
        assert_eq!((reads, marks.next_ns()), (3, 120));
        marks.end(|| 115);
        marks.end(|| 116);
        assert_eq!(marks.pairs().collect::<Vec<_>>(), [(102, 111), (112, 115)]);
        assert_eq!(Marks::<u64>::default().next_ns(), u64::MAX);
    }

    #[test]
    fn a_late_reading_is_scaled_to_the_stage() {
        let spans = [span(100, 200), span(300, 400)];
        let mut server: Marks<ReadAt> = Marks::new(&spans, 0);
        let read = |at_ns, server_cpu_ns: Option<u64>| {
            let taken_from_server_ns = server_cpu_ns.map(|ns| ns / 5);
            let reading = Reading { server_cpu_ns, taken_from_server_ns, ..Reading::default() };
            ReadAt { at_ns, reading }
        };
        // Half a CPU, read 10 ns late; then nothing can be read.
        server.read_if_due(100, || read(100, Some(1_000)));
        server.read_if_due(210, || read(210, Some(1_055)));
        server.end(|| read(500, None));
        let of_stages = uses(&spans, &server, [].into_iter());
        assert_eq!(of_stages[0].server_cpu_ns, Some(50));
        assert_eq!(of_stages[0].disturbance.server_ns, Some(11));
        assert_eq!(of_stages[1].server_cpu_ns, None);
    }

    #[test]
    fn a_stage_is_sliced_if_its_level_changes() {
        let sliced = |from, to, length_ns| slices(from, to, length_ns).collect::<Vec<_>>();
        assert_eq!(sliced(5.0, 5.0, 60_000_000_000), [((5.0, 5.0), 60_000_000_000)]);
        assert_eq!(
            sliced(0.0, 90.0, 1_600_000_001),
            [((0.0, 30.0), 533_333_333), ((30.0, 60.0), 533_333_334), ((60.0, 90.0), 533_333_334)]
        );
        assert_eq!(sliced(9.0, 1.0, 400_000_000), [((9.0, 1.0), 400_000_000)]);
        assert_eq!(sliced(0.0, 1.0, u64::MAX).len(), 20);
    }

    #[test]
    fn the_mean_of_a_changing_level_excludes_the_settling_time() {
        assert!((settled_mean(0.0, 100.0) - 60.0).abs() < 1e-9);
        assert!((settled_mean(7.0, 7.0) - 7.0).abs() < 1e-9);
    }
}
