//! Maximum latency over time.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum latency of the requests due in each interval (for a closed load, sent in it) from the
/// start of the measurement or stage, nanoseconds. 0 if none was due; the largest number if one
/// failed, which is null in a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slowest {
    /// Length of an interval.
    pub interval_ns: u64,
    /// Service times.
    #[serde(serialize_with = "spell", deserialize_with = "read")]
    pub service: Vec<u64>,
    /// Response times; empty if they equal the service times.
    #[serde(serialize_with = "spell", deserialize_with = "read")]
    pub response: Vec<u64>,
}

/// Marks an interval with a failed request.
const FAILED: u64 = u64::MAX;

fn spell<S: Serializer>(times_ns: &[u64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(times_ns.iter().map(|ns| (*ns != FAILED).then_some(*ns)))
}

fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    let times_ns = Vec::<Option<u64>>::deserialize(from)?;
    Ok(times_ns.into_iter().map(|ns| ns.unwrap_or(FAILED)).collect())
}

impl Slowest {
    /// The longest response times.
    pub fn response(&self) -> &[u64] {
        if self.response.is_empty() { &self.service } else { &self.response }
    }

    /// Drops the intervals before `from_ns` after the start of the measurement; their maximum
    /// counts towards the first remaining one.
    pub fn drop_before(&mut self, from_ns: u64) {
        let first = (from_ns / self.interval_ns.max(1)) as usize;
        for longest in [&mut self.service, &mut self.response] {
            let before = longest.drain(..first.min(longest.len())).max().unwrap_or(0);
            match longest.first_mut() {
                Some(first) => *first = before.max(*first),
                None if before > 0 => longest.push(before),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_null_in_a_record() {
        let slowest = Slowest { interval_ns: 10, service: vec![7, FAILED], response: Vec::new() };
        let text = serde_json::to_string(&slowest).unwrap();
        assert_eq!(text, r#"{"interval_ns":10,"service":[7,null],"response":[]}"#);
        assert_eq!(serde_json::from_str::<Slowest>(&text).unwrap(), slowest);
    }

    #[test]
    fn times_before_a_stage_count_towards_its_first_interval() {
        let service = vec![7, 0, 3, 4];
        let mut slowest = Slowest { interval_ns: 10, service, response: Vec::new() };
        slowest.drop_before(20);
        assert_eq!((slowest.service.as_slice(), slowest.response()), (&[7, 4][..], &[7, 4][..]));
        slowest.drop_before(1_000);
        assert_eq!(slowest.service, [7]);
    }
}
