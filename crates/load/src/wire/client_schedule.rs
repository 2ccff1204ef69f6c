//! The number of active clients of a closed load over time.

use model::Stage;

/// A thread's share of the clients. Clients are numbered round-robin over the threads, and those
/// with the lowest numbers are activated first.
#[derive(Clone, Debug)]
pub(crate) struct ClientSchedule {
    stages: Vec<Stage>,
    thread: u32,
    threads: u32,
}

impl ClientSchedule {
    /// The share of one of `threads` threads.
    pub(crate) fn new(stages: &[Stage], (thread, threads): (u32, u32)) -> Self {
        Self { stages: stages.to_vec(), thread, threads }
    }

    /// Active clients of this thread at `ns` nanoseconds after the start of the load, and the next
    /// time at which the number changes in any thread; `u64::MAX` if it never does.
    pub(crate) fn at(&self, ns: u64) -> (u32, u64) {
        let mut starts_ns = 0_u64;
        let mut last = 0;
        for stage in &self.stages {
            let ends_ns = starts_ns.saturating_add(stage.length_ns);
            if ns < ends_ns {
                let (clients, changes_ns) = within(stage, ns - starts_ns);
                return (self.own(clients), starts_ns + changes_ns);
            }
            (starts_ns, last) = (ends_ns, stage.to as u32);
        }
        (self.own(last), u64::MAX)
    }

    fn own(&self, clients: u32) -> u32 {
        clients.saturating_sub(self.thread).div_ceil(self.threads)
    }
}

/// Active clients over all threads at `ns` within a stage, and when their number changes next; the
/// end of the stage counts as a change.
fn within(stage: &Stage, ns: u64) -> (u32, u64) {
    let (from, to) = (stage.from as u32, stage.to as u32);
    let (steps, length) = (u128::from(from.abs_diff(to)), u128::from(stage.length_ns));
    if steps == 0 {
        return (from, stage.length_ns);
    }
    // Every number in between is active for the same length of time. The final number, reached by
    // the last step, belongs to the next stage.
    let taken = u128::from(ns) * steps / length;
    let clients = if from < to { from + taken as u32 } else { from - taken as u32 };
    (clients, ((taken + 1) * length).div_ceil(steps) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use workloads::kv::numbers;

    const S: u64 = 1_000_000_000;

    fn stage(seconds: u64, from: u64, to: u64) -> Stage {
        Stage { length_ns: seconds * S, from, to }
    }

    #[test]
    fn clients_start_and_stop_one_by_one() {
        let client_schedule =
            ClientSchedule::new(&[stage(10, 2, 2), stage(4, 2, 6), stage(3, 3, 0)], (0, 1));
        let at = |tenths: u64| {
            let (clients, changes_ns) = client_schedule.at(tenths * S / 10);
            (clients, changes_ns * 10 / S)
        };
        assert_eq!([at(0), at(99)], [(2, 100), (2, 100)]);
        assert_eq!([at(100), at(109), at(110), at(139)], [(2, 110), (2, 110), (3, 120), (5, 140)]);
        assert_eq!([at(140), at(150), at(169)], [(3, 150), (2, 160), (1, 170)]);
        assert_eq!(client_schedule.at(17 * S), (0, u64::MAX));
    }

    #[test]
    fn the_shares_of_all_threads_add_up_to_all_clients() {
        for n in 0..2_000 {
            let mut random = numbers(7, 0, n);
            let stages: Vec<_> = (0..=random.below(4))
                .map(|_| Stage {
                    length_ns: 1 + random.below(1_000),
                    from: random.below(50),
                    to: random.below(50),
                })
                .collect();
            let (threads, ns) = (1 + random.below(5) as u32, random.below(5_000));
            let whole = ClientSchedule::new(&stages, (0, 1));
            let (clients, changes_ns) = whole.at(ns);
            assert!(changes_ns > ns, "{stages:?} at {ns}");
            if changes_ns != u64::MAX {
                assert_eq!(whole.at(changes_ns - 1), (clients, changes_ns), "{stages:?} at {ns}");
            }
            let shares =
                (0..threads).map(|thread| ClientSchedule::new(&stages, (thread, threads)).at(ns));
            assert_eq!(shares.map(|(own, _)| own).sum::<u32>(), clients, "{stages:?} at {ns}");
        }
    }
}
