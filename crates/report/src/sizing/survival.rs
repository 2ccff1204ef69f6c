//! The rate at which a store survives the failure of a server, from records of failovers: as such,
//! and as a share of its highest rate.

use model::{Slo, Workload};
use std::collections::BTreeSet;

use super::commands;
use super::deployment::{Deployment, Family, OF_GROUP};
use super::origin::Origin;
use super::question::{Mix, Question, RateAsked, is_implied, size_for};
use super::record::{Reader, kv_of, mix, value_bytes};
use super::view::{DeploymentView, Measurement, Missing};
use crate::show;
use crate::view::{SurvivalView, Value};

/// Faults that are failures of a server.
const FAILURES: [&str; 3] = ["kill", "hang", "restart"];
/// Parts into which the lowest measured share is divided to find one that survives.
const PARTS: u32 = 5;

/// What a target with replicas survived.
#[derive(Clone, Debug)]
pub(super) struct Survival {
    origin: Origin,
    pub(super) deployment: Deployment,
    /// The limit within which clients were again after every fault.
    kept: Slo,
    /// Share of the highest rate of the healthy store; 0 if no measured share survived.
    pub(super) share: f64,
    /// The lowest rate at that share, requests per second to all primaries; 0 if none survived.
    lowest_per_s: f64,
    /// The lowest measured share.
    least_share: f64,
    value_bytes: u64,
    keys: u64,
    mix: Mix,
    /// The result in a sentence.
    sentence: String,
}

impl Survival {
    /// The measurement for an answer.
    pub(super) fn measurement(&self) -> Measurement {
        Measurement::new(self.sentence.clone(), &self.origin)
    }

    /// The rate of each primary that survived, requests per second; that of a cluster of unknown
    /// size as a whole.
    pub(super) fn per_primary(&self) -> f64 {
        self.lowest_per_s / f64::from(self.deployment.shards.unwrap_or(1))
    }

    /// Shares below all measured ones, percent.
    pub(super) fn lower_shares(&self) -> BTreeSet<u32> {
        let least = (self.least_share * 100.0).round() as u32;
        (1..PARTS).map(|part| least * part / PARTS).filter(|share| *share > 0).collect()
    }

    /// How it was measured otherwise than asked: `deployment` is to answer `mix` with `keys`, if
    /// they are known.
    pub(super) fn notes(
        &self,
        deployment: &Deployment,
        mix: &Mix,
        keys: Option<u64>,
    ) -> Vec<String> {
        let own = &self.deployment;
        let is_private = own.family.address.is_none();
        let (way, hint) = match (own.is_cluster, deployment.is_cluster) {
            (true, false) if is_private => {
                (" of a cluster", "; here something else must replace the primary, as Sentinels do")
            }
            (false, true) if is_private => (
                ", replaced by Sentinels",
                "; here the nodes of a cluster replace it themselves, after a timeout of their own",
            ),
            _ => ("", ""),
        };
        let primaries = |count: u32| match count {
            1 => "one primary".to_string(),
            several => format!("{several} primaries"),
        };
        let count = own.shards.unwrap_or(1);
        let is_other = own.shards != deployment.shards || !way.is_empty();
        let servers = is_other.then(|| {
            format!(
                "the failure of a server was measured with {}{way}, and each primary is to survive \
                 the same share of its rate, and at most the same rate{hint}",
                primaries(count)
            )
        });
        let other_mix = (!self.mix.is_same(mix)).then(|| {
            format!(
                "the failure of a server was measured under {}, not {mix}: more writes are more \
                 work for replicas",
                self.mix
            )
        });
        let in_one = self.keys / u64::from(count);
        let asked = keys.map(|keys| keys / u64::from(deployment.shards.unwrap_or(1)));
        let other_keys = asked.filter(|asked| *asked != in_one).map(|asked| {
            format!(
                "the failure of a server was measured with {} keys of each primary, not {}: with \
                 more, a server that comes back copies longer",
                show::commas(in_one),
                show::commas(asked)
            )
        });
        servers.into_iter().chain(other_mix).chain(other_keys).collect()
    }

    /// True for the same product at the same place, whatever the number of its servers.
    fn is_like(&self, deployment: &Deployment) -> bool {
        let (own, other) = (&self.deployment.family, &deployment.family);
        let place = |f: &Family| {
            let limits = (f.limits.clone(), f.tier.clone());
            (f.product.clone(), f.address.clone(), f.tls, f.host.clone(), limits)
        };
        let settings = |f: &Family| {
            let mut settings = f.settings.clone();
            settings.retain(|name, _| !OF_GROUP.contains(&&**name));
            settings
        };
        place(own) == place(other) && settings(own) == settings(other)
    }
}

impl Reader<'_> {
    /// What the targets of a record survived.
    pub(super) fn survivals(&self) -> Vec<Survival> {
        let all = self.view.happened.survivals.iter();
        all.filter_map(|survival| self.survival(survival)).collect()
    }

    fn survival(&self, survival: &SurvivalView) -> Option<Survival> {
        let mut cells = self.recorded.header.plan.cells.iter().filter(|cell| {
            (&cell.target, Workload::study_profile(&cell.workload))
                == (&survival.target, &*survival.workload)
        });
        let cell = cells.next()?;
        let kv = kv_of(cell)?;
        let deployment = self.deployment(cell)?;
        let of_target = self.view.happened.failovers.iter().filter(|f| f.target == cell.target);
        let lowest = |rate: &Value| rate.interval().map_or(rate.center, |(lo, _)| lo);
        let is_replaced = deployment.replicas > 0 || deployment.family.address.is_some();
        let is_usable = is_replaced && FAILURES.contains(&cell.workload.fault_name());
        let (value_bytes, mix) = value_bytes(kv).zip(mix(kv, &kv.actions.first()?.phase))?;
        is_usable.then(|| Survival {
            origin: self.origin(cell),
            deployment,
            kept: Slo::Percentile { thousandths: 99_000, limit_ns: survival.limit_ns },
            share: survival.share.unwrap_or(0.0),
            lowest_per_s: survival.rate_per_s.as_ref().map_or(0.0, lowest),
            least_share: of_target.filter_map(|f| f.share).fold(1.0, f64::min),
            value_bytes,
            keys: kv.keys,
            mix,
            sentence: survival.sentence.clone(),
        })
    }
}

/// What is known of the failure of one server of a deployment: by the newest run with such servers
/// and values, of as many shards if there is one, the lowest share. `None` if it was not measured
/// within the limits, or if more servers may fail.
pub(super) fn of<'a>(
    all: &'a [Survival],
    question: &Question,
    rate: &RateAsked,
    deployment: &Deployment,
) -> Option<&'a Survival> {
    let is_kept = |own: &&Survival| rate.slos.iter().all(|slo| is_implied(slo, &own.kept));
    let alike: Vec<&Survival> =
        all.iter().filter(|own| own.is_like(deployment)).filter(is_kept).collect();
    let measured: BTreeSet<u64> = alike.iter().map(|own| own.value_bytes).collect();
    let size = size_for(question.value_bytes.unwrap_or(1), &measured)?;
    let rank = |own: &Survival| {
        let is_other = own.deployment.is_cluster != deployment.is_cluster;
        (own.deployment.shards == deployment.shards, !is_other, own.origin.started_unix_ms)
    };
    let of_size = || alike.iter().copied().filter(|own| own.value_bytes == size);
    let best = of_size().map(rank).max().filter(|_| rate.survive == 1)?;
    let newest = of_size().filter(|own| rank(own) == best);
    newest
        .min_by(|a, b| a.share.total_cmp(&b.share).then(a.lowest_per_s.total_cmp(&b.lowest_per_s)))
}

/// What is missing to know whether a deployment survives; `None` if that is known, or if no failure
/// is asked for.
pub(super) fn missing(question: &Question, deployment: &DeploymentView) -> Option<Missing> {
    let rate = question.rate.as_ref()?;
    let is_known = deployment.rate.as_ref().is_some_and(|own| own.survived_share.is_some());
    let how_many = match rate.survive {
        0 => return None,
        _ if is_known => return None,
        1 => "a server fails".to_string(),
        several => format!("{several} servers fail at once"),
    };
    let values = question.value_bytes.map_or_else(String::new, |bytes| {
        format!(" with values of {}", stats::format_bytes(bytes))
    });
    let text = format!(
        "which rate of {} is within {} again after {how_many} was not measured{values}",
        deployment.named(),
        rate.limits()
    );
    let commands = commands::failover(question, rate, &deployment.measured, &BTreeSet::new());
    Some(Missing { text, commands })
}
