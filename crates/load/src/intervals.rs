//! Per-interval numbers of a measurement, up to the last interval that has any.

/// Adds `more` to the number of an interval.
pub(crate) fn add_at(numbers: &mut Vec<u64>, interval: usize, more: u64) {
    if numbers.len() <= interval {
        numbers.resize(interval + 1, 0);
    }
    numbers[interval] += more;
}

/// Adds `theirs` to `own`, interval by interval.
pub(crate) fn merge(own: &mut Vec<u64>, theirs: &[u64]) {
    merge_by(own, theirs, |own, theirs| own + theirs);
}

/// Merges `theirs` into `own`, combining two numbers with `both`.
pub(crate) fn merge_by(own: &mut Vec<u64>, theirs: &[u64], both: impl Fn(u64, u64) -> u64) {
    own.resize(own.len().max(theirs.len()), 0);
    own.iter_mut().zip(theirs).for_each(|(own, theirs)| *own = both(*own, *theirs));
}
