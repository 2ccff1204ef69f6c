//! Memory that the data of a question need.
//!
//! Memory of a key is what the server reports for all keys by their number. While a store saves its
//! data, pages that change are copied: the machine needs the resident memory of the keys, and the
//! copies on top. The share that is copied grows with the writes per second. With the same writes
//! it does not depend on the amount of data: a save of more data takes longer in proportion.

use model::BackgroundWrite;
use std::collections::BTreeSet;

use super::commands;
use super::measured_memory::{MeasuredMemory, Saving};
use super::question::{Amount, Question, size_for, sizes};
use super::view::{Measurement, MemoryNeed, Missing, SavingNeed};
use crate::show;

/// Memory for the amount that a question asks about, on `shards` servers of a kind with `replicas`
/// each and `spare` ones beside them.
pub(super) struct Servers<'a> {
    pub(super) product: &'a str,
    pub(super) shards: u32,
    pub(super) spare: u32,
    pub(super) replicas: u32,
}

/// The memory that a question's data need, with its measurements. Errors: no measurement covers
/// them.
pub(super) fn need(
    question: &Question,
    amount: Amount,
    servers: &Servers<'_>,
    all: &[MeasuredMemory],
) -> Result<(MemoryNeed, Vec<Measurement>), Missing> {
    let of_product =
        || all.iter().filter(|memory| memory.deployment.family.product == servers.product);
    let keys = pick(question, servers, of_product(), "the memory of a key")?;
    let data_bytes = match (amount, question.value_bytes) {
        (Amount::Keys(keys_asked), _) => keys_asked as f64 * keys.most(),
        (Amount::Bytes(bytes), Some(value)) => bytes as f64 / value as f64 * keys.most(),
        (Amount::Bytes(bytes), None) => bytes as f64 * keys.most() / keys.value_bytes as f64,
    };
    let per_server = data_bytes / f64::from(servers.shards);
    let count = (servers.shards + servers.spare) * (1 + servers.replicas);
    let mut measurements = vec![Measurement::new(
        format!(
            "memory of a key with a value of {}: {}",
            stats::format_bytes(keys.value_bytes),
            show::with_bounds(&keys.bytes_per_key, |b| stats::format_bytes(b.round() as u64))
        ),
        &keys.origin,
    )];
    let while_saving = match question.writes_per_s {
        None => None,
        Some(writes) => {
            let of_one = writes as f64 / f64::from(servers.shards);
            let (need, measurement) = saved(question, servers, (of_one, per_server), of_product())?;
            measurements.push(measurement);
            Some(need)
        }
    };
    let need = MemoryNeed {
        value_bytes: keys.value_bytes,
        bytes_per_key: keys.bytes_per_key,
        data_bytes: data_bytes.ceil() as u64,
        maxmemory_bytes: per_server.ceil() as u64,
        total_bytes: (per_server * f64::from(count)).ceil() as u64,
        while_saving,
    };
    Ok((need, measurements))
}

/// The measurement that counts: that of as many servers, then of the most keys, then
/// the newest. Without a size in the question that with the most memory for each byte.
fn pick<'a>(
    question: &Question,
    servers: &Servers<'_>,
    all: impl Iterator<Item = &'a MeasuredMemory>,
    what: &str,
) -> Result<&'a MeasuredMemory, Missing> {
    let all: Vec<&MeasuredMemory> = all.collect();
    let measured: BTreeSet<u64> = all.iter().map(|memory| memory.value_bytes).collect();
    let missing = |text: String| Missing { text, commands: vec![commands::memory(question)] };
    let product = servers.product;
    if all.is_empty() {
        return Err(missing(format!("{what} was not measured on {product}")));
    }
    let rank = |m: &&&MeasuredMemory| {
        let is_alike = m.deployment.shards == Some(servers.shards);
        (is_alike, m.keys, m.origin.started_unix_ms)
    };
    let Some(asked) = question.value_bytes else {
        let of_byte = |m: &&MeasuredMemory| m.most() / m.value_bytes as f64;
        let most = all.iter().max_by(|a, b| of_byte(a).total_cmp(&of_byte(b)));
        return most.copied().ok_or_else(|| missing(format!("{what} was not measured")));
    };
    let size = size_for(asked, &measured);
    let own = all.iter().filter(|memory| Some(memory.value_bytes) == size);
    own.max_by_key(rank).copied().ok_or_else(|| {
        missing(format!(
            "{what} was not measured on {product} with values of {} (measured: {}; a size counts \
             if it was measured, or lies between two that were)",
            stats::format_bytes(asked),
            sizes(&measured)
        ))
    })
}

/// Memory of one server with `data_bytes` of keys while it saves them under `writes_per_s`: the
/// largest of what saves and rewrites were measured to need.
fn saved<'a>(
    question: &Question,
    servers: &Servers<'_>,
    (writes_per_s, data_bytes): (f64, f64),
    all: impl Iterator<Item = &'a MeasuredMemory>,
) -> Result<(SavingNeed, Measurement), Missing> {
    let with_save: Vec<(&MeasuredMemory, &Saving)> =
        all.filter_map(|memory| Some((memory, memory.saving.as_ref()?))).collect();
    let rates = with_save.iter().map(|(_, saving)| saving.writes_per_s);
    if let Some(most) = rates.reduce(f64::max).filter(|most| *most < writes_per_s) {
        return Err(Missing {
            text: format!(
                "{} of writes on one server during a save were not measured on {}, only {}, and \
                 more writes copy more",
                show::rate(writes_per_s),
                servers.product,
                show::rate(most),
            ),
            commands: vec![commands::memory(question)],
        });
    }
    let mut lack = None;
    let mut found: Vec<(&MeasuredMemory, &Saving)> = Vec::new();
    for write in BackgroundWrite::ALL {
        let own = with_save.iter().filter(|(_, saving)| saving.write == write);
        let enough = closest(own.filter(|(_, saving)| saving.writes_per_s >= writes_per_s));
        match pick(question, servers, enough.into_iter(), "the memory that a save copies") {
            Ok(memory) => found.extend(memory.saving.as_ref().map(|saving| (memory, saving))),
            Err(missing) => lack = lack.or(Some(missing)),
        }
    }
    let ratio = |saving: &Saving| saving.resident_ratio + saving.copied_share;
    let most = found.into_iter().max_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b)));
    match (most, lack) {
        (Some((memory, saving)), _) => Ok(saving.need(memory, data_bytes)),
        (None, Some(missing)) => Err(missing),
        (None, None) => Err(Missing { text: "no save was measured".into(), commands: vec![] }),
    }
}

/// For each size of values the save with the fewest writes, which is the closest to those asked
/// for; of several the newest.
fn closest<'a>(
    enough: impl Iterator<Item = &'a (&'a MeasuredMemory, &'a Saving)>,
) -> Vec<&'a MeasuredMemory> {
    let mut sorted: Vec<&(&MeasuredMemory, &Saving)> = enough.collect();
    sorted.sort_by(|(a, one), (b, other)| {
        let newer = b.origin.started_unix_ms.cmp(&a.origin.started_unix_ms);
        one.writes_per_s.total_cmp(&other.writes_per_s).then(newer)
    });
    let mut sizes = BTreeSet::new();
    sorted.retain(|(memory, _)| sizes.insert(memory.value_bytes));
    sorted.into_iter().map(|(memory, _)| *memory).collect()
}

impl Saving {
    /// Memory of a server with `data_bytes` of keys, with its measurement.
    fn need(&self, memory: &MeasuredMemory, data_bytes: f64) -> (SavingNeed, Measurement) {
        let Self { write, copied_share, writes_per_s, resident_ratio, blocks } = *self;
        let blocks = if blocks == 1 { ", in one block" } else { "" };
        let what = format!(
            "a {} copied {} of the data at {} of writes, and resident memory was {} the used \
             one{blocks}",
            write.name(),
            show::percent(copied_share),
            show::rate(writes_per_s),
            show::ratio(resident_ratio)
        );
        let need = SavingNeed {
            written_by: write.name(),
            copied_share,
            resident_ratio,
            writes_per_s,
            machine_bytes: (data_bytes * (resident_ratio + copied_share)).ceil() as u64,
        };
        (need, Measurement::new(what, &memory.origin))
    }
}
