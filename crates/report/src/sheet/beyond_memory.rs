//! What stores did with data that memory had no room for: dropped keys, reads from a file of
//! values, page faults that waited for the disk, and the disk's own traffic.

use crate::disk_rate::DISK_RATE;
use crate::hits;
use crate::section::{Block, Section, explained};
use crate::show;
use crate::table::{Cell, Column};
use crate::view::{MissCostView, Row, Value, View};
use stats::format_bytes;

const NOTE: &str = "found: share of the reads that found their key; from flash: share of those \
                    that the server read from its file of values; evicted: keys that it dropped; \
                    faults: page faults of the server that waited for the disk; of the disk: the \
                    rate beside that of the disk itself with as many requests at once, by direct \
                    I/O of 4 KiB at random places; disk read and written: bytes of the \
                    whole disk under test, everyone's, so with swap or a file of values the \
                    store's own and what the kernel writes back later; calls: of read and write, \
                    by the server; all but the shares are per operation";

/// Metrics of which one above 0 shows that memory had no room.
const SIGNS: [&str; 3] = ["evicted_per_op", "flash_hit_share", "server_major_faults_per_op"];

/// One line per whole phase of each target, if any of the profile's ran out of memory.
pub(crate) fn section(view: &View) -> Section {
    let numbers = [
        "found",
        "from flash",
        "evicted",
        "faults",
        "disk read",
        "disk written",
        "calls",
        "of the disk",
    ];
    let columns = ["profile", "operation", "target"].map(Column::words).into_iter();
    let columns = columns.chain(numbers.map(Column::number)).collect();
    let is_sign = |row: &Row| {
        let mut signs = SIGNS.iter().filter_map(|name| row.metrics.get(*name));
        signs.any(|value| value.center > 0.0)
    };
    let full: Vec<&str> =
        view.cells.iter().filter(|row| is_sign(row)).map(|row| row.workload.as_str()).collect();
    let rows = view.cells.iter().filter(|row| {
        full.contains(&row.workload.as_str())
            && row.metrics.contains_key("device_read_bytes_per_op")
    });
    let mut blocks = explained(columns, rows.map(|row| cells(view, row)), NOTE);
    blocks.extend(miss_costs(view).blocks);
    Section { id: "beyond-memory", title: "Beyond the memory", blocks }
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
