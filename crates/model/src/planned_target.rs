//! Targets of a plan.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::app_cache::{Backend, CM_PREFIX};
use crate::cache_aside;
use crate::disk_limit::DiskLimit;
use crate::memory::{MemoryLimit, MemoryShare};
use crate::product::Product;
use crate::program::Program;
use crate::study::PublishedFigure;
use crate::target::{is_cluster_address, is_tls_address, servers_of};
use crate::tier::Tier;

/// A store under test, as planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedTarget {
    /// Name in this run, for example `redis`, or `nvme:redis` with a label.
    pub name: String,
    /// Product, which determines driver and server; for a cache backend, that of its first store.
    pub product: Product,
    /// Program of its private server; `None` for the product's own.
    pub program: Option<Program>,
    /// The software whose application cache it is; `None` for other workloads.
    pub backend: Option<Backend>,
    /// The cache in front of it; `None` for targets without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Product>,
    /// Address without credentials; `None` for a private server.
    pub address: Option<String>,
    /// Absolute directory in which a private store gets its own for data; `None` for that of
    /// `--disk`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Limit of its disk, enforced by the kernel; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_limit: Option<DiskLimit>,
    /// Limits of its private server; empty for none.
    #[serde(default, skip_serializing_if = "Tier::is_empty")]
    pub tier: Tier,
    /// The source's figure for it; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedFigure>,
    /// Settings of a private server, named as in its configuration file; for a cache backend, and
    /// for a cache in front of a database, with the product as prefix: `redis.save`.
    pub settings: BTreeMap<String, String>,
    /// Name of the target that this one repeats for the A/A control.
    pub control_of: Option<String>,
    /// True if the user named this target: if it cannot be used, the run fails with exit code 3.
    pub named: bool,
}

impl PlannedTarget {
    /// Settings of `Cm_Cache_Backend_Redis`, named as in
    /// [`CM_SETTINGS`](crate::app_cache::CM_SETTINGS).
    pub fn cm_settings(&self) -> BTreeMap<String, String> {
        let own = |(key, value): (&String, &String)| {
            Some((key.strip_prefix(CM_PREFIX)?.to_string(), value.clone()))
        };
        self.settings.iter().filter_map(own).collect()
    }

    /// True for a server at a URL, on which cachedyno does nothing except load.
    pub fn is_at_url(&self) -> bool {
        self.address.is_some() && self.product.has_server()
    }

    /// True if clients reach it by TLS: by the way a private server listens, or by its address.
    pub fn is_tls(&self) -> bool {
        let way = self.settings.get("listen").map_or("unix", String::as_str);
        self.address.as_ref().map_or(!["unix", "tcp"].contains(&way), |own| is_tls_address(own))
    }

    /// Servers among which its keys are spread, without replicas, at least 1; `None` for a cluster
    /// at a URL, whose size no record has.
    pub fn shards(&self) -> Option<u32> {
        match &self.address {
            Some(address) if is_cluster_address(address) => None,
            Some(address) => u32::try_from(servers_of(address)).ok(),
            None => Some(self.count("shards").unwrap_or(1)),
        }
    }

    /// Replicas of each primary of a private server.
    pub fn replicas(&self) -> u32 {
        self.count("replicas").unwrap_or(0)
    }

    /// Threads on which each server does I/O; 1 if it has no such setting.
    pub fn io_threads(&self) -> u32 {
        let setting = self.settings.iter().find(|(name, _)| name.ends_with("io-threads"));
        setting.and_then(|(_, count)| count.parse().ok()).unwrap_or(1)
    }

    fn count(&self, setting: &str) -> Option<u32> {
        self.settings.get(setting)?.parse().ok()
    }

    /// True if its server is started with settings by which it drops keys when its memory is full.
    pub fn evicts(&self) -> bool {
        let set = |name: &str| self.settings.get(name).map(String::as_str);
        match self.product {
            Product::Memcached => set("evictions") != Some("no"),
            Product::Redis => {
                let is_limited = set("maxmemory").is_some_and(|bytes| bytes != "0");
                is_limited && set("maxmemory-policy").is_some_and(|policy| policy != "noeviction")
            }
            Product::Files
            | Product::Mysql
            | Product::Postgres
            | Product::Sqlite
            | Product::Disk => false,
        }
    }

    /// Puts the limits of a tier on its private server, with the settings that they need. Errors:
    /// it has no server of its own, or several, or its server listens on no port.
    pub fn limit(&mut self, tier: &Tier) -> Result<(), String> {
        let name = &self.name;
        let of_group = ["shards", "sentinels", "replicas"].into_iter();
        let several = of_group.into_iter().find(|setting| self.settings.contains_key(*setting));
        let expected = if self.address.is_some() {
            "a private server, without a URL".to_string()
        } else if self.backend.is_some() || self.cache.is_some() || !self.product.has_server() {
            "a target that is a single server".to_string()
        } else if let Some(setting) = several.filter(|_| tier.has_network()) {
            format!("no `{setting}`: only a single server has its own network")
        } else if tier.has_network() && !self.listens_on_a_port() {
            // Others could use a server without a password through its port.
            "Redis or a compatible server, which listens on a port with a password".to_string()
        } else {
            return self.put(tier);
        };
        Err(format!("target `{name}` cannot be limited to {tier} (expected {expected})"))
    }

    /// True if its server has a port with a password, or gets one by default.
    fn listens_on_a_port(&self) -> bool {
        let listen = self.settings.get("listen").map(String::as_str);
        self.product == Program::PRODUCT && listen != Some("unix")
    }

    fn put(&mut self, tier: &Tier) -> Result<(), String> {
        if let Some((limit, connections)) = self.product.connections().zip(tier.connections) {
            let own = self.settings.insert(limit.setting.into(), connections.to_string());
            if let Some(own) = own.filter(|own| *own != connections.to_string()) {
                let (name, setting) = (&self.name, limit.setting);
                return Err(format!(
                    "target `{name}` has the setting `{setting}` of `{own}` and a tier with \
                     {connections} connections (expected one of them)"
                ));
            }
        }
        if tier.has_network() {
            self.settings.entry("listen".into()).or_insert_with(|| "tcp".into());
        }
        self.tier = tier.clone();
        Ok(())
    }

    /// Replaces shares of a memory limit in its settings by amounts. Errors: such a share without
    /// a limit, or out of range.
    pub(crate) fn resolve_memory(&mut self, limit: Option<MemoryLimit>) -> Result<(), String> {
        for (name, value) in &mut self.settings {
            let Some(share) = MemoryShare::parse(value) else { continue };
            let bytes = share.and_then(|share| match limit {
                Some(limit) => Ok(share.of(limit)),
                None => Err("an amount: this study limits no memory"),
            });
            *value = match bytes {
                Ok(bytes) => self.product.memory_value(bytes),
                Err(expected) => {
                    let target = &self.name;
                    return Err(format!(
                        "setting `{name}` of target `{target}` is `{value}` (expected {expected})"
                    ));
                }
            };
        }
        Ok(())
    }

    /// Products of its stores: one, those of its backend in order, or the cache and the database
    /// behind it.
    pub fn products(&self) -> &[Product] {
        let pair = || cache_aside::pair(self.cache?, self.product);
        match self.backend {
            Some(backend) => backend.products(),
            None => pair().unwrap_or(std::slice::from_ref(&self.product)),
        }
    }

    /// True if settings and reported configuration carry the product's name as prefix.
    pub fn prefixes_settings(&self) -> bool {
        self.backend.is_some() || self.cache.is_some()
    }

    /// Settings of one of its private servers, with the server's names.
    pub fn settings_of(&self, product: Product) -> BTreeMap<String, String> {
        if !self.prefixes_settings() {
            return self.settings.clone();
        }
        let own = |(key, value): (&String, &String)| {
            let name = key.strip_prefix(product.name())?.strip_prefix('.')?;
            Some((name.to_string(), value.clone()))
        };
        self.settings.iter().filter_map(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: Option<&str>, settings: &[(&str, &str)]) -> PlannedTarget {
        PlannedTarget {
            tier: Tier::default(),
            published: None,
            name: "t".into(),
            product: Product::Redis,
            program: None,
            backend: None,
            cache: None,
            address: address.map(|url| crate::Endpoint::parse(url).unwrap().to_string()),
            directory: None,
            disk_limit: None,
            settings: settings.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            control_of: None,
            named: false,
        }
    }

    #[test]
    fn tls_and_shards_follow_from_settings_or_address() {
        let found = |address, settings: &[(&str, &str)]| {
            let target = target(address, settings);
            (target.is_tls(), target.shards(), target.replicas())
        };
        assert_eq!(found(None, &[]), (false, Some(1), 0));
        assert_eq!(found(None, &[("listen", "tcp"), ("replicas", "1")]), (false, Some(1), 1));
        assert_eq!(found(None, &[("listen", "tls")]), (true, Some(1), 0));
        assert_eq!(found(None, &[("shards", "3"), ("replicas", "2")]), (false, Some(3), 2));
        assert_eq!(found(Some("redis://host:1/2"), &[]), (false, Some(1), 0));
        assert_eq!(found(Some("rediss://host:1/2"), &[]), (true, Some(1), 0));
        assert_eq!(found(Some("rediss+cluster://host:1"), &[]), (true, None, 0));
        assert_eq!(found(Some("redis+cluster://host:1"), &[]), (false, None, 0));
        assert_eq!(found(Some("memcacheds://host:1"), &[]), (true, Some(1), 0));
        assert_eq!(found(Some("memcached://a:1,b:2"), &[]), (false, Some(2), 0));
    }
}
