//! The tags of a record as cache software uses them.

/// Removes duplicate tags and keeps the order.
pub(crate) fn unique(tags: &[String]) -> Vec<&str> {
    let mut unique: Vec<&str> = Vec::with_capacity(tags.len());
    for tag in tags {
        if !unique.contains(&tag.as_str()) {
            unique.push(tag);
        }
    }
    unique
}
