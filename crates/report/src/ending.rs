//! Status, duration and completed blocks of a run.

use model::{SealStatus, leftovers};
use std::collections::BTreeSet;

use crate::recorded::Recorded;
use crate::view::{Course, Status};

/// Status and duration of a run. Without a seal, a block counts as complete if every cell has a
/// trial. The duration of a killed or resumed run is the sum of its trials, because it may have
/// been idle between them for hours.
pub(crate) fn course(recorded: &Recorded) -> Course {
    let started_unix_ms = recorded.header.started_unix_ms;
    // Steps of the wall clock do not count as duration.
    let steps_ms: i64 = recorded.trials.iter().filter_map(|t| t.clock_step_ms).sum();
    let seconds = |end: u64| {
        end.saturating_add_signed(-steps_ms).saturating_sub(started_unix_ms) as f64 / 1e3
    };
    let ends = recorded.trials.iter().map(|t| t.started_unix_ms + t.took_ns / 1_000_000);
    let of_trials = || recorded.trials.iter().map(|t| t.took_ns).sum::<u64>() as f64 / 1e9;
    let mut course = Course {
        status: if recorded.running { Status::Running } else { Status::Unsealed },
        stopped_because: unsealed(recorded).into(),
        started_unix_ms,
        took_s: if recorded.running { ends.max().map_or(0.0, seconds) } else { of_trials() },
        resume: resuming(recorded),
        resumed: false,
        blocks: whole_blocks(recorded),
        changed: Vec::new(),
    };
    if let Some(seal) = &recorded.seal {
        course.status = match seal.status {
            SealStatus::Complete => Status::Complete,
            SealStatus::Interrupted => Status::Interrupted,
        };
        course.stopped_because.clone_from(&seal.stopped_because);
        course.resumed = seal.resumed;
        course.blocks = seal.blocks;
        course.took_s = if seal.resumed { of_trials() } else { seconds(seal.finished_unix_ms) };
    }
    course
}

/// The command that resumes the run, without stores that the record does not name.
fn resuming(recorded: &Recorded) -> String {
    let header = &recorded.header;
    leftovers::resume(header).unwrap_or_else(|| {
        leftovers::resuming(header, leftovers::records(&header.command), Vec::new())
    })
}

/// Why a record has no seal.
pub(crate) fn unsealed(recorded: &Recorded) -> &'static str {
    if recorded.running {
        "the run is in progress"
    } else {
        "the run was killed, or its record could not be written to the end"
    }
}

/// Number of blocks in which every cell of every available target was measured.
pub(crate) fn whole_blocks(recorded: &Recorded) -> u32 {
    let plan = &recorded.header.plan;
    let available = |target: &str| recorded.unavailable(target).is_none();
    let cells: Vec<_> = plan.cells.iter().filter(|c| available(&c.target)).collect();
    let ended = recorded.trials.iter().filter(|trial| plan.next_probe(trial).is_none());
    let ended: BTreeSet<(u32, &str)> =
        ended.map(|trial| (trial.block, trial.cell.as_str())).collect();
    let blocks: BTreeSet<u32> = ended.iter().map(|(block, _)| *block).collect();
    let whole = |block: &&u32| cells.iter().all(|c| ended.contains(&(**block, c.id.as_str())));
    blocks.iter().filter(whole).count() as u32
}
