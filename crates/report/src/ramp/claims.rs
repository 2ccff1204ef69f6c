//! Statements that only ramps can judge.

use model::study::Expectation;
use stats::Doubt;

use super::against::{highest, paired};
use super::ladder::{Ladder, Ramp, StageResult};
use super::place::Controls;
use crate::blocks::ratio_over_blocks;
use crate::cases::{Case, CombinedVerdict, together};
use crate::claims::judged::{Judged, Said, not_run, undecided};
use crate::recorded::Recorded;
use crate::show;
use crate::view::{ClaimVerdict, RampView, Value};

/// What such a statement is judged by: the ramps of one profile, each with its view.
struct ClaimContext<'a> {
    recorded: &'a Recorded,
    ramps: Vec<&'a (Ramp<'a>, RampView)>,
}

/// Judges a statement on the ramps of a profile.
pub(crate) fn judge(
    expect: &Expectation,
    profile: &str,
    recorded: &Recorded,
    all: &[(Ramp<'_>, RampView)],
) -> Judged {
    let ramps = all.iter().filter(|(_, view)| view.workload == profile).collect();
    let ground = ClaimContext { recorded, ramps };
    match expect {
        Expectation::Capacity { a, b, figure, min, max } => {
            let limit_ns = recorded.header.plan.limit_ns;
            let read = |ladder: &Ladder<'_>| highest(ladder, *figure, limit_ns);
            ground.ratio(a, b, read).map(|ratio| match (ground.open(a, b), ratio.interval()) {
                (Some(target), _) => {
                    undecided(Some(ratio), format!("{target} sustains more than was shown"))
                }
                (None, Some(ends)) => {
                    let max = max.unwrap_or(f64::INFINITY);
                    Said { a, b, min: *min, max }.judge(ratio, ends)
                }
                (None, None) => undecided(Some(ratio), "the blocks bound nothing"),
            })
        }
        Expectation::Diverges { a, b, low, high, min } => {
            ground.diverges((a, b), (*low, *high), *min)
        }
        Expectation::Slower { operation, than, targets, shares, min, max } => {
            let range = (*min, max.unwrap_or(f64::INFINITY));
            ground.slower((operation, than), targets, shares, range)
        }
        Expectation::Cpu { a, b, shares, min, max } => ground.cpu((a, b), shares, (*min, *max)),
        Expectation::Steady { targets, cpu, within } => ground.steady(targets, *cpu, *within),
        Expectation::Pick { target, over, share } => ground.pick((target, over), *share),
        _ => Err(not_run("it is no statement about ramps".into())),
    }
    .unwrap_or_else(|open| open)
}

impl ClaimContext<'_> {
    fn of(&self, target: &str) -> Result<(&Ramp<'_>, &RampView), Judged> {
        let found = self.ramps.iter().find(|(_, view)| view.target == target);
        let missing = || not_run(format!("{target} was not measured"));
        found.map(|(ramp, view)| (ramp, view)).ok_or_else(missing)
    }

    /// The first of both targets of which only the least is known that it sustains.
    fn open(&self, a: &str, b: &str) -> Option<String> {
        let mut views = [a, b].into_iter().filter_map(|target| Some(self.of(target).ok()?.1));
        views.find(|view| view.is_lower_bound()).map(|view| view.target.clone())
    }

    /// A ratio over blocks; with fewer than comparisons need nothing is decided.
    fn value(&self, values: Vec<f64>, what: &str) -> Result<Value, Judged> {
        let seed = self.recorded.header.plan.seed;
        let blocks = values.len();
        let Some(value) = ratio_over_blocks(values.into_iter(), seed) else {
            return Err(not_run(format!("{what} was not reached in any block")));
        };
        match Doubt::about(blocks) {
            Some(doubt) => Err(undecided(Some(value), format!("{what} rests on {doubt}"))),
            None => Ok(value),
        }
    }

    /// `read` of `a` by that of `b`.
    fn ratio(
        &self,
        a: &str,
        b: &str,
        read: impl Fn(&Ladder<'_>) -> Option<f64>,
    ) -> Result<Value, Judged> {
        let (values, others) = paired(self.of(a)?.0, self.of(b)?.0, read);
        let ratios = values.iter().zip(&others).map(|(a, b)| a / b).collect();
        self.value(ratios, &format!("it of {a} and {b}"))
    }

    /// What `read` reads of both ramps of each block.
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
        let seen = format!(
            "p99 of {a} is {} that of {b} at {} of what {a} reached, and {} at {}",
            words(low),
            show::percent(low),
            words(high),
            show::percent(high)
        );
        Ok(one_sided(change, min, &seen))
    }

    /// Judged by the controls alone: in the ramp's own pairs one operation always comes first, so
    /// their times tell its place as well.
    fn slower(
        &self,
        (slow, fast): (&str, &str),
        targets: &[String],
        shares: &[f64],
        range: (f64, f64),
    ) -> Result<Judged, Judged> {
        let case = |target: &String| {
            let (apart, both_orders) = self.both_ways(target, (slow, fast))?;
            // Both must agree: the range must hold all that either of them leaves open.
            let both = both_orders.interval();
            let ends = both.and_then(|both| apart.decided_with(Some(both)).interval());
            let beside = format!(
                "{slow} takes {} as long as {fast} where each arrives by itself, and {} over pairs \
                 of both orders{}",
                show::ratio_value(&apart),
                show::ratio_value(&both_orders),
                self.own_pairs(target, (slow, fast), shares)
            );
            Ok(Case { ratio: apart, ends, place: target.clone(), caveat: beside })
        };
        judged(targets.iter().map(case), range, "target", |case| case.caveat.clone())
    }

    /// One operation by another on a target: where each arrives by itself, and over both orders.
    fn both_ways(&self, target: &str, names: (&str, &str)) -> Result<(Value, Value), Judged> {
        let (ramp, view) = self.of(target)?;
        let Some(controls) = Controls::of(ramp.cell) else {
            let why = "no control in this record: in its pairs one operation always comes first";
            return Err(undecided(None, why));
        };
        if let Some(doubt) = view.place.as_ref().and_then(|place| place.doubt.as_ref()) {
            return Err(undecided(None, format!("of the controls of {target}, {doubt}")));
        }
        let what = |how: &str| format!("{} and {} {how} on {target}", names.0, names.1);
        let apart = self.each((target, target), &what("each by itself"), |ladder, _| {
            controls.apart(ladder, names, 0.99)
        });
        let both_orders = self.each((target, target), &what("in both orders"), |ladder, _| {
            controls.both_orders(ladder, names, 0.99)
        });
        Ok((apart?, both_orders?))
    }

    /// What the ramp's own pairs say of it at shares of the knee, for the end of a sentence.
    fn own_pairs(&self, target: &str, (slow, fast): (&str, &str), shares: &[f64]) -> String {
        let seen = |share: &f64| {
            let ratio = self.each((target, target), "it", |ladder, _| {
                let rate = share * ladder.held()?.rate();
                let p99 =
                    |name: &str| ladder.at_rate(rate, |s: &StageResult<'_>| s.service_of(name));
                Some(p99(slow)? / p99(fast)?)
            });
            let ratio = show::ratio(ratio.ok()?.center);
            Some(format!("{ratio} at {} of the knee", show::percent(*share)))
        };
        let all: Vec<String> = shares.iter().filter_map(seen).collect();
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
                let rate = share * one.held()?.rate().min(two.held()?.rate());
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
                "p99 rises to {} of what it is at the lowest stage, below {} of a CPU",
                show::ratio(case.ratio.center),
                show::percent(cpu)
            )
        })
    }

    fn pick(&self, (target, over): (&str, &str), share: f64) -> Result<Judged, Judged> {
        let knees = self.ratio(target, over, |ladder| Some(ladder.held()?.rate()))?;
        let place = format!("{} of the lower knee", show::percent(share));
        let speed = self.each((target, over), &place, |one, two| {
            let rate = share * one.held()?.rate().min(two.held()?.rate());
            let p99 =
                |ladder: &Ladder<'_>| ladder.at_rate(rate, |s: &StageResult<'_>| s.quantile(0.99));
            Some(p99(two)? / p99(one)?)
        })?;
        let edge = 1.0 / (1.0 + self.recorded.header.plan.equivalence_zone);
        let surely_behind = |v: &Value| v.interval().is_some_and(|(_, hi)| hi < edge);
        let not_behind = |v: &Value| v.interval().is_some_and(|(lo, _)| lo >= edge);
        let sustains = self.open(target, over).map_or_else(String::new, |bounded| {
            format!(" (of {bounded} only the least that it sustains is known)")
        });
        let seen = format!(
            "{target} sustains {} the rate of {over}{sustains}, and answers {} as fast at {place}",
            show::ratio_value(&knees),
            show::ratio_value(&speed)
        );
        let (verdict, pick) = match (surely_behind(&knees), surely_behind(&speed)) {
            (true, true) => (ClaimVerdict::Refuted, format!("here rather {over}")),
            (true, false) => (ClaimVerdict::Refuted, format!("here {over} for high rates")),
            (false, true) => (ClaimVerdict::Refuted, format!("here {over} for short times")),
            _ if not_behind(&knees) && not_behind(&speed) => {
                (ClaimVerdict::Confirmed, format!("here as well {target}"))
            }
            _ => (ClaimVerdict::Undecided, "here nothing speaks clearly for one of them".into()),
        };
        Ok(Judged(verdict, Some(knees), format!("{pick}: {seen}")))
    }
}

impl StageResult<'_> {
    /// 99th percentile of an operation's service time, as clients time their calls.
    fn service_of(&self, operation: &str) -> Option<f64> {
        let found = self.result.operations.iter().find(|o| o.operation == operation)?;
        (!found.service.is_empty()).then(|| found.service.quantile_ns(0.99) as f64)
    }
}

fn plain(ratio: Value, place: String) -> Case {
    Case { ratio, ends: ratio.interval(), place, caveat: String::new() }
}

/// All cases together, with what is told of the one that decides.
fn judged(
    cases: impl Iterator<Item = Result<Case, Judged>>,
    range: (f64, f64),
    of_each: &str,
    told: impl Fn(&Case) -> String,
) -> Result<Judged, Judged> {
    let cases: Vec<Case> = cases.collect::<Result<_, _>>()?;
    let Some(CombinedVerdict { verdict, words, case }) = together(&cases, range, None) else {
        return Err(not_run(format!("it names no {of_each}")));
    };
    Ok(Judged(verdict, Some(case.ratio), format!("{words}, where {}", told(case))))
}

/// The same of a single ratio that must be at least `min`.
fn one_sided(ratio: Value, min: f64, note: &str) -> Judged {
    let (verdict, word) = match ratio.interval() {
        Some((_, hi)) if hi < min => (ClaimVerdict::Refuted, "does not hold"),
        Some((lo, _)) if min <= lo => (ClaimVerdict::Confirmed, "holds"),
        _ => (ClaimVerdict::Undecided, "cannot be decided"),
    };
    Judged(verdict, Some(ratio), format!("{word}: {note}"))
}
