//! A figure of one target divided by that of another.

use model::Load;
use model::study::claims::{Figure, Ratio};
use stats::Doubt;

use super::context::{Context, Kind};
use super::judged::{Judged, RatioClaim, not_run, range, undecided};
use super::ramps::{judged, plain};
use super::rates::RatioOfRates;
use crate::blocks::strict_ratio_over_blocks;
use crate::ramp::{Ladder, StageResult, highest};
use crate::ranking::ratios_of_scores;
use crate::show;
use crate::view::{ClaimVerdict, Value};

impl Kind for Ratio {
    fn expected(&self) -> String {
        let Self { a, b, of, operation, clients, shares, min, max } = self;
        let range = range(*min, *max);
        let operation = operation.as_ref();
        let load = Load::closed(clients.unwrap_or_default());
        match of {
            Figure::Score => format!("score of {a} / {b} {range} ({load})"),
            Figure::Rate => {
                format!("{a} / {b} {range} ({}, {load})", operation.map_or("", String::as_str))
            }
            of if of.is_highest_rate() => {
                format!("{a} / {b} {range} (highest rate, {})", of.name())
            }
            of => {
                let of = operation
                    .map_or_else(|| words(*of).into(), |o| format!("{} of {o}", words(*of)));
                format!("{of}, {a} / {b}, {range} (at {} of the lower knee)", percents(shares))
            }
        }
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        match self.of {
            Figure::Rate => {
                let operation = self.operation.as_deref().unwrap_or_default();
                let clients = self.clients.unwrap_or_default();
                let ratio = context.ratio_of_rates(operation, clients, &self.a, &self.b)?;
                Ok(judge_rates(&ratio, said(self)))
            }
            Figure::Score => judge_scores(self, context),
            of if of.is_highest_rate() => judge_highest(self, context),
            of => judge_at_rates(self, of, context),
        }
    }
}

fn said(claim: &Ratio) -> RatioClaim<'_> {
    let Ratio { a, b, min, max, .. } = claim;
    RatioClaim { a, b, min: *min, max: max.unwrap_or(f64::INFINITY) }
}

fn judge_scores(claim: &Ratio, context: &Context<'_>) -> Result<Judged, Judged> {
    let Ratio { a, b, clients, .. } = claim;
    let place = (context.profile, clients.unwrap_or_default());
    let (free, wall) = ratios_of_scores(context.plan, context.phases, place, (a, b));
    let blocks = free.len();
    let Some(ratio) = strict_ratio_over_blocks(free, wall, context.plan.seed) else {
        let load = Load::closed(place.1);
        let what = format!("{a} and {b} have no block with all weighted operations with {load}");
        return Err(not_run(what));
    };
    match (Doubt::about(blocks), ratio.interval()) {
        (None, Some(ends)) => Ok(said(claim).judge(ratio, ends)),
        (Some(doubt), _) => Err(undecided(Some(ratio), doubt.to_string())),
        (None, None) => Err(undecided(Some(ratio), "the blocks yield no interval")),
    }
}

fn judge_highest(claim: &Ratio, context: &Context<'_>) -> Result<Judged, Judged> {
    let Ratio { a, b, of, .. } = claim;
    let limit_ns = context.plan.limit_ns;
    let read = |ladder: &Ladder<'_>| highest(ladder, *of, limit_ns);
    let ratio = context.ratio_of_ramps((a, b), read)?;
    Ok(match (context.lower_bound((a, b)), ratio.interval()) {
        (Some(target), _) => {
            undecided(Some(ratio), format!("{target} sustains more than measured"))
        }
        (None, Some(ends)) => said(claim).judge(ratio, ends),
        (None, None) => undecided(Some(ratio), "the blocks yield no interval"),
    })
}

fn judge_at_rates(claim: &Ratio, of: Figure, context: &Context<'_>) -> Result<Judged, Judged> {
    let Ratio { a, b, operation, shares, .. } = claim;
    let case = |share: &f64| {
        let place = format!("{} of the lower knee", show::percent(*share));
        let ratio = context.each((a, b), &place, |one, two| {
            let rate = share * one.last_passing()?.rate().min(two.last_passing()?.rate());
            let read = |ladder: &Ladder<'_>| {
                ladder.at_rate(rate, |stage| figure(stage, of, operation.as_deref()))
            };
            Some(read(one)? / read(two)?)
        });
        Ok(plain(ratio?, place))
    };
    let max = claim.max.unwrap_or(f64::INFINITY);
    judged(shares.iter().map(case), (claim.min, max), "share", |case| {
        format!("the {} of {a} is {} that of {b}", words(of), show::ratio(case.ratio.center))
    })
}

/// A figure of a stage.
fn figure(stage: &StageResult<'_>, of: Figure, operation: Option<&str>) -> Option<f64> {
    match of {
        Figure::P99 => stage.quantile_of_any(operation, 0.99),
        Figure::Mean => stage.mean(operation),
        Figure::Cpu => stage.server_cpus(),
        Figure::Memory => stage.resident_bytes(),
        Figure::Network => stage.network_bytes_per_op(),
        Figure::Rate | Figure::Score | Figure::Reached | Figure::Knee | Figure::WithinLimit => None,
    }
}

/// A figure at a rate, in words.
fn words(of: Figure) -> &'static str {
    match of {
        Figure::P99 => "p99",
        Figure::Mean => "mean response time",
        Figure::Cpu => "server CPU time",
        Figure::Memory => "resident memory",
        Figure::Network => "network traffic per request",
        Figure::Score => "score",
        Figure::Rate | Figure::Reached | Figure::Knee | Figure::WithinLimit => "rate",
    }
}

fn percents(shares: &[f64]) -> String {
    let shares: Vec<String> = shares.iter().map(|share| show::percent(*share)).collect();
    shares.join(" and ")
}

fn judge_rates(ratio: &RatioOfRates, said: RatioClaim<'_>) -> Judged {
    let Some(ends) = ratio.ends() else {
        let doubt = ratio.doubt().map_or_else(String::new, |doubt| doubt.to_string());
        return undecided(Some(ratio.value), doubt);
    };
    let judge = |ends| said.judge(ratio.value, ends);
    let Judged(verdict, measured, note) = judge(ends);
    let by_free_rate = show::bounds(&ratio.value).map(|ends| judge(ends).0);
    let clear = |verdict: &ClaimVerdict| *verdict != ClaimVerdict::Undecided;
    match (clear(&verdict), by_free_rate.filter(clear)) {
        (true, _) => with_table(ratio, said, (verdict, measured, note)),
        (false, Some(free)) => {
            let note = format!(
                "{free} only if the clients' own work between calls, or failures, are excluded"
            );
            Judged(verdict, measured, note)
        }
        (false, None) => Judged(verdict, measured, note),
    }
}

/// Without a difference in the table, there is none in a claim.
fn with_table(
    ratio: &RatioOfRates,
    said: RatioClaim<'_>,
    (verdict, measured, note): (ClaimVerdict, Option<Value>, String),
) -> Judged {
    match &ratio.open {
        Some(open) if said.requires_difference(verdict) => undecided(measured, open.as_str()),
        Some(open) if verdict == ClaimVerdict::Refuted => {
            let shown = said.no_difference(ratio.value.center);
            Judged(verdict, measured, format!("{shown}; {open}"))
        }
        Some(open) => Judged(verdict, measured, format!("{note}; {open}")),
        None => Judged(verdict, measured, note),
    }
}
