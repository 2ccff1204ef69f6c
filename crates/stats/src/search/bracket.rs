//! The bracket: rates from below the peak, upwards or downwards until one passes and one fails,
//! then bisection.

use super::probes::{Found, Pooled, ProbeResult, Settings, ends, share_of};
use crate::tail::Judgement;

/// Lowest rate tried, as a share of the peak.
const FLOOR_SHARE: f64 = 0.02;
/// Step upwards until a rate fails, and downwards until a rate passes.
pub(super) const STEP_UP: f64 = 1.2;
const STEP_DOWN: f64 = 0.4;
/// Highest rate tried, as a multiple of the peak.
const ABOVE_PEAK_MAX: f64 = 4.0;
/// Ratio of failing to passing rate at which bisection ends.
const BRACKET: f64 = 1.04;
/// Maximum total length of probes at one rate, as a multiple of the first one; after that the rate
/// stays undecided.
const PROLONGED_MAX: u64 = 3;
/// Probes of the bracket after which the search gives up.
const PROBES_MAX: usize = 60;

/// Next step of a bracket.
pub(super) enum Bracketed {
    /// Another probe: its rate, and its length in nanoseconds.
    Probe(u64, u64),
    /// The approximate knee.
    Knee(f64),
    Done(Found),
}

impl Settings {
    /// Decides the next step of a bracket that starts at `first_per_s`.
    pub(super) fn bracket(
        &self,
        probes: &[&ProbeResult],
        peak_per_s: f64,
        first_per_s: f64,
    ) -> Bracketed {
        let pooled = self.pooled(probes.iter().copied());
        let fresh = |rate: f64| {
            let rate_per_s = rate.round().max(1.0) as u64;
            Bracketed::Probe(rate_per_s, self.length_ns(rate_per_s))
        };
        let last = probes.last().map(|s| s.rate_per_s);
        let Some(latest) = last.and_then(|r| pooled.iter().find(|p| p.rate_per_s == r)) else {
            return fresh(first_per_s);
        };
        if latest.together.judgement == Judgement::Undecided {
            if latest.length_ns < PROLONGED_MAX * latest.first_ns {
                return Bracketed::Probe(latest.rate_per_s, latest.length_ns);
            }
            if latest.together.is_near {
                return Bracketed::Knee(latest.rate_per_s as f64);
            }
        }
        let floor = share_of(peak_per_s, FLOOR_SHARE);
        match ends(&pooled, |p| !p.passes(), Pooled::passes) {
            (Some(lo), Some(hi)) if probes.len() >= PROBES_MAX => {
                Bracketed::Done(Found::Unsettled(lo, hi))
            }
            (Some(lo), Some(hi)) => {
                let middle = (lo as f64 * hi as f64).sqrt();
                // Rates are integers: there is none between consecutive ones.
                if hi as f64 <= lo as f64 * BRACKET || hi - lo < 2 {
                    Bracketed::Knee(middle)
                } else {
                    fresh(middle)
                }
            }
            (None, Some(hi)) if hi <= floor => Bracketed::Done(Found::Missed(hi)),
            (None, Some(hi)) => fresh((hi as f64 * STEP_DOWN).max(floor as f64)),
            (Some(lo), None) if lo as f64 > peak_per_s * ABOVE_PEAK_MAX => {
                Bracketed::Done(Found::NeverMissed(lo))
            }
            (lo, None) => fresh((lo.unwrap_or(floor) as f64 * STEP_UP).max(floor as f64 + 1.0)),
        }
    }
}
