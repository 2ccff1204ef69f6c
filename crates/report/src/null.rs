//! The rule of the null server: a target that is nearly as fast as a server that does nothing was
//! not measured, the generator was.

use model::calibration::{NULL_FACTOR_CHANCE, NULL_FACTOR_MIN};
use model::{Header, Kv, Load, NullRate, Product, Program};

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
        // Above what the store bears by intent: judged stage by stage.
        Load::Ramp { .. } => return None,
    };
    let factor = null / rate;
    if factor < 1.0 {
        let text = format!(
            "{label}: {seen} {}, the null server only {}, so its measurement was disturbed and \
             whether the generator was the limit is not known: measure on a quieter machine",
            show::rate(rate),
            show::rate(null),
        );
        findings.not_steady("the null server was disturbed", text);
        return None;
    }
    if factor < NULL_FACTOR_MIN * (1.0 + NULL_FACTOR_CHANCE) {
        let is_closed = matches!(phase.cell.load.in_phase(phase.name), Load::Closed { .. });
        if let Some(share) = at_its_limit(phase, kv, header, known).filter(|_| is_closed) {
            return Some(format!(
                "{label}: the generator reaches only {} as much on a null server, but the target \
                 used {} of the CPUs it can use and the generator had rest: the rate is the \
                 target's, its times contain waiting for the generator",
                show::ratio(null / rate),
                show::percent(share),
            ));
        }
        if factor >= NULL_FACTOR_MIN * (1.0 - NULL_FACTOR_CHANCE) {
            return Some(format!(
                "{label}: the generator reaches {} as much on a null server, too near to \
                 {NULL_FACTOR_MIN}× to say whether it was the limit ({cure})",
                show::ratio(factor)
            ));
        }
        findings.invalid.push(format!(
            "{label}: generator-bound, {seen} {} and the generator reaches {} on a null server \
             ({} as much, at least {NULL_FACTOR_MIN}× must be): {cure}",
            show::rate(rate),
            show::rate(null),
            show::ratio(null / rate),
        ));
    }
    None
}

/// The share that the target used of the CPUs it can use, where it used nearly all of them while
/// the generator had rest: that is seen, not inferred, so the target was the slower one.
pub(crate) fn at_its_limit(
    phase: &MeasuredPoint<'_>,
    kv: &Kv,
    header: &Header,
    known: &NullRate,
) -> Option<f64> {
    let (own, server) = busy(phase, kv)?;
    let target = header.plan.target(&phase.cell.target)?;
    // Redis and Valkey carry commands out on one thread, and read and write on as many as they are
    // told; KeyDB does all of it on several.
    let io_threads = target.settings.iter().find(|(name, _)| name.ends_with("io-threads"));
    let io_threads = io_threads.and_then(|(_, count)| count.parse::<u32>().ok()).unwrap_or(1);
    let has_one = target.product == Product::Redis && target.program != Some(Program::Keydb);
    let usable =
        if has_one { io_threads } else { known.server_cpus }.clamp(1, known.server_cpus.max(1));
    let share = server? / f64::from(usable);
    (share > BUSY_SHARE_MAX && own <= BUSY_SHARE_MAX).then_some(share.min(1.0))
}
