//! What several servers of a family carry: measured as such, or the rate of one times the measured
//! ratio of their rates. Numbers of servers that were not measured are never inferred.

use super::coverage::Base;
use super::deployment::Deployment;
use super::evidence::{MeasuredRate, Reach, Scaling};
use super::question::{Mix, RateAsked};
use super::survival::Survival;
use super::view::Measurement;
use crate::show;
use crate::view::Value;

/// A rate that a number of servers answers within the limits.
pub(super) struct Capacity<'a> {
    pub(super) deployment: &'a Deployment,
    /// The measurement within the limits that it follows from.
    pub(super) base: &'a Base<'a>,
    /// The measured number of servers, if it is another one than in `base`.
    pub(super) scaled: Option<&'a Scaling>,
    /// Requests per second, with its whole interval.
    pub(super) rate: Value,
    /// Lower end of that, requests per second.
    pub(super) lowest_per_s: f64,
    /// What is known of the failure of a server; `None` if it is not asked for or not known.
    pub(super) survival: Option<&'a Survival>,
}

/// What limits the rate that may be counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// The share of the measured rate that the question allows.
    Headroom,
    /// The share of the measured rate at which the failure of a server was survived.
    SurvivedShare,
    /// The rate of each primary at which the failure of a server was survived.
    SurvivedRate,
}

impl Capacity<'_> {
    /// Servers that carry the rate; 1 for a cluster of unknown size.
    pub(super) fn shards(&self) -> u32 {
        self.deployment.shards.unwrap_or(1)
    }

    /// What may be counted on, requests per second, and what limits it.
    pub(super) fn usable(&self, rate: &RateAsked) -> (f64, Limit) {
        let of_headroom = (self.lowest_per_s * rate.headroom, Limit::Headroom);
        let Some(survival) = self.survival else { return of_headroom };
        let of_share = (self.lowest_per_s * survival.share, Limit::SurvivedShare);
        let of_rate = (survival.per_primary() * f64::from(self.shards()), Limit::SurvivedRate);
        [of_share, of_rate].into_iter().fold(of_headroom, |a, b| if b.0 < a.0 { b } else { a })
    }

    /// What may be counted on, requests per second.
    pub(super) fn usable_per_s(&self, rate: &RateAsked) -> f64 {
        self.usable(rate).0
    }

    /// The servers to run: with the replicas that survived.
    pub(super) fn deployed(&self) -> Deployment {
        let measured = self.survival.map_or(0, |survival| survival.deployment.replicas);
        let replicas = self.deployment.replicas.max(measured);
        Deployment { replicas, ..self.deployment.clone() }
    }

    /// True if the servers answer at most this.
    pub(super) fn is_highest(&self) -> bool {
        self.base.measured.reach == Reach::Highest
    }

    /// The measurements that it follows from.
    pub(super) fn measurements(&self, rate: &RateAsked) -> Vec<Measurement> {
        let measured: &MeasuredRate = self.base.measured;
        let bound = match measured.reach {
            Reach::Highest => "highest rate",
            Reach::AtLeast(_) => "rate answered",
        };
        let what = format!(
            "{bound} of {} with {}, values of {}, {} keys: {}{}",
            measured.mix,
            rate.limits(),
            stats::format_bytes(measured.value_bytes),
            show::commas(measured.keys),
            show::rate_value(&whole(&measured.rate)),
            measured.server_cpus.map_or_else(String::new, |cpus| {
                format!(", with {cpus:.2} CPUs used by its servers")
            })
        );
        let scaled = self.scaled.map(|scaling| {
            let what = format!(
                "rate of {} by that of {}, {} with {}: {}",
                scaling.to.target,
                scaling.from.target,
                scaling.mix,
                scaling.load,
                show::ratio_value(&whole(&scaling.ratio))
            );
            Measurement::new(what, &scaling.origin)
        });
        let survived = self.survival.map(Survival::measurement);
        let rate = Measurement::new(what, &measured.origin);
        [rate].into_iter().chain(scaled).chain(survived).collect()
    }
}

/// A value with the interval that verdicts use as its displayed ends.
pub(super) fn whole(value: &Value) -> Value {
    let ends = value.interval();
    Value::new(value.center, ends.map(|(lo, _)| lo), ends.map(|(_, hi)| hi))
}

/// Every measured number of servers with its rate: for each that with the highest lower end,
/// ascending within a family and number of replicas.
pub(super) fn capacities<'a>(bases: &'a [Base<'a>], scalings: &'a [Scaling]) -> Vec<Capacity<'a>> {
    let mut all: Vec<Capacity<'_>> = bases.iter().map(direct).collect();
    for base in bases {
        let is_measured = |to: &Deployment| bases.iter().any(|b| b.measured.deployment.is_same(to));
        let mut targets: Vec<&Deployment> = Vec::new();
        let from = |s: &&Scaling| s.from.is_same(&base.measured.deployment);
        for scaling in scalings.iter().filter(from).filter(|s| !is_measured(&s.to)) {
            if !targets.iter().any(|known| known.is_same(&scaling.to)) {
                targets.push(&scaling.to);
            }
        }
        all.extend(targets.into_iter().filter_map(|to| by_ratio(base, to, scalings)));
    }
    all.sort_by(|a, b| {
        let place = |c: &Capacity<'a>| (&c.deployment.family, c.deployment.replicas, c.shards());
        place(a).cmp(&place(b)).then(b.lowest_per_s.total_cmp(&a.lowest_per_s))
    });
    all.dedup_by(|later, first| later.deployment.is_same(first.deployment));
    all
}

fn direct<'a>(base: &'a Base<'a>) -> Capacity<'a> {
    Capacity {
        deployment: &base.measured.deployment,
        base,
        scaled: None,
        rate: whole(&base.measured.rate),
        lowest_per_s: base.lowest_per_s,
        survival: None,
    }
}

/// The rate of `to` from that of `base`: its own measurement times the lowest ratio over the
/// operations, by the newest run that compares both for all of them.
fn by_ratio<'a>(
    base: &'a Base<'a>,
    to: &'a Deployment,
    scalings: &'a [Scaling],
) -> Option<Capacity<'a>> {
    let measured = base.measured;
    let is_pair = |s: &&Scaling| {
        s.from.is_same(&measured.deployment)
            && s.to.is_same(to)
            && s.value_bytes == measured.value_bytes
    };
    let mut pairs: Vec<&Scaling> = scalings.iter().filter(is_pair).collect();
    pairs.sort_by_key(|s| std::cmp::Reverse(s.origin.started_unix_ms));
    let newest = |is_own: &dyn Fn(&Mix) -> bool| pairs.iter().find(|s| is_own(&s.mix)).copied();
    let lowest = |s: &Scaling| s.ratio.interval().map(|(lo, _)| lo);
    let whole_mix = newest(&|mix| mix.is_same(&measured.mix));
    let scaling = whole_mix.or_else(|| {
        let alone = |name: &str| newest(&|mix| (mix.share(name) - 1.0).abs() < f64::EPSILON);
        let each: Vec<&Scaling> = measured.mix.names().map(alone).collect::<Option<_>>()?;
        each.into_iter()
            .min_by(|a, b| lowest(a).unwrap_or(0.0).total_cmp(&lowest(b).unwrap_or(0.0)))
    })?;
    let ((lo, hi), (least, most)) = (scaling.ratio.interval()?, measured.rate.interval()?);
    let center = scaling.ratio.center * measured.rate.center;
    Some(Capacity {
        deployment: to,
        base,
        scaled: Some(scaling),
        rate: Value::new(center, Some(lo * least), Some(hi * most)),
        lowest_per_s: lo * base.lowest_per_s,
        survival: None,
    })
}
