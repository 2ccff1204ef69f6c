//! Facts about stores: those recorded, and those derived from the events of a trial.

use model::{
    BackgroundWrite, Cell, EventKind, Fact, MemoryUse, Point, Series, Silence, Trial, TrialEvent,
    Workload,
};
use std::collections::BTreeMap;

use crate::fault_facts::{
    self, LOST, P99_BACK, READ_BACK, TWO_PRIMARIES, UNAVAILABLE, UNKNOWN, UNTIL_END,
};
use crate::recorded::Recorded;
use crate::search;
use crate::server_roles;
use crate::show;
use crate::trial_number::TrialNumber;
use crate::view::{EventView, FactView, Value};

/// Minimum number of blocks for which the range of a fact is shown.
const ENDS_FROM: usize = 3;

/// Rate and duration of the fill; recorded by almost every trial.
const FILL_RATE: &str = "fill_per_s";
const FILL_TIME: &str = "fill_ns";

/// Importance of a fact to the reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// A summary can do without it.
    Detail,
    Plain,
    /// A study measures it on purpose.
    Requested,
}

/// How the values of all blocks are combined.
#[derive(Clone, Copy)]
enum Over {
    /// The arithmetic mean.
    Mean,
    /// The largest count, for faults: good blocks do not make up for a bad one.
    Largest,
    /// The smallest count, for sample sizes.
    Smallest,
}

/// Known facts by name, with their labels. Other facts appear under their own names, with the mean.
/// Times for which an operation was unavailable also rank as [`Rank::Requested`].
const KNOWN: [(&str, &str, Rank, Over); 48] = [
    (Fact::BYTES_PER_KEY, "memory of a key", Rank::Plain, Over::Mean),
    (Fact::FLASH_KEY_BYTES, "memory of a key with its value in the file", Rank::Plain, Over::Mean),
    ("flash_keys_share", "keys with their value in the file", Rank::Plain, Over::Mean),
    ("index_share", "memory of these, of that of all keys", Rank::Plain, Over::Mean),
    (Fact::SESSION_MEMORY_BYTES, "memory of a session", Rank::Plain, Over::Mean),
    (Fact::SESSION_RESIDENT_BYTES, "resident memory of a session", Rank::Plain, Over::Mean),
    (Fact::SESSION_DISK_BYTES, "disk space of a session", Rank::Plain, Over::Mean),
    ("save_copied_bytes", "copied during the save", Rank::Plain, Over::Mean),
    ("save_copied_share", "copied during the save, of the data", Rank::Plain, Over::Mean),
    ("rewrite_copied_bytes", "copied during the rewrite", Rank::Plain, Over::Mean),
    ("rewrite_copied_share", "copied during the rewrite, of the data", Rank::Plain, Over::Mean),
    ("fork_ns", "fork", Rank::Plain, Over::Mean),
    (Fact::HUGE_PAGE_BYTES, "in huge pages after the fill", Rank::Plain, Over::Mean),
    ("memory_limit_bytes", "memory limit", Rank::Plain, Over::Mean),
    ("swap_peak_bytes", "peak swap use", Rank::Plain, Over::Mean),
    ("swap_written_bytes", "written to swap", Rank::Plain, Over::Mean),
    ("swap_read_bytes", "read from swap", Rank::Plain, Over::Mean),
    ("fill_keys", "keys filled", Rank::Plain, Over::Mean),
    ("fill_value_bytes", "their values", Rank::Plain, Over::Mean),
    (FILL_RATE, "filled", Rank::Detail, Over::Mean),
    (FILL_TIME, "filling", Rank::Detail, Over::Mean),
    ("rate_before_save_per_s", "rate before the save", Rank::Plain, Over::Mean),
    ("save_lowest_rate_share", "lowest rate during the save, of that", Rank::Plain, Over::Mean),
    ("save_recovery_ns", "rate recovered after save start", Rank::Requested, Over::Mean),
    ("save_recovery_share", "recovery, of the save's length", Rank::Detail, Over::Mean),
    ("save_ns", "save", Rank::Plain, Over::Mean),
    ("rate_before_rewrite_per_s", "rate before the rewrite", Rank::Plain, Over::Mean),
    ("rewrite_lowest_rate_share", REWRITE_LOWEST, Rank::Plain, Over::Mean),
    ("rewrite_recovery_ns", "rate recovered after rewrite start", Rank::Requested, Over::Mean),
    ("rewrite_recovery_share", "recovery, of the rewrite's length", Rank::Detail, Over::Mean),
    ("rewrite_ns", "rewrite of the log", Rank::Plain, Over::Mean),
    ("rate_before_fault_per_s", "rate before the fault", Rank::Plain, Over::Mean),
    ("fault_lowest_rate_share", "lowest rate after the fault, of that", Rank::Plain, Over::Mean),
    ("fault_recovery_ns", "rate recovered after the fault", Rank::Plain, Over::Mean),
    ("fault_ns", "length of the migration", Rank::Plain, Over::Mean),
    ("p99_before_fault_ns", "p99 before the fault", Rank::Plain, Over::Mean),
    ("p99_worst_ns", "worst p99 after the fault", Rank::Plain, Over::Largest),
    (P99_BACK, "p99 within the limit after the fault", Rank::Plain, Over::Mean),
    ("outage_ns", "longest outage of a server", Rank::Plain, Over::Mean),
    ("resync_ns", "resync of the restored server", Rank::Plain, Over::Mean),
    (TWO_PRIMARIES, "two primaries at once", Rank::Plain, Over::Mean),
    ("resync_copied_bytes", "copied during the resync", Rank::Plain, Over::Mean),
    ("cpu_before_fault_share", "busiest server before the fault", Rank::Plain, Over::Mean),
    ("cpu_peak_share", "busiest server after the fault", Rank::Plain, Over::Largest),
    (LOST, "acknowledged writes lost", Rank::Requested, Over::Largest),
    (READ_BACK, "keys checked for lost writes", Rank::Detail, Over::Smallest),
    (
        WITHIN_LIMITS,
        "highest rate within the limits, of the most answered",
        Rank::Plain,
        Over::Mean,
    ),
    (UNKNOWN, "writes of unknown outcome", Rank::Plain, Over::Largest),
];

const WITHIN_LIMITS: &str = "within_limits_share";
const REWRITE_LOWEST: &str = "lowest rate during the rewrite, of that";

/// Window over which the variation of a rate is judged, nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;

/// Facts of a phase on a store with swap: suffix of the name, and label after the phase's.
const OF_PHASES: [(&str, &str); 3] = [
    (STALL, "longest stall"),
    (VARIATION, "variation of its rate per second"),
    (SLOW, "seconds below a tenth of the median rate"),
];
const STALL: &str = ".stall_ns";
const VARIATION: &str = ".variation_share";
const SLOW: &str = ".slow_seconds_share";

/// Suffix of the name of the time until the rate recovered from an event.
const RECOVERY: &str = "_recovery_ns";

/// Events whose effect is estimated on the workload of a cell: start, end if there is one, and
/// name. What may belong to a resync is not.
fn around_in(cell: &Cell) -> impl Iterator<Item = (EventKind, Option<EventKind>, &'static str)> {
    let own = BackgroundWrite::ALL.into_iter().filter(|w| !cell.workload.may_be_resync(*w));
    let writes = own.map(|write| {
        let [begins, ends] = write.events();
        (begins, Some(ends), write.name())
    });
    let faults = EventKind::FAULTS.map(|(begins, ends)| (begins, ends, "fault"));
    writes.chain(faults)
}

/// The facts of every cell, combined over its blocks.
pub(crate) fn facts(recorded: &Recorded) -> Vec<FactView> {
    recorded.header.plan.cells.iter().flat_map(|cell| of_cell(recorded, cell)).collect()
}

/// The events of every target.
pub(crate) fn events(recorded: &Recorded) -> Vec<EventView> {
    let of_cell = |cell: &Cell| -> Vec<EventView> {
        let trials = recorded.latest(&cell.id);
        let of_trial = |trial: &Trial| {
            let mut events: Vec<&TrialEvent> = trial.events.iter().collect();
            events.sort_by_key(|event| event.at_ns);
            let replaced = server_roles::replaced(&events);
            let each = events.into_iter().zip(replaced);
            let view = |(event, of): (_, Option<&str>)| event_view(cell, trial, (event, of));
            each.map(view).collect::<Vec<_>>()
        };
        trials.into_iter().flat_map(of_trial).collect()
    };
    recorded.header.plan.cells.iter().flat_map(of_cell).collect()
}

fn event_view(
    cell: &Cell,
    trial: &Trial,
    (event, replaced): (&TrialEvent, Option<&str>),
) -> EventView {
    let series = trial.series.iter().find(|series| series.covers(event.at_ns));
    EventView {
        target: cell.target.clone(),
        workload: cell.workload.profile().into(),
        load: cell.load.clone(),
        block: trial.block,
        phase: series.map(|series| series.phase.clone()),
        at_s: (event.at_ns - series.map_or(0, |series| series.begun_ns)) as f64 / 1e9,
        kind: event.kind,
        what: words(cell, event.kind),
        subject: event.subject.clone(),
        in_place_of: replaced.map(String::from),
    }
}

/// Description of an event.
fn words(cell: &Cell, kind: EventKind) -> &'static str {
    let may_be_resync = cell.workload.may_be_resync(BackgroundWrite::Save);
    match kind {
        EventKind::SaveBegan if may_be_resync => "save or resync began",
        EventKind::SaveEnded if may_be_resync => "save or resync ended",
        _ => kind.words(),
    }
}

fn of_cell(recorded: &Recorded, cell: &Cell) -> Vec<FactView> {
    let mut found: Vec<FactView> = Vec::new();
    let limit_ns = recorded.header.plan.limit_ns;
    let trials = recorded.latest(&cell.id);
    let measured = trials.iter().filter(|trial| !trial.points.is_empty()).count();
    for trial in trials {
        let share = search::share_of_peak(&recorded.header.plan, cell, trial);
        let of_search =
            share.map(|share| TrialNumber::by_clients(WITHIN_LIMITS.into(), Some(share)));
        let of_trial = of_trial(cell, trial, limit_ns).into_iter().chain(of_search);
        let numbers = data(cell, trial).into_iter().chain(of_trial);
        for TrialNumber { name, source, value } in numbers {
            let same = |fact: &FactView| fact.name == name && fact.source == source;
            let known = found.iter().position(same);
            let at = known.unwrap_or(found.len());
            if known.is_none() {
                found.push(empty(cell, &name, &source));
            }
            let fact = &mut found[at];
            match value {
                Some(value) => {
                    fact.by_block.insert(trial.block, value);
                }
                None => fact.beyond += 1,
            }
        }
    }
    for fact in &mut found {
        fact.value = value(&fact.name, &fact.by_block);
        fact.shown = shown(fact) + &of_fewer(fact, measured);
    }
    let read_back = found.iter().find(|fact| fact.name == READ_BACK).map(|f| f.by_block.clone());
    if let Some(lost) = found.iter_mut().find(|fact| fact.name == LOST) {
        let checked = read_back.unwrap_or_default();
        lost.shown = of_sample(&lost.by_block, &checked) + &of_fewer(lost, measured);
    }
    found.sort_by_key(|fact| fact.is_detail);
    found
}

/// Number of writes lost in all blocks, of those checked there, and the same in the worst block.
fn of_sample(lost: &BTreeMap<u32, f64>, checked: &BTreeMap<u32, f64>) -> String {
    let counts = |lost: f64, checked: f64| {
        let [lost, checked] = [lost, checked].map(|count| show::commas(count.round() as u64));
        format!("{lost} of {checked}")
    };
    let all = counts(lost.values().sum(), checked.values().sum()) + " checked";
    let (_, most) = ends(lost);
    if most <= 0.0 || lost.len() < 2 {
        return all;
    }
    let worst = lost.iter().filter(|(_, count)| **count >= most);
    let sample = worst.filter_map(|(block, _)| checked.get(block).copied()).reduce(f64::min);
    let worst = counts(most, sample.unwrap_or(0.0));
    format!("{all}, {worst} of them in the worst of {} blocks", lost.len())
}

/// Note that only some of the measured blocks have the number; empty if all do.
fn of_fewer(fact: &FactView, measured: usize) -> String {
    match fact.by_block.len() + fact.beyond as usize {
        blocks if blocks < measured => format!("; from {blocks} of {measured} blocks"),
        _ => String::new(),
    }
}

/// Blocks whose largest or smallest count is shown; empty for a single block and for means.
fn in_blocks(name: &str, by_block: &BTreeMap<u32, f64>) -> String {
    let (blocks, (least, most)) = (by_block.len(), ends(by_block));
    match over(name) {
        Over::Mean => String::new(),
        _ if blocks < 2 => String::new(),
        Over::Largest if least < most => format!(" in the worst of {blocks} blocks"),
        Over::Smallest if least < most => format!(" or more in each of {blocks} blocks"),
        _ => format!(" in each of {blocks} blocks"),
    }
}

fn empty(cell: &Cell, name: &str, source: &str) -> FactView {
    FactView {
        target: cell.target.clone(),
        workload: cell.workload.profile().into(),
        load: cell.load.clone(),
        name: name.into(),
        label: label(name),
        is_detail: known(name).is_some_and(|(_, rank, _)| rank == Rank::Detail),
        source: source.into(),
        value: Value::alone(0.0),
        shown: String::new(),
        by_block: BTreeMap::new(),
        beyond: 0,
    }
}

fn known(name: &str) -> Option<(&'static str, Rank, Over)> {
    let found = KNOWN.iter().find(|(own, ..)| *own == name);
    found.map(|(_, label, rank, over)| (*label, *rank, *over))
}

/// Whether a study measures the fact of that name on purpose.
pub(crate) fn is_requested(name: &str) -> bool {
    name.ends_with(UNAVAILABLE) || known(name).is_some_and(|(_, rank, _)| rank == Rank::Requested)
}

fn label(name: &str) -> String {
    if let Some((label, ..)) = known(name) {
        return label.into();
    }
    if let Some(operation) = name.strip_suffix(UNAVAILABLE) {
        return format!("{operation} unavailable");
    }
    let of_phase = OF_PHASES
        .iter()
        .find_map(|(suffix, label)| Some(format!("{}: {label}", name.strip_suffix(suffix)?)));
    of_phase.unwrap_or_else(|| name.replace('_', " "))
}

fn over(name: &str) -> Over {
    known(name).map_or(Over::Mean, |(.., over)| over)
}

/// The value with its range, in the unit that the name implies, or a note that it exceeds the
/// measured time.
fn shown(fact: &FactView) -> String {
    let name = fact.name.as_str();
    let is_silence = name.ends_with(UNAVAILABLE);
    let number =
        |value: f64| if is_silence { show::silence(value) } else { show::named(name, value) };
    let endless = if name == TWO_PRIMARIES { UNTIL_END } else { "not before the end" };
    let beyond = match (fact.beyond, fact.by_block.len()) {
        (0, _) => String::new(),
        (_, 0) => return endless.into(),
        (1, _) => format!("; in one block {endless}"),
        (beyond, _) => format!("; in {beyond} blocks {endless}"),
    };
    let center = number(fact.value.center);
    let (least, most) = ends(&fact.by_block);
    if name.ends_with(RECOVERY) && most <= 0.0 {
        let below = show::percent(stats::dip::BACK_SHARE);
        return format!("never fell below {below} of it, chance aside{beyond}");
    }
    if name.ends_with(STALL) && most <= 0.0 {
        let shortest = show::named(name, Silence::SHORTEST_NS as f64);
        return format!("none of {shortest} or more{beyond}");
    }
    let is_mean = matches!(over(name), Over::Mean);
    let ends = if is_mean && least < most && fact.by_block.len() >= ENDS_FROM {
        format!(" [{}, {}]", number(least), number(most))
    } else {
        in_blocks(name, &fact.by_block)
    };
    center + &ends + &beyond
}

/// The smallest and the largest value.
fn ends(by_block: &BTreeMap<u32, f64>) -> (f64, f64) {
    let values = || by_block.values().copied();
    (values().reduce(f64::min).unwrap_or(0.0), values().reduce(f64::max).unwrap_or(0.0))
}

fn value(name: &str, by_block: &BTreeMap<u32, f64>) -> Value {
    let (least, most) = ends(by_block);
    let center = match over(name) {
        Over::Mean => by_block.values().sum::<f64>() / by_block.len().max(1) as f64,
        Over::Largest => most,
        Over::Smallest => least,
    };
    if by_block.len() < ENDS_FROM {
        return Value::alone(center);
    }
    Value::new(center, Some(least), Some(most))
}

fn of_trial(cell: &Cell, trial: &Trial, limit_ns: Option<u64>) -> Vec<TrialNumber> {
    // Rows contain those.
    let of_rows = [Fact::STALE_MEMBERS, Fact::STORE_BYTES, Fact::SERVER_MEMORY_BYTES];
    let own = trial.facts.iter().filter(|fact| !of_rows.contains(&fact.name.as_str()));
    let recorded = own.map(|fact| TrialNumber {
        name: fact.name.clone(),
        source: fact.source.clone(),
        value: Some(fact.value),
    });
    let mut all: Vec<TrialNumber> = trial.fill.iter().flat_map(filling).chain(recorded).collect();
    all.extend(BackgroundWrite::ALL.iter().filter_map(|write| copied_share(trial, *write)));
    all.extend(trial.memory.iter().flat_map(memory));
    for point in trial.points.iter().filter(|point| point.stage.is_none()) {
        if let Some(series) = trial.series(&point.phase) {
            all.extend(around(cell, trial, series));
            all.extend(fault_facts::of_phase(trial, (point, series), limit_ns));
            if trial.memory.as_ref().is_some_and(|memory| memory.swap.is_some()) {
                all.extend(unsteadiness(point, series));
            }
        }
    }
    all.extend(fault_facts::writes(trial));
    all
}

/// Number of keys that a key-value store was filled with, and the bytes of their values if all have
/// the same size.
fn data(cell: &Cell, trial: &Trial) -> Vec<TrialNumber> {
    let Workload::Kv(kv) = &cell.workload else { return Vec::new() };
    let Some(filled) = trial.fill.as_ref().and_then(Point::whole) else { return Vec::new() };
    let keys = filled.counts.ok as f64;
    let values = kv.fill().map_or(1, |command| command.matches("__data__").count()) as f64;
    let bytes =
        kv.value_bytes.parse::<u64>().ok().map(|bytes| ("fill_value_bytes", bytes as f64 * values));
    let told = [("fill_keys", 1.0)].into_iter().chain(bytes);
    told.map(|(name, of_one)| TrialNumber::by_clients(name.into(), Some(keys * of_one))).collect()
}

/// Memory copied during a background write, by the memory of all keys filled, both as the server
/// reports them.
fn copied_share(trial: &Trial, write: BackgroundWrite) -> Option<TrialNumber> {
    let source = "INFO";
    let own = |name: &str| {
        let fact = trial.facts.iter().find(|fact| fact.name == name && fact.source == source);
        fact.map(|fact| fact.value).filter(|value| *value > 0.0)
    };
    let keys = trial.fill.as_ref().and_then(Point::whole)?.counts.ok as f64;
    let data_bytes = own(Fact::BYTES_PER_KEY)? * keys;
    let value = own(write.copied_bytes()).filter(|_| data_bytes > 0.0)? / data_bytes;
    let name = format!("{}_copied_share", write.name());
    Some(TrialNumber { name, source: source.into(), value: Some(value) })
}

/// How fast a store was filled.
fn filling(fill: &Point) -> Vec<TrialNumber> {
    let rate = fill.whole().map(|whole| (FILL_RATE, whole.rate_per_s));
    let numbers = rate.into_iter().chain([(FILL_TIME, fill.length_ns as f64)]);
    numbers.map(|(name, value)| TrialNumber::by_clients(name.into(), Some(value))).collect()
}

/// A target's memory limit and swap use.
fn memory(memory: &MemoryUse) -> Vec<TrialNumber> {
    let mut all = vec![("memory_limit_bytes", memory.limit_bytes)];
    if let Some(swap) = &memory.swap {
        all.push(("swap_peak_bytes", swap.peak_bytes.unwrap_or(swap.used_bytes)));
        all.push(("swap_written_bytes", swap.written_bytes));
        all.push(("swap_read_bytes", swap.read_bytes));
    }
    let number = |(name, bytes): (&str, u64)| TrialNumber {
        name: name.into(),
        source: "memory group".into(),
        value: Some(bytes as f64),
    };
    all.into_iter().map(number).collect()
}

/// Effect of the first event of each kind on the rate and the operations of a steady phase.
fn around(cell: &Cell, trial: &Trial, series: &Series) -> Vec<TrialNumber> {
    let mut all = Vec::new();
    for (begins, ends, name) in around_in(cell) {
        let mut events = trial.events.iter().filter(|event| series.covers(event.at_ns));
        let Some(began) = events.find(|event| event.kind == begins) else { continue };
        let ended = events.find(|event| Some(event.kind) == ends);
        let at = |ns: u64| ((ns - series.begun_ns) / series.interval_ns.max(1)) as usize;
        let last = series.done_per_interval.len();
        let span = (at(began.at_ns), ended.map_or(last, |ended| at(ended.at_ns)));
        if let Some(ended) = ended {
            let length_ns = (ended.at_ns - began.at_ns) as f64;
            all.push(TrialNumber::by_clients(format!("{name}_ns"), Some(length_ns)));
        }
        if let Some(dip) = stats::dip(&series.done_per_interval, series.interval_ns, span) {
            let recovery_ns = dip.recovery_ns.map(|ns| ns as f64);
            all.extend([
                TrialNumber::by_clients(
                    format!("rate_before_{name}_per_s"),
                    Some(dip.before_per_s),
                ),
                TrialNumber::by_clients(
                    format!("{name}_lowest_rate_share"),
                    Some(dip.lowest_share),
                ),
                TrialNumber::by_clients(format!("{name}{RECOVERY}"), recovery_ns),
            ]);
            if let Some(ended) = ended {
                let length_ns = (ended.at_ns - began.at_ns).max(1) as f64;
                let share = recovery_ns.map(|ns| ns / length_ns);
                all.push(TrialNumber::by_clients(format!("{name}_recovery_share"), share));
            }
        }
    }
    all
}

/// How erratic the rate of a phase is.
fn unsteadiness(point: &Point, series: &Series) -> Vec<TrialNumber> {
    let stall_ns = point.silences.iter().map(|silence| silence.length_ns).max().unwrap_or(0);
    let found = stats::erratic(&series.done_per_interval, series.interval_ns, SECOND_NS);
    let found = found.into_iter().flat_map(|e| [(VARIATION, e.variation), (SLOW, e.slow_share)]);
    let all = [(STALL, stall_ns as f64)].into_iter().chain(found);
    let number = |(suffix, value): (&str, f64)| {
        TrialNumber::by_clients(format!("{}{suffix}", point.phase), Some(value))
    };
    all.map(number).collect()
}
