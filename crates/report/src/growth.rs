//! Growth of an operation's cost with the size of its data set: a curve for each target of a
//! profile that measures several sizes, and the slope of the power law through it.
//!
//! The cost is the mean service time. Rates are less suitable: in a phase with cleans they depend
//! on how long clients wait for others to restore records.

use model::{Load, SizeOfData};
use std::collections::{BTreeMap, BTreeSet};

use crate::distribution::CONFIDENCE;
use crate::series::{MeasuredPoint, Operation};
use crate::view::{GrowthPoint, GrowthView, Row, Value};

/// The metric of the points of a curve.
const METRIC: &str = "service_ns_mean";

/// One operation of one target over the measured sizes.
struct Curve<'a> {
    workload: &'a str,
    target: &'a str,
    operation: &'a str,
    load: &'a Load,
    /// Each size with the name of its workload.
    sizes: Vec<(SizeOfData<'a>, &'a str, &'a Operation<'a>)>,
}

/// Every curve in display order: profile, load, operation, target.
pub(crate) fn growth(phases: &[MeasuredPoint<'_>], rows: &[Row]) -> Vec<GrowthView> {
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for phase in phases {
        let Some(size) = phase.cell.workload.data_size() else { continue };
        for operation in &phase.operations {
            let curve = Curve {
                workload: size.profile,
                target: &phase.cell.target,
                operation: &operation.name,
                load: &phase.cell.load,
                sizes: vec![(size, phase.cell.workload.profile(), operation)],
            };
            match curves.iter_mut().find(|known| known.place() == curve.place()) {
                Some(known) => known.sizes.extend(curve.sizes),
                None => curves.push(curve),
            }
        }
    }
    curves.iter().map(|curve| curve.view(rows)).collect()
}

impl Curve<'_> {
    fn place(&self) -> (&str, &str, &str, &Load) {
        (self.workload, self.target, self.operation, self.load)
    }

    fn view(&self, rows: &[Row]) -> GrowthView {
        let records: BTreeSet<u64> = self.sizes.iter().map(|(size, ..)| size.records).collect();
        let grows = if records.len() > 1 { "records" } else { "records_of_tag" };
        let mut points: Vec<GrowthPoint> =
            self.sizes.iter().filter_map(|size| self.point(size, rows)).collect();
        points.sort_by(|a, b| a.size(grows).total_cmp(&b.size(grows)));
        let blocks = self.costs_by_block(grows);
        let slope = stats::slope_over_blocks(blocks.iter().map(Vec::as_slice), CONFIDENCE);
        let value = |slope: stats::Slope| {
            Value::new(slope.center, slope.bounds.map(|(lo, _)| lo), slope.bounds.map(|(_, hi)| hi))
        };
        GrowthView {
            workload: self.workload.into(),
            target: self.target.into(),
            operation: self.operation.into(),
            load: self.load.clone(),
            grows: grows.into(),
            metric: METRIC.into(),
            points,
            slope: slope.map(value),
            verdict: slope.map_or(stats::Growth::Undecided, |s| s.growth()),
        }
    }

    fn point(
        &self,
        (size, workload, _): &(SizeOfData<'_>, &str, &Operation<'_>),
        rows: &[Row],
    ) -> Option<GrowthPoint> {
        let place = (*workload, self.target, self.operation, self.load);
        let own = |r: &&Row| (r.workload.as_str(), &*r.target, &*r.operation, &r.load) == place;
        let cost = *rows.iter().find(own)?.metrics.get(METRIC)?;
        Some(GrowthPoint {
            workload: (*workload).into(),
            records: size.records,
            records_of_tag: size.records_of_tag,
            cost,
        })
    }

    /// Sizes and mean service times of each block with all sizes; slopes over different sets of
    /// sizes would not be comparable.
    fn costs_by_block(&self, grows: &str) -> Vec<Vec<(f64, f64)>> {
        let mut blocks: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        for (size, _, operation) in &self.sizes {
            let of_tag = size.records_of_tag.filter(|_| grows != "records");
            let size = of_tag.unwrap_or(size.records as f64);
            let measured = operation.blocks.iter().filter(|p| p.measured());
            for point in measured.filter(|p| !p.result.service.is_empty()) {
                blocks.entry(point.block).or_default().push((size, point.result.service.mean_ns()));
            }
        }
        blocks.into_values().filter(|costs| costs.len() == self.sizes.len()).collect()
    }
}
