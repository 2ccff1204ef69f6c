//! Zipf-distributed ranks: rank r, from 0, has a probability in proportion to (r + 1)^−s.
//!
//! Drawn by rejection-inversion (Hörmann and Derflinger: Rejection-inversion to generate variates
//! from monotone discrete distributions, ACM TOMACS 6, 1996), which needs neither tables nor sums,
//! so a billion ranks are as fast as ten. With x = r + 1, h(x) = x^−s and its integral H, a number
//! between H(3/2) − h(1) and H(n + 1/2) is drawn and carried back through H; the integer k next to
//! it has the histogram bar from H(k + 1/2) − h(k) to H(k + 1/2), and a number beside that bar is
//! rejected. H is the integral from 1, (x^(1−s) − 1) / (1 − s), or ln x where s is 1; both are
//! written as one function that is smooth in s, so that exponents near 1 lose no digits. Less
//! than one draw in fifty is rejected.

use stats::SplitMix64;

/// Below this, the quotients are their first terms to the last digit.
const SMALL: f64 = 1e-8;

/// Zipf's law over ranks 0 to `count` − 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    count: u64,
    /// The exponent s, 0 or more.
    exponent: f64,
    /// H(3/2) − h(1), where the bar of rank 0 begins.
    from: f64,
    /// H(n + 1/2), where that of the last rank ends.
    to: f64,
    /// x at most this far below its k lies in the bar of k for every k.
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

    /// A rank.
    #[inline]
    pub(super) fn rank(&self, random: &mut SplitMix64) -> u64 {
        loop {
            let u = self.to + random.unit() * (self.from - self.to);
            let x = inverse(u, self.exponent);
            // A NaN or an infinity becomes one of the ends.
            let nearest = ((x + 0.5) as u64).clamp(1, self.count);
            let k = nearest as f64;
            let in_bar = || u >= integral(k + 0.5, self.exponent) - height(k, self.exponent);
            // The first bar begins where the range of u does.
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
    // Rounding may carry t beyond −1, the bound that H has where s is above 1.
    let t = ((1.0 - exponent) * u).max(-1.0);
    if t.abs() < SMALL { (u * (1.0 - t / 2.0)).exp() } else { (u * (t.ln_1p() / t)).exp() }
}

#[cfg(test)]
#[path = "zipf_tests.rs"]
mod tests;
