use super::*;
use crate::kv::counts::assert_drawn;
use crate::kv::numbers;
use proptest::prelude::*;

fn counts(mix: &Mix, draws: u64) -> Vec<u64> {
    let mut counts = vec![0; mix.shares().len()];
    (0..draws).for_each(|n| counts[mix.pick(&mut numbers(3, 0, n))] += 1);
    counts
}

#[test]
fn items_are_picked_by_weight() {
    for weights in [
        vec![1.0],
        vec![0.9, 0.1],
        vec![1.0, 2.0, 3.0, 4.0],
        vec![0.001, 1.0, 0.5, 0.001, 7.0],
        (1..200).map(f64::from).collect(),
        vec![f64::MAX, f64::MAX, f64::MAX / 2.0],
    ] {
        let mix = Mix::new(&weights).unwrap();
        let whole: f64 = weights.iter().map(|w| w / weights[weights.len() - 1]).sum();
        let shares: Vec<f64> =
            weights.iter().map(|w| w / weights[weights.len() - 1] / whole).collect();
        assert!(mix.shares().iter().zip(&shares).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_drawn(&counts(&mix, 300_000), &shares, &format!("{weights:?}"));
    }
}

proptest! {
    #[test]
    fn columns_add_up_to_the_shares(weights in prop::collection::vec(0.0..1.0f64, 1..60)) {
        prop_assume!(weights.iter().any(|w| *w > 0.0));
        let mix = Mix::new(&weights).unwrap();
        let mut held = vec![0.0; weights.len()];
        for (i, column) in mix.columns.iter().enumerate() {
            let own = column.own as f64 / 2f64.powi(64);
            held[i] += own;
            held[column.other] += 1.0 - own;
        }
        for (held, share) in held.iter().zip(mix.shares()) {
            prop_assert!((held / weights.len() as f64 - share).abs() < 1e-12);
        }
    }

    #[test]
    fn printed_weights_can_be_parsed(
        pairs in prop::collection::btree_map("[a-z][a-z-]{0,8}", 0.001..1e9f64, 1..6)
    ) {
        let weights = Weights(pairs.into_iter().collect());
        prop_assert_eq!(weights.to_string().parse(), Ok(weights));
    }
}

#[test]
fn items_without_weight_are_never_picked() {
    let counts = counts(&Mix::new(&[0.0, 1.0, 0.0, 0.3, 0.0]).unwrap(), 100_000);
    assert_eq!([counts[0], counts[2], counts[4]], [0, 0, 0]);
}

#[test]
fn weights_that_cannot_be_drawn_from_are_refused() {
    let error = |weights: &[f64]| Mix::new(weights).unwrap_err().to_string();
    assert_eq!(error(&[1.0, -0.5]), "`-0.5` is not a weight, expected a number from 0");
    assert_eq!(error(&[f64::NAN]), "`NaN` is not a weight, expected a number from 0");
    for nothing in [&[][..], &[0.0, 0.0]] {
        assert_eq!(error(nothing), "no weight is above 0, expected at least one");
    }
}

#[test]
fn operations_with_weights_are_parsed() {
    let read = |text: &str| text.parse::<Weights>().unwrap();
    let pair = |name: &str, weight| (name.to_owned(), weight);
    assert_eq!(read("get=0.9,set=0.1").pairs(), [pair("get", 0.9), pair("set", 0.1)]);
    assert_eq!(read(" get = 9 , set = 1").pairs(), [pair("get", 9.0), pair("set", 1.0)]);
    assert_eq!(read("get,set").pairs(), [pair("get", 1.0), pair("set", 1.0)]);
    assert_eq!(read("a=b=2").pairs(), [pair("a=b", 2.0)]);
    let mix = read("get=3,del=0,set=1").mix();
    assert_eq!(mix.shares(), [0.75, 0.0, 0.25]);
}

#[test]
fn faults_in_weights_are_located_and_explained() {
    let error = |text: &str| text.parse::<Weights>().unwrap_err().to_string();
    let example = "for example get=0.9,set=0.1";
    for (text, part, at) in [("", "", 1), ("get=1,=2", "=2", 7), ("get,,set", "", 5)] {
        let expected = format!(
            "`{part}` at character {at} of `{text}` has no name, expected NAME=WEIGHT: {example}"
        );
        assert_eq!(error(text), expected);
    }
    assert!(
        error("get=0.9,set").starts_with("`set` at character 9 of `get=0.9,set` has no weight")
    );
    for (text, weight, at) in
        [("get=x", "x", 5), ("é=1,sét=-1", "-1", 9), ("get=", "", 5), ("a=1,b=inf", "inf", 7)]
    {
        let expected = format!(
            "`{weight}` at character {at} of `{text}` is not a weight, expected a number from 0: \
             {example}"
        );
        assert_eq!(error(text), expected);
    }
    assert_eq!(
        error("get=1,set=1,get=2"),
        "`get` at character 13 of `get=1,set=1,get=2` occurs twice, expected each name once"
    );
    assert_eq!(
        error("get=0,set=0"),
        format!("`get=0,set=0` has no weight above 0, expected at least one: {example}")
    );
}

#[test]
fn inserts_are_evenly_spread_and_counted_one_by_one() {
    for (share, among) in
        [(0.05, 1_000u64), (1.0 / 3.0, 10_000), (0.999, 10_000), (0.0, 100), (1.0, 100)]
    {
        let inserts = Inserts::new(share);
        let found: Vec<u64> = (0..among).filter_map(|n| inserts.ordinal(n)).collect();
        let expected = (share * among as f64) as u64;
        assert!((found.len() as u64).abs_diff(expected) <= 1, "{share}: {}", found.len());
        assert!(found.iter().copied().eq(0..found.len() as u64), "{share}");
    }
}
