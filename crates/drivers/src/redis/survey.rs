//! Finds the owners of a cluster's slots during a load by querying its known servers one after the
//! other until one answers.

use std::iter;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use load::wire::Address;
use load::wire::route::{Layout, Survey};
use model::{Endpoint, NetAddress};

use super::chosen::SelectedNodes;
use super::cluster::{NODES_MAX, SlotMap, referred};
use super::wire::Wire;
use super::{host_and_port, is_cluster, with_address};
use crate::socket::resolve;

/// Longest wait for one server, and time after which no further one is queried.
const QUERY_TIMEOUT_MAX: Duration = Duration::from_millis(500);
const SURVEY_TIME_MAX: Duration = Duration::from_secs(2);

/// A server as named by the cluster.
type Name = (String, u16);

/// The known servers of a cluster.
#[derive(Debug)]
pub(crate) struct ClusterSurvey {
    /// The user's endpoint of the cluster.
    cluster: Endpoint,
    host: String,
    timeout: Duration,
    seen: Mutex<KnownServers>,
}

#[derive(Debug)]
struct KnownServers {
    names: Vec<Name>,
    /// Queries so far: each starts with another server, since one can be the last to learn.
    turn: usize,
}

impl ClusterSurvey {
    /// For a cluster with known `members`; `None` if the endpoint is not a cluster.
    pub(crate) fn of(endpoint: &Endpoint, members: &[Endpoint], timeout: Duration) -> Option<Self> {
        let (host, _) = host_and_port(endpoint).ok().filter(|_| is_cluster(endpoint))?;
        let places =
            members.iter().chain(iter::once(endpoint)).filter_map(|e| host_and_port(e).ok());
        let names = places.map(|(host, port)| (host.to_string(), port)).collect();
        Some(Self {
            cluster: endpoint.clone(),
            host: host.into(),
            timeout: timeout.min(QUERY_TIMEOUT_MAX),
            seen: Mutex::new(KnownServers { names, turn: 0 }),
        })
    }

    /// Queries one server.
    fn map_of(&self, (host, port): &Name) -> Option<SlotMap> {
        let address = NetAddress::Tcp(host.clone(), *port);
        let endpoint = with_address(&self.cluster, &self.host, address);
        let mut wire = Wire::of(&endpoint, self.timeout).ok()?;
        let answer = wire.exchange(&[b"CLUSTER", b"SLOTS"]).ok()?;
        SlotMap::from_slots(&answer, host).ok()
    }

    /// The servers by number: the `known` ones, followed by servers that own slots or were named in
    /// a redirect.
    fn layout(
        mut map: SlotMap,
        known: &[Address],
        (seen, named): (&[Name], usize),
    ) -> Option<Layout> {
        let mut required = vec![false; map.nodes().len()];
        map.owners().iter().for_each(|owner| required[usize::from(*owner)] = true);
        for (i, (host, port)) in seen.iter().enumerate() {
            let number = map.know(host, *port)?;
            required.resize(map.nodes().len(), false);
            required[number] |= i >= seen.len() - named;
        }
        let mut nodes = known.to_vec();
        let mut numbers = Vec::new();
        for (node, required) in map.nodes().iter().zip(required) {
            let address = NetAddress::Tcp(node.host.clone(), node.port);
            let address = match resolve(&address) {
                Ok(address) => address,
                Err(_) if required => return None,
                Err(_) => {
                    numbers.push(None);
                    continue;
                }
            };
            let mut number = nodes.iter().position(|known| *known == address);
            if number.is_none() && required {
                number = Some(nodes.len());
                nodes.push(address);
            }
            numbers.push(number);
        }
        Some(Layout { nodes, route: Box::new(SelectedNodes::numbered(map, numbers)) })
    }
}

impl Survey for ClusterSurvey {
    fn ask(&self, known: &[Address], named: &[String]) -> Option<Layout> {
        let started = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.turn += 1;
        let first = seen.turn % seen.names.len();
        let in_turn = seen.names[first..].iter().chain(&seen.names[..first]);
        let mut in_time = in_turn.take_while(|_| started.elapsed() < SURVEY_TIME_MAX);
        let map = in_time.find_map(|name| self.map_of(name))?;
        let reported = map.nodes().iter().map(|node| (node.host.clone(), node.port));
        // A redirect without a host refers to the server that sent it, whose address is already
        // known.
        let named: Vec<Name> = named
            .iter()
            .filter_map(|address| referred(address).filter(|(host, _)| !host.is_empty()))
            .map(|(host, port)| (host.to_string(), port))
            .collect();
        for name in reported.chain(named.iter().cloned()).collect::<Vec<_>>() {
            if seen.names.len() < NODES_MAX && !seen.names.contains(&name) {
                seen.names.push(name);
            }
        }
        let all = [&seen.names[..], &named].concat();
        Self::layout(map, known, (&all, named.len()))
    }
}
