//! Built runs for tests: three stores, plain operations and pages, every number chosen.

use model::calibration::{Clock, Cost, DelayPercentiles, Host, LoadLag, Pauses, ShapeCost};
use model::plan::Effort;
use model::study::claims::{self, Figure, Ratio};
use model::study::{Advice, AdviceNote, AdviceRow, Claim, Expectation, ShopSize, Source};
use model::{
    Calibration, Cell, Conditions, Connections, Counts, Generation, Header, Layout, Load, Names,
    Noise, OperationResult, Order, Phase, Places, Plan, PlannedTarget, Point, Product, Scale, Seal,
    SealStatus, Series, Sessions, Slowest, Stop, TargetState, Trial, Workload,
};
use stats::Histogram;
use std::collections::BTreeMap;

use crate::recorded::Recorded;

/// Operations recorded in each phase of each trial.
pub(crate) const OPERATIONS: u64 = 2_000;

/// Rate of an operation on a target, before the noise of its block.
pub(crate) type Rates = fn(target: &str, operation: &str, clients: u32) -> f64;

/// Redis is twice as fast as files with 8 clients and as fast with one; `MySQL` is slowest.
pub(crate) fn usual(target: &str, operation: &str, clients: u32) -> f64 {
    let base = match operation {
        "write" => 8_000.0,
        "change" => 9_000.0,
        _ => 20_000.0,
    };
    base * match (target, clients) {
        ("files", 1) => 1.0,
        ("redis" | "redis-again", 1) => 1.01,
        ("files", _) => 2.0,
        ("redis" | "redis-again", _) => 4.2,
        _ => 0.5,
    }
}

/// A complete run of `blocks` blocks of the profile `steady` with 1 and 8 clients.
pub(crate) fn run(targets: &[&str], blocks: u32, rates: Rates) -> Recorded {
    let phases = ["write", "read", "change"].map(plain_phase).to_vec();
    let plan = plan(targets, |target| {
        [1, 8].map(|clients| cell(target, "steady", clients, false, phases.clone())).to_vec()
    });
    recorded(plan, blocks, rates)
}

/// A complete run of the page layout with 8 clients on one session.
pub(crate) fn pages(targets: &[&str], blocks: u32, rates: Rates) -> Recorded {
    let phase = Phase {
        name: "page".into(),
        mix: BTreeMap::from([("page".into(), 1.0)]),
        warmup_ns: 0,
        stop: Stop::AfterNs(1_000_000_000),
        control: None,
    };
    let plan = plan(targets, |target| {
        let mut cell = cell(target, "page", 8, true, vec![phase.clone()]);
        sessions(&mut cell).layout = Layout::Page;
        vec![cell]
    });
    recorded(plan, blocks, rates)
}

fn plain_phase(name: &str) -> Phase {
    Phase {
        name: name.into(),
        mix: BTreeMap::from([(name.into(), 1.0)]),
        warmup_ns: 0,
        stop: Stop::AfterNs(1_000_000_000),
        control: None,
    }
}

fn plan(targets: &[&str], cells: impl Fn(&str) -> Vec<Cell>) -> Plan {
    Plan {
        study: "sessions".into(),
        title: "Files, Redis or MySQL for sessions".into(),
        question: "Which session store is faster?".into(),
        source: Source::publication("a test"),
        scale: Scale::Standard,
        profiles: vec!["steady".into()],
        seed: 7,
        effort: Effort { budget_ns: 0, blocks_min: 3, blocks_max: 6 },
        equivalence_zone: 0.03,
        timeout_ns: 1_000_000_000,
        stall_ns: 0,
        targets: targets.iter().map(|t| target(t)).collect(),
        cells: targets.iter().flat_map(|t| cells(t)).collect(),
        tables: Vec::new(),
        claims: Vec::new(),
        advice: None,
        requirements: Vec::new(),
        limit_ns: None,
        places: Places::default(),
        swap_dir: None,
    }
}

fn target(name: &str) -> PlannedTarget {
    let product = match name.split('-').next() {
        Some("redis") => Product::Redis,
        Some("mysql") => Product::Mysql,
        _ => Product::Files,
    };
    PlannedTarget {
        name: name.into(),
        product,
        program: None,
        backend: None,
        cache: None,
        address: None,
        settings: BTreeMap::new(),
        directory: None,
        disk_limit: None,
        tier: model::tier::Tier::default(),
        published: None,
        control_of: name.strip_suffix("-again").map(Into::into),
        named: false,
    }
}

fn cell(target: &str, profile: &str, clients: u32, one: bool, phases: Vec<Phase>) -> Cell {
    Cell {
        id: format!("{target}/{profile}/{clients}{}", if one { "-one" } else { "" }),
        target: target.into(),
        workload: Workload::Sessions(Sessions {
            profile: profile.into(),
            layout: Layout::Plain,
            connections: Connections::Persistent,
            names: Names::Hex,
            order: Order::Random,
            generation: Generation::Outside,
            filled: 1_000,
            value_bytes: 1_500,
            ttl_s: 1_440,
            verify_one_in: 64,
            think_ns: 0,
            gc: None,
            phases,
        }),
        load: Load { one_session: one, ..Load::closed(clients) },
    }
}

/// The session workload of a cell.
pub(crate) fn sessions(cell: &mut Cell) -> &mut Sessions {
    match &mut cell.workload {
        Workload::Sessions(sessions) => sessions,
        _ => unreachable!("every cell of this fixture is of sessions"),
    }
}

/// A complete run of a plan.
pub(crate) fn recorded(plan: Plan, blocks: u32, rates: Rates) -> Recorded {
    let mut trials = Vec::new();
    for block in 0..blocks {
        for (position, cell) in plan.cells.iter().enumerate() {
            trials.push(trial(&plan, cell, block, position as u32, rates));
        }
    }
    let states = plan.targets.iter().map(|t| TargetState {
        target: t.name.clone(),
        version: Some(version(t.product).into()),
        ..TargetState::default()
    });
    Recorded {
        targets: states.collect(),
        header: Header {
            format: 1,
            run: "0123abcd".into(),
            tool: "cachedyno 0.1.0".into(),
            command: vec!["cachedyno".into(), "run".into(), "sessions".into()],
            started_unix_ms: 1_790_000_000_000,
            plan,
            conditions: Conditions::default(),
            host_mark: None,
            null_rates: Vec::new(),
            calibration: None,
        },
        trials,
        samples: BTreeMap::new(),
        running: false,
        seal: Some(Seal {
            null_rates: Vec::new(),
            status: SealStatus::Complete,
            finished_unix_ms: 1_790_000_245_000,
            blocks,
            stopped_because: format!("{blocks} blocks requested"),
            resumed: false,
            lost: false,
        }),
    }
}

fn version(product: Product) -> &'static str {
    match product {
        Product::Files => "ext4",
        Product::Redis => "Redis 7.0.15",
        Product::Mysql => "MariaDB 10.11.6",
        _ => product.name(),
    }
}

fn trial(plan: &Plan, cell: &Cell, block: u32, position: u32, rates: Rates) -> Trial {
    let product = plan.target(&cell.target).map(|t| t.product);
    // Noise of a few percent: that of the block, common to all targets, and that of the cell.
    let wave = |x: f64| x.sin();
    let noise = 1.0
        + 0.02 * wave(f64::from(block) * 2.3)
        + 0.004 * wave(f64::from(block) * 5.1 + f64::from(position) * 1.7);
    let clients = cell.load.clients;
    let mut trial = Trial {
        block,
        position,
        cell: cell.id.clone(),
        started_unix_ms: 1_790_000_000_000 + u64::from(block) * 10_000,
        took_ns: 8_000_000_000,
        version: product.map(|p| version(p).into()),
        noise: Noise { hiccup_ns_max: 400_000, ..Noise::default() },
        ..Trial::default()
    };
    for phase in cell.workload.phases() {
        let rate = |operation: &str| rates(&cell.target, operation, clients) * noise;
        trial.series.push(Series {
            phase: phase.name.clone(),
            interval_ns: 100_000_000,
            done_per_interval: vec![(rate(&phase.name) / 10.0) as u64; 10],
            ..Series::default()
        });
        trial.points.push(point(phase, product, clients, rate));
    }
    trial
}

fn point(p: &Phase, product: Option<Product>, clients: u32, rate: impl Fn(&str) -> f64) -> Point {
    let mut operations = vec![operation(&p.name, rate(&p.name), clients)];
    if p.name == "page" {
        operations.push(operation("open", rate("open"), clients));
        operations.push(operation("close", rate("close"), clients));
    }
    Point {
        phase: p.name.clone(),
        length_ns: 1_000_000_000,
        clients,
        generator_cpu_ns: OPERATIONS * 3_000,
        server_cpu_ns: (product != Some(Product::Files)).then_some(OPERATIONS * 5_000),
        own_share: 0.02,
        operations,
        ..Point::default()
    }
}

/// Service times from 0.8 to 1.2 times the time per operation that the rate implies; one in a
/// hundred takes three times that time.
fn operation(name: &str, rate_per_s: f64, clients: u32) -> OperationResult {
    let middle_ns = 1e9 * f64::from(clients) / rate_per_s;
    let (mut service, lock_wait) = (Histogram::new(), Histogram::new());
    for i in 0..OPERATIONS {
        let slow = if i % 100 == 0 { 3.0 } else { 0.8 + 0.4 * i as f64 / OPERATIONS as f64 };
        service.record((middle_ns * slow) as u64);
    }
    OperationResult {
        operation: name.into(),
        counts: Counts { ok: OPERATIONS, verified: OPERATIONS / 64, ..Counts::default() },
        rate_per_s,
        calls_rate_per_s: None,
        response: service.clone(),
        service,
        lag: Histogram::new(),
        lock_wait,
        slowest: Some(slowest(middle_ns)),
    }
}

/// Two hundred intervals of ten operations each; every tenth interval has a slow operation.
fn slowest(middle_ns: f64) -> Slowest {
    let longest = |i: u32| if i.is_multiple_of(10) { 3.0 } else { 1.2 };
    let service = (0..200).map(|i| (middle_ns * longest(i)) as u64).collect();
    Slowest { interval_ns: 5_000_000, service, response: Vec::new() }
}

/// Changes every result of one operation on one target.
pub(crate) fn change(
    recorded: &mut Recorded,
    target: &str,
    operation: &str,
    with: impl Fn(&mut Point, usize),
) {
    let cells = recorded.header.plan.cells.clone();
    let of_target = |id: &str| cells.iter().any(|c| c.id == id && c.target == target);
    for trial in recorded.trials.iter_mut().filter(|t| of_target(&t.cell)) {
        for phase in &mut trial.points {
            if let Some(i) = phase.operations.iter().position(|o| o.operation == operation) {
                with(phase, i);
            }
        }
    }
}

/// Sets every phase's rate over time.
pub(crate) fn set_intervals(recorded: &mut Recorded, counts: &[u64]) {
    for series in recorded.trials.iter_mut().flat_map(|t| &mut t.series) {
        series.done_per_interval = counts.to_vec();
    }
}

/// Gives a phase of a trial another name.
pub(crate) fn rename(trial: &mut Trial, from: &str, to: &str) {
    trial.points.iter_mut().filter(|p| p.phase == from).for_each(|p| p.phase = to.into());
    trial.series.iter_mut().filter(|s| s.phase == from).for_each(|s| s.phase = to.into());
}

/// A statement about a ratio of rates.
pub(crate) fn ratio(a: &str, b: &str, operation: &str, clients: u32, range: (f64, f64)) -> Claim {
    Claim {
        id: format!("{a}-{b}-{operation}-{clients}"),
        text: format!("{a} is faster than {b}"),
        source: "a test".into(),
        source_value: None,
        profiles: Vec::new(),
        conditions: claims::Conditions::default(),
        expect: Expectation::Ratio(Ratio {
            a: a.into(),
            b: b.into(),
            of: Figure::Rate,
            operation: Some(operation.into()),
            clients: Some(clients),
            shares: Vec::new(),
            min: range.0,
            max: range.1.is_finite().then_some(range.1),
        }),
    }
}

/// The recommendation table of the source that the sessions study follows.
pub(crate) fn advice() -> Advice {
    let row = |shop: &str, size: &str, factory: &str, source: &str| AdviceRow {
        shop: shop.into(),
        size: size.into(),
        factory: factory.into(),
        source: vec![source.into()],
        second: None,
        targets: Vec::new(),
    };
    let weights = [("read", 0.6), ("change", 0.3), ("write", 0.1)];
    let sizes = [("small", 1), ("medium to large", 8)];
    Advice {
        weights: weights.map(|(name, w)| (name.to_string(), w)).into(),
        sizes: sizes.map(|(name, n)| (name.to_string(), ShopSize::Clients(n))).into(),
        rows: vec![
            row("Shopware", "small", "mysql", "redis"),
            row("Shopware", "medium to large", "mysql", "redis"),
            row("Magento 2", "small", "files", "files"),
            row("Magento 2", "medium to large", "files", "redis"),
        ],
        notes: vec![AdviceNote {
            text: "Magento 1 needs an extension for Redis.".into(),
            source: "its documentation".into(),
        }],
    }
}

/// A calibration with round figures.
pub(crate) fn calibration() -> Calibration {
    let cost = |rate_per_s, user_ns_per_op, system_ns_per_op| Cost {
        rate_per_s,
        user_ns_per_op,
        system_ns_per_op,
    };
    let shape = |socket: &str, pipeline, rate_per_s: f64| ShapeCost {
        socket: socket.into(),
        operation: "get".into(),
        pipeline,
        engine: cost(rate_per_s, 400.0, 1_600.0),
        bare: cost(rate_per_s * 1.25, 100.0, 1_500.0),
        engine_to_bare: 1.25,
    };
    Calibration {
        format: 1,
        tool: "cachedyno 0.1.0".into(),
        started_unix_ms: 1_790_000_000_000,
        measured_ns: 1_000_000_000,
        host: Host {
            machine: "0123456789abcdef".into(),
            kernel: "6.1".into(),
            cpu: "a CPU".into(),
            generator_cpus: vec![0],
            server_cpus: vec![1],
        },
        clients: 50,
        value_bytes: 1024,
        shapes: vec![
            shape("unix", 1, 150_000.0),
            shape("unix", 16, 2_000_000.0),
            shape("tcp", 1, 100_000.0),
        ],
        clock: Clock { source: "tsc".into(), resolution_ns: 1, reading_ns: 25.0 },
        timer: DelayPercentiles {
            ns_p50: 20_000,
            ns_p99: 100_000,
            ns_p999: 400_000,
            ns_max: 3_000_000,
        },
        pauses: Pauses { share_over_1ms: 0.002, ns_max: 4_000_000 },
        load: LoadLag {
            rate_per_s: 1_000_000.0,
            lag: DelayPercentiles {
                ns_p50: 1_000,
                ns_p99: 50_000,
                ns_p999: 2_000_000,
                ns_max: 5_000_000,
            },
        },
    }
}
