//! What stores did with data that memory had no room for: dropped keys, reads from a file of
//! values, page faults that waited for the disk, and the disk's own traffic.

use crate::disk_rate::DISK_RATE;
use crate::hits;
use crate::section::{Block, Section, explained};
use crate::show;
use crate::table::{Cell, Column, NONE};
use crate::view::{FailureView, MissCostView, Row, Value, View};
use stats::format_bytes;

const NOTE: &str = "found: share of the reads that found their key; from flash: share of those \
                    that the server read from its file of values; evicted: keys that it dropped; \
                    faults: page faults of the server that waited for the disk; of the disk: the \
                    rate beside that of the disk itself with as many requests at once, by direct \
                    I/O of 4 KiB at random places; disk read and written: bytes of the \
                    whole disk under test, everyone's, so with swap or a file of values the \
                    store's own and what the kernel writes back later; calls: of read and write, \
                    by the server; all but the shares are per operation";

/// Titles of the columns of metrics.
const NUMBERS: [&str; 8] = [
    "found",
    "from flash",
    "evicted",
    "faults",
    "disk read",
    "disk written",
    "calls",
    "of the disk",
];

/// Metrics of which one above its amount shows that memory had no room. A server that starts again
/// reads its program from the disk.
const SIGNS: [(&str, f64); 3] =
    [("evicted_per_op", 0.0), ("flash_hit_share", 0.0), ("server_major_faults_per_op", 0.001)];

/// Columns of pressure, and their metrics.
const PRESSURES: [(&str, &str); 5] = [
    ("memory: some", "memory_pressure_some_share"),
    ("full", "memory_pressure_full_share"),
    ("disk: some", "io_pressure_some_share"),
    ("full", "io_pressure_full_share"),
    ("CPU: some", "cpu_pressure_some_share"),
];
const PRESSURE_NOTE: &str = "pressure: share of the time in which some task, or all tasks that had \
                             work, waited for memory (such as a page on swap), the disk or a CPU; \
                             of the target's control group where it has version 2, otherwise of \
                             the whole machine; CPU always of the machine";

/// Classes of failures that are results of a store with too little memory.
const ENDS: [&str; 2] = ["killed", "stalled"];

/// One line per whole phase of each target, if any of the profile's ran out of memory, and one per
/// cell that was killed or stalled before it had any result.
pub(crate) fn section(view: &View) -> Section {
    let columns = ["profile", "operation", "target"].map(Column::words).into_iter();
    let mut columns: Vec<Column> = columns.chain(NUMBERS.map(Column::number)).collect();
    let ended = Ended::of(view);
    if !ended.0.is_empty() {
        columns.push(Column::words("ended early"));
    }
    let is_sign = |row: &Row| {
        SIGNS.iter().any(|(name, least)| row.metrics.get(*name).is_some_and(|v| v.center > *least))
    };
    let full: Vec<&str> =
        view.cells.iter().filter(|row| is_sign(row)).map(|row| row.workload.as_str()).collect();
    let rows = view.cells.iter().filter(|row| {
        full.contains(&row.workload.as_str())
            && row.metrics.contains_key("device_read_bytes_per_op")
    });
    let lines = rows.map(|row| {
        let mut line = cells(view, row);
        line.extend((!ended.0.is_empty()).then(|| ended.of_row(row)));
        line
    });
    let mut blocks = explained(columns, lines.chain(ended.without_row(view)), NOTE);
    if !blocks.is_empty() {
        blocks.extend(pressures(view, &full));
    }
    blocks.extend(miss_costs(view).blocks);
    Section { id: "beyond-memory", title: "Beyond the memory", blocks }
}

/// How long tasks waited for memory, disks and CPUs in the phases of these profiles; nothing if the
/// kernel did not tell.
fn pressures(view: &View, profiles: &[&str]) -> Vec<Block> {
    let columns = ["profile", "operation", "target"].map(Column::words).into_iter();
    let numbers = PRESSURES.map(|(title, _)| Column::number(title));
    let of_group = |row: &Row| row.metrics.contains_key("group_memory_pressure_some_share");
    let is_known = |row: &&Row| {
        profiles.contains(&row.workload.as_str())
            && row.metrics.contains_key("memory_pressure_some_share")
    };
    let lines = view.cells.iter().filter(is_known).map(|row| {
        let known = [row.workload.as_str().into(), row.operation.as_str().into()];
        let shares = PRESSURES.map(|(_, name)| {
            let own = row.metrics.get(&format!("group_{name}")).filter(|_| of_group(row));
            Cell::value(own.or_else(|| row.metrics.get(name)), |v| show::share_of_all(v.center))
        });
        known.into_iter().chain([Cell::target(&row.target)]).chain(shares).collect()
    });
    explained(columns.chain(numbers).collect(), lines, PRESSURE_NOTE)
}

/// Trials that a store with too little memory ended early.
struct Ended<'a>(Vec<&'a FailureView>);

impl<'a> Ended<'a> {
    fn of(view: &'a View) -> Self {
        Self(view.failures.iter().filter(|failure| ENDS.contains(&&*failure.class)).collect())
    }

    /// How often a row's phase ended early, and how first.
    fn of_row(&self, row: &Row) -> Cell {
        self.ends(|f| {
            let phase = f.phase.as_deref();
            is_of(f, row) && phase.is_none_or(|phase| phase == row.operation)
        })
    }

    /// One line per cell that has no row.
    fn without_row(&self, view: &View) -> impl Iterator<Item = Vec<Cell>> {
        let lacks = |f: &&&FailureView| !view.cells.iter().any(|row| is_of(f, row));
        let mut cells: Vec<&FailureView> = self.0.iter().filter(lacks).copied().collect();
        cells.sort_by_key(|failure| &failure.cell);
        cells.dedup_by_key(|failure| &failure.cell);
        cells.into_iter().map(|cell| {
            let known = [cell.workload.as_str().into(), NONE.into(), Cell::target(&cell.target)];
            let unknown = (0..NUMBERS.len()).map(|_| NONE.into());
            let ends = self.ends(|failure| failure.cell == cell.cell);
            known.into_iter().chain(unknown).chain([ends]).collect()
        })
    }

    /// `killed in 2 blocks`.
    fn ends(&self, is_meant: impl Fn(&FailureView) -> bool) -> Cell {
        let own: Vec<&&FailureView> = self.0.iter().filter(|failure| is_meant(failure)).collect();
        let Some(first) = own.first() else { return NONE.into() };
        let plural = if own.len() == 1 { "" } else { "s" };
        format!("{} in {} block{plural}", first.class, own.len()).into()
    }
}

/// True if a failure is of a row's cell.
fn is_of(failure: &FailureView, row: &Row) -> bool {
    (&failure.workload, &failure.target) == (&row.workload, &row.target)
}

/// What a miss may cost, for a summary, whose rates do not tell.
pub(crate) fn miss_costs(view: &View) -> Section {
    let sentence = |cost: &MissCostView| {
        Block::item(format!("{}, {}: {}", cost.workload, cost.load, cost.sentence))
    };
    let blocks = view.happened.miss_costs.iter().map(sentence).collect();
    Section { id: "miss-costs", title: "What a miss may cost", blocks }
}

/// How much memory data need, and what a store keeps of its rate with less.
pub(crate) fn memory(view: &View) -> Section {
    let needs = view.happened.memory_needs.iter().map(|need| &need.sentence);
    let outgrown = view.happened.outgrown.iter().map(|outgrown| &outgrown.sentence);
    let blocks = needs.chain(outgrown).map(|sentence| Block::item(sentence.clone())).collect();
    Section { id: "memory", title: "How much memory", blocks }
}

fn cells(view: &View, row: &Row) -> Vec<Cell> {
    let of = |name: &str, shown: fn(&Value) -> String| Cell::value(row.metrics.get(name), shown);
    let per_op = |value: &Value| show::per_operation(value.center);
    let bytes = |value: &Value| format_bytes(value.center.round() as u64);
    let found = hits::share(&view.cells, row).map(Value::alone);
    let of_disk = row.metrics.get(DISK_RATE).zip(row.metrics.get("rate_per_s"));
    let of_disk = of_disk.map(|(disk, own)| Value::alone(own.center / disk.center));
    vec![
        row.workload.as_str().into(),
        row.operation.as_str().into(),
        Cell::target(&row.target),
        Cell::value(found.as_ref(), |value| show::share_of_all(value.center)),
        of("flash_hit_share", |value| show::share_of_all(value.center)),
        of("evicted_per_op", per_op),
        of("server_major_faults_per_op", per_op),
        of("device_read_bytes_per_op", bytes),
        of("device_written_bytes_per_op", bytes),
        of("server_calls_per_op", per_op),
        Cell::value(of_disk.as_ref(), |value| show::ratio(value.center)),
    ]
}
