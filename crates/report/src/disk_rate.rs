//! What the disk itself reached at an operation, beside the stores on it.

use model::study::label;
use model::{Kv, Product, Workload};

use crate::recorded::Recorded;
use crate::view::{Row, Value};

/// Metric of the disk's rate in the rows of stores.
pub(crate) const DISK_RATE: &str = "disk_rate_per_s";
/// Only stores whose disk was watched have this metric.
const WATCHED: &str = "device_read_bytes_per_op";
/// Distribution of accesses to random places.
const RANDOM: &str = "uniform";

/// A rate of the disk.
struct DiskRate {
    label: Option<String>,
    operation: String,
    clients: u32,
    /// Bytes over which the accesses were spread.
    span_bytes: u64,
    rate_per_s: f64,
}

/// Adds to each row of a store with a watched disk the rate of that disk at random places: by
/// direct I/O, at the same operation with as many clients, over the widest span.
pub(crate) fn add(recorded: &Recorded, rows: &mut [Row]) {
    let mut disks = disk_rates(recorded, rows);
    disks.sort_by_key(|disk| std::cmp::Reverse(disk.span_bytes));
    let is_disk = |row: &Row| product(recorded, row) == Some(Product::Disk);
    for row in rows.iter_mut().filter(|row| row.metrics.contains_key(WATCHED) && !is_disk(row)) {
        let found = disks.iter().find(|disk| {
            disk.label.as_deref() == label(&row.target)
                && (&disk.operation, disk.clients) == (&row.operation, row.load.clients)
        });
        if let Some(disk) = found {
            row.metrics.insert(DISK_RATE.into(), Value::alone(disk.rate_per_s));
        }
    }
}

fn product(recorded: &Recorded, row: &Row) -> Option<Product> {
    recorded.header.plan.target(&row.target).map(|target| target.product)
}

fn disk_rates(recorded: &Recorded, rows: &[Row]) -> Vec<DiskRate> {
    let plan = &recorded.header.plan;
    let of_row = |row: &Row| {
        let target = plan.target(&row.target).filter(|target| target.control_of.is_none())?;
        let cell = plan.cell_at(&target.name, &row.workload, &row.load)?;
        let Workload::Kv(Kv { keys, value_bytes, distribution, .. }) = &cell.workload else {
            return None;
        };
        let is_random = target.product == Product::Disk && distribution == RANDOM;
        let value_bytes: u64 = value_bytes.parse().ok().filter(|_| is_random)?;
        Some(DiskRate {
            label: label(&row.target).map(Into::into),
            operation: row.operation.clone(),
            clients: row.load.clients,
            span_bytes: keys * value_bytes,
            rate_per_s: row.metrics.get("rate_per_s")?.center,
        })
    };
    rows.iter().filter_map(of_row).collect()
}
