//! A load of one operation on one server of the Redis protocol, by one thread on one CPU.

use crate::common::error;
use drivers::wire::Dialect;
use load::Unmetered;
use load::wire::{Address, Offer, Outcome, Pacing, Part, Servers, Tls, Until, Work, route::Single};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use workloads::kv::{Distribution, KeyChoice, KeyNames, Mix, Sizes, Values};

/// Parameters of the load.
pub(crate) struct Plain {
    pub(crate) operation: &'static str,
    /// Bytes of every value.
    pub(crate) bytes: usize,
    /// Distribution and number of keys.
    pub(crate) keys: (Distribution, u64),
    pub(crate) seed: u64,
    pub(crate) clients: u32,
    pub(crate) pipeline: u32,
    pub(crate) pacing: Pacing,
    pub(crate) until: Until,
    pub(crate) cpu: usize,
    /// True if the thread may busy-wait.
    pub(crate) spin: bool,
}

impl Plain {
    /// Runs the load. Errors: the failure that ended it.
    pub(crate) fn offer(
        self,
        address: Address,
        tls: Option<Tls>,
    ) -> Result<Outcome, Box<dyn Error>> {
        let (names, sizes) = (KeyNames::default(), Sizes::all(self.bytes));
        let operation = Dialect::Redis.operation(self.operation, None, None, &names, &sizes)?;
        let (distribution, keys) = self.keys;
        let work = Work {
            operations: vec![operation],
            mix: Mix::new(&[1.0])?,
            keys: KeyChoice::new(distribution, keys)?,
            names,
            sizes,
            values: Arc::new(Values::new(1)),
            seed: self.seed,
            verify_one_in: 64,
            inserting: None,
            follows: false,
            keeps_writes: false,
        };
        let offer = Offer {
            part: Part::default(),
            threads: 1,
            clients: self.clients,
            pipeline: self.pipeline,
            pacing: self.pacing,
            until: self.until,
            warmup_ns: 0,
            timeout_ns: 10_000_000_000,
            stall_ns: 0,
            cpus: vec![self.cpu],
            spin: self.spin,
            reconnects: false,
            stop_on_error_reply: true,
            hangs_up: false,
            limits_ns: Vec::new(),
            number: 0,
        };
        let servers = Servers {
            nodes: vec![address],
            tls,
            hello: Vec::new(),
            hello_replies: Vec::new(),
            route: Box::new(Single),
            survey: None,
        };
        let stop = AtomicBool::new(false);
        let mut done =
            Dialect::Redis.run(&offer, &work, &servers, &stop, &mut Unmetered, &mut |_| {});
        match done.failure.take() {
            Some(failure) => Err(error(failure)),
            None => Ok(done),
        }
    }
}
