//! Numbers by interval of a measurement, kept for as many intervals as there was something in.

/// Adds to the number of an interval.
pub(crate) fn add_at(numbers: &mut Vec<u64>, interval: usize, more: u64) {
    if numbers.len() <= interval {
        numbers.resize(interval + 1, 0);
    }
    numbers[interval] += more;
}

/// Adds those of others.
pub(crate) fn merge(own: &mut Vec<u64>, theirs: &[u64]) {
    merge_by(own, theirs, |own, theirs| own + theirs);
}

/// The same where two become one in another way.
pub(crate) fn merge_by(own: &mut Vec<u64>, theirs: &[u64], both: impl Fn(u64, u64) -> u64) {
    own.resize(own.len().max(theirs.len()), 0);
    own.iter_mut().zip(theirs).for_each(|(own, theirs)| *own = both(*own, *theirs));
}
