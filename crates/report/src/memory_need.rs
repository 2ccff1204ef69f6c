//! How much memory data need, and what a store keeps of its rate when they outgrow it.
//!
//! Memory for each byte of values: the memory of a key, as the server reports it, by the length of
//! its value, which may be in a file; with a save, times 1 + the share of the data that the save
//! copied under the profile's writes. The share of a rate is the ratio of rates in the same block;
//! its interval is that of a geometric mean over blocks.

use model::{Cell, Fact, Load, Workload};
use stats::format_bytes;

use crate::blocks::ratio_over_blocks;
use crate::recorded::Recorded;
use crate::series::{MeasuredPoint, Operation};
use crate::show;
use crate::view::{FactView, MemoryNeedView, OutgrownStep, OutgrownView, Value};

/// The least share of a rate that counts as bearable in sentences.
const BEARABLE_SHARE: f64 = 0.5;

/// Two needs are the same if their keys differ by less: profiles have different numbers of keys in
/// tables of the same size.
const SAME_WITHIN: f64 = 0.05;

/// Facts about the memory of a key.
const KEYS: [&str; 2] = [Fact::BYTES_PER_KEY, Fact::FLASH_KEY_BYTES];

/// Each target and profile with a memory limit whose server reports the memory of a key, once for
/// the same need.
pub(crate) fn memory_needs(recorded: &Recorded, facts: &[FactView]) -> Vec<MemoryNeedView> {
    let mut needs: Vec<MemoryNeedView> = Vec::new();
    let limited = |fact: &&FactView| {
        recorded.header.plan.cells.iter().any(|cell| {
            (&cell.target, cell.workload.profile()) == (&fact.target, fact.workload.as_str())
                && cell.workload.memory().is_some()
        })
    };
    let tells = |fact: &&FactView| KEYS.contains(&fact.name.as_str());
    let all = facts.iter().filter(tells);
    for own in all.filter(limited) {
        let named = |name: &str| {
            let is_same = |f: &&FactView| {
                (&f.workload, &f.target, &f.load) == (&own.workload, &own.target, &own.load)
            };
            facts.iter().filter(is_same).find(|fact| fact.name == name).map(|fact| fact.value)
        };
        let (Some(keys), Some(values)) = (named("fill_keys"), named("fill_value_bytes")) else {
            continue;
        };
        let is_own = |cell: &&Cell| cell.workload.profile() == own.workload;
        let of_collections =
            recorded.header.plan.cells.iter().find(is_own).is_some_and(
                |cell| matches!(&cell.workload, Workload::Kv(kv) if kv.fill().is_some()),
            );
        let what = if of_collections { "a collection with" } else { "a value of" };
        let need = need((own, what), values.center / keys.center, copied(&named));
        let is_known = |known: &&mut MemoryNeedView| {
            let same = known.bytes_per_key.center / need.bytes_per_key.center;
            known.target == need.target && (same - 1.0).abs() < SAME_WITHIN
        };
        match needs.iter_mut().find(is_known) {
            Some(known) if known.copied_share.is_none() => *known = need,
            Some(_) => {}
            None => needs.push(need),
        }
    }
    needs
}

/// What a background write copied, of the data, with the words for the time of such a write.
fn copied(named: &dyn Fn(&str) -> Option<Value>) -> Option<(Value, &'static str)> {
    let save = named("save_copied_share").map(|share| (share, "it is saved"));
    save.or_else(|| Some((named("rewrite_copied_share")?, "its log is rewritten")))
}

fn need(
    (own, what): (&FactView, &str),
    value_bytes: f64,
    written: Option<(Value, &str)>,
) -> MemoryNeedView {
    let copied_share = written.map(|(share, _)| share);
    let copied = copied_share.map_or(0.0, |share| share.center);
    let planned_per_byte = own.value.center / value_bytes * (1.0 + copied);
    let gib = |factor: f64| format_bytes((factor * f64::from(1 << 30)).round() as u64);
    let [value, key] = [value_bytes, own.value.center].map(|n| format_bytes(n.round() as u64));
    let with_save = written.map_or_else(String::new, |(_, words)| {
        format!(
            ", and {} while {words} under these writes, which copies {}",
            gib(planned_per_byte),
            show::share_of_all(copied)
        )
    });
    let alone = gib(own.value.center / value_bytes);
    let target = &own.target;
    let (keeps, needed) = if own.name == Fact::FLASH_KEY_BYTES {
        let keeps = format!("{what} {value} in its file and {key} for its key in memory");
        (keeps, format!("{alone} of memory for keys alone"))
    } else {
        (format!("{what} {value} in {key} of memory"), alone)
    };
    MemoryNeedView {
        workload: own.workload.clone(),
        target: target.clone(),
        value_bytes,
        bytes_per_key: own.value,
        copied_share,
        planned_per_byte,
        sentence: format!("{target} keeps {keeps}: 1 GiB of such values needs {needed}{with_save}"),
    }
}

/// An operation of a target with one amount of data.
struct Amount<'a> {
    data: f64,
    operation: &'a Operation<'a>,
}

/// Profile, target, operation and load of a curve.
type Place<'a> = (&'a str, &'a str, &'a str, &'a Load);

/// Every operation of a target in a profile whose least data fit in memory and whose most do not.
pub(crate) fn outgrown(recorded: &Recorded, phases: &[MeasuredPoint<'_>]) -> Vec<OutgrownView> {
    let mut curves: Vec<(Place<'_>, Vec<Amount<'_>>)> = Vec::new();
    for phase in phases {
        let workload = &phase.cell.workload;
        let Some(size) = workload.data_size().filter(|_| workload.swaps()) else { continue };
        let operation = phase.operation(phase.name);
        let (Some(data), Some(operation)) = (size.of_memory, operation) else { continue };
        let cell = phase.cell;
        let place: Place<'_> = (size.profile, &cell.target, phase.name, &cell.load);
        let amount = Amount { data, operation };
        match curves.iter_mut().find(|(known, _)| *known == place) {
            Some((_, amounts)) => amounts.push(amount),
            None => curves.push((place, vec![amount])),
        }
    }
    let seed = recorded.header.plan.seed;
    curves.into_iter().filter_map(|(place, amounts)| curve(place, amounts, seed)).collect()
}

fn curve(place: Place<'_>, mut amounts: Vec<Amount<'_>>, seed: u64) -> Option<OutgrownView> {
    amounts.sort_by(|a, b| a.data.total_cmp(&b.data));
    let (least, rest) = amounts.split_first()?;
    if least.data > 1.0 || rest.last()?.data <= 1.0 {
        return None;
    }
    let step = |amount: &Amount<'_>| {
        let usable = amount.operation.blocks.iter().filter(|block| block.usable());
        let ratios = usable.filter_map(|own| {
            let mut others = least.operation.blocks.iter().filter(|block| block.usable());
            let other = others.find(|other| other.block == own.block)?;
            Some(own.result.rate_per_s / other.result.rate_per_s)
        });
        let share = ratio_over_blocks(ratios.collect::<Vec<f64>>().into_iter(), seed)?;
        Some(OutgrownStep { data: amount.data, share })
    };
    let steps: Vec<OutgrownStep> = rest.iter().filter_map(step).collect();
    let sentence = sentence(place, least.data, &steps)?;
    let (workload, target, operation, load) = place;
    Some(OutgrownView {
        workload: workload.into(),
        target: target.into(),
        operation: operation.into(),
        load: load.clone(),
        from: least.data,
        steps,
        sentence,
    })
}

fn sentence(
    (_, target, operation, load): Place<'_>,
    from: f64,
    steps: &[OutgrownStep],
) -> Option<String> {
    let each = |step: &OutgrownStep| {
        format!("{} at {} times", show::share_of_all(step.share.center), step.data)
    };
    let all: Vec<String> = steps.iter().map(each).collect();
    let bearable = steps.iter().take_while(|step| step.share.center >= BEARABLE_SHARE).last();
    let up_to = bearable.map_or(from, |step| step.data);
    (!all.is_empty()).then(|| {
        format!(
            "{target}, {operation} with {load}: of its rate with {from} times the memory of data \
             it keeps {}; at least half of it up to {up_to} times",
            show::listed(&all)
        )
    })
}
