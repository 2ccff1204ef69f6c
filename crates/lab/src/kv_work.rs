//! The requests of a key-value cell: parses its texts into operations, keys and values.

use drivers::wire::Dialect;
use load::wire::{Inserting, Operation, Work};
use model::{FILL, Failure, Kv, Phase};
use std::sync::Arc;
use workloads::kv::{Distribution, Inserts, KeyChoice, KeyNames, Mix, values_of};

use crate::demand;
use crate::fleet::{Requests, What};
use crate::names::{self, unreadable};

/// All operations of a cell.
pub(crate) fn work(
    kv: &Kv,
    seed: u64,
    dialect: Dialect,
    names: &KeyNames,
) -> Result<Work, Failure> {
    let (sizes, values) = values_of(&kv.value_bytes, seed).map_err(unreadable)?;
    let ttl_s = (kv.ttl_s > 0).then_some(kv.ttl_s);
    let operations = kv.operations.iter().map(|operation| {
        let command = operation.command.as_deref();
        let name = &operation.name;
        let spelled = drivers::kv::operation(dialect, name, command, ttl_s, names, &sizes);
        spelled.map_err(unreadable)
    });
    let distribution: Distribution = kv.distribution.parse().map_err(unreadable)?;
    Ok(Work {
        operations: operations.collect::<Result<Vec<Operation>, Failure>>()?,
        mix: Mix::new(&vec![1.0; kv.operations.len()]).map_err(unreadable)?,
        keys: KeyChoice::new(distribution, kv.keys).map_err(unreadable)?,
        names: names.clone(),
        sizes,
        values: Arc::new(values),
        seed,
        verify_one_in: kv.verify_one_in,
        inserting: None,
        follows: kv.follows,
        keeps_writes: demand::unfollowed(kv).is_none(),
    })
}

/// Writes `keys` keys from `first` on, in order.
pub(crate) fn filling(
    kv: &Kv,
    dialect: Dialect,
    work: &Work,
    (first, keys): (u64, u64),
) -> Result<Work, Failure> {
    let ttl_s = (kv.ttl_s > 0).then_some(kv.ttl_s);
    let (name, command) = match kv.fill() {
        Some(command) => (FILL, Some(command)),
        None => ("set", None),
    };
    let write = dialect.operation(name, command, ttl_s, &work.names, &work.sizes);
    Ok(Work {
        operations: vec![write.map_err(unreadable)?],
        mix: Mix::new(&[1.0]).map_err(unreadable)?,
        keys: KeyChoice::consecutive(first, keys).map_err(unreadable)?,
        follows: false,
        ..work.clone()
    })
}

/// The operations of a phase by weight.
pub(crate) fn of_phase(work: &Work, kv: &Kv, phase: &Phase) -> Result<Work, Failure> {
    let weighted = |o: &&Operation| phase.mix.get(&o.name).is_some_and(|w| *w > 0.0);
    let mut operations: Vec<Operation> = work.operations.iter().filter(weighted).cloned().collect();
    let (mut keys, mut follows) = (work.keys.clone(), work.follows);
    if let Some(control) = &phase.control {
        let distribution: Distribution = kv.distribution.parse().map_err(unreadable)?;
        keys = KeyChoice::new(distribution, control.keys.min(kv.keys)).map_err(unreadable)?;
        follows = !control.sequence.is_empty();
        if follows {
            let named = |name: &String| operations.iter().find(|o| o.name == *name).cloned();
            operations = control.sequence.iter().filter_map(named).collect();
        }
    }
    let weights: Vec<f64> =
        operations.iter().filter_map(|o| phase.mix.get(&o.name).copied()).collect();
    let mut mix = Mix::new(&weights).map_err(unreadable)?;
    let at = operations.iter().position(|o| o.name == drivers::kv::INSERT);
    let inserting = at.map(|operation| Inserting {
        operation,
        which: Inserts::new(mix.shares()[operation].min(1.0)),
    });
    if let Some(Inserting { operation, .. }) = inserting.filter(|_| operations.len() > 1) {
        let others = weights.iter().enumerate().map(|(i, w)| if i == operation { 0.0 } else { *w });
        mix = Mix::new(&others.collect::<Vec<f64>>()).map_err(unreadable)?;
    }
    Ok(Work { operations, mix, keys, inserting, follows, ..work.clone() })
}

/// What a worker of a fleet sends, and the name of its phase.
pub(crate) fn of_requests(
    requests: &Requests,
    dialect: Dialect,
) -> Result<(Work, String), Failure> {
    let (prefix, kv, seed, what) = match requests {
        Requests::Cell { prefix, kv, seed, what } => (prefix, kv, *seed, what),
        Requests::Alike(form) => {
            return Ok((form.work().map_err(unreadable)?, form.name.clone()));
        }
    };
    let names = names::of(kv, prefix, seed).map_err(unreadable)?;
    let work = work(kv, seed, dialect, &names)?;
    match what {
        What::Fill { first, keys } => {
            Ok((filling(kv, dialect, &work, (*first, *keys))?, FILL.into()))
        }
        What::Phase(phase) => Ok((of_phase(&work, kv, phase)?, phase.name.clone())),
    }
}
