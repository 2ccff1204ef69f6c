//! Tags of a record as software takes them.

/// The tags in their order, each once.
pub(crate) fn once(tags: &[String]) -> Vec<&str> {
    let mut once: Vec<&str> = Vec::with_capacity(tags.len());
    for tag in tags {
        if !once.contains(&tag.as_str()) {
            once.push(tag);
        }
    }
    once
}
