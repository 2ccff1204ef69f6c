//! Whether stores kept what they acknowledged.

use model::{ReadBack, Trial, Workload};
use std::collections::BTreeMap;

use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::rules::LOST_WRITES_MAX;
use crate::validity::Findings;

/// Finds fault with targets that lost acknowledged writes, and notes what could not be read.
pub(crate) fn check(recorded: &Recorded, findings: &mut Findings, notes: &mut Notes) {
    let mut of_cells: BTreeMap<&str, Vec<(&Trial, &ReadBack)>> = BTreeMap::new();
    for trial in &recorded.trials {
        if let Some(read_back) = &trial.read_back {
            of_cells.entry(&trial.cell).or_default().push((trial, read_back));
        }
    }
    for cell in &recorded.header.plan.cells {
        let Some(trials) = of_cells.get(cell.id.as_str()) else { continue };
        let things = match cell.workload {
            Workload::Sessions(_) => "sessions",
            Workload::Kv(_) => "keys",
            Workload::AppCache(_) => "records",
        };
        if let Some(sentence) = lost(trials, things) {
            findings.invalid.push(format!("`{}`: {sentence}", cell.id));
        }
        if let Some(text) = unread(&cell.id, trials, things) {
            notes.add(text);
        }
    }
}

/// What was not read back of keys, sessions or records, of the first block that has something to
/// say.
fn unread(cell: &str, trials: &[(&Trial, &ReadBack)], things: &str) -> Option<String> {
    let (trial, read_back, why) =
        trials.iter().find_map(|(trial, read)| Some((trial, read, read.unread.as_ref()?)))?;
    let read = match read_back.read {
        0 => String::new(),
        read => format!(", but {read} {things} of them in block {}", trial.block + 1),
    };
    Some(format!("`{cell}`: acknowledged writes were not read back{read}: {why}"))
}

/// What was lost of keys, sessions or records; `None` where nothing was.
fn lost(trials: &[(&Trial, &ReadBack)], things: &str) -> Option<String> {
    let broken: Vec<&ReadBack> =
        trials.iter().map(|(_, r)| *r).filter(|r| r.lost() > LOST_WRITES_MAX).collect();
    let first = broken.first()?;
    let sum = |of: fn(&ReadBack) -> u64| trials.iter().map(|(_, r)| of(r)).sum::<u64>();
    let kinds = [
        (sum(|r| r.older), "hold an older value than the last one that the store acknowledged"),
        (sum(|r| r.missing.saturating_sub(r.may_be_missing)), "are missing"),
        (sum(|r| r.wrong), "hold what nobody wrote there"),
    ];
    let kinds: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let example =
        first.example.as_ref().map_or_else(String::new, |name| format!(" (such as `{name}`)"));
    Some(format!(
        "the store lost acknowledged writes: of {} {things} read back after the load, {}{example}",
        sum(|r| r.read),
        kinds.join(", ")
    ))
}
