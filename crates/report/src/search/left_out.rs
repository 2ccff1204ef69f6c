//! What is left out of a search because others took a CPU, in words.

use model::{Cell, Search, Trial, Workload};

use crate::show;

/// What others took of the CPUs in `trials`, and what was due in them; `None` where nothing is left
/// out.
pub(super) fn words<'a>(
    trials: impl Iterator<Item = &'a Trial>,
    cell: Option<&Cell>,
) -> Option<String> {
    let (mut whole_ns, mut generator_ns, mut server_ns) = (0, 0, 0);
    let (mut due, mut left_out) = (0, 0);
    let sum = |counts: &[u64]| counts.iter().sum::<u64>();
    for trial in trials {
        let Some(phase) = trial.phases.first() else { continue };
        whole_ns += phase.wall_ns;
        due += phase.due.as_ref().map_or(0, |due| sum(&due.due_per_interval));
        if let Some(disturbed) = Search::left_out(trial) {
            generator_ns += disturbed.generator_ns;
            server_ns += disturbed.server_ns;
            left_out += sum(&disturbed.due_per_interval);
        }
    }
    if left_out == 0 {
        return None;
    }
    // Each thread of the generator tells what it lost, and what it saw of the server.
    let threads = match &cell?.workload {
        Workload::Kv(kv) => kv.threads.max(1),
        _ => 1,
    };
    let of_time =
        |ns: u64| show::percent(ns as f64 / (whole_ns as f64 * f64::from(threads)).max(1.0));
    Some(format!(
        "others took the CPU of the generator for {} of the time and that of the server for {}: \
         what that delayed, {} of the requests, is left out of the times and verdicts of probes",
        of_time(generator_ns),
        of_time(server_ns),
        show::percent(left_out as f64 / due.max(1) as f64),
    ))
}
