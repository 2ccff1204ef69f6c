use super::*;
use crate::kv::{Key, KeyNames, ValueCheck, Values, values_of};
use proptest::prelude::*;
use std::collections::HashSet;

fn text(values: &Values, key: u64, version: u64) -> String {
    let mut out = Vec::new();
    values.append(&mut out, key, version, USER_BYTES);
    String::from_utf8(out).unwrap()
}

fn is_right(values: &Values, key: u64, body: &[u8], piece: usize) -> bool {
    let mut check = ValueCheck::new(key, body.len());
    body.chunks(piece).all(|chunk| values.check(&mut check, chunk))
}

#[test]
fn a_value_is_the_object_of_the_published_client() {
    let (sizes, values) = values_of(JSON, 3).unwrap();
    assert_eq!(sizes.fixed(), Some(148));
    let text = text(&values, 42, 7);
    let object: serde_json::Value = serde_json::from_str(&text).unwrap();
    let lengths = ["uuid", "username", "firstName", "lastName", "address"]
        .map(|field| object[field].as_str().unwrap().len());
    assert_eq!((text.len(), lengths), (148, [36, 10, 5, 10, 20]));
    assert_eq!(object.as_object().unwrap().len(), 5);
    let mut name = Vec::new();
    KeyNames::uuids("", 3).unwrap().append(&mut name, Key(42));
    assert_eq!(object["uuid"].as_str().unwrap().as_bytes(), name);
    assert_eq!(object["username"], "0000000007");
}

#[test]
fn sizes_are_accepted_too() {
    let (sizes, values) = values_of("64", 1).unwrap();
    let mut out = Vec::new();
    values.append(&mut out, 1, 2, 64);
    assert_eq!((sizes.fixed(), out.len()), (Some(64), 64));
    assert!(values_of("jason", 1).is_err());
}

#[test]
fn uuids_are_well_formed_and_distinct() {
    let names = KeyNames::uuids("own:", 9).unwrap();
    let name = |names: &KeyNames, key: u64| {
        let mut name = Vec::new();
        names.append(&mut name, Key(key));
        String::from_utf8(name).unwrap()
    };
    let mut all = HashSet::new();
    for key in 0..5_000 {
        let name = name(&names, key);
        let uuid = name.strip_prefix("own:").unwrap();
        let groups: Vec<&str> = uuid.split('-').collect();
        assert_eq!(groups.iter().map(|g| g.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{uuid}");
        assert!(uuid.chars().all(|c| c == '-' || c.is_ascii_hexdigit()), "{uuid}");
        assert!(groups[2].starts_with('4') && groups[3].starts_with(['8', '9', 'a', 'b']));
        assert_eq!(groups[4], format!("{key:012}"));
        all.insert(uuid[..23].to_string());
    }
    // The random digits differ too: 74 bits do not collide by chance.
    assert_eq!(all.len(), 5_000);
    assert_ne!(name(&names, 1), name(&KeyNames::uuids("own:", 10).unwrap(), 1));
    assert_eq!(names.fixed_bytes(), Some(40));
}

proptest! {
    #[test]
    fn a_user_is_verified_in_any_pieces(
        key in 0..1_000_000_000_000_u64, version in 0..1_000_000_000_000_u64, piece in 1usize..150,
    ) {
        let values = Values::users(5);
        let body = text(&values, key, version);
        prop_assert!(is_right(&values, key, body.as_bytes(), piece));
        prop_assert!(!is_right(&values, key + 1, body.as_bytes(), piece));
    }

    #[test]
    fn any_changed_character_is_detected(version: u32, at in 0..USER_BYTES, piece in 1usize..150) {
        let values = Values::users(5);
        let mut body = text(&values, 8, version.into()).into_bytes();
        body[at] = if body[at] == b'_' { b'-' } else { b'_' };
        prop_assert!(!is_right(&values, 8, &body, piece));
        let other = text(&values, 8, u64::from(version) + 1);
        let mut mixed = text(&values, 8, version.into()).into_bytes();
        mixed[USERNAME].copy_from_slice(&other.as_bytes()[USERNAME]);
        // Two versions have the same slice of the pool about once in ten thousand times.
        prop_assume!(mixed != other.as_bytes());
        prop_assert!(!is_right(&values, 8, &mixed, piece), "a version of another value");
    }
}

#[test]
fn a_user_of_another_length_is_wrong() {
    let values = Values::users(5);
    let body = text(&values, 1, 1);
    assert!(!is_right(&values, 1, &body.as_bytes()[..147], 147));
    assert!(!is_right(&values, 1, format!("{body} ").as_bytes(), 149));
}
