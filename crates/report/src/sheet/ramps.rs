//! Ramps: a sentence on what each target sustains, latency and cost at shares of its knee, and all
//! stages, with the way up and the way down side by side.

use crate::section::{Block, Section};
use crate::show::{self, commas, grouped};
use crate::table::{Cell, Column, Line, NONE, Table, Tone};
use crate::view::{ALL, RampOutcome, RampStage, RampView, SAME_RATE, StageWay, Value, View};

/// Columns of [`share_cells`] after the shares.
const COSTS: [&str; 2] = ["CPU/op server", "generator"];

/// First column of stages under a closed load, which has no planned rate.
const CLIENTS: &str = "clients";

/// Operations with their own columns.
const PAIR: [&str; 2] = ["set", "get"];
const PAIR_HEADER: [&str; 2] = ["p99 set", "p99 get"];
/// Columns of [`stage_cells`].
const STAGE_HEADER: [&str; 11] = [
    "planned/s",
    "answered/s",
    "p50",
    "p99",
    PAIR_HEADER[0],
    PAIR_HEADER[1],
    DOWN,
    "failed",
    "missed",
    HITS,
    "CPU s+g",
];

/// Column of the share of reads that a cache answers.
const HITS: &str = "hits";

/// Column of latency on the way down.
const DOWN: &str = "p99 down";

/// Explanation of the shown columns.
fn note(view: &View) -> String {
    let any = |is: fn(&RampView) -> bool| view.ramps.iter().any(is);
    let is_marked = |ramp: &RampView| ramp.stages.iter().any(|s| s.held < s.blocks);
    let mut note = String::from(
        "knee: the last stage on the way up that answered the offered load, as stages below \
         it did, its interval up to the next, which did not",
    );
    if any(goes_down) {
        note += &format!("; {DOWN}: the same stage on the way back");
    }
    if any(|ramp| !ramp.at.is_empty()) {
        note += "; at shares of the knee: interpolated between the two nearest stages";
    }
    note += "; the first fifth of a stage, in which the store settles, is left out; CPU s+g: CPUs \
             that server and generator used";
    if any(is_marked) {
        note += "; a stage marked ! failed in some block";
    }
    if any(|ramp| ramp.in_pairs) {
        note += "; p99 set and p99 get: of a pair the set is always sent first, so the two \
                 columns differ by position too and do not show which operation costs \
                 more";
    }
    note
}

/// True if the load was lowered again.
fn goes_down(ramp: &RampView) -> bool {
    ramp.stages.iter().any(|stage| stage.way == StageWay::Down)
}

/// Latency of each target at shares of its knee, a table per profile.
pub(crate) fn shares(view: &View) -> Vec<Block> {
    let mut blocks = Vec::new();
    for ramps in by_profile(view).iter().filter(|ramps| ramps.iter().any(|r| !r.at.is_empty())) {
        let title = format!("p99 at shares of the knee{}", of_profile(view, ramps[0]));
        let lines = ramps.iter().map(|ramp| Line::plain(share_cells(ramp))).collect();
        let table = Block::table(Table::new(share_columns(), lines));
        blocks.extend([Block::title(title), table]);
    }
    blocks
}

/// The highest rate of each target and its evidence, a table per profile.
fn sustained(view: &View) -> Vec<Block> {
    let table = |ramps: &Vec<&RampView>| {
        let limit_ns = ramps.iter().find_map(|ramp| ramp.limit_ns);
        let within =
            limit_ns.map_or_else(String::new, |ns| format!("p99 < {}", show::ns(ns as f64)));
        let numbers = ["sustains".into(), "reached".into(), within, "server CPUs".into()];
        let numbers = numbers.map(Column::number);
        let [target, outcome] = ["target", "outcome"].map(Column::words);
        let columns = [target].into_iter().chain(numbers).chain([outcome]).collect();
        let lines = ramps.iter().map(|ramp| sustained_line(ramp)).collect();
        let title = format!("Highest rates{}", of_profile(view, ramps[0]));
        [Block::title(title), Block::table(Table::new(columns, lines))]
    };
    by_profile(view).iter().flat_map(table).collect()
}

fn sustained_line(ramp: &RampView) -> Line {
    let is_bound = matches!(ramp.outcome, RampOutcome::NeverMissed | RampOutcome::Generator);
    let knee = ramp.metrics.get("knee_per_s").map(|knee| match knee.lo {
        Some(lo) if is_bound => Value::at_least(lo),
        _ => *knee,
    });
    let per_s = |value: &Value| match (value.at_least, show::bounds(value)) {
        (true, _) => format!("≥ {}", grouped(value.center)),
        (false, Some((lo, hi))) => {
            format!("{} [{}, {}]", grouped(value.center), grouped(lo), grouped(hi))
        }
        (false, None) => grouped(value.center),
    };
    let metric = |name: &str| ramp.metrics.get(name);
    let limited = ramp.limit_ns.map(|_| Cell::value(metric("within_limit_per_s"), per_s));
    let tone = if ramp.outcome == RampOutcome::Found { Tone::Good } else { Tone::Doubt };
    Line::plain([
        Cell::target(&ramp.target),
        Cell::value(knee.as_ref(), per_s),
        Cell::value(metric("reached_per_s"), per_s),
        limited.unwrap_or_default(),
        Cell::value(metric("server_cpus"), |value| format!("{:.2}", value.center)),
        Cell::from(ramp.outcome.to_string()).toned(tone),
    ])
}

/// The whole section.
pub(crate) fn section(view: &View) -> Section {
    let mut blocks = sustained(view);
    blocks.extend(shares(view));
    for ramps in by_profile(view) {
        let lines = place_lines(&ramps);
        if !lines.is_empty() {
            blocks.push(Block::title(format!("{PLACES}{}", of_profile(view, ramps[0]))));
            blocks.push(Block::table(Table::new(place_columns(), lines)));
        }
        let places = ramps.iter().filter_map(|ramp| ramp.place.as_ref());
        blocks.extend(places.map(|found| Block::item(found.sentence.clone())));
        let helps = ramps.iter().filter_map(|ramp| ramp.helps.as_ref());
        blocks.extend(helps.map(|found| Block::item(found.sentence.clone())));
    }
    for ramp in &view.ramps {
        let title = format!("{}{}: {}", ramp.target, of_profile(view, ramp), ramp.load);
        blocks.extend([Block::title(title), Block::forms(stages(ramp))]);
    }
    if !view.ramps.is_empty() {
        blocks.push(Block::note(note(view)));
    }
    Section { id: "ramps", title: "Ramps", blocks }
}

/// Ramps by profile, in the view's order.
fn by_profile(view: &View) -> Vec<Vec<&RampView>> {
    let mut found: Vec<Vec<&RampView>> = Vec::new();
    for ramp in &view.ramps {
        match found.iter_mut().find(|known| known[0].workload == ramp.workload) {
            Some(known) => known.push(ramp),
            None => found.push(vec![ramp]),
        }
    }
    found
}

/// `, open` if there are several profiles.
fn of_profile(view: &View, ramp: &RampView) -> String {
    if by_profile(view).len() > 1 { format!(", {}", ramp.workload) } else { String::new() }
}

/// Names of the reported shares of a knee.
const SHARES: [&str; 5] = ["25 %", "50 %", "75 %", "90 %", "100 %"];

/// Columns of [`share_cells`].
fn share_columns() -> Vec<Column> {
    let numbers = SHARES.into_iter().chain(COSTS).map(Column::number);
    [Column::words("target")].into_iter().chain(numbers).collect()
}

/// A target's p99 at each share of its knee, and the cost of an operation at the knee.
fn share_cells(ramp: &RampView) -> Vec<Cell> {
    let of = |name: &str| {
        let points = ramp.at.iter();
        let point = points.into_iter().find(|p| format!("{:.0} %", p.share * 100.0) == name);
        ns(point.and_then(|p| p.metrics.get("ns_p99")))
    };
    let cost = |name: &str| ns(ramp.at_knee().and_then(|p| p.metrics.get(name)));
    let mut cells = vec![Cell::target(&ramp.target)];
    cells.extend(SHARES.iter().map(|name| of(name)));
    cells.extend([cost("server_cpu_ns_per_op"), cost("generator_cpu_ns_per_op")]);
    cells
}

fn ns(value: Option<&Value>) -> Cell {
    Cell::value(value, show::time)
}

/// Title of the table of positions.
const PLACES: &str = "Position in a pair, separated from the operation (service time)";

/// Columns of [`place_lines`].
fn place_columns() -> Vec<Column> {
    let numbers = ["p50 first", "second", "independent", "p99 first", "second", "independent"];
    let words = ["target", "operation"].map(Column::words).into_iter();
    words.chain(numbers.map(Column::number)).collect()
}

/// Latency of each operation at each position, for targets with control phases.
fn place_lines(ramps: &[&RampView]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (ramp, found) in ramps.iter().filter_map(|ramp| Some((ramp, ramp.place.as_ref()?))) {
        for operation in &found.operations {
            let mut cells = vec![Cell::target(&ramp.target), operation.as_str().into()];
            for percentile in ["p50", "p99"] {
                for place in ["first", "second", "apart"] {
                    let key = format!("{operation}.{place}.ns_{percentile}");
                    cells.push(ns(found.metrics.get(&key)));
                }
            }
            lines.push(Line::plain(cells));
        }
    }
    lines
}

/// The table with all columns, then versions with fewer columns.
fn stages(ramp: &RampView) -> Vec<Table> {
    let mut whole = Table::new(stage_columns(ramp), stage_lines(ramp));
    if !goes_down(ramp) {
        whole.remove(DOWN);
    }
    if !ramp.stages.iter().any(|stage| stage.metrics.contains_key("hit_ratio")) {
        whole.remove(HITS);
    }
    let mut forms = vec![whole];
    for leave_out in ["p50", "p99", "missed"] {
        let mut narrower = forms[forms.len() - 1].clone();
        narrower.remove(leave_out);
        forms.push(narrower);
    }
    forms
}

/// Columns of [`stage_lines`].
fn stage_columns(ramp: &RampView) -> Vec<Column> {
    let mut header = STAGE_HEADER.to_vec();
    if ramp.times == "service" {
        header[0] = CLIENTS;
    }
    if !has_pairs(ramp) {
        header.retain(|name| !PAIR_HEADER.contains(name));
    }
    header.into_iter().map(Column::number).collect()
}

/// True if there are columns for [`PAIR`].
fn has_pairs(ramp: &RampView) -> bool {
    let there =
        |operation: &&str| ramp.stages.iter().any(|s| s.operations.contains_key(*operation));
    PAIR.iter().all(there)
}

/// All stages of the way up in the order of [`stage_columns`]; the one at the knee is the answer.
fn stage_lines(ramp: &RampView) -> Vec<Line> {
    let up = ramp.stages.iter().filter(|stage| stage.way == StageWay::Up);
    let knee = ramp.metrics.get("knee_per_s").and_then(|knee| {
        let far = |stage: &&RampStage| {
            let rate = ramp.rate_of(stage).map_or(0.0, |rate| rate.center);
            (rate / knee.center).ln().abs()
        };
        up.clone().min_by(|a, b| far(a).total_cmp(&far(b)))
    });
    let is_knee = |stage: &RampStage| knee.is_some_and(|knee| knee.number == stage.number);
    up.map(|stage| Line { cells: stage_cells(ramp, stage), is_strong: is_knee(stage) }).collect()
}

fn stage_cells(ramp: &RampView, stage: &RampStage) -> Vec<Cell> {
    let rate = |name: &str| Cell::value(stage.metrics.get(name), |value| grouped(value.center));
    let time = |operation: &str, percentile: &str| ns(stage.time(operation, percentile).as_ref());
    let counts = stage.operations.get(ALL).map(|all| all.counts.clone()).unwrap_or_default();
    let all = counts.total() + stage.unsent;
    let share = |n: u64| {
        let share = n as f64 / all.max(1) as f64;
        Cell::number(if n == 0 { "0".into() } else { show::percent(share) }, share)
    };
    let cpus = |name: &str| {
        stage.metrics.get(name).map_or_else(|| NONE.into(), |v| format!("{:.2}", v.center))
    };
    let clients = stage.clients;
    let mut asked = if ramp.times == "service" {
        Cell::number(commas(clients.into()), f64::from(clients))
    } else {
        rate("asked_per_s")
    };
    if stage.held < stage.blocks {
        asked.text.insert(0, '!');
    }
    let mut cells = vec![asked, rate("rate_per_s"), time(ALL, "p50"), time(ALL, "p99")];
    if has_pairs(ramp) {
        cells.extend(PAIR.map(|operation| time(operation, "p99")));
    }
    cells.extend([
        ns(on_the_way_down(ramp, stage).and_then(|down| down.time(ALL, "p99")).as_ref()),
        share(counts.error + stage.unsent),
        share(counts.miss),
        Cell::value(stage.metrics.get("hit_ratio"), |v| show::share_of_all(v.center)),
        format!("{}+{}", cpus("server_cpus"), cpus("generator_cpus")).into(),
    ]);
    cells
}

/// The stage of the way down with the same planned load.
fn on_the_way_down<'a>(ramp: &'a RampView, stage: &RampStage) -> Option<&'a RampStage> {
    let planned = |s: &RampStage| {
        s.metrics.get("planned_per_s").map_or(f64::from(s.clients), |value| value.center)
    };
    let alike = |s: &&RampStage| (planned(s) / planned(stage) - 1.0).abs() < SAME_RATE;
    ramp.stages.iter().filter(|s| s.way == StageWay::Down).find(alike)
}
