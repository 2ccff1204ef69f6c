use super::*;
use crate::app_cache::memory::{Fault, Memory};

fn tags(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

#[test]
fn ids_tags_and_lifetimes_match_magento() {
    let store = Memory::default();
    let mut shop = Magento::new(Box::new(store.clone()), Layer::One);
    assert_eq!(
        shop.save(Record::new("a-b c_é9", b"x", &tags(&["Tag.1"]), None)).unwrap(),
        Saved::Kept
    );
    shop.save(Record::new("config", b"y", &tags(&["CONFIG"]), Some(60))).unwrap();
    let prefix = prefix_of(CONFIGURATION);
    let content = store.content();
    let first = &content.records[&format!("{prefix}A_B_C___9")];
    assert_eq!(first.tags, [format!("{prefix}TAG_1"), format!("{prefix}MAGE")]);
    assert_eq!(first.lifetime_s, Some(7200));
    let second = &content.records[&format!("{prefix}CONFIG")];
    assert_eq!((&second.tags, second.lifetime_s), (&vec![format!("{prefix}CONFIG")], Some(60)));
}

#[test]
fn a_prefix_is_the_start_of_an_md5() {
    // printf %s /var/www/magento/app/etc | md5sum
    assert_eq!(prefix_of("/var/www/magento/app/etc"), "e84_");
}

#[test]
fn records_are_found_and_cleaned_by_the_shops_ids_and_tags() {
    let mut shop = Magento::new(Box::new(Memory::default()), Layer::One);
    shop.save(Record::new("one", b"1", &tags(&["a", "b"]), None)).unwrap();
    shop.save(Record::new("two", b"2", &tags(&["b"]), None)).unwrap();
    let mut value = Vec::new();
    assert_eq!((shop.load("ONE", &mut value).unwrap(), &value[..]), (Found::Yes, &b"1"[..]));
    shop.clean(&tags(&["A"])).unwrap();
    assert_eq!(shop.load("one", &mut value).unwrap(), Found::No);
    assert_eq!(shop.load("two", &mut value).unwrap(), Found::Yes);
    shop.clean(&tags(&["mage"])).unwrap();
    assert_eq!(shop.load("two", &mut value).unwrap(), Found::No);
}

/// Names and tags as `Zend::_unifyId` and `Core::_id` convert them, and `TagScope`'s tag.
#[test]
fn magento_2_has_its_own_names_and_lifetimes() {
    let store = Memory::default();
    let mut shop = Magento::new(Box::new(store.clone()), Layer::Two);
    shop.save(Record::new("a.b-c_é9", b"x", &tags(&["Tag.1", "CONFIG"]), None)).unwrap();
    // printf %s /var/www/magento/app/etc/ | md5sum
    let prefix = prefix_of("/var/www/magento/app/etc/");
    let content = store.content();
    let record = &content.records[&format!("{prefix}A__B_C___9")];
    let expected = ["TAG__1", "CONFIG", "MAGE"].map(|tag| format!("{prefix}{tag}"));
    assert_eq!((&record.tags[..], record.lifetime_s), (&expected[..], None));
}

#[test]
fn magento_2_cleans_one_tag_at_a_time() {
    let mut shop = Magento::new(Box::new(Memory::default()), Layer::Two);
    for (id, tag) in [("one", "a"), ("two", "b"), ("three", "c")] {
        shop.save(Record::new(id, b"x", &tags(&[tag]), None)).unwrap();
    }
    shop.clean(&tags(&["A", "b"])).unwrap();
    let mut has = |id| shop.load(id, &mut Vec::new()).unwrap() == Found::Yes;
    assert_eq!(["one", "two", "three"].map(&mut has), [false, false, true]);
}

#[test]
fn a_write_that_reads_back_differently_is_removed() {
    let store = Memory::default();
    let mut shop = Magento::new(Box::new(store.clone()), Layer::One);
    store.misbehave(Fault::Truncates);
    assert_eq!(shop.save(Record::new("a", b"xyz", &[], None)).unwrap(), Saved::Removed(Found::Yes));
    assert_eq!(shop.loaded_back(), b"xy");
    assert!(store.content().records.is_empty());
    store.misbehave(Fault::Forgets);
    assert_eq!(shop.save(Record::new("a", b"xyz", &[], None)).unwrap(), Saved::Removed(Found::No));
}

#[test]
fn leftovers_of_a_failed_save_are_removed() {
    let store = Memory::default();
    store.misbehave(Fault::FailsToSave);
    for (layer, left) in [(Layer::None, 1), (Layer::One, 0)] {
        let mut shop = Magento::new(Box::new(store.clone()), layer);
        // Every other failing save is applied.
        for _ in 0..2 {
            assert_eq!(
                shop.save(Record::new("a", b"x", &[], None)).unwrap_err().message,
                "on purpose"
            );
        }
        assert_eq!(store.content().records.len(), left);
        store.content().records.clear();
    }
}

#[test]
fn without_the_layer_calls_pass_through_unchanged() {
    let store = Memory::default();
    let mut shop = Magento::new(Box::new(store.clone()), Layer::None);
    shop.save(Record::new("a-b", b"x", &tags(&["t-1"]), None)).unwrap();
    let content = store.content();
    let record = &content.records["a-b"];
    assert_eq!((&record.tags, record.lifetime_s), (&tags(&["t-1"]), None));
    drop(content);
    let once = Effort { round_trips: 1, commands: 3, files: 0 };
    assert_eq!(shop.effort(), once, "a save is not loaded back");
}
