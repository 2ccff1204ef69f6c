//! Families as text. Source: Prometheus' "Exposition formats", version 0.0.4, and `OpenMetrics`
//! 1.0.

use std::fmt::Write as _;

use super::family::{Family, Kind, Labels, Value};

/// One of the two text formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Version 0.0.4.
    Prometheus,
    /// Version 1.0.0: `HELP` and `TYPE` lines name counters without `_total`.
    OpenMetrics,
}

pub(super) fn render(families: &[Family], dialect: Dialect) -> String {
    let mut text = String::new();
    for family in families {
        // Writing to a string cannot fail.
        let _ = write_family(&mut text, family, dialect);
    }
    if dialect == Dialect::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn write_family(text: &mut String, family: &Family, dialect: Dialect) -> std::fmt::Result {
    let name = family.name;
    let described = match dialect {
        Dialect::Prometheus => name,
        Dialect::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
    };
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    writeln!(text, "# HELP {described} {}", family.help)?;
    writeln!(text, "# TYPE {described} {kind}")?;
    for (labels, value) in &family.metrics {
        match value {
            Value::Number(number) => {
                writeln!(text, "{name}{} {number}", braced(labels, None))?;
            }
            Value::Times(times) => {
                for (bound_s, count) in times.cumulative() {
                    let labels = braced(labels, Some(&float(bound_s)));
                    writeln!(text, "{name}_bucket{labels} {count}")?;
                }
                writeln!(text, "{name}_bucket{} {}", braced(labels, Some("+Inf")), times.count)?;
                writeln!(text, "{name}_sum{} {}", braced(labels, None), times.sum_s)?;
                writeln!(text, "{name}_count{} {}", braced(labels, None), times.count)?;
            }
        }
    }
    Ok(())
}

/// A bound as both formats write it: always with a decimal point.
fn float(number: f64) -> String {
    let text = number.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

fn braced(labels: &Labels, bound: Option<&str>) -> String {
    let own = labels.iter().map(|(name, value)| (*name, value.as_str()));
    let all = own.chain(bound.map(|bound| ("le", bound)));
    let pairs: Vec<String> =
        all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_text_formats_are_rendered() {
        let labels = vec![("target", "a\"b\\c\nd".to_string())];
        let families = [Family {
            name: "x_total",
            help: "Some.",
            kind: Kind::Counter,
            metrics: vec![(labels, Value::Number(3.0)), (Vec::new(), Value::Number(0.5))],
        }];
        let sample = "x_total{target=\"a\\\"b\\\\c\\nd\"} 3\nx_total 0.5\n";
        assert_eq!(
            render(&families, Dialect::Prometheus),
            format!("# HELP x_total Some.\n# TYPE x_total counter\n{sample}")
        );
        assert_eq!(
            render(&families, Dialect::OpenMetrics),
            format!("# HELP x Some.\n# TYPE x counter\n{sample}# EOF\n")
        );
    }
}
