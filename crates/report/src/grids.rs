//! Grids: rows of one target and profile that differ in size of values, connections, requests at
//! once and threads.

use model::{Arrivals, Load, Plan, PlannedTarget, Schedule, Workload};
use std::collections::BTreeMap;

use crate::view::{GridAxis, GridAxisName, GridCell, GridView, Row};

/// All axes, in the order of [`Place::values`].
const AXES: [GridAxisName; 4] = [
    GridAxisName::ValueBytes,
    GridAxisName::Clients,
    GridAxisName::Pipeline,
    GridAxisName::Threads,
];

/// Settings of a server's I/O threads.
const THREADS: &str = "io-threads";
const THREADS_READ: &str = "io-threads-do-reads";

/// Every grid, in the order of its rows.
pub(crate) fn grids(plan: &Plan, rows: &[Row]) -> Vec<GridView> {
    let mut groups: Vec<(Family, Vec<(Place, usize)>)> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let Some((family, place)) = place(plan, row) else { continue };
        match groups.iter_mut().find(|(own, _)| *own == family) {
            Some((_, places)) => places.push((place, index)),
            None => groups.push((family, vec![(place, index)])),
        }
    }
    let grid = |(family, places): (Family, Vec<(Place, usize)>)| {
        let own: Vec<[u64; 4]> = places.iter().map(|(place, _)| place.values).collect();
        if !forms_grid(&own) {
            return None;
        }
        let target = rows.get(places.first()?.1)?.target.clone();
        Some(view(target, family, &places))
    };
    groups.into_iter().filter_map(grid).collect()
}

/// What the rows of a grid have in common.
#[derive(PartialEq)]
struct Family {
    /// Product, program, address, limits and settings of the target, without its threads.
    target: (String, BTreeMap<String, String>),
    profile: String,
    /// Other properties of the profile: amount of data and distribution of accesses.
    data: (Option<String>, String),
    load: Load,
}

/// A row's value on each axis.
struct Place {
    values: [u64; 4],
}

/// Family and place of a row; `None` if it is not one of keys and values of one size, or repeats a
/// target as a control.
fn place(plan: &Plan, row: &Row) -> Option<(Family, Place)> {
    let target = plan.target(&row.target).filter(|own| own.control_of.is_none())?;
    let cell = plan.cell_at(&row.target, &row.workload, &row.load)?;
    let Workload::Kv(kv) = &cell.workload else { return None };
    let of_memory = cell.workload.data_size().and_then(|size| size.of_memory);
    let family = Family {
        target: configuration(target),
        profile: cell.workload.study_profile().into(),
        data: (of_memory.map(|data| data.to_string()), kv.distribution.clone()),
        load: without_axes(&row.load),
    };
    let threads = target.settings.get(THREADS).map_or(Ok(1), |count| count.parse());
    let values = [
        kv.value_bytes.parse().ok()?,
        row.load.clients.into(),
        row.load.pipeline.into(),
        threads.ok()?,
    ];
    Some((family, Place { values }))
}

fn configuration(target: &PlannedTarget) -> (String, BTreeMap<String, String>) {
    let PlannedTarget { product, program, address, directory, disk_limit, tier, .. } = target;
    let mut settings = target.settings.clone();
    settings.retain(|name, _| ![THREADS, THREADS_READ].contains(&&**name));
    let named = format!("{product:?} {program:?} {address:?} {directory:?} {disk_limit:?} {tier}");
    (named, settings)
}

/// A load with one client and one request at once.
fn without_axes(load: &Load) -> Load {
    let schedule = match (&load.schedule, load.arrivals) {
        (Schedule::Steady(_), Arrivals::Closed) => Schedule::Steady(1),
        (other, _) => other.clone(),
    };
    Load { schedule, clients: 1, pipeline: 1, ..load.clone() }
}

/// True if two values of one axis were measured with two of another one in all combinations.
fn forms_grid(places: &[[u64; 4]]) -> bool {
    places.iter().enumerate().any(|(i, one)| {
        places[i + 1..].iter().any(|other| {
            let differ: Vec<usize> = (0..AXES.len()).filter(|at| one[*at] != other[*at]).collect();
            let [first, _] = differ[..] else { return false };
            let (mut left, mut right) = (*one, *other);
            (left[first], right[first]) = (other[first], one[first]);
            places.contains(&left) && places.contains(&right)
        })
    })
}

fn view(target: String, family: Family, places: &[(Place, usize)]) -> GridView {
    let values = |axis: usize| {
        let mut values: Vec<u64> = places.iter().map(|(place, _)| place.values[axis]).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let kept: Vec<(usize, Vec<u64>)> = (0..AXES.len())
        .map(|axis| (axis, values(axis)))
        .filter(|(_, values)| values.len() > 1)
        .collect();
    let at = |place: &Place| {
        let index = |(axis, values): &(usize, Vec<u64>)| {
            values.partition_point(|value| *value < place.values[*axis])
        };
        kept.iter().map(index).collect()
    };
    let cells = places.iter().map(|(place, row)| GridCell { at: at(place), row: *row }).collect();
    GridView {
        target,
        profile: family.profile,
        load: family.load,
        cells,
        axes: kept
            .into_iter()
            .map(|(axis, values)| GridAxis { name: AXES[axis], values })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_needs_two_by_two_measured_cells() {
        let full = [[64, 1, 1, 1], [64, 50, 1, 1], [1024, 1, 1, 1], [1024, 50, 1, 1]];
        assert!(forms_grid(&full));
        assert!(!forms_grid(&full[..3]), "a corner is missing");
        assert!(!forms_grid(&[[64, 1, 1, 1], [64, 50, 1, 1], [64, 500, 1, 1]]), "one axis");
        let apart = [[64, 1, 1, 1], [64, 50, 1, 1], [1024, 1, 16, 1], [1024, 50, 16, 1]];
        assert!(!forms_grid(&apart), "two axes change together");
    }
}
