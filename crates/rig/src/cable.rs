//! A connection between two networks of servers that can be cut, while this host reaches both.
//!
//! Each namespace drops what it would send to the other, without an error for the sender, as a
//! switch that fails does: its queue for the connection holds no packet (tc-pfifo(8)).

use crate::error::Result;
use crate::network::Network;
use std::sync::Arc;

/// Name of each end in its namespace.
const END: &str = "cable";

/// The connection between two networks. Cutting and mending it needs no lock.
#[derive(Debug)]
pub struct Cable {
    ends: [Arc<Network>; 2],
}

impl Cable {
    /// Connects two networks.
    ///
    /// Errors: as for [`Network::new`].
    pub fn new(ends: [Arc<Network>; 2]) -> Result<Self> {
        let [one, other] = &ends;
        let path = other.namespace_path();
        one.ip_inside(&["link", "add", END, "type", "veth", "peer", "name", END, "netns", &path])?;
        for (own, across) in [(one, other), (other, one)] {
            own.ip_inside(&["link", "set", END, "up"])?;
            own.ip_inside(&["route", "add", &format!("{}/32", across.address()), "dev", END])?;
        }
        Ok(Self { ends })
    }

    /// Drops everything that either network sends to the other.
    pub fn cut(&self) -> Result<()> {
        let all = ["qdisc", "replace", "dev", END, "root", "pfifo", "limit", "0"];
        self.ends.iter().try_for_each(|end| end.tc_inside(&all))
    }

    /// Lets both send again.
    pub fn mend(&self) -> Result<()> {
        self.ends.iter().try_for_each(|end| end.tc_inside(&["qdisc", "delete", "dev", END, "root"]))
    }
}
