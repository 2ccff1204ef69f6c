//! A metric of a row, or a fact, within a range.

use model::study::claims::Within;
use stats::Doubt;

use super::context::{Context, Kind};
use super::judged::{Judged, by_range, not_run, undecided};
use crate::show;
use crate::view::{ClaimUnit, Value};

impl Kind for Within {
    fn expected(&self) -> String {
        let Self { of, min, max, .. } = self;
        let number = |value: f64| show::named(of, value);
        let range = match max {
            Some(max) if *min <= 0.0 => format!("at most {}", number(*max)),
            Some(max) => format!("from {} to {}", number(*min), number(*max)),
            None => format!("at least {}", number(*min)),
        };
        format!("{} {range}", what(self))
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { of, min, max, .. } = self;
        let Some(Found { value, blocks, beyond }) = found(self, context) else {
            return Err(not_run(format!("{} was not measured", what(self))));
        };
        if let Some(doubt) = Doubt::about(blocks) {
            return Err(undecided(Some(value), doubt.to_string()));
        }
        // Blocks that ended first have more than any of the others.
        let exceeds = max.is_some_and(|max| value.lo.unwrap_or(value.center) > max);
        if beyond > 0 && !exceeds {
            let of = if beyond == 1 { "one block".into() } else { format!("{beyond} blocks") };
            let doubt = format!("{of} ended before it was reached, so it is more there");
            return Err(undecided(Some(value), doubt));
        }
        // No metric is negative, so with a mean of 0 each block has 0.
        let is_nothing = value.center <= 0.0 && value.lo.is_none();
        let value = if is_nothing { Value::new(0.0, Some(0.0), Some(0.0)) } else { value };
        let note = format!("{} is {}", what(self), show::named(of, value.center));
        Ok(by_range(value, (*min, max.unwrap_or(f64::INFINITY)), &note))
    }

    fn unit(&self) -> ClaimUnit {
        match self.of.as_str() {
            of if of.ends_with("_per_s") => ClaimUnit::PerSecond,
            of if of.ends_with("_share") => ClaimUnit::Share,
            of if of.ends_with("_ns") || of.contains("_ns_") => ClaimUnit::Ns,
            of if of.contains("bytes") => ClaimUnit::Bytes,
            _ => ClaimUnit::Count,
        }
    }
}

/// A value over blocks.
struct Found {
    /// Of a fact, with the least and the most of any block.
    value: Value,
    blocks: usize,
    /// Further blocks, which ended before it was reached.
    beyond: u32,
}

fn found(claim: &Within, context: &Context<'_>) -> Option<Found> {
    let Within { target, operation, of, .. } = claim;
    let Some(operation) = operation else {
        let mut facts = context.facts.iter();
        let fact = facts.find(|fact| {
            (&*fact.workload, &fact.target, &fact.name) == (context.profile, target, of)
                && !fact.by_block.is_empty()
        })?;
        let blocks = fact.by_block.len() + fact.beyond as usize;
        return Some(Found { value: fact.value, blocks, beyond: fact.beyond });
    };
    let name = context.row_of(operation);
    let mut rows = context.rows.iter();
    let row = rows.find(|row| {
        (&*row.workload, &row.target, &row.operation) == (context.profile, target, &name)
    })?;
    Some(Found { value: *row.metrics.get(of)?, blocks: row.blocks as usize, beyond: 0 })
}

/// The number in words.
fn what(claim: &Within) -> String {
    let Within { target, operation, of, .. } = claim;
    let operation = operation.as_ref().map_or_else(String::new, |name| format!(" at {name}"));
    format!("`{of}` of {target}{operation}")
}
