//! The search for the highest rate within limits: which probe is next, given all before.
//!
//! A pure function of what the probes gave, so that a record tells the same as the run did:
//!
//! 1. the peak: as fast as the clients can go, ignoring the limits;
//! 2. a rest: a low rate, which tells how a store without load answers. Another one after each
//!    probe tells that it has come back to that, so that no probe spoils the next;
//! 3. the bracket: rates from below the peak, upwards or downwards until one holds and one fails,
//!    then bisection. A probe that cannot be decided is prolonged; one that stays so is close
//!    enough to the knee;
//! 4. confirmation: short runs at the knee, 5 % above and 5 % below, in rounds, each in random
//!    order. The answer is the rate at which the share of requests beyond the limit crosses what is
//!    allowed, on a straight line through the logarithms of rates and shares of all rounds (a
//!    queue's tail is exponential, so that its share's logarithm is nearly straight near the knee);
//!    its interval comes from resampling rounds and what
//!    the bracket knows of rates near by. Each round tries the rates around what the ones before
//!    say. Two rounds in a row that surely hold throughout, or surely miss throughout, contradict
//!    the bracket, and so do rounds that move on until there may be no more of them: it is made
//!    anew, from there on.
//!
//! 5. the hold: a long run one step below that. What it misses, short runs have missed by chance: a
//!    store that stalls every few seconds does so at any rate. Then lower rates are tried, and the
//!    answer lies between the first that is held and the one above it.
//!
//! Every probe counts with all of its requests. A rate is held only where all probes up to it
//! agree: no more of their requests are beyond a limit than may be.

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
/// The rate of a rest, as a share of the peak.
const REST_SHARE: f64 = 0.1;
/// Requests of a rest, if it takes no longer than a probe, and how often its shortest length goes
/// into one.
const REST_REQUESTS: f64 = 20.0;
const RESTS_A_PROBE: u64 = 10;
/// Rests in a row after which the next probe does not wait any longer.
const RESTS_MAX: usize = 8;
/// Probes in a row that broke, after which the search gives up.
const BROKEN_MAX: usize = 3;
/// How often a bracket is made.
const BRACKETS_MAX: usize = 3;

impl Settings {
    /// What follows on the probes seen, in their order.
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
        let rest = share_of(peak_per_s, REST_SHARE);
        let rests = seen.iter().rev().take_while(|s| s.purpose == Purpose::Rest).count();
        let rested = rests > 0 && seen.last().is_some_and(|s| s.at_rest);
        if !rested && rests < RESTS_MAX {
            let length = (REST_REQUESTS / rest as f64 * 1e9) as u64;
            let length = length.clamp(self.probe_ns / RESTS_A_PROBE, self.probe_ns);
            return probe(Purpose::Rest, rest, length);
        }
        self.after_rest(seen, peak_per_s)
    }

    /// The next probe that is judged, or the end.
    fn after_rest(&self, seen: &[ProbeResult], peak_per_s: f64) -> Next {
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

/// What comes before the first probe of a kind, and from there on.
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
