//! Keys that only studies of some workloads have: there they must stand, in others they are errors.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::quoted_list;
use super::wire::StudyWorkload;
use super::wire::StudyWorkload::{AppCache, Ramp, Sessions};

/// Table, key, whose it is (one of those that have it), and whether it must be there.
const OWN: [(&str, &str, StudyWorkload, bool); 48] = [
    ("defaults", "value_bytes", Sessions, true),
    ("defaults", "value_bytes", Ramp, false),
    ("defaults", "ttl_s", Sessions, true),
    ("defaults", "ttl_s", Ramp, true),
    ("defaults", "generation", Sessions, true),
    ("defaults", "think_ms", Sessions, true),
    ("defaults", "think_ms", Ramp, true),
    ("defaults", "limit", Ramp, false),
    ("defaults", "order", Ramp, false),
    ("defaults", "threads", Ramp, false),
    ("defaults", "tags", AppCache, true),
    ("defaults", "min_tags", AppCache, true),
    ("defaults", "max_tags", AppCache, true),
    ("defaults", "min_rec_size", AppCache, true),
    ("defaults", "max_rec_size", AppCache, true),
    ("defaults", "write_chance", AppCache, true),
    ("defaults", "clean_chance", AppCache, true),
    ("defaults", "magento", AppCache, true),
    ("defaults", "fill", AppCache, false),
    ("defaults", "memory_limit", AppCache, false),
    ("scales", "sessions", Sessions, true),
    ("scales", "keys", AppCache, true),
    ("scales", "keys", Ramp, true),
    ("scales", "ops", AppCache, true),
    ("scales", "stage_ms", Ramp, true),
    ("scales", "stages", Ramp, true),
    ("scales", "step", Ramp, true),
    ("targets", "product", Sessions, true),
    ("targets", "product", Ramp, true),
    ("targets", "program", Sessions, false),
    ("targets", "program", Ramp, false),
    ("targets", "backend", AppCache, true),
    ("profiles", "stop", Sessions, true),
    ("profiles", "stop", AppCache, true),
    ("profiles", "phases", Sessions, true),
    ("profiles", "phases", AppCache, true),
    ("profiles", "layout", Sessions, true),
    ("profiles", "connections", Sessions, true),
    ("profiles", "names", Sessions, true),
    ("profiles", "order", Sessions, true),
    ("profiles", "one_session", Sessions, false),
    ("profiles", "as_original", AppCache, false),
    ("profiles", "sizes", AppCache, false),
    ("profiles", "page_cache", AppCache, false),
    ("profiles", "pace", Ramp, true),
    ("profiles", "permille", Ramp, false),
    ("profiles", "groups", Ramp, false),
    ("profiles", "control_permille", Ramp, false),
];

/// `--set` keys that stand in no study: of a ramp, rates in place of its profile's.
const ONLY_SET: [(&str, StudyWorkload); 1] = [("rates", Ramp)];

/// Keys that are other workloads' alone: `--set` does not know them.
pub(super) fn of_others(workload: StudyWorkload, key: &str) -> bool {
    let known = OWN.iter().filter(|(_, own, ..)| *own == key);
    // A profile's key of the same name is another.
    let mut own = known.clone().filter(|(table, ..)| *table != "profiles" || key == "sizes");
    let is_own = own.any(|(_, _, whose, _)| *whose == workload);
    let only_set = ONLY_SET.iter().find(|(own, _)| *own == key);
    !is_own && (known.count() > 0 || only_set.is_some_and(|(_, whose)| *whose != workload))
}

/// Byte offset and text of the first key that is missing, or that is another workload's.
pub(super) fn fault(text: &str, workload: StudyWorkload) -> Option<(usize, String)> {
    let document = DeTable::parse(text).ok()?;
    document.get_ref().iter().find_map(|(name, value)| {
        let name = name.get_ref();
        tables(name, value).into_iter().find_map(|(offset, table)| {
            let own = OWN.iter().filter(|(of, ..)| of == name);
            let is_known = |key| own.clone().any(|(_, k, w, _)| *k == key && *w == workload);
            own.clone().find_map(|(_, key, whose, needed)| {
                let there = table.iter().find(|(k, _)| k.get_ref() == key);
                match there {
                    Some((k, _)) if *whose != workload && !is_known(*key) => {
                        let known = own.clone().filter(|(_, _, w, _)| *w == workload);
                        let known = quoted_list(known.map(|(_, key, ..)| *key));
                        let study = workload.name();
                        let text = format!(
                            "`{key}` is no key of a study of workload `{study}` (known only to \
                             these: {known})"
                        );
                        Some((k.span().start, text))
                    }
                    None if *whose == workload && *needed => {
                        Some((offset, format!("missing field `{key}`")))
                    }
                    _ => None,
                }
            })
        })
    })
}

/// The tables of that name with their offsets: one, one a scale, or a list.
fn tables<'a, 'i>(name: &str, value: &'a Spanned<DeValue<'i>>) -> Vec<(usize, &'a DeTable<'i>)> {
    let table =
        |value: &'a Spanned<DeValue<'i>>| Some((value.span().start, value.get_ref().as_table()?));
    match (name, value.get_ref()) {
        ("scales", DeValue::Table(scales)) => scales.values().filter_map(table).collect(),
        (_, DeValue::Array(list)) => list.iter().filter_map(table).collect(),
        _ => table(value).into_iter().collect(),
    }
}
