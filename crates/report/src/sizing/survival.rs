//! The share of its highest rate at which a store survives the failure of a server, from records of
//! failovers.

use model::{Slo, Workload};

use super::commands;
use super::deployment::{Deployment, Family, LISTEN};
use super::origin::Origin;
use super::question::{Question, RateAsked, is_implied};
use super::record::Reader;
use super::view::{DeploymentView, Measurement, Missing};
use crate::view::SurvivalView;

/// Faults that are failures of a server.
const FAILURES: [&str; 3] = ["kill", "hang", "restart"];
/// Settings that replace a failed server, and where servers listen; the others must be the same.
const OF_GROUP: [&str; 6] = [
    LISTEN,
    "sentinels",
    "down-after-milliseconds",
    "failover-timeout",
    "parallel-syncs",
    "cluster-node-timeout",
];

/// What a target with replicas survived.
#[derive(Clone, Debug)]
pub(super) struct Survival {
    origin: Origin,
    pub(super) deployment: Deployment,
    /// The limit within which clients were again after every fault.
    kept: Slo,
    /// Share of the highest rate of the healthy store; 0 if no measured share survived.
    pub(super) share: f64,
    /// The result in a sentence.
    sentence: String,
}

impl Survival {
    /// The measurement for an answer.
    pub(super) fn measurement(&self) -> Measurement {
        Measurement::new(self.sentence.clone(), &self.origin)
    }

    /// True for the same product at the same place, whatever the number of its servers.
    fn is_like(&self, deployment: &Deployment) -> bool {
        let (own, other) = (&self.deployment.family, &deployment.family);
        let place = |f: &Family| {
            (f.product.clone(), f.address.clone(), f.tls, f.host.clone(), f.limits.clone())
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
        let deployment = self.deployment(cell)?;
        let is_replaced = deployment.replicas > 0 || deployment.family.address.is_some();
        let is_usable = is_replaced && FAILURES.contains(&cell.workload.fault_name());
        is_usable.then(|| Survival {
            origin: self.origin(cell),
            deployment,
            kept: Slo::Percentile { thousandths: 99_000, limit_ns: survival.limit_ns },
            share: survival.share.unwrap_or(0.0),
            sentence: survival.sentence.clone(),
        })
    }
}

/// What is known of the failure of one server of a deployment: by the newest run with such servers,
/// of as many shards if there is one, the lowest share. `None` if it was not measured within the
/// limits, or if more servers may fail.
pub(super) fn of<'a>(
    all: &'a [Survival],
    rate: &RateAsked,
    deployment: &Deployment,
) -> Option<&'a Survival> {
    let covers = |own: &&Survival| {
        own.is_like(deployment) && rate.slos.iter().all(|slo| is_implied(slo, &own.kept))
    };
    let rank =
        |own: &&Survival| (own.deployment.shards == deployment.shards, own.origin.started_unix_ms);
    let covering = || all.iter().filter(covers);
    let best = covering().map(|own| rank(&own)).max().filter(|_| rate.survive == 1)?;
    covering().filter(|own| rank(own) == best).min_by(|a, b| a.share.total_cmp(&b.share))
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
    let text = format!(
        "which rate of `{}` is within {} again after {how_many} was not measured",
        deployment.target,
        rate.limits()
    );
    Some(Missing { text, commands: commands::failover(question, rate, deployment) })
}
