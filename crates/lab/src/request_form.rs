//! A load of requests that are all alike, as `cachedyno redis-benchmark` sends them, by this
//! process or by the workers of a fleet.

use load::wire::protocol::Shape;
use load::wire::template::{Segment, Template};
use load::wire::{Operation, Work};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use workloads::kv::{Key, KeyChoice, KeyNames, KvError, Mix, Sizes, Values};

/// The form of all requests of a load, and where they go.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestForm {
    /// Name of the operation.
    pub name: String,
    /// The request.
    pub segments: Vec<Segment>,
    /// Required kind of the reply.
    pub shape: Shape,
    /// Numbers of the tags that select the server, in turn; a single server has one.
    pub tags: Vec<u64>,
    /// Consecutive requests with the same tag.
    pub at_once: u64,
    /// Seed of random numbers.
    pub seed: u64,
}

impl RequestForm {
    /// Length of a tag's name, bytes.
    pub const TAG_BYTES: usize = 5;
    /// Number of possible tags, enough to find one for every server of a cluster.
    pub const TAGS: u64 = 16_384;

    /// Names of tags. Errors: the constants above do not fit each other.
    pub fn tag_names() -> Result<KeyNames, KvError> {
        KeyNames::with_digits("", Self::TAG_BYTES, Self::TAGS)
    }

    /// The requests for the wire engine. Errors: no tags.
    pub fn work(&self) -> Result<Work, KvError> {
        let names = Self::tag_names()?;
        let tags: Vec<Key> = self.tags.iter().copied().map(Key).collect();
        let operation = Operation {
            name: self.name.clone(),
            template: Template::new(self.segments.clone(), &names, None),
            shape: self.shape,
            writes: false,
            reads_own: false,
            then: None,
        };
        Ok(Work {
            operations: vec![operation],
            mix: Mix::new(&[1.0])?,
            keys: KeyChoice::in_turn(&tags, self.at_once)?,
            names,
            sizes: Sizes::all(0),
            values: Arc::new(Values::new(self.seed)),
            seed: self.seed,
            verify_one_in: 0,
            inserting: None,
            follows: false,
            keeps_writes: false,
        })
    }
}
