//! Tests slots against their definition, and valid and invalid descriptions of clusters.

use super::*;
use crate::redis::resp::parse_tree;
use proptest::prelude::*;

/// The bitwise checksum, as in the cluster specification.
fn defined(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ (u16::from(*byte) << 8), |sum, _| {
            if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 }
        })
    })
}

#[test]
fn the_checksum_matches_the_specification() {
    assert_eq!(checksum(b"123456789"), 0x31c3);
    assert_eq!(checksum(b""), 0);
}

#[test]
fn known_keys_have_known_slots() {
    assert_eq!(slot(b"foo"), 12182);
    assert_eq!(slot(b"bar"), 5061);
    assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
    assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
    assert_eq!(slot(b"foo{}{bar}"), defined(b"foo{}{bar}") % SLOTS);
    assert_eq!(slot(b"foo{bar"), defined(b"foo{bar") % SLOTS);
    assert_eq!(slot(b"}foo{bar}"), slot(b"bar"));
}

proptest! {
    #[test]
    fn any_bytes_have_the_defined_checksum(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
        prop_assert_eq!(checksum(&bytes), defined(&bytes));
    }

    #[test]
    fn any_description_parses_without_panic(text in "([*][0-4]\r\n|:[0-9]{1,5}\r\n|[+](a|slots|nodes|port|[?])\r\n){1,60}") {
        if let Ok(Some((tree, _))) = parse_tree(text.as_bytes()) {
            let _ = SlotMap::from_slots(&tree, "");
        }
    }
}

fn text(text: &str) -> Tree {
    Tree::Text(text.into())
}

fn server_of(host: Tree, port: i64) -> Tree {
    Tree::List(vec![host, Tree::Integer(port), text("id"), Tree::List(vec![])])
}

/// A reply to `CLUSTER SLOTS` with these slots and servers.
fn slots(of: Vec<(i64, i64, Vec<Tree>)>) -> Tree {
    let entry = |(first, last, servers)| {
        let mut parts = vec![Tree::Integer(first), Tree::Integer(last)];
        parts.extend::<Vec<Tree>>(servers);
        Tree::List(parts)
    };
    Tree::List(of.into_iter().map(entry).collect())
}

fn two() -> SlotMap {
    let answer = slots(vec![
        (0, 8191, vec![server_of(text("::1"), 7000), server_of(text("::1"), 7002)]),
        (8192, 16383, vec![server_of(Tree::Nil, 7001)]),
    ]);
    SlotMap::from_slots(&answer, "10.0.0.9").unwrap()
}

#[test]
fn slots_belong_to_servers_and_replicas_come_last() {
    let map = two();
    let names: Vec<String> = map.nodes().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["::1:7000", "10.0.0.9:7001", "::1:7002"]);
    assert_eq!((map.node(b"foo"), map.node(b"bar")), (1, 0));
    assert_eq!(map.replicas(0).collect::<Vec<_>>(), [2]);
    assert_eq!(map.replicas(1).count(), 0);
    assert_eq!(map.uncovered(), 0);
}

#[test]
fn a_moved_slot_keeps_its_new_owner() {
    let mut map = two();
    // The route of a load only knows its initial servers.
    assert_eq!(map.moved(b"foo", "10.0.0.7:7000", true), None);
    assert_eq!(map.moved(b"foo", "[::1]:7000", false), Some(0));
    assert_eq!(map.node(b"foo"), 1, "redirected once");
    assert_eq!(map.moved(b"foo", "::1:7002", true), Some(2));
    assert_eq!((map.node(b"foo"), map.nodes()[2].replica_of), (2, None));
    // An empty host means the server that sent the redirect.
    assert_eq!(map.moved(b"foo", ":7000", true), Some(0));
    for wrong in ["?:7000", "10.0.0.9", "10.0.0.9:0", "10.0.0.9:x"] {
        assert_eq!(map.moved(b"foo", wrong, true), None, "{wrong}");
    }
    assert_eq!(map.know("10.0.0.7", 7009), Some(3));
    assert_eq!(map.nodes()[3].to_string(), "10.0.0.7:7009");
    assert_eq!(map.moved(b"foo", "10.0.0.7:7009", true), Some(3));
    assert_eq!(map.node(b"foo"), 3);
    assert_eq!(map.node(b"bar"), 0, "other slots stay");
    assert_eq!(map.asking(), b"*1\r\n$6\r\nASKING\r\n");
}

#[test]
fn errors_name_the_problem_of_a_description() {
    let problem = |answer: Tree| SlotMap::from_slots(&answer, "").unwrap_err();
    let refused = problem(Tree::Error(b"ERR This instance has cluster support disabled".to_vec()));
    assert!(
        refused.contains("`ERR This instance has cluster support disabled` (expected"),
        "{refused}"
    );
    let of = |host, port| slots(vec![(0, 16383, vec![server_of(host, port)])]);
    assert!(problem(of(Tree::Nil, 7)).contains("gives no host for the server on port 7"));
    assert!(problem(of(text("?"), 7)).contains("gives no host"));
    assert!(problem(of(text("a"), 0)).contains("`0`, which is not a port"));
    assert!(problem(slots(vec![(0, 16384, vec![server_of(text("a"), 1)])])).contains("`16384`"));
    assert!(
        problem(slots(vec![(9, 8, vec![server_of(text("a"), 1)])]))
            .contains("not a slot at or after the first")
    );
    assert!(problem(slots(vec![(0, 1, vec![])])).contains("without a server"));
    assert!(problem(Tree::List(vec![])).contains("serves no slots"));
    assert!(problem(Tree::Integer(1)).contains("`1`, which is not a list"));
    let part =
        SlotMap::from_slots(&slots(vec![(0, 8, vec![server_of(text("a"), 1)])]), "").unwrap();
    assert_eq!(part.uncovered(), 16384 - 9);
}

#[test]
fn too_many_servers_are_rejected() {
    let host = |n: i64| text(&format!("h{n}"));
    let ranges = |n: i64| (0..n).map(|n| (n % 16384, n % 16384, vec![server_of(host(n), 1)]));
    let refused = |tree: &Tree| SlotMap::from_slots(tree, "h").unwrap_err();
    assert_eq!(
        SlotMap::from_slots(&slots(ranges(4096).collect()), "h").unwrap().nodes().len(),
        4096
    );
    assert_eq!(refused(&slots(ranges(4097).collect())), too_many());
    let longest = invalid_description("more ranges than 16384 slots");
    assert_eq!(refused(&slots(ranges(170_000).collect())), longest);
    let replicas = (0..170_000).map(|n| server_of(host(n), 1)).collect();
    assert_eq!(refused(&slots(vec![(0, 16383, replicas)])), too_many());

    let mut map = SlotMap::from_slots(&slots(ranges(4096).collect()), "h").unwrap();
    assert_eq!(map.know("other", 1), None);
    assert_eq!(map.know("h7", 1), Some(7));
}
