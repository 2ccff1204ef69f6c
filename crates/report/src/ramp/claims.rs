//! Claims judged by ramps.

use model::study::Expectation;
use stats::Doubt;

use super::against::{highest, paired};
use super::ladder::{Ladder, Ramp, StageResult};
use super::place::Controls;
use crate::blocks::ratio_over_blocks;
use crate::cases::{Case, CombinedVerdict, together};
use crate::claims::judged::{Judged, RatioClaim, not_run, undecided};
use crate::recorded::Recorded;
use crate::show;
use crate::view::{ClaimVerdict, RampView, Value};

/// Data to judge a claim: the ramps of one profile, each with its view.
struct ClaimContext<'a> {
    recorded: &'a Recorded,
    ramps: Vec<&'a (Ramp<'a>, RampView)>,
}

/// Judges a claim by the ramps of a profile.
pub(crate) fn judge(
    expect: &Expectation,
    profile: &str,
    recorded: &Recorded,
    all: &[(Ramp<'_>, RampView)],
) -> Judged {
    let ramps = all.iter().filter(|(_, view)| view.workload == profile).collect();
    let context = ClaimContext { recorded, ramps };
    match expect {
        Expectation::Capacity { a, b, figure, min, max } => {
            let limit_ns = recorded.header.plan.limit_ns;
            let read = |ladder: &Ladder<'_>| highest(ladder, *figure, limit_ns);
            context.ratio(a, b, read).map(|ratio| match (context.open(a, b), ratio.interval()) {
                (Some(target), _) => {
                    undecided(Some(ratio), format!("{target} sustains more than measured"))
                }
                (None, Some(ends)) => {
                    let max = max.unwrap_or(f64::INFINITY);
                    RatioClaim { a, b, min: *min, max }.judge(ratio, ends)
                }
                (None, None) => undecided(Some(ratio), "the blocks yield no interval"),
            })
        }
        Expectation::Diverges { a, b, low, high, min } => {
            context.diverges((a, b), (*low, *high), *min)
        }
        Expectation::Slower { operation, than, targets, shares, min, max } => {
            let range = (*min, max.unwrap_or(f64::INFINITY));
            context.slower((operation, than), targets, shares, range)
        }
        Expectation::Cpu { a, b, shares, min, max } => context.cpu((a, b), shares, (*min, *max)),
        Expectation::Steady { targets, cpu, within } => context.steady(targets, *cpu, *within),
        Expectation::Pick { target, over, share } => context.pick((target, over), *share),
        _ => Err(not_run("it is not a claim about ramps".into())),
    }
    .unwrap_or_else(|open| open)
}

impl ClaimContext<'_> {
    fn of(&self, target: &str) -> Result<(&Ramp<'_>, &RampView), Judged> {
        let found = self.ramps.iter().find(|(_, view)| view.target == target);
        let missing = || not_run(format!("{target} was not measured"));
        found.map(|(ramp, view)| (ramp, view)).ok_or_else(missing)
    }

    /// The first of both targets whose result is only a lower bound.
    fn open(&self, a: &str, b: &str) -> Option<String> {
        let mut views = [a, b].into_iter().filter_map(|target| Some(self.of(target).ok()?.1));
        views.find(|view| view.is_lower_bound()).map(|view| view.target.clone())
    }

    /// A ratio over blocks; undecided with too few blocks for a comparison.
    fn value(&self, values: Vec<f64>, what: &str) -> Result<Value, Judged> {
        let seed = self.recorded.header.plan.seed;
        let blocks = values.len();
        let Some(value) = ratio_over_blocks(values.into_iter(), seed) else {
            return Err(not_run(format!("{what} was not reached in any block")));
        };
        match Doubt::about(blocks) {
            Some(doubt) => Err(undecided(Some(value), format!("{what} was measured in {doubt}"))),
            None => Ok(value),
        }
    }

    /// Ratio of `read` of `a` to that of `b`.
    fn ratio(
        &self,
        a: &str,
        b: &str,
        read: impl Fn(&Ladder<'_>) -> Option<f64>,
    ) -> Result<Value, Judged> {
        let (values, others) = paired(self.of(a)?.0, self.of(b)?.0, read);
        let ratios = values.iter().zip(&others).map(|(a, b)| a / b).collect();
        self.value(ratios, &format!("this rate of both {a} and {b}"))
    }

    /// Values of `read` over both ramps of each block.
    fn each(
        &self,
        (a, b): (&str, &str),
        what: &str,
        read: impl Fn(&Ladder<'_>, &Ladder<'_>) -> Option<f64>,
    ) -> Result<Value, Judged> {
        let (one, two) = (self.of(a)?.0, self.of(b)?.0);
        let values = one.whole().filter_map(|ladder| {
            let twin = two.whole().find(|other| other.trial.block == ladder.trial.block)?;
            read(ladder, twin)
        });
        self.value(values.collect(), what)
    }

    fn diverges(
        &self,
        (a, b): (&str, &str),
        (low, high): (f64, f64),
        min: f64,
    ) -> Result<Judged, Judged> {
        let p99 = |ladder: &Ladder<'_>, rate| {
            ladder.at_any_rate(rate, |s: &StageResult<'_>| s.quantile(0.99))
        };
        let at = |share: f64| {
            let what = format!("{} of what {a} reached, on both,", show::percent(share));
            self.each((a, b), &what, |one, two| {
                let rate = share * one.reached();
                Some(p99(one, rate)? / p99(two, rate)?)
            })
        };
        let change = self.each((a, b), "both loads on both targets", |one, two| {
            let ratio = |share: f64| {
                let rate = share * one.reached();
                Some(p99(one, rate)? / p99(two, rate)?)
            };
            Some(ratio(high)? / ratio(low)?)
        })?;
        let words =
            |share: f64| at(share).map_or_else(|_| String::new(), |v| show::ratio(v.center));
        let note = format!(
            "p99 of {a} is {} that of {b} at {} of what {a} reached, and {} at {}",
            words(low),
            show::percent(low),
            words(high),
            show::percent(high)
        );
        Ok(one_sided(change, min, &note))
    }

    /// Judges only by the control phases: in the ramp's own pairs one operation always comes first,
    /// so its latency includes the effect of its position.
    fn slower(
        &self,
        (slow, fast): (&str, &str),
        targets: &[String],
        shares: &[f64],
        range: (f64, f64),
    ) -> Result<Judged, Judged> {
        let case = |target: &String| {
            let (apart, both_orders) = self.both_ways(target, (slow, fast))?;
            // Both must agree, so use the union of both intervals.
            let both = both_orders.interval();
            let ends = both.and_then(|both| apart.decided_with(Some(both)).interval());
            let caveat = format!(
                "{slow} takes {} as long as {fast} with independent arrivals, and {} over pairs \
                 of both orders{}",
                show::ratio_value(&apart),
                show::ratio_value(&both_orders),
                self.own_pairs(target, (slow, fast), shares)
            );
            Ok(Case { ratio: apart, ends, place: target.clone(), caveat })
        };
        judged(targets.iter().map(case), range, "target", |case| case.caveat.clone())
    }

    /// Ratio of one operation to another on a target: with independent arrivals, and over both
    /// orders.
    fn both_ways(&self, target: &str, names: (&str, &str)) -> Result<(Value, Value), Judged> {
        let (ramp, view) = self.of(target)?;
        let Some(controls) = Controls::of(ramp.cell) else {
            let why = "no control phases: in its pairs one operation always comes first";
            return Err(undecided(None, why));
        };
        if let Some(doubt) = view.place.as_ref().and_then(|place| place.doubt.as_ref()) {
            return Err(undecided(None, format!("control phases of {target}: {doubt}")));
        }
        let what = |how: &str| format!("{} and {} {how} on {target}", names.0, names.1);
        let apart = self.each((target, target), &what("with independent arrivals"), |ladder, _| {
            controls.independent(ladder, names, 0.99)
        });
        let both_orders = self.each((target, target), &what("in both orders"), |ladder, _| {
            controls.both_orders(ladder, names, 0.99)
        });
        Ok((apart?, both_orders?))
    }

    /// End of a sentence with the result of the ramp's own pairs at shares of the knee.
    fn own_pairs(&self, target: &str, (slow, fast): (&str, &str), shares: &[f64]) -> String {
        let at_share = |share: &f64| {
            let ratio = self.each((target, target), "it", |ladder, _| {
                let rate = share * ladder.last_passing()?.rate();
                let p99 =
                    |name: &str| ladder.at_rate(rate, |s: &StageResult<'_>| s.service_of(name));
                Some(p99(slow)? / p99(fast)?)
            });
            let ratio = show::ratio(ratio.ok()?.center);
            Some(format!("{ratio} at {} of the knee", show::percent(*share)))
        };
        let all: Vec<String> = shares.iter().filter_map(at_share).collect();
        if all.is_empty() {
            return String::new();
        }
        format!("; in the ramp's pairs, whose order is always the same, {}", all.join(", "))
    }

    fn cpu(
        &self,
        (a, b): (&str, &str),
        shares: &[f64],
        range: (f64, f64),
    ) -> Result<Judged, Judged> {
        let case = |share: &f64| {
            let place = format!("{} of the lower knee", show::percent(*share));
            let ratio = self.each((a, b), &place, |one, two| {
                let rate = share * one.last_passing()?.rate().min(two.last_passing()?.rate());
                let cpus = |ladder: &Ladder<'_>| ladder.at_rate(rate, StageResult::server_cpus);
                Some(cpus(one)? / cpus(two)?)
            });
            Ok(plain(ratio?, place))
        };
        judged(shares.iter().map(case), range, "share", |case| {
            format!("{a} uses {} the CPU time of {b}", show::ratio(case.ratio.center))
        })
    }

    fn steady(&self, targets: &[String], cpu: f64, within: f64) -> Result<Judged, Judged> {
        let case = |target: &String| {
            let what = format!(
                "a second stage of {target} up to its knee and below {} of a CPU",
                show::percent(cpu)
            );
            let ratio = self.each((target, target), &what, |ladder, _| {
                let held = ladder.up[..=ladder.knee.held?].iter();
                let idle = held.map(|i| &ladder.stages[*i]);
                let idle = idle.filter(|s| s.server_cpus().is_some_and(|used| used < cpu));
                let times: Vec<f64> = idle.filter_map(|s| s.quantile(0.99)).collect();
                let (first, others) = times.split_first()?;
                others.iter().copied().reduce(f64::max).map(|most| most / first)
            });
            Ok(plain(ratio?, target.clone()))
        };
        judged(targets.iter().map(case), (0.0, within), "target", |case| {
            format!(
                "with the server below {} of a CPU, p99 rises to {} its value at the lowest stage",
                show::percent(cpu),
                show::ratio(case.ratio.center)
            )
        })
    }

    fn pick(&self, (target, over): (&str, &str), share: f64) -> Result<Judged, Judged> {
        let knees = self.ratio(target, over, |ladder| Some(ladder.last_passing()?.rate()))?;
        let place = format!("{} of the lower knee", show::percent(share));
        let speed = self.each((target, over), &place, |one, two| {
            let rate = share * one.last_passing()?.rate().min(two.last_passing()?.rate());
            let p99 =
                |ladder: &Ladder<'_>| ladder.at_rate(rate, |s: &StageResult<'_>| s.quantile(0.99));
            Some(p99(two)? / p99(one)?)
        })?;
        let edge = 1.0 / (1.0 + self.recorded.header.plan.equivalence_zone);
        let surely_behind = |v: &Value| v.interval().is_some_and(|(_, hi)| hi < edge);
        let not_behind = |v: &Value| v.interval().is_some_and(|(lo, _)| lo >= edge);
        let sustains = self.open(target, over).map_or_else(String::new, |bounded| {
            format!(" (for {bounded} only a lower bound is known)")
        });
        let figures = format!(
            "{target} sustains {} the rate of {over}{sustains}, and answers {} as fast at {place}",
            show::ratio_value(&knees),
            show::ratio_value(&speed)
        );
        let (verdict, pick) = match (surely_behind(&knees), surely_behind(&speed)) {
            (true, true) => (ClaimVerdict::Refuted, format!("prefer {over} here")),
            (true, false) => (ClaimVerdict::Refuted, format!("prefer {over} here for high rates")),
            (false, true) => (ClaimVerdict::Refuted, format!("prefer {over} here for low latency")),
            _ if not_behind(&knees) && not_behind(&speed) => {
                (ClaimVerdict::Confirmed, format!("{target} is preferable here too"))
            }
            _ => (ClaimVerdict::Undecided, "neither is clearly preferable here".into()),
        };
        Ok(Judged(verdict, Some(knees), format!("{pick}: {figures}")))
    }
}

impl StageResult<'_> {
    /// 99th percentile of an operation's service time, as measured by clients.
    fn service_of(&self, operation: &str) -> Option<f64> {
        let found = self.result.operations.iter().find(|o| o.operation == operation)?;
        (!found.service.is_empty()).then(|| found.service.quantile_ns(0.99) as f64)
    }
}

fn plain(ratio: Value, place: String) -> Case {
    Case { ratio, ends: ratio.interval(), place, caveat: String::new() }
}

/// Judges all cases together; `describe` explains the deciding one.
fn judged(
    cases: impl Iterator<Item = Result<Case, Judged>>,
    range: (f64, f64),
    of_each: &str,
    describe: impl Fn(&Case) -> String,
) -> Result<Judged, Judged> {
    let cases: Vec<Case> = cases.collect::<Result<_, _>>()?;
    let Some(CombinedVerdict { verdict, words, case }) = together(&cases, range, None) else {
        return Err(not_run(format!("the claim names no {of_each}")));
    };
    Ok(Judged(verdict, Some(case.ratio), format!("{words}, where {}", describe(case))))
}

/// The same for a single ratio that must be at least `min`.
fn one_sided(ratio: Value, min: f64, note: &str) -> Judged {
    let (verdict, word) = match ratio.interval() {
        Some((_, hi)) if hi < min => (ClaimVerdict::Refuted, "does not hold"),
        Some((lo, _)) if min <= lo => (ClaimVerdict::Confirmed, "holds"),
        _ => (ClaimVerdict::Undecided, "cannot be decided"),
    };
    Judged(verdict, Some(ratio), format!("{word}: {note}"))
}
