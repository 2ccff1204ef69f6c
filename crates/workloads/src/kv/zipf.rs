//! Zipf-distributed ranks: rank r, from 0, has a probability proportional to (r + 1)^−s.
//!
//! Drawn by rejection-inversion (Hörmann and Derflinger: Rejection-inversion to generate variates
//! from monotone discrete distributions, ACM TOMACS 6, 1996), which uses neither tables nor sums,
//! so a billion ranks are as fast as ten. With x = r + 1, h(x) = x^−s and its integral H, a number
//! between H(3/2) − h(1) and H(n + 1/2) is drawn and mapped back through H. The nearest integer k
//! has the histogram bar from H(k + 1/2) − h(k) to H(k + 1/2); a number outside that bar is
//! rejected. H is the integral from 1, (x^(1−s) − 1) / (1 − s), or ln x if s is 1; both are written
//! as one function that is smooth in s, so exponents near 1 keep full precision. Less than one draw
//! in fifty is rejected.

use stats::SplitMix64;

/// Below this, the quotients equal their first terms to the last digit.
const SMALL: f64 = 1e-8;

/// Zipf's law over ranks 0 to `count` − 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    count: u64,
    /// The exponent s, 0 or more.
    exponent: f64,
    /// H(3/2) − h(1), where the bar of rank 0 starts.
    from: f64,
    /// H(n + 1/2), where the bar of the last rank ends.
    to: f64,
    /// If x is at most this far below k, it is in the bar of k, for every k.
    sure: f64,
}

impl Zipf {
    /// The law for `count` ranks, at least 1.
    pub(super) fn new(count: u64, exponent: f64) -> Self {
        let integral = |x| integral(x, exponent);
        Self {
            count,
            exponent,
            from: integral(1.5) - 1.0,
            to: integral(count as f64 + 0.5),
            sure: 2.0 - inverse(integral(2.5) - height(2.0, exponent), exponent),
        }
    }

    /// Draws a rank.
    #[inline]
    pub(super) fn rank(&self, random: &mut SplitMix64) -> u64 {
        loop {
            let u = self.to + random.unit() * (self.from - self.to);
            let x = inverse(u, self.exponent);
            // NaN and infinity are clamped to one of the ends.
            let nearest = ((x + 0.5) as u64).clamp(1, self.count);
            let k = nearest as f64;
            let in_bar = || u >= integral(k + 0.5, self.exponent) - height(k, self.exponent);
            // The first bar starts where the range of u does.
            if nearest == 1 || k - x <= self.sure || in_bar() {
                return nearest - 1;
            }
        }
    }
}

/// h(x) = x^−s.
fn height(x: f64, exponent: f64) -> f64 {
    (-exponent * x.ln()).exp()
}

/// H(x), the integral of h from 1 to x: ln x · (e^t − 1) / t with t = (1 − s) · ln x.
fn integral(x: f64, exponent: f64) -> f64 {
    let log = x.ln();
    let t = (1.0 - exponent) * log;
    if t.abs() < SMALL { log * (1.0 + t / 2.0) } else { log * (t.exp_m1() / t) }
}

/// The x whose H is `u`: e^(u · ln(1 + t) / t) with t = (1 − s) · u.
fn inverse(u: f64, exponent: f64) -> f64 {
    // Rounding may carry t below −1, the limit that H has if s is above 1.
    let t = ((1.0 - exponent) * u).max(-1.0);
    if t.abs() < SMALL { (u * (1.0 - t / 2.0)).exp() } else { (u * (t.ln_1p() / t)).exp() }
}

#[cfg(test)]
#[path = "zipf_tests.rs"]
mod tests;
