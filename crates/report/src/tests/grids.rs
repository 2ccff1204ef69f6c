//! Rows that form a grid.

use super::quick;
use crate::fixture::recorded;
use crate::judge;
use crate::view::{GridAxisName, View};

fn run(profiles: &str) -> View {
    judge(&recorded(quick::plan(quick::SIZING, profiles), 3, |_, _, _| 10_000.0))
}

#[test]
fn sizes_connections_and_requests_at_once_form_a_grid_of_each_target() {
    let view = run("grid");
    let grids = &view.happened.grids;
    let targets: Vec<&str> = grids.iter().map(|grid| grid.target.as_str()).collect();
    assert_eq!(targets, ["redis", "redis-tls"]);
    let axes: Vec<_> = grids[0].axes.iter().map(|axis| (axis.name, axis.values.clone())).collect();
    let expected = [
        (GridAxisName::ValueBytes, vec![64, 1024, 16_384]),
        (GridAxisName::Clients, vec![1, 50, 500]),
        (GridAxisName::Pipeline, vec![1, 16]),
    ];
    assert_eq!(axes, expected);
    assert_eq!((grids[0].profile.as_str(), grids[0].cells.len()), ("grid", 2 * 3 * 3 * 2));
    for cell in &grids[0].cells {
        let row = &view.cells[cell.row];
        let clients = grids[0].axes[1].values[cell.at[1]];
        assert_eq!((row.target.as_str(), u64::from(row.load.clients)), ("redis", clients));
        let bytes = grids[0].axes[0].values[cell.at[0]];
        assert!(row.workload.contains(&format!("{bytes}B")), "{}", row.workload);
    }
}

#[test]
fn one_axis_is_not_a_grid() {
    let view = run("throughput,connections,threads");
    assert!(view.happened.grids.is_empty(), "{:?}", view.happened.grids);
}
