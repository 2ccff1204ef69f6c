//! Data types of cachedyno; docs/GLOSSARY.md defines the terms.
//!
//! - [`action`]: planned actions on a target in addition to the load.
//! - [`capability`]: what a store can do apart from speed.
//! - [`app_cache`]: the application cache of a shop and its software.
//! - `cache_aside`: reads of an application from a database through a cache.
//! - [`stages`]: the rate of an open load over time, or the clients of a closed one.
//! - [`study`]: study files in TOML, with located errors.
//! - [`leftovers`]: data that a killed run may have left in an existing store.
//! - [`load`]: arrivals and schedule of operations.
//! - [`program`]: servers that are compatible with Redis.
//! - [`plan`]: the plan of a run with all cells, made from a study and the user's choices.
//! - [`memory`]: memory conditions of a trial.
//! - `prices`: prices of servers, for sizing.
//! - [`shell`]: quoting of shell commands.
//! - [`search`]: a search for the highest rate: limits and judged probes.
//! - [`target`]: addresses of stores; secrets that never print.
//! - [`tier`]: limits of a private server, as an instance of a provider has them.
//! - [`trial`]: the result of one measured run of one cell.
//! - [`record`]: header and seal of a run's record, host conditions, its line in the list of runs.
//! - [`calibration`]: limits of the machine and the generator.
//! - [`event`]: events of a run, and the trait of event listeners.

pub mod action;
pub mod app_cache;
mod arrivals;
mod cache_aside;
pub mod calibration;
pub mod capability;
mod data_size;
pub mod disk_limit;
pub mod event;
mod kv;
pub mod leftovers;
pub mod load;
pub mod memory;
mod phase;
pub mod plan;
mod planned;
mod planned_target;
mod prices;
mod product;
pub mod program;
mod ranges;
pub mod read_back;
pub mod record;
mod require;
pub mod saturation;
pub mod search;
pub mod shell;
pub mod stages;
pub mod study;
pub mod target;
pub mod tier;
pub mod trial;

pub use action::{Act, Action, Fault};
pub use app_cache::{
    AppCache, Backend, CM_PREFIX, CM_SETTINGS, DataFiles, DataSize, Fill, Magento,
};
pub use arrivals::Arrivals;
pub use cache_aside::{CacheAside, ROW_BYTES_MIN};
pub use calibration::{Calibration, NullRate};
pub use capability::{Capability, Property};
pub use data_size::SizeOfData;
pub use disk_limit::DiskLimit;
pub use event::{Event, Recorded, RecordedOperation, Sink, SinkError};
pub use load::{FILL, Load, PEAK, Schedule, Shares};
pub use memory::{Emptied, MemoryLimit, MemoryPlan, MemoryShare, MemoryUse, PageCache, SwapUse};
pub use plan::{
    Cell, Connections, Control, Effort, Generation, Kv, KvOperation, Layout, Names, Order, Phase,
    Places, Plan, PlannedTarget, Product, Scale, SessionGc, Sessions, Stop, Workload,
};
pub use prices::{Prices, PricesError};
pub use product::{ConnectionLimit, DISK_BLOCK_BYTES};
pub use program::{Program, RedisCompatible};
pub use read_back::{ReadBack, StoredVersion};
pub use record::{Condition, Conditions, Header, Listed, Seal, SealStatus, TargetState};
pub use require::{Requirement, RequirementError};
pub use saturation::{
    COUNTERS, Counter, DeviceUse, NetworkUse, Pressure, ProcessUse, ProxyUse, SAMPLE_NS, Sample,
    StoreCounters, ThreadCpu,
};
pub use search::{Blame, Search, Slo, SloError, TAKEN_SHARE_MAX};
pub use shell::shell_words;
pub use stages::{SETTLE_SHARE, Stage, StagesError, parse_stages};
pub use study::{Choices, RAMP, Study, StudyError, TargetChoice};
pub use target::{
    Database, Endpoint, Memcached, MemcachedProtocol, NetAddress, RedisOptions, Secret, TlsFiles,
    UrlError,
};
pub use trial::{
    BackgroundWrite, Beyond, Busy, Contributor, Counts, Disturbance, Disturber, Disturbers, Due,
    ErrorClass, EventKind, Fact, Failure, Interval, Noise, OperationResult, Outage, Point,
    Restored, Series, Silence, Slowest, Trial, TrialEvent,
};
