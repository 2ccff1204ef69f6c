//! Break-even of page views and purchases. An application cache that answers page views fast can
//! lose its lead through purchases, which clean by tag and write the removed records again.
//!
//! Let V and P be the mean times of a page view and a purchase on two targets 1 and 2. Both spend
//! the same time with (V2 − V1) / (P1 − P2) purchases per page view. This is computed in each
//! block; its interval is that of a geometric mean over blocks.

use stats::Doubt;

use crate::blocks::ratio_over_blocks;
use crate::recorded::Recorded;
use crate::series::MeasuredPoint;
use crate::show;
use crate::view::{BreakEvenView, Value};

const PAGE: &str = "page";
const PURCHASE: &str = "purchase";

/// Mean times of a target's page views and purchases in one block, nanoseconds.
type Times = (u32, f64, f64);

/// Every pair of targets of a profile with page views and purchases, in display order.
pub(crate) fn break_even(recorded: &Recorded, phases: &[MeasuredPoint<'_>]) -> Vec<BreakEvenView> {
    let plan = &recorded.header.plan;
    let is_control = |name: &str| plan.target(name).is_some_and(|t| t.control_of.is_some());
    let pages: Vec<&MeasuredPoint<'_>> =
        phases.iter().filter(|p| p.name == PAGE && !is_control(&p.cell.target)).collect();
    let mut found = Vec::new();
    for (i, one) in pages.iter().enumerate() {
        let same = |two: &&&MeasuredPoint<'_>| {
            two.cell.workload.profile() == one.cell.workload.profile()
                && two.cell.load == one.cell.load
        };
        for two in pages[i + 1..].iter().filter(same) {
            let times = [one, two].map(|page| times(page, phases));
            found.extend(pair((one, two), &times[0], &times[1], plan.seed));
        }
    }
    found
}

/// The times of a target in each block with both operations.
fn times(page: &MeasuredPoint<'_>, phases: &[MeasuredPoint<'_>]) -> Vec<Times> {
    let own = |p: &&MeasuredPoint<'_>| p.name == PURCHASE && p.cell.id == page.cell.id;
    let Some(purchase) = phases.iter().find(own) else { return Vec::new() };
    let whole = |point: &MeasuredPoint<'_>, block: u32| {
        let operation = point.operations.iter().find(|o| o.whole)?;
        let found = operation.blocks.iter().find(|b| b.block == block && b.usable())?;
        (!found.result.service.is_empty()).then(|| found.result.service.mean_ns())
    };
    let blocks = page.trials.iter().map(|(trial, _)| trial.block);
    blocks.filter_map(|block| Some((block, whole(page, block)?, whole(purchase, block)?))).collect()
}

fn pair(
    (one, two): (&MeasuredPoint<'_>, &MeasuredPoint<'_>),
    times: &[Times],
    others: &[Times],
    seed: u64,
) -> Option<BreakEvenView> {
    let common: Vec<(Times, Times)> =
        times.iter().filter_map(|a| Some((*a, *others.iter().find(|b| b.0 == a.0)?))).collect();
    if common.is_empty() {
        return None;
    }
    let ahead = common.iter().filter(|((_, a, _), (_, b, _))| a < b).count();
    let (fast, other, common) = if 2 * ahead >= common.len() {
        (one, two, common)
    } else {
        (two, one, common.into_iter().map(|(a, b)| (b, a)).collect())
    };
    let of_blocks = common.len();
    let over = |read: fn(&(Times, Times)) -> f64| ratio_over_blocks(common.iter().map(read), seed);
    // How much longer the other takes for a page view, and the first for a purchase.
    let pages = over(|(a, b)| b.1 / a.1)?;
    let purchases = over(|(a, b)| a.2 / b.2)?;
    let found = if Doubt::about(of_blocks).is_some() {
        Found::TooFew
    } else {
        match (is_above_one(pages), is_above_one(purchases)) {
            (Some(true), Some(true)) => Found::BreakEven,
            (Some(true), Some(false)) => Found::Ahead,
            (Some(true), None) => Found::Open(PURCHASE),
            _ => Found::Open(PAGE),
        }
    };
    let rates = common.iter().map(|(a, b)| (b.1 - a.1) / (a.2 - b.2));
    let rates: Vec<f64> = rates.filter(|n| n.is_finite() && *n > 0.0).collect();
    let blocks = rates.len();
    let value = ratio_over_blocks(rates.into_iter(), seed);
    let value = match found {
        Found::BreakEven => value.filter(|_| blocks == of_blocks),
        Found::TooFew => value.map(|value| Value::alone(value.center)),
        Found::Ahead | Found::Open(_) => None,
    };
    let names = (fast.cell.target.as_str(), other.cell.target.as_str());
    Some(BreakEvenView {
        workload: fast.cell.workload.profile().into(),
        load: fast.cell.load.clone(),
        faster_pages: names.0.into(),
        other: names.1.into(),
        purchases_per_page: value,
        blocks: blocks as u32,
        of_blocks: of_blocks as u32,
        sentence: sentence(names, &found, value, (pages, purchases)),
    })
}

/// What two targets' times show.
enum Found {
    /// Each is ahead in one of the two.
    BreakEven,
    /// The first is ahead in both.
    Ahead,
    /// An operation in which neither is significantly ahead.
    Open(&'static str),
    /// There are too few blocks to decide anything.
    TooFew,
}

/// Whether an interval lies above 1, or below; `None` if it includes 1.
fn is_above_one(ratio: Value) -> Option<bool> {
    match ratio.interval()? {
        (lo, _) if lo > 1.0 => Some(true),
        (_, hi) if hi < 1.0 => Some(false),
        _ => None,
    }
}

fn sentence(
    (fast, other): (&str, &str),
    found: &Found,
    value: Option<Value>,
    (pages, purchases): (Value, Value),
) -> String {
    let ratios = format!(
        "page views {}, purchases {} as long on {other} as on {fast}",
        show::ratio_value(&pages),
        show::ratio_value(&purchases.inverse())
    );
    let per_page = value.map(Value::inverse);
    match (found, per_page) {
        (Found::BreakEven, Some(pages)) => {
            let ends = show::bounds(&pages).map_or_else(String::new, |(lo, hi)| {
                format!(" [{}, {}]", show::grouped(lo), show::grouped(hi))
            });
            let center = show::grouped(pages.center);
            format!(
                "{other} takes less time than {fast} from 1 purchase in {center}{ends} page views \
                 on ({ratios})"
            )
        }
        (Found::Ahead, _) => {
            format!(
                "{fast} takes less time than {other} for page views and for purchases ({ratios})"
            )
        }
        (Found::TooFew, Some(pages)) => format!(
            "{other} takes less time than {fast} from 1 purchase in about {} page views on (too \
             few blocks to be sure)",
            show::grouped(pages.center)
        ),
        (Found::Open(operation), _) => {
            let what = if *operation == PAGE { "page views" } else { "purchases" };
            format!("{fast} and {other} do not differ significantly in {what} ({ratios})")
        }
        (Found::BreakEven | Found::TooFew, None) => {
            format!("not every block has a break-even of {fast} and {other} ({ratios})")
        }
    }
}
