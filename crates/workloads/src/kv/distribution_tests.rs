use super::*;
use proptest::prelude::*;

#[test]
fn distributions_are_parsed() {
    let bell = |mean, deviation| Distribution::Gaussian { mean, deviation };
    for (text, distribution) in [
        ("uniform", Distribution::Uniform),
        ("sequential", Distribution::Sequential),
        ("zipf", Distribution::Zipf { exponent: 0.99, scattered: true }),
        ("zipf:1.2", Distribution::Zipf { exponent: 1.2, scattered: true }),
        ("zipf:ordered", Distribution::Zipf { exponent: 0.99, scattered: false }),
        ("zipf:0:ordered", Distribution::Zipf { exponent: 0.0, scattered: false }),
        ("gauss", bell(0.5, 1.0 / 6.0)),
        ("gauss:0.25:0.1", bell(0.25, 0.1)),
        ("gauss:500:20", bell(500.0, 20.0)),
        ("hot", Distribution::Hot { keys: 0.2, operations: 0.8, scattered: true }),
        ("hot:0.1:0.9", Distribution::Hot { keys: 0.1, operations: 0.9, scattered: true }),
        ("hot:0.1:0.9:ordered", Distribution::Hot { keys: 0.1, operations: 0.9, scattered: false }),
        ("latest", Distribution::Latest { exponent: 0.99 }),
        ("latest:0.5", Distribution::Latest { exponent: 0.5 }),
        ("ycsb-zipfian", Distribution::YcsbZipfian),
        ("ycsb-latest", Distribution::YcsbLatest),
    ] {
        assert_eq!(text.parse(), Ok(distribution), "{text}");
    }
}

#[test]
fn invalid_distributions_are_explained() {
    let error = |text: &str| text.parse::<Distribution>().unwrap_err().to_string();
    for text in [
        "zipfian",
        "",
        "uniform:1",
        "gauss:0.5",
        "hot:0.1",
        "zipf:1:2",
        "gauss:0.5:0.1:ordered",
        "ordered",
        "Uniform",
        "uniform:ordered",
        "latest:1:ordered",
        "ycsb-latest:0.99",
    ] {
        assert_eq!(
            error(text),
            format!(
                "`{text}` is not a key distribution, expected uniform, \
                 zipf[:EXPONENT[:ordered]], ycsb-zipfian, gauss[:MEAN:DEVIATION], sequential, \
                 hot[:KEYS:OPERATIONS[:ordered]], latest[:EXPONENT] or ycsb-latest"
            )
        );
    }
    for (text, number) in [
        ("zipf:-1", "-1"),
        ("zipf:x", "x"),
        ("zipf:inf", "inf"),
        ("latest:", ""),
        ("zipf:nan", "nan"),
    ] {
        assert_eq!(
            error(text),
            format!(
                "`{number}` in `{text}` is not an exponent, expected a number from 0: for example \
                 zipf:0.99"
            )
        );
    }
    assert_eq!(
        error("hot:10:0.9"),
        "`10` in `hot:10:0.9` is not a share, expected a number from 0 to 1: for example \
         hot:0.1:0.9"
    );
    assert_eq!(
        error("gauss:0.5:0"),
        "`0` in `gauss:0.5:0` is not a standard deviation, expected a share of the keys above 0 \
         or a number of keys above 1: for example gauss:0.5:0.1"
    );
    assert_eq!(
        error("gauss:-0.5:0.1"),
        "`-0.5` in `gauss:-0.5:0.1` is not a mean, expected a share from 0 to 1 or the number of a \
         key above 1: for example gauss:0.5:0.1"
    );
}

fn anything() -> impl Strategy<Value = Distribution> {
    let positive = || prop_oneof![0.0..3.0f64, 1.0..1e12f64];
    prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::Sequential),
        Just(Distribution::YcsbZipfian),
        Just(Distribution::YcsbLatest),
        (positive(), any::<bool>())
            .prop_map(|(exponent, scattered)| Distribution::Zipf { exponent, scattered }),
        positive().prop_map(|exponent| Distribution::Latest { exponent }),
        (positive(), positive()).prop_map(|(mean, deviation)| Distribution::Gaussian {
            mean,
            deviation: deviation + 1e-9
        }),
        (0.0..=1.0f64, 0.0..=1.0f64, any::<bool>()).prop_map(|(keys, operations, scattered)| {
            Distribution::Hot { keys, operations, scattered }
        }),
    ]
}

proptest! {
    #[test]
    fn printed_distributions_can_be_parsed(distribution in anything()) {
        prop_assert_eq!(distribution.to_string().parse(), Ok(distribution));
    }

    #[test]
    fn parsing_never_panics(text in "[a-z]{0,10}(:[0-9.einf-]{0,6}){0,4}") {
        if let Ok(distribution) = text.parse::<Distribution>() {
            let _ = super::super::KeyChoice::new(distribution, 10)
                .map(|choice| choice.pick(&mut crate::kv::numbers(1, 0, 0), 0));
        }
    }
}
