//! How many clients of a closed load are at work at each time.

use model::Stage;

/// A thread's share of the clients, which are numbered over all threads in turn: those with the
/// smallest numbers are at work first.
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

    /// Clients of this thread that are at work at a time, nanoseconds from the start of the load,
    /// and the later time at which the clients of any thread change next; `u64::MAX` for never.
    pub(crate) fn at(&self, ns: u64) -> (u32, u64) {
        let mut begins_ns = 0_u64;
        let mut last = 0;
        for stage in &self.stages {
            let ends_ns = begins_ns.saturating_add(stage.length_ns);
            if ns < ends_ns {
                let (clients, changes_ns) = within(stage, ns - begins_ns);
                return (self.own(clients), begins_ns + changes_ns);
            }
            (begins_ns, last) = (ends_ns, stage.to as u32);
        }
        (self.own(last), u64::MAX)
    }

    fn own(&self, clients: u32) -> u32 {
        clients.saturating_sub(self.thread).div_ceil(self.threads)
    }
}

/// Clients at a time within a stage, over all threads, and when that changes; the end of the stage
/// counts as a change.
fn within(stage: &Stage, ns: u64) -> (u32, u64) {
    let (from, to) = (stage.from as u32, stage.to as u32);
    let (steps, length) = (u128::from(from.abs_diff(to)), u128::from(stage.length_ns));
    if steps == 0 {
        return (from, stage.length_ns);
    }
    // The numbers that lie between are at work for times of one length; that at the end, which is
    // reached by the last step, belongs to what follows.
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
    fn clients_come_and_go_one_by_one() {
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
    fn threads_have_all_clients_between_them() {
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
