//! Tests of [`super`]; those with real servers are in `tests/sampling.rs`.

use super::*;
use model::{ProcessUse, ThreadCpu};

fn used(threads: &[(u32, u64)]) -> ProcessUse {
    let thread = |(id, cpu_ns): &(u32, u64)| ThreadCpu {
        id: *id,
        name: format!("thread-{id}"),
        cpu_ns: *cpu_ns,
    };
    ProcessUse { threads: threads.iter().map(thread).collect(), ..ProcessUse::default() }
}

#[test]
fn the_busiest_threads_are_kept() {
    let ids = |used: &ProcessUse| used.threads.iter().map(|t| t.id).collect::<Vec<_>>();
    let mut samples = [
        // Thread 1 was busy before the trial, 2 during it, 3 started later, 4 was nearly idle.
        Sample {
            server: Some(used(&[(1, 900), (2, 0), (4, 5)])),
            generator: used(&[(8, 1)]),
            ..Sample::default()
        },
        Sample {
            server: Some(used(&[(1, 900), (2, 400), (3, 10), (4, 6)])),
            generator: used(&[(8, 2)]),
            ..Sample::default()
        },
        Sample { server: Some(used(&[(1, 900), (2, 410), (3, 90), (4, 7)])), ..Sample::default() },
    ];
    keep_busiest(&mut samples, 2);
    let servers: Vec<_> = samples.iter().filter_map(|s| s.server.as_ref()).map(ids).collect();
    assert_eq!(servers, [vec![2], vec![2, 3], vec![2, 3]]);
    assert_eq!(ids(&samples[0].generator), [8]);
}

#[test]
fn samples_of_a_long_trial_are_thinned_out() {
    let mut kept = Kept { samples: Vec::new(), every: 1, taken: 0 };
    let length = 2 * KEPT_MAX as u64 + 2;
    for at_ns in 0..length {
        kept.take(Sample { at_ns, ..Sample::default() });
    }
    assert_eq!(kept.every, 4);
    assert_eq!(kept.samples.len(), KEPT_MAX / 2 + 1);
    let steps = kept.samples.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns);
    assert!(steps.into_iter().all(|step| step == 4));
    assert_eq!(kept.samples[0].at_ns, 0);
}
