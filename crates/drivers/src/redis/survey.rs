//! Who has which slots of a cluster while it is under load: of those of its servers that are known,
//! one after the other is asked until one tells.

use std::iter;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use load::wire::Address;
use load::wire::route::{Layout, Survey};
use model::{Endpoint, NetAddress};

use super::chosen::Chosen;
use super::cluster::{NODES_MAX, SlotMap, referred};
use super::wire::Wire;
use super::{is_cluster, place, with_address};
use crate::socket::resolve;
use crate::tls;

/// Longest time that one server is waited for, and after which no further one is asked.
const ASKED_WITHIN: Duration = Duration::from_millis(500);
const ALL_WITHIN: Duration = Duration::from_secs(2);

/// A server as the cluster spells it.
type Name = (String, u16);

/// The servers of a cluster that are known.
#[derive(Debug)]
pub(crate) struct ClusterSurvey {
    /// How the user knows the cluster.
    cluster: Endpoint,
    host: String,
    timeout: Duration,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    names: Vec<Name>,
    /// Questions so far: each goes to another server first, since one may be the last to learn.
    turn: usize,
}

impl ClusterSurvey {
    /// Of a cluster whose `members` are known; `None` for what is no cluster.
    pub(crate) fn of(endpoint: &Endpoint, members: &[Endpoint], timeout: Duration) -> Option<Self> {
        let (host, _) = place(endpoint).ok().filter(|_| is_cluster(endpoint))?;
        let places = members.iter().chain(iter::once(endpoint)).filter_map(|e| place(e).ok());
        let names = places.map(|(host, port)| (host.to_string(), port)).collect();
        Some(Self {
            cluster: endpoint.clone(),
            host: host.into(),
            timeout: timeout.min(ASKED_WITHIN),
            seen: Mutex::new(Seen { names, turn: 0 }),
        })
    }

    /// Asks one server.
    fn map_of(&self, (host, port): &Name) -> Option<SlotMap> {
        let address = NetAddress::Tcp(host.clone(), *port);
        let endpoint = with_address(&self.cluster, &self.host, address.clone());
        let Endpoint::Redis { way, .. } = &endpoint else { return None };
        let tls = tls::of_target(way.tls.as_ref(), &address).ok()?;
        let mut wire = Wire::open(&endpoint, tls.as_ref(), self.timeout).ok()?;
        let answer = wire.exchange(&[b"CLUSTER", b"SLOTS"]).ok()?;
        SlotMap::from_slots(&answer, host).ok()
    }

    /// Servers by number: those `known`, and behind them those that have slots or were named.
    fn layout(
        mut map: SlotMap,
        known: &[Address],
        (seen, named): (&[Name], usize),
    ) -> Option<Layout> {
        let mut must = vec![false; map.nodes().len()];
        map.owners().iter().for_each(|owner| must[usize::from(*owner)] = true);
        for (i, (host, port)) in seen.iter().enumerate() {
            let number = map.know(host, *port)?;
            must.resize(map.nodes().len(), false);
            must[number] |= i >= seen.len() - named;
        }
        let mut nodes = known.to_vec();
        let mut numbers = Vec::new();
        for (node, must) in map.nodes().iter().zip(must) {
            let address = NetAddress::Tcp(node.host.clone(), node.port);
            let address = match resolve(&address) {
                Ok(address) => address,
                Err(_) if must => return None,
                Err(_) => {
                    numbers.push(None);
                    continue;
                }
            };
            let mut number = nodes.iter().position(|known| *known == address);
            if number.is_none() && must {
                number = Some(nodes.len());
                nodes.push(address);
            }
            numbers.push(number);
        }
        Some(Layout { nodes, route: Box::new(Chosen::numbered(map, numbers)) })
    }
}

impl Survey for ClusterSurvey {
    fn ask(&self, known: &[Address], named: &[String]) -> Option<Layout> {
        let begun = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.turn += 1;
        let first = seen.turn % seen.names.len();
        let in_turn = seen.names[first..].iter().chain(&seen.names[..first]);
        let mut in_time = in_turn.take_while(|_| begun.elapsed() < ALL_WITHIN);
        let map = in_time.find_map(|name| self.map_of(name))?;
        let told = map.nodes().iter().map(|node| (node.host.clone(), node.port));
        // A referral without a host is to the host that was asked, which has its port already.
        let named: Vec<Name> = named
            .iter()
            .filter_map(|address| referred(address).filter(|(host, _)| !host.is_empty()))
            .map(|(host, port)| (host.to_string(), port))
            .collect();
        for name in told.chain(named.iter().cloned()).collect::<Vec<_>>() {
            if seen.names.len() < NODES_MAX && !seen.names.contains(&name) {
                seen.names.push(name);
            }
        }
        let all = [&seen.names[..], &named].concat();
        Self::layout(map, known, (&all, named.len()))
    }
}
