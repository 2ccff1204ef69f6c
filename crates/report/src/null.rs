//! The rule of the null server: a target that is nearly as fast as a server that does nothing was
//! not measured, the generator was.

use model::calibration::{NULL_FACTOR_CHANCE, NULL_FACTOR_MIN};
use model::{Header, Kv, Load, NullRate, Product};

use crate::recorded::Recorded;
use crate::rules::BUSY_SHARE_MAX;
use crate::series::MeasuredPoint;
use crate::show;
use crate::validity::{Findings, busy, median};

/// Judges a key-value phase; a footnote where it could not be put on the null server, or where the
/// server was seen to have no rest while the generator had. A record that knows of no null server,
/// as those of older versions, is not judged.
pub(crate) fn check(
    phase: &MeasuredPoint<'_>,
    kv: &Kv,
    recorded: &Recorded,
    findings: &mut Findings,
) -> Option<String> {
    let header = &recorded.header;
    let known = recorded.null_rate(&phase.cell.id, phase.name)?;
    let label = phase.label();
    let Some(null) = known.rate_per_s else {
        let why = known.not_checked.as_deref().unwrap_or("no reason was recorded");
        return Some(format!("{label}: not checked against the null server: {why}"));
    };
    let (rate, seen, cure) = match phase.cell.load.in_phase(phase.name) {
        Load::Closed { .. } => {
            let whole = phase.operations.iter().find(|o| o.whole)?;
            let rate = median(whole.blocks.iter().map(|p| p.result.rate_per_s))?;
            let cure = "give it more --threads and CPUs, or measure on a larger machine";
            (rate, "the server answered", cure)
        }
        Load::Open { rate_per_s, .. } => {
            let cure = "plan a lower --rate, or give the generator more --threads and CPUs";
            (rate_per_s as f64, "the plan is", cure)
        }
        // Judged by its knee.
        Load::Ramp { .. } => return None,
    };
    let is_closed = matches!(phase.cell.load.in_phase(phase.name), Load::Closed { .. });
    let own_limit = || at_its_limit(busy(phase, kv)?, header, &phase.cell.target, known);
    match nearness(rate, null, || own_limit().filter(|_| is_closed)) {
        Nearness::Clear => return None,
        Nearness::Disturbed => disturbed(&format!("{label}: {seen}"), rate, null, findings),
        Nearness::Bound(factor) => findings.invalid.push(format!(
            "{label}: generator-bound, {seen} {} and the generator reaches {} on a null server \
             ({} as much, at least {NULL_FACTOR_MIN}× must be): {cure}",
            show::rate(rate),
            show::rate(null),
            show::ratio(factor),
        )),
        near => return near.note(&label, cure),
    }
    None
}

/// How near a rate is to what the generator reaches on the null server, in factors.
pub(crate) enum Nearness {
    /// Far enough.
    Clear,
    /// Near, but the target used that share of the CPUs it can use, and the generator had rest.
    OwnLimit(f64, f64),
    /// Too near to the limit to say.
    Undecided(f64),
    /// The generator may have been the limit.
    Bound(f64),
    /// The null server was slower, so that something disturbed it.
    Disturbed,
}

/// How near `rate` is to the null server's; `own_limit` tells the share of its CPUs that the target
/// used where it was seen to be the slower one ([`at_its_limit`]).
pub(crate) fn nearness(
    rate: f64,
    null_per_s: f64,
    own_limit: impl FnOnce() -> Option<f64>,
) -> Nearness {
    let factor = null_per_s / rate;
    if factor >= NULL_FACTOR_MIN * (1.0 + NULL_FACTOR_CHANCE) {
        return Nearness::Clear;
    }
    if factor < 1.0 {
        return Nearness::Disturbed;
    }
    match own_limit() {
        Some(share) => Nearness::OwnLimit(factor, share),
        None if factor >= NULL_FACTOR_MIN * (1.0 - NULL_FACTOR_CHANCE) => {
            Nearness::Undecided(factor)
        }
        None => Nearness::Bound(factor),
    }
}

/// Finds fault with a null server that was slower than `what` is said of.
pub(crate) fn disturbed(what: &str, rate: f64, null_per_s: f64, findings: &mut Findings) {
    let text = format!(
        "{what} {}, the null server only {}, so its measurement was disturbed and whether the \
         generator was the limit is not known: measure on a quieter machine",
        show::rate(rate),
        show::rate(null_per_s),
    );
    findings.not_steady("the null server was disturbed", text);
}

impl Nearness {
    /// The footnote where nothing follows from it.
    pub(crate) fn note(&self, label: &str, cure: &str) -> Option<String> {
        match self {
            Self::OwnLimit(factor, share) => Some(format!(
                "{label}: the generator reaches only {} as much on a null server, but the target \
                 used {} of the CPUs it can use and the generator had rest: the rate is the \
                 target's, its times contain waiting for the generator",
                show::ratio(*factor),
                show::percent(*share),
            )),
            Self::Undecided(factor) => Some(format!(
                "{label}: the generator reaches {} as much on a null server, too near to \
                 {NULL_FACTOR_MIN}× to say whether it was the limit ({cure})",
                show::ratio(*factor)
            )),
            Self::Clear | Self::Bound(_) | Self::Disturbed => None,
        }
    }
}

/// The share that a target used of the CPUs it can use, where it used nearly all of them while the
/// generator had rest: that is seen, not inferred, so the target was the slower one. `own` are the
/// CPUs that a thread of the generator used, `server` those of the server.
pub(crate) fn at_its_limit(
    (own, server): (f64, Option<f64>),
    header: &Header,
    target: &str,
    known: &NullRate,
) -> Option<f64> {
    let target = header.plan.target(target)?;
    // Redis carries commands out on one thread, and reads and writes on as many as it is told.
    let io_threads = target.settings.iter().find(|(name, _)| name.ends_with("io-threads"));
    let io_threads = io_threads.and_then(|(_, count)| count.parse::<u32>().ok()).unwrap_or(1);
    let has_one =
        target.product == Product::Redis && target.program.is_none_or(|p| p.has_one_thread);
    let usable =
        if has_one { io_threads } else { known.server_cpus }.clamp(1, known.server_cpus.max(1));
    let share = server? / f64::from(usable);
    (share > BUSY_SHARE_MAX && own <= BUSY_SHARE_MAX).then_some(share.min(1.0))
}
