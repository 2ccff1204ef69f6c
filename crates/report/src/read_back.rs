//! Check that stores kept acknowledged writes.

use model::{Cell, ReadBack, Trial};

use crate::findings::Findings;
use crate::limits::LOST_WRITES_MAX;
use crate::recorded::Recorded;
use crate::show;

/// Reports a store that lost acknowledged writes, and notes writes that could not be read back.
pub(crate) fn check(_: &Recorded, cell: &Cell, trials: &[&Trial], findings: &mut Findings) {
    let read = trials.iter().filter_map(|trial| Some((*trial, trial.read_back.as_ref()?)));
    let trials: Vec<(&Trial, &ReadBack)> = read.collect();
    let things = show::things(&cell.workload);
    let lost = lost(&trials, things).map(|sentence| format!("`{}`: {sentence}", cell.id));
    // For a server that the plan kills, lost writes are a result and not an error.
    findings.invalid.extend(lost.filter(|_| !cell.workload.may_fail()));
    findings.footnotes.extend(unread(&cell.id, &trials, things));
    let hidden = trials.iter().filter(|(_, read)| read.read > 0 && read.checked() == 0).count();
    if hidden > 0 {
        findings.footnotes.push(format!(
            "`{}`: in {hidden} of {} blocks lost writes are unknown, because every sampled key was \
             written again after the fault: use more keys or a lower rate",
            cell.id,
            trials.len()
        ));
    }
}

/// Sentence about writes that were not read back, from the first block with any.
fn unread(cell: &str, trials: &[(&Trial, &ReadBack)], things: &str) -> Option<String> {
    let (trial, read_back, why) =
        trials.iter().find_map(|(trial, read)| Some((trial, read, read.unread.as_ref()?)))?;
    let read = match read_back.read {
        0 => String::new(),
        read => format!(", but {read} {things} of them in block {}", trial.block + 1),
    };
    Some(format!("`{cell}`: acknowledged writes were not read back{read}: {why}"))
}

/// Sentence about lost writes; `None` if there are none.
fn lost(trials: &[(&Trial, &ReadBack)], things: &str) -> Option<String> {
    let broken: Vec<&ReadBack> =
        trials.iter().map(|(_, r)| *r).filter(|r| r.lost() > LOST_WRITES_MAX).collect();
    let first = broken.first()?;
    let sum = |of: fn(&ReadBack) -> u64| trials.iter().map(|(_, r)| of(r)).sum::<u64>();
    let kinds = [
        (sum(|r| r.older), "contain an older value than the last acknowledged one"),
        (sum(|r| r.missing.saturating_sub(r.may_be_missing)), "are missing"),
        (sum(|r| r.wrong), "contain data that nobody wrote there"),
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
