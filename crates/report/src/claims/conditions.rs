//! Whether a profile meets the conditions that a claim is about.

use model::study::claims::Conditions;
use model::study::{Claim, Expectation};
use model::{Cell, Header, PageCache, Plan, PlannedTarget, Workload};

use crate::null;
use crate::show;

/// True if a measured profile is the profile `name` of the study, or one of its sizes or amounts of
/// data.
pub(super) fn is_of(plan: &Plan, profile: &str, name: &str) -> bool {
    profile == name || cells(plan, profile).any(|cell| cell.workload.study_profile() == name)
}

fn cells<'a>(plan: &'a Plan, profile: &'a str) -> impl Iterator<Item = &'a Cell> {
    let is_own = move |cell: &&Cell| {
        cell.workload.profile() == profile || cell.workload.study_profile() == profile
    };
    plan.cells.iter().filter(is_own)
}

/// The first condition that a profile does not meet, in words.
pub(super) fn unmet(conditions: &Conditions, plan: &Plan, profile: &str) -> Option<String> {
    cells(plan, profile).find_map(|cell| of_cell(conditions, cell))
}

/// Why the measured targets of a claim are not on different disks, if it is about such.
pub(super) fn same_disk(claim: &Claim, header: &Header) -> Option<String> {
    let targets = claim.expect.targets();
    let all = targets.iter().map(|name| header.plan.target(name)).collect::<Option<Vec<_>>>();
    let all = all.filter(|_| claim.conditions.different_disks)?;
    let device = |target: &PlannedTarget| {
        header.conditions.of_disk(&target.name, "device").map(|device| device.value.clone())
    };
    let (first, rest) = all.split_first()?;
    let twin = rest
        .iter()
        .find(|other| device(other) == device(first) && other.disk_limit == first.disk_limit)?;
    let device = device(first).unwrap_or_else(|| "an unknown disk".into());
    Some(format!(
        "it is about different disks, and {} and {} are both on {device}: directories on two disks \
         by `--target LABEL:NAME=DIRECTORY`, or `--set disk_limit.LABEL=…`",
        first.name, twin.name
    ))
}

/// Why servers had too few CPUs, if a claim is about as many as they can use.
pub(super) fn few_cpus(claim: &Claim, header: &Header) -> Option<String> {
    let wanted = claim.conditions.server_cpus?;
    let found = null::server_cpus(header)?;
    (found < wanted).then(|| {
        let s = if found == 1 { "" } else { "s" };
        format!(
            "it is about servers on {wanted} CPUs or more; here they share {found} CPU{s}, so a \
             flat line is the machine's"
        )
    })
}

/// Says which disks of a claim's targets the kernel throttles; `None` if none.
pub(super) fn throttled(expect: &Expectation, plan: &Plan) -> Option<String> {
    let targets = expect
        .targets()
        .into_iter()
        .filter(|name| plan.target(name).is_some_and(|target| target.disk_limit.is_some()));
    let names: Vec<String> = targets.map(ToString::to_string).collect();
    (!names.is_empty()).then(|| {
        format!(
            "; the disk of {} is throttled by the kernel, which shows the direction and not what \
             another disk would do",
            show::listed(&names)
        )
    })
}

fn of_cell(conditions: &Conditions, cell: &Cell) -> Option<String> {
    let Conditions { records, page_cache, memory_limit, lifetimes, exceeds_memory, .. } =
        conditions;
    let profile = cell.workload.profile();
    let things = show::things(&cell.workload);
    let of_records = records.and_then(|(fewest, most)| {
        let found = data_size(&cell.workload);
        (!(fewest..=most).contains(&found)).then(|| {
            let range = match (fewest, most) {
                (fewest, u64::MAX) => format!("{} or more", show::commas(fewest)),
                (0 | 1, most) => format!("up to {}", show::commas(most)),
                (fewest, most) => format!("{} to {}", show::commas(fewest), show::commas(most)),
            };
            format!("it is about {range} {things}; `{profile}` has {}", show::commas(found))
        })
    });
    let of_page_cache = || {
        let cold = is_cold(&cell.workload);
        page_cache.filter(|wanted| (*wanted == PageCache::Cold) != cold).map(|wanted| {
            let (wanted, own) = match wanted {
                PageCache::Cold => ("read from disk", "finds them in memory"),
                PageCache::Warm => ("in memory", "reads them from disk"),
            };
            format!("it is about files that are {wanted}; `{profile}` {own}")
        })
    };
    let of_memory = || {
        let limited = cell.workload.memory().is_some();
        memory_limit.filter(|wanted| *wanted != limited).map(|wanted| {
            let cure =
                if wanted { "`--set memory_limit=SIZE` limits it" } else { "omit `memory_limit`" };
            let about = if wanted { "limited" } else { "unlimited" };
            format!("it is about {about} memory: {cure}")
        })
    };
    let of_lifetimes = || {
        let needed = (*lifetimes)?;
        let length_s = cell.load.stages_ns() as f64 / 1e9;
        let found = length_s / cell.workload.ttl_s().max(1) as f64;
        (found < needed).then(|| {
            format!(
                "it needs a load of {needed} lifetimes of {} s; that of `{profile}` lasts {}: a \
                 larger `--scale` or `--set stage_ms=…` makes it longer",
                cell.workload.ttl_s(),
                show::duration(length_s)
            )
        })
    };
    let of_amount = || {
        if !*exceeds_memory {
            return None;
        }
        if cell.workload.memory().is_none() {
            let target = &cell.target;
            return Some(format!(
                "it is about more data than memory, and that of {target} is not limited here"
            ));
        }
        let data = cell.workload.data_size()?.of_memory.filter(|data| *data <= 1.0)?;
        Some(format!("it is about more data than memory; `{profile}` has {data} times the memory"))
    };
    let of_size = of_records.or_else(of_amount);
    of_size.or_else(of_page_cache).or_else(of_memory).or_else(of_lifetimes)
}

/// Records, sessions, keys or rows of a data set.
fn data_size(workload: &Workload) -> u64 {
    match workload {
        Workload::AppCache(cache) => cache.keys,
        Workload::Sessions(sessions) => sessions.filled,
        Workload::Kv(kv) => kv.keys,
        Workload::CacheAside(aside) => aside.rows,
    }
}

/// True if no file is in memory when a phase starts.
fn is_cold(workload: &Workload) -> bool {
    matches!(workload, Workload::AppCache(cache) if cache.page_cache == PageCache::Cold)
}
