//! Tables of formatted and parsed values.

use super::*;
use proptest::prelude::*;

#[test]
fn durations_print_with_three_digits() {
    for (ns, expected) in [
        (0.0, "0 ns"),
        (0.5, "0.500 ns"),
        (1.0, "1.00 ns"),
        (12.34, "12.3 ns"),
        (850.0, "850 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (9_994.0, "9.99 µs"),
        (9_996.0, "10.0 µs"),
        (99_960.0, "100 µs"),
        (1_234_567.0, "1.23 ms"),
        (999_950_000.0, "1.00 s"),
        (7.894e9, "7.89 s"),
        (4.321e12, "4321 s"),
        (-1_500.0, "-1.50 µs"),
        (f64::NAN, "? ns"),
        (f64::INFINITY, "∞ s"),
    ] {
        assert_eq!(format_ns(ns), expected, "{ns}");
    }
}

#[test]
fn rates_ratios_sizes_and_shares_print() {
    for (rate, expected) in [
        (0.0, "0 /s"),
        (0.25, "0.250 /s"),
        (950.0, "950 /s"),
        (12_345.0, "12.3 k/s"),
        (999_900.0, "1.00 M/s"),
        (4.56e6, "4.56 M/s"),
        (2e12, "2000 G/s"),
    ] {
        assert_eq!(format_rate(rate), expected);
    }
    for (ratio, expected) in
        [(1.0, "1.00×"), (1.334, "1.33×"), (0.6667, "0.667×"), (12.34, "12.3×"), (1_234.0, "1234×")]
    {
        assert_eq!(format_ratio(ratio), expected);
    }
    for (bytes, expected) in [
        (0, "0 B"),
        (7, "7 B"),
        (1_023, "1023 B"),
        (1_024, "1 KiB"),
        (1_536, "1.5 KiB"),
        (20 << 20, "20 MiB"),
        (1_048_000, "1023 KiB"),
        (1_048_500, "1 MiB"),
        (1_500_000_000, "1.4 GiB"),
        (u64::MAX, "16777216 TiB"),
    ] {
        assert_eq!(format_bytes(bytes), expected);
    }
    for (share, expected) in [
        (0.0, "0 %"),
        (0.03, "3 %"),
        (0.0312, "3.12 %"),
        (0.5, "50 %"),
        (0.9999, "100 %"),
        (12.0, "1200 %"),
        (-0.104, "-10.4 %"),
        (0.000_012, "0.0012 %"),
    ] {
        assert_eq!(format_percent(share), expected);
    }
}

#[test]
fn a_center_and_its_bounds_share_one_scale() {
    for (unit, center, bounds, expected) in [
        (Unit::PerSecond, 12_300.0, Some((11_900.0, 12_800.0)), "12.3 k/s [11.9, 12.8]"),
        (Unit::PerSecond, 1_010.0, Some((950.0, 1_100.0)), "1.01 k/s [0.95, 1.10]"),
        (Unit::PerSecond, 12_300.0, None, "12.3 k/s"),
        (Unit::Ns, 990.0, Some((800.0, 1_210.0)), "990 ns [800, 1210]"),
        (Unit::Ratio, 1.333, Some((1.291, 1.377)), "1.33× [1.29, 1.38]"),
        (Unit::Share, 0.031, Some((0.0, 0.1)), "3.1 % [0, 10]"),
        (Unit::Ns, 2e6, Some((1e-9, f64::INFINITY)), "2.00 ms [<0.0200, >200]"),
        (Unit::Ratio, 1.333, Some((0.0312, 56.93)), "1.33× [0.0312, 56.9]"),
        (Unit::Ratio, 123.4, Some((1.3, 12_129.0)), "123× [1.30, 12100]"),
        (Unit::Ratio, 33.9, Some((0.3, 48_129.0)), "33.9× [<0.339, >3390]"),
        (Unit::PerSecond, 30_400.0, Some((1.3, 700_123_456.0)), "30.4 k/s [<0.304, >3040]"),
    ] {
        assert_eq!(format_value_with_interval(unit, center, bounds), expected);
    }
}

#[test]
fn durations_are_read() {
    for (text, ns) in [
        ("250ms", 250_000_000),
        ("5m", 300_000_000_000),
        ("5min", 300_000_000_000),
        ("90s", 90_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1d", 86_400_000_000_000),
        ("1.5s", 1_500_000_000),
        ("0.1s", 100_000_000),
        (" 10 us ", 10_000),
        ("10µs", 10_000),
        ("3ns", 3),
        ("1.9ns", 1),
        ("0s", 0),
        ("1m30s500ms", 90_500_000_000),
        ("18446744073709551615ns", u64::MAX),
        ("213503d", 213_503 * 86_400_000_000_000),
    ] {
        assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
    }
}

#[test]
fn counts_are_read_with_their_thousands() {
    for (text, count) in [
        ("0", 0),
        ("50000", 50_000),
        ("20k", 20_000),
        ("1.5M", 1_500_000),
        (" 2 G ", 2_000_000_000),
    ] {
        assert_eq!(parse_count(text), Ok(count), "{text}");
    }
    for text in ["", "k", "1.5", "0.0001k", "20kB", "1e6", "-1", "1,000", "99999999999999G"] {
        let error = parse_count(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{text}` is not a count")), "{error}");
    }
}

#[test]
fn an_invalid_duration_is_named_and_explained() {
    for text in [
        "", " ", "90", "s", "5x", "-5s", "1h30", "30m1h", "1s1s", "1.s", ".5s", "1,5s", "1s,2ms",
        "1e3s", "5 s 3 ms", "½s",
    ] {
        assert_eq!(parse_duration_ns(text), Err(UnitError::Duration(text.into())), "{text}");
    }
    assert_eq!(
        parse_duration_ns("90").unwrap_err().to_string(),
        "`90` is not a duration, expected numbers with ns, us, ms, s, m, h or d, the largest \
         first: for example 250ms, 90s or 1h30m"
    );
    for text in ["213504d", "18446744073709551616ns", "99999999999999999999s", "213503d24h"] {
        let error = parse_duration_ns(text).unwrap_err().to_string();
        assert_eq!(error, format!("`{text}` is too large, expected at most 213503d"));
    }
}

#[test]
fn sizes_are_read() {
    for (text, bytes) in [
        ("1500", 1_500),
        ("0", 0),
        ("7B", 7),
        ("1KiB", 1_024),
        ("1kib", 1_024),
        ("1.5 KiB", 1_536),
        ("2MB", 2_000_000),
        ("2kB", 2_000),
        ("3GiB", 3 << 30),
        ("1TB", 1_000_000_000_000),
        ("1TiB", 1 << 40),
        ("16777215TiB", 16_777_215 << 40),
    ] {
        assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
    }
}

#[test]
fn an_invalid_size_is_named_and_explained() {
    for text in ["", "1K", "KiB", "-1", "1.", "1KiB2", "1KiB 2B", "1 k B", "0x10", "1PiB"] {
        assert_eq!(parse_bytes(text), Err(UnitError::Bytes(text.into())), "{text}");
    }
    let expected = "`1K` is not a size in bytes, expected a number with B, KiB, MiB, GiB or TiB \
                    (1024), or kB, MB, GB or TB (1000): for example 1500, 1KiB or 2MB";
    assert_eq!(parse_bytes("1K").unwrap_err().to_string(), expected);
    assert_eq!(
        parse_bytes("16777216TiB").unwrap_err().to_string(),
        "`16777216TiB` is too large, expected at most 16777215TiB"
    );
}

proptest! {
    #[test]
    fn a_printed_duration_is_within_half_a_percent_and_short(ns in 1.0..1e12f64) {
        let text = format_ns(ns);
        let (number, unit) = text.split_once(' ').unwrap();
        let factor = ns_of(unit).unwrap() as f64;
        let back = number.parse::<f64>().unwrap() * factor;
        prop_assert!((back / ns - 1.0).abs() <= 0.005_001, "{} for {}", text, ns);
        prop_assert!(ns > 999e9 || number.len() <= 4, "{}", text);
    }

    #[test]
    fn reading_never_panics(text in "[0-9.]{0,25} ?[a-zA-Zµ]{0,3}[0-9]{0,3}[a-z]{0,2}") {
        let _ = (parse_duration_ns(&text), parse_bytes(&text));
    }

    #[test]
    fn whole_numbers_read_exactly(n in 0..1_000_000u64) {
        prop_assert_eq!(parse_duration_ns(&format!("{n}ms")), Ok(n * 1_000_000));
        prop_assert_eq!(parse_bytes(&format!("{n}MiB")), Ok(n << 20));
    }
}
