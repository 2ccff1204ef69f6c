//! Families as protobuf, the only format in which Prometheus accepts native histograms.
//!
//! Source: `io/prometheus/client/metrics.proto` of Prometheus' client model; each message is
//! preceded by its length. A distribution has both classic and native buckets.

use prost::Message;

use super::buckets::{Distribution, SCHEMA, ZERO_THRESHOLD};
use super::family::{Family, Kind, Labels, Value};

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    help: Option<String>,
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    value: Option<String>,
}

/// A gauge or a counter; both have the same encoding.
#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<Span>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    upper_bound: Option<f64>,
}

/// Consecutive buckets.
#[derive(Clone, PartialEq, Message)]
struct Span {
    /// Number of buckets skipped since the previous span; for the first span, its index.
    #[prost(sint32, optional, tag = "1")]
    offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    length: Option<u32>,
}

pub(super) fn render(families: &[Family]) -> Vec<u8> {
    families.iter().flat_map(|f| message(f).encode_length_delimited_to_vec()).collect()
}

fn message(family: &Family) -> MetricFamily {
    let kind = match family.kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Histogram => 4,
    };
    let metrics = family.metrics.iter().map(|(labels, value)| metric(family.kind, labels, value));
    MetricFamily {
        name: Some(family.name.into()),
        help: Some(family.help.into()),
        kind: Some(kind),
        metric: metrics.collect(),
    }
}

fn metric(kind: Kind, labels: &Labels, value: &Value) -> Metric {
    let pair = |(name, value): &(&str, String)| LabelPair {
        name: Some((*name).into()),
        value: Some(value.clone()),
    };
    let mut metric = Metric { label: labels.iter().map(pair).collect(), ..Metric::default() };
    match value {
        Value::Times(times) => metric.histogram = Some(histogram(times)),
        Value::Number(number) => {
            let number = Some(Number { value: Some(*number) });
            if kind == Kind::Counter { metric.counter = number } else { metric.gauge = number }
        }
    }
    metric
}

fn histogram(times: &Distribution) -> Histogram {
    let (mut spans, mut deltas) = (Vec::<Span>::new(), Vec::new());
    // Index after the last bucket, and its count.
    let (mut next, mut before) = (0, 0);
    for (index, count) in times.native() {
        match spans.last_mut() {
            Some(span) if index == next => span.length = span.length.map(|length| length + 1),
            _ => spans.push(Span { offset: Some(index - next), length: Some(1) }),
        }
        let count = count.cast_signed();
        deltas.push(count - before);
        (next, before) = (index + 1, count);
    }
    let bucket =
        |(bound_s, count)| Bucket { cumulative_count: Some(count), upper_bound: Some(bound_s) };
    Histogram {
        sample_count: Some(times.count),
        sample_sum: Some(times.sum_s),
        bucket: times.cumulative().map(bucket).collect(),
        schema: Some(SCHEMA),
        zero_threshold: Some(ZERO_THRESHOLD),
        zero_count: Some(0),
        positive_span: spans,
        positive_delta: deltas,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_deltas_decode_to_the_buckets() {
        let mut times = stats::Histogram::new();
        for (ns, count) in [(10_000, 5), (10_100, 1), (1_000_000, 7), (1_030_000, 2)] {
            times.record_many(ns, count);
        }
        let mut distribution = Distribution::default();
        distribution.add(&times, 0);
        let histogram = histogram(&distribution);
        let (mut read, mut index, mut count) = (Vec::new(), 0, 0);
        let mut deltas = histogram.positive_delta.iter();
        for span in &histogram.positive_span {
            index += span.offset.unwrap();
            for _ in 0..span.length.unwrap() {
                count += deltas.next().unwrap();
                read.push((index, count.cast_unsigned()));
                index += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        assert_eq!(read, distribution.native().collect::<Vec<_>>());
        assert_eq!(histogram.sample_count, Some(15));
        assert_eq!(histogram.bucket.len(), 261);
    }
}
