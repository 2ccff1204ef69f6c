//! The rule of the null server: a target that is nearly as fast as a server that does nothing was
//! not measured, the generator was.

use model::{Load, NullRate};

use crate::rules::NULL_FACTOR_MIN;
use crate::series::MeasuredPhase;
use crate::show;
use crate::validity::{Findings, median};

/// What the generator reached with this phase's load on the null server, requests a second.
pub(crate) fn rate_of(phase: &MeasuredPhase<'_>, null_rates: &[NullRate]) -> Option<f64> {
    of(phase, null_rates).and_then(|known| known.rate_per_s)
}

fn of<'a>(phase: &MeasuredPhase<'_>, null_rates: &'a [NullRate]) -> Option<&'a NullRate> {
    null_rates.iter().find(|n| n.cell == phase.cell.id && n.phase == phase.name)
}

/// Judges a key-value phase; a footnote where it could not be put on the null server. A record
/// that knows of no null server, as those of older versions, is not judged.
pub(crate) fn check(
    phase: &MeasuredPhase<'_>,
    null_rates: &[NullRate],
    findings: &mut Findings,
) -> Option<String> {
    let known = of(phase, null_rates)?;
    let label = phase.label();
    let Some(null) = known.rate_per_s else {
        let why = known.not_checked.as_deref().unwrap_or("no reason was recorded");
        return Some(format!("{label}: not checked against the null server: {why}"));
    };
    let (rate, seen, cure) = match phase.cell.load {
        Load::Closed { .. } => {
            let whole = phase.operations.iter().find(|o| o.whole)?;
            let rate = median(whole.points.iter().map(|p| p.result.rate_per_s))?;
            let cure = "give it more --threads and CPUs, or measure on a larger machine";
            (rate, "the server answered", cure)
        }
        Load::Open { rate_per_s, .. } => {
            let cure = "plan a lower --rate, or give the generator more --threads and CPUs";
            (rate_per_s as f64, "the plan is", cure)
        }
    };
    if rate * NULL_FACTOR_MIN > null {
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
