//! Stores and disturbances.

use crate::calibration;
use crate::section::{Block, Section};
use crate::table::{Cell, Column, Line, NONE, Table, Tone};
use crate::view::{NoiseView, TargetView, View};

/// Data that the run may have left in stores that it did not start.
pub(crate) fn left_behind(view: &View) -> Section {
    let blocks = view.happened.left_behind.iter().map(|text| Block::item(text.clone())).collect();
    Section { id: "left-behind", title: "Left in stores", blocks }
}

/// Targets and cells that were not measured, and why.
pub(crate) fn not_run(view: &View) -> Section {
    let targets = view.setup.targets.iter();
    let targets = targets.filter_map(|target| Some((&target.name, target.not_run.as_ref()?)));
    let all = targets.chain(&view.setup.cells_not_run);
    let blocks = all.map(|(what, why)| Block::item(format!("{what}: {why}"))).collect();
    Section { id: "not-run", title: "Not run", blocks }
}

/// Targets whose disk is not a real one.
pub(crate) fn throttled(view: &View) -> Section {
    let said = view.setup.targets.iter().filter_map(|target| {
        let limit = target.disk_limit.as_ref()?;
        Some(Block::item(format!(
            "{}: its disk was throttled by the kernel to {limit}: not a real disk",
            target.name
        )))
    });
    Section { id: "throttled", title: "Throttled disks", blocks: said.collect() }
}

/// Version, address and settings of the targets.
pub(crate) fn section(view: &View) -> Section {
    let columns = ["target", "product", "place", "state", "settings given"].map(Column::words);
    let lines: Vec<Line> = view.setup.targets.iter().map(line).collect();
    let table = Block::table(Table::new(columns.into(), lines));
    let is_there = !view.setup.targets.is_empty();
    Section {
        id: "stores",
        title: "Stores",
        blocks: is_there.then_some(table).into_iter().collect(),
    }
}

fn line(target: &TargetView) -> Line {
    let state = match (&target.not_run, &target.control_of) {
        (Some(_), _) => Cell::from("not run").toned(Tone::Doubt),
        (None, Some(same)) => format!("control: {same} once more").into(),
        (None, None) => Cell::from("measured").toned(Tone::Good),
    };
    Line::plain([
        Cell::target(&target.name),
        target.product.as_deref().unwrap_or(NONE).into(),
        target.place.as_str().into(),
        state,
        settings(target).into(),
    ])
}

/// The chosen settings: `appendonly no, save empty`.
fn settings(target: &TargetView) -> String {
    let setting = |(name, value): (&String, &String)| match value.as_str() {
        "" => format!("{name} empty"),
        value => format!("{name} {value}"),
    };
    target.settings.iter().map(setting).collect::<Vec<_>>().join(", ")
}

/// Other activity on the machine during the run, and the machine's calibration.
pub(crate) fn disturbances(view: &View) -> Section {
    let words = ["disturbance", "median trial", "worst trial"].map(Column::words);
    let cells = |n: &NoiseView| [&n.name, &n.median, &n.worst].map(|s| Cell::from(s.as_str()));
    let noise = &view.setup.noise;
    let short =
        Table::new(words.clone().into(), noise.iter().map(cells).map(Line::plain).collect());
    let meant = |n: &NoiseView| cells(n).into_iter().chain([n.meaning.as_str().into()]);
    let whole = Table::new(
        words.into_iter().chain([Column::words("meaning")]).collect(),
        noise.iter().map(meant).map(Line::plain).collect(),
    );
    let table = (!noise.is_empty()).then(|| Block::forms(vec![whole, short]));
    let calibrated = view.setup.calibration.as_ref();
    let calibrated =
        calibrated.map(|known| Block::note(format!("calibrated: {}", calibration::meaning(known))));
    let blocks = table.into_iter().chain(calibrated).collect();
    Section { id: "disturbances", title: "Disturbances", blocks }
}
