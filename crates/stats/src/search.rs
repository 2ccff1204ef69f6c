//! The search for the highest rate within limits: decides the next probe from all earlier ones.
//!
//! It is a pure function of the probes' results, so a record leads to the same answer as the run:
//!
//! 1. Peak: as fast as the clients can go, ignoring the limits.
//! 2. Cool-down: a low rate that shows the latency of the unloaded store. After each probe another
//!    one checks that latency is back to that level, so that no probe affects the next.
//! 3. Bracket: rates from below the peak, upwards or downwards until one passes and one fails, then
//!    bisection. An undecided probe is prolonged; if it stays undecided, it is close enough to the
//!    knee.
//! 4. Confirmation: short runs at the knee, 5 % above and 5 % below it, in rounds with random
//!    order. The answer is the rate at which the share of requests beyond the limit reaches the
//!    allowed share, on a straight line through the logarithms of rates and shares of all rounds
//!    (the tail of a queue is exponential, so the logarithm of the share is nearly linear near the
//!    knee). Its interval comes from resampling the rounds together with nearby probes of the
//!    bracket. Each round is centered on the answer of the earlier rounds. Two consecutive rounds
//!    that all pass or all fail contradict the bracket, as do rounds that keep moving until no more
//!    are allowed: then a new bracket starts there.
//! 5. Hold run: a long run one step below the answer. It finds what short runs miss by chance,
//!    since a store that stalls every few seconds does so at any rate. If it fails, lower rates are
//!    tried, and the answer lies between the first rate that passes and the one above it.
//!
//! Every probe counts with all its requests. A rate is sustained only if all probes up to it agree
//! that no more requests than allowed are beyond any limit.

mod bracket;
mod confirm;
mod knee;
mod probes;
mod summary;

pub use self::confirm::A_ROUND;
pub use self::probes::{Found, Limit, Next, ProbeResult, Purpose, Settings, Step};

use self::bracket::Bracketed;
use self::confirm::Confirmed;
use self::probes::{probe, share_of};

/// The first rate of the bracket, as a share of the peak.
const FIRST_SHARE: f64 = 0.7;
/// The rate of a cool-down, as a share of the peak.
const COOL_DOWN_SHARE: f64 = 0.1;
/// Requests of a cool-down, unless it would take longer than a probe. Its minimum length is that of
/// a probe divided by this number.
const COOL_DOWN_REQUESTS: f64 = 20.0;
const COOL_DOWNS_PER_PROBE: u64 = 10;
/// Maximum consecutive cool-downs before the next probe.
const COOL_DOWNS_MAX: usize = 8;
/// Consecutive broken probes after which the search gives up.
const BROKEN_MAX: usize = 3;
/// Maximum number of brackets.
const BRACKETS_MAX: usize = 3;

impl Settings {
    /// The next step after the given probes, in order of time.
    pub fn next(&self, seen: &[ProbeResult]) -> Next {
        let Some(first) = seen.first() else {
            return probe(Purpose::Peak, 0, self.probe_ns);
        };
        let peak_per_s = first.answered_per_s;
        if first.broke || peak_per_s < 1.0 {
            return Next::Done(Found::Nothing);
        }
        if seen.len() >= BROKEN_MAX && seen[seen.len() - BROKEN_MAX..].iter().all(|s| s.broke) {
            return Next::Done(Found::Broken);
        }
        let rate_per_s = share_of(peak_per_s, COOL_DOWN_SHARE);
        let cool_downs = seen.iter().rev().take_while(|s| s.purpose == Purpose::CoolDown).count();
        let has_settled = cool_downs > 0 && seen.last().is_some_and(|s| s.settled);
        if !has_settled && cool_downs < COOL_DOWNS_MAX {
            let length = (COOL_DOWN_REQUESTS / rate_per_s as f64 * 1e9) as u64;
            let length = length.clamp(self.probe_ns / COOL_DOWNS_PER_PROBE, self.probe_ns);
            return probe(Purpose::CoolDown, rate_per_s, length);
        }
        self.after_cool_down(seen, peak_per_s)
    }

    /// The next judged probe, or the end.
    fn after_cool_down(&self, seen: &[ProbeResult], peak_per_s: f64) -> Next {
        let judged: Vec<&ProbeResult> = seen.iter().filter(|s| s.is_judged()).collect();
        let (mut rest, mut from_per_s) = (&judged[..], peak_per_s * FIRST_SHARE);
        for _ in 0..BRACKETS_MAX {
            let (bracket, others) = split_where(rest, |s| s.purpose == Purpose::Confirm);
            let (confirmed, others) = split_where(others, |s| s.purpose == Purpose::Bracket);
            let (rounds, holds) = split_where(confirmed, |s| s.purpose == Purpose::Hold);
            let knee = match self.bracket(bracket, peak_per_s, from_per_s) {
                Bracketed::Probe(rate_per_s, length_ns) => {
                    return probe(Purpose::Bracket, rate_per_s, length_ns);
                }
                Bracketed::Knee(knee) => knee,
                Bracketed::Done(found) => return Next::Done(found),
            };
            match self.confirm((bracket, rounds), knee) {
                Confirmed::Probe(rate_per_s, length_ns) => {
                    return probe(Purpose::Confirm, rate_per_s, length_ns);
                }
                Confirmed::Rate(value) => {
                    return self.hold(holds, &[bracket, rounds].concat(), value);
                }
                Confirmed::Anew(rate_per_s) => (rest, from_per_s) = (others, rate_per_s),
            }
        }
        let rates = judged.iter().map(|s| s.rate_per_s);
        let (lowest, highest) = (rates.clone().min(), rates.max());
        Next::Done(Found::Unsettled(lowest.unwrap_or(0), highest.unwrap_or(0)))
    }
}

/// Splits probes before the first one that satisfies a condition.
fn split_where<'a, 'b>(
    probes: &'b [&'a ProbeResult],
    is_other: impl Fn(&ProbeResult) -> bool,
) -> (&'b [&'a ProbeResult], &'b [&'a ProbeResult]) {
    let at = probes.iter().position(|s| is_other(s)).unwrap_or(probes.len());
    probes.split_at(at)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
