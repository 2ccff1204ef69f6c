//! Maps keys to the servers of a cluster.
//!
//! A key's slot is the CRC-16 of its name (polynomial 0x1021, initial value zero, neither reflected
//! nor inverted: XMODEM) modulo 16384. If the name has a non-empty part between the first `{` and
//! the next `}`, only that part is hashed. `CLUSTER SLOTS` returns the owners as a list of `[first
//! slot, last slot, [host, port, …], replicas…]`. Source:
//! <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use load::wire::route::Route;

use super::resp::Tree;

/// Number of slots of a cluster; they are numbered from 0.
pub const SLOTS: u16 = 16384;
/// Precedes a request that was redirected to another server with `ASK`.
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";
/// Most servers of a cluster, including replicas. Redis recommends at most 1,000.
pub const NODES_MAX: usize = 4096;
/// Bytes that the checksum processes per step.
const STEP: usize = 8;

/// Checksums of each byte followed by 0 to 7 zero bytes.
static TABLES: [[u16; 256]; STEP] = tables();

const fn tables() -> [[u16; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            let carry = sum & 0x8000 != 0;
            sum <<= 1;
            if carry {
                sum ^= 0x1021;
            }
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before << 8) ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// CRC-16/XMODEM; that of `123456789` is 0x31c3.
fn checksum(bytes: &[u8]) -> u16 {
    let mut steps = bytes.chunks_exact(STEP);
    let mut sum = 0_u16;
    for step in &mut steps {
        let [high, low] = sum.to_be_bytes();
        let table = |at: usize, with: u8| TABLES[STEP - 1 - at][usize::from(step[at] ^ with)];
        sum = table(0, high) ^ table(1, low);
        for at in 2..STEP {
            sum ^= table(at, 0);
        }
    }
    for byte in steps.remainder() {
        let [high, _] = sum.to_be_bytes();
        sum = (sum << 8) ^ TABLES[0][usize::from(high ^ byte)];
    }
    sum
}

/// The slot of a key, 0 to 16383.
pub fn slot(name: &[u8]) -> u16 {
    checksum(tag(name)) % SLOTS
}

/// The part of a name that decides its slot.
fn tag(name: &[u8]) -> &[u8] {
    let Some(open) = name.iter().position(|byte| *byte == b'{') else { return name };
    let behind = &name[open + 1..];
    match behind.iter().position(|byte| *byte == b'}') {
        Some(length) if length > 0 => &behind[..length],
        _ => name,
    }
}

/// A server of a cluster, as the cluster names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name or address of its host, without brackets.
    pub host: String,
    /// Port, above 0.
    pub port: u16,
    /// The node that it replicates; `None` for a node with its own slots.
    pub replica_of: Option<usize>,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The owners of all slots. Servers are numbered from 0, primaries before replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotMap {
    nodes: Vec<Node>,
    /// Number of the owning server of each slot.
    owners: Vec<u16>,
    uncovered: u16,
}

/// Slots of one server and of its replicas.
struct Shard {
    ranges: Vec<(u16, u16)>,
    master: (String, u16),
    replicas: Vec<(String, u16)>,
}

impl SlotMap {
    /// Parses the reply to `CLUSTER SLOTS`. `sender` is the host that sent it, which a cluster can
    /// omit from the reply.
    pub fn from_slots(answer: &Tree, sender: &str) -> Result<Self, String> {
        let mut shards = Vec::new();
        for entry in list(answer)? {
            let [first, last, servers @ ..] = list(entry)? else {
                return Err(wrong_form("an incomplete range", entry));
            };
            let server = |tree| match list(tree)? {
                [host, port, ..] => server(host, port, sender),
                _ => Err(wrong_form("a server without host and port", tree)),
            };
            let Some((master, replicas)) = servers.split_first() else {
                return Err(wrong_form("a range without a server", entry));
            };
            shards.push(Shard {
                ranges: vec![range(first, last)?],
                master: server(master)?,
                replicas: replicas.iter().map(server).collect::<Result<_, _>>()?,
            });
        }
        Self::of(&shards)
    }

    fn of(shards: &[Shard]) -> Result<Self, String> {
        if shards.iter().map(|shard| shard.ranges.len()).sum::<usize>() > SLOTS.into() {
            return Err(invalid_description(&format!("more ranges than {SLOTS} slots")));
        }
        let mut map = Self { nodes: Vec::new(), owners: vec![0; SLOTS.into()], uncovered: 0 };
        let mut covered = vec![false; SLOTS.into()];
        let mut numbers = HashMap::new();
        for shard in shards {
            let fresh = map.nodes.len();
            let owner = *numbers.entry(&shard.master).or_insert(fresh);
            if owner == fresh {
                map.add(&shard.master, None).ok_or_else(too_many)?;
            }
            for (first, last) in &shard.ranges {
                let slots = usize::from(*first)..=usize::from(*last);
                map.owners[slots.clone()].fill(owner as u16);
                covered[slots].fill(true);
            }
        }
        // After all primaries, so that they have the lower numbers.
        for shard in shards {
            let owner = numbers[&shard.master];
            for replica in &shard.replicas {
                if let Entry::Vacant(unknown) = numbers.entry(replica) {
                    let number = map.add(replica, Some(owner)).ok_or_else(too_many)?;
                    unknown.insert(number);
                }
            }
        }
        map.uncovered = covered.iter().filter(|there| !**there).count() as u16;
        if map.uncovered == SLOTS {
            let expected = "all 16384: add them by `redis-cli --cluster`";
            return Err(format!("the cluster serves no slots (expected {expected})"));
        }
        Ok(map)
    }

    /// Adds a server and returns its number; `None` if there are too many.
    fn add(&mut self, (host, port): &(String, u16), replica_of: Option<usize>) -> Option<usize> {
        let number = self.nodes.len();
        (number < NODES_MAX).then(|| {
            self.nodes.push(Node { host: host.clone(), port: *port, replica_of });
            number
        })
    }

    fn find(&self, host: &str, port: u16) -> Option<usize> {
        self.nodes.iter().position(|node| node.port == port && node.host == host)
    }

    /// All servers, primaries before replicas.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Number of the owning server of each slot.
    pub fn owners(&self) -> &[u16] {
        &self.owners
    }

    /// Number of the server with this name. An unknown one is added without slots; `None` if there
    /// are too many.
    pub fn know(&mut self, host: &str, port: u16) -> Option<usize> {
        self.find(host, port).or_else(|| self.add(&(host.to_string(), port), None))
    }

    /// Number of slots without a server. They are assigned to the first server, which will reject
    /// them.
    pub fn uncovered(&self) -> u16 {
        self.uncovered
    }

    /// Number of the server that owns the key with this name.
    pub fn node(&self, name: &[u8]) -> usize {
        usize::from(self.owners[usize::from(slot(name))])
    }

    /// Numbers of a server's replicas.
    pub fn replicas(&self, node: usize) -> impl Iterator<Item = usize> {
        let of = move |(_, other): &(usize, &Node)| other.replica_of == Some(node);
        self.nodes.iter().enumerate().filter(of).map(|(number, _)| number)
    }

    /// Resolves an address from `MOVED` or `ASK`; without a host it is that of the server that sent
    /// it.
    fn server(&self, name: &[u8], address: &str) -> Option<(String, u16)> {
        match referred(address)? {
            ("", port) => Some((self.nodes[self.node(name)].host.clone(), port)),
            (host, port) => Some((host.to_string(), port)),
        }
    }

    fn take_over(&mut self, name: &[u8], number: usize) {
        self.owners[usize::from(slot(name))] = number as u16;
        self.nodes[number].replica_of = None;
    }
}

/// Routes only to servers that the map already contains.
impl Route for SlotMap {
    fn node(&self, name: &[u8]) -> usize {
        self.node(name)
    }

    fn moved(&mut self, name: &[u8], address: &str, for_good: bool) -> Option<usize> {
        let (host, port) = self.server(name, address)?;
        let number = self.find(&host, port)?;
        if for_good {
            self.take_over(name, number);
        }
        Some(number)
    }

    fn asking(&self) -> &'static [u8] {
        ASKING
    }

    fn fresh(&self) -> Box<dyn Route> {
        Box::new(self.clone())
    }
}

/// Host, which can be empty, and port of an address from `MOVED` or `ASK`; `None` if it is not an
/// address.
pub(super) fn referred(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    (host != "?").then(|| (host.trim_matches(['[', ']']), port))
}

fn list(tree: &Tree) -> Result<&[Tree], String> {
    match tree {
        Tree::List(list) => Ok(list),
        Tree::Error(words) => {
            let words = crate::fault::printable(words);
            Err(format!("the server answered `{words}` (expected the slots of a cluster)"))
        }
        other => Err(wrong_form("not a list", other)),
    }
}

fn too_many() -> String {
    format!("the cluster has more than {NODES_MAX} servers (expected at most that many)")
}

fn invalid_description(problem: &str) -> String {
    format!("the cluster's description contains {problem}")
}

fn wrong_form(problem: &str, tree: &Tree) -> String {
    let found = match tree {
        Tree::Text(bytes) | Tree::Error(bytes) => crate::fault::printable_within(bytes, 80),
        Tree::Integer(n) => n.to_string(),
        Tree::Nil => "nil".into(),
        Tree::List(list) => format!("a list of {}", list.len()),
    };
    invalid_description(&format!("`{found}`, which is {problem}"))
}

fn text(tree: &Tree) -> Option<String> {
    match tree {
        Tree::Text(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    }
}

fn range(first: &Tree, last: &Tree) -> Result<(u16, u16), String> {
    let slot = |tree: &Tree| match tree {
        Tree::Integer(n) => u16::try_from(*n).ok().filter(|n| *n < SLOTS),
        _ => None,
    };
    match (slot(first), slot(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        (None, _) => Err(wrong_form("not a slot", first)),
        _ => Err(wrong_form("not a slot at or after the first", last)),
    }
}

fn server(host: &Tree, port: &Tree, sender: &str) -> Result<(String, u16), String> {
    let Tree::Integer(number) = port else { return Err(wrong_form("not a port", port)) };
    let Some(port) = u16::try_from(*number).ok().filter(|port| *port > 0) else {
        return Err(wrong_form("not a port", port));
    };
    let host = match host {
        Tree::Nil => sender.to_string(),
        host => text(host).unwrap_or_default(),
    };
    let host = if host.is_empty() { sender.to_string() } else { host };
    if !host.is_empty() && host != "?" {
        return Ok((host, port));
    }
    Err(format!(
        "the cluster gives no host for the server on port {port} (expected an address or a name: \
         see cluster-preferred-endpoint-type)"
    ))
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
