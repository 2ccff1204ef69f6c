//! Clients of keys and values on stores without such a protocol: files and SQL databases.

use model::{Endpoint, Failure, Kv};
use std::sync::Arc;
use std::time::Instant;
use workloads::kv::{Distribution, KeyChoice, KvClient, KvData, KvShared, values_of};
use workloads::{Client, Share};

use crate::names::{self, unreadable};
use crate::opening::{Opening, Those};

/// Opens the clients, each with its own connection.
pub(crate) fn connect(
    opening: &Opening<Endpoint>,
    kv: &Kv,
    those: Those,
) -> Result<Vec<Box<dyn Client>>, Failure> {
    let seed = opening.seed;
    let distribution: Distribution = kv.distribution.parse().map_err(unreadable)?;
    let keys = KeyChoice::new(distribution, kv.keys).map_err(unreadable)?;
    let names = names::of(kv, &opening.prefix, seed).map_err(unreadable)?;
    let (sizes, values) = values_of(&kv.value_bytes, seed).map_err(unreadable)?;
    let data = KvData {
        keys,
        names,
        sizes,
        values,
        filled: kv.filled_keys(),
        verify_one_in: kv.verify_one_in,
        phases: kv.phases.clone(),
    };
    let since = Instant::now();
    let shared = Arc::new(KvShared::new(data, move || since.elapsed().as_nanos() as u64));
    let endpoint = opening.endpoint()?;
    those
        .numbers()
        .map(|client| {
            let store = drivers::open_entry_store(endpoint, &opening.options)?;
            let share = Share { prefix: String::new(), ..opening.share(client) };
            let client: Box<dyn Client> = Box::new(KvClient::new(store, shared.clone(), share));
            Ok(client)
        })
        .collect()
}
