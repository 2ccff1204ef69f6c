//! The milliseconds in which anything was answered. They give the length of silences to the
//! millisecond, at any request rate.

use model::Silence;

use crate::intervals::merge_by;

/// Time resolution, nanoseconds.
const STEP_NS: u64 = 1_000_000;
/// Most steps that are kept: one day.
const STEPS_MAX: u64 = 24 * 3_600_000;

/// One bit per step from the start of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerTimeline(Vec<u64>);

impl AnswerTimeline {
    /// Marks a reply `ns` after the start of the measurement.
    pub(crate) fn at(&mut self, ns: u64) {
        let step = ns / STEP_NS;
        let word = (step / 64) as usize;
        if self.0.len() <= word {
            if step >= STEPS_MAX {
                return;
            }
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (step % 64);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        merge_by(&mut self.0, &other.0, |own, theirs| own | theirs);
    }

    /// Clears everything but keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Periods of at least [`Silence::SHORTEST_NS`] in which the operation got no answer, in a
    /// measurement of `length_ns`.
    pub(crate) fn silences(&self, operation: &str, length_ns: u64) -> Vec<Silence> {
        let steps = (length_ns / STEP_NS).min(STEPS_MAX);
        let is_set = |step: u64| {
            self.0.get((step / 64) as usize).is_some_and(|word| word >> (step % 64) & 1 == 1)
        };
        let (mut found, mut from) = (Vec::new(), 0);
        for step in 0..=steps {
            if step < steps && !is_set(step) {
                continue;
            }
            let length_ns = (step - from) * STEP_NS;
            if length_ns >= Silence::SHORTEST_NS {
                found.push(Silence {
                    operation: operation.into(),
                    begun_ns: from * STEP_NS,
                    length_ns,
                });
            }
            from = step + 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn silences_are_gaps_between_the_answers_of_all_threads() {
        let (mut one, mut other) = (AnswerTimeline::default(), AnswerTimeline::default());
        (0..=100).for_each(|ms| one.at(ms * MS));
        one.at(1_000 * MS);
        other.at(150 * MS + 1);
        one.merge(&other);
        let silences: Vec<(u64, u64)> = one
            .silences("get", 1_300 * MS)
            .into_iter()
            .map(|silence| (silence.begun_ns / MS, silence.length_ns / MS))
            .collect();
        assert_eq!(silences, [(151, 849), (1_001, 299)]);
        one.clear();
        let all = Silence { operation: "set".into(), begun_ns: 0, length_ns: 200 * MS };
        assert_eq!(one.silences("set", 200 * MS), [all]);
    }

    #[test]
    fn answers_after_a_day_take_no_memory() {
        let mut answered = AnswerTimeline::default();
        answered.at(STEPS_MAX * STEP_NS);
        assert_eq!(answered, AnswerTimeline::default());
    }
}
