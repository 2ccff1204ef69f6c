//! Counts members of tag sets whose records are gone, after a trial.

use workloads::store::StoreError;

use super::counted::{CountingConnection, Names, Scan};

/// Approximate number of keys or members that one scan page inspects.
const SCAN_COUNT: &[u8] = b"5000";

/// How the software stores the members of a tag.
pub(super) struct Index<'a> {
    /// Pattern that matches the names of all tag sets and no others.
    pub(super) sets: &'a [&'a [u8]],
    /// `SSCAN`, or `ZSCAN`, whose members alternate with their scores.
    pub(super) scan: &'static str,
    /// Prefix of a member in its record's key.
    pub(super) record_prefix: &'a [u8],
}

/// Number of members whose record does not exist. Members that a scan returns twice count twice.
pub(super) fn stale_members(
    link: &mut CountingConnection,
    index: &Index<'_>,
) -> Result<u64, StoreError> {
    let (mut sets, mut members) = (Scan::new(), Scan::new());
    let (mut stale, mut page) = (0, Names::default());
    loop {
        let scan = link.begin(6).part(&[b"SCAN"]).part(&[sets.cursor()]).part(&[b"MATCH"]);
        scan.part(index.sets).part(&[b"COUNT"]).part(&[SCAN_COUNT]);
        link.ask_page("SCAN", &mut sets, &mut page)?;
        for set in page.iter() {
            stale += stale_of(link, index, set, &mut members)?;
        }
        if sets.is_over() {
            return Ok(stale);
        }
    }
}

/// Stale members of one set.
fn stale_of(
    link: &mut CountingConnection,
    index: &Index<'_>,
    set: &[u8],
    scan: &mut Scan,
) -> Result<u64, StoreError> {
    let step = if index.scan == "ZSCAN" { 2 } else { 1 };
    let (mut stale, mut page) = (0, Names::default());
    scan.restart();
    loop {
        let request = link.begin(5).part(&[index.scan.as_bytes()]).part(&[set]);
        request.part(&[scan.cursor()]).part(&[b"COUNT"]).part(&[SCAN_COUNT]);
        link.ask_page(index.scan, scan, &mut page)?;
        let members = page.iter().step_by(step);
        let number = members.len();
        if number > 0 {
            link.begin(1 + number).part(&[b"EXISTS"]);
            for member in members {
                link.part(&[index.record_prefix, member]);
            }
            let there = link.ask_number("EXISTS")?;
            stale += (number as u64).saturating_sub(there.unsigned_abs());
        }
        if scan.is_over() {
            return Ok(stale);
        }
    }
}
