//! Counting what tags' sets still say of records that are gone, after a trial.

use workloads::store::StoreError;

use super::counted::{Counted, Names, Scan};

/// Keys or members that one page of a scan looks at, about.
const LOOKED_AT: &[u8] = b"5000";

/// How software keeps the members of a tag.
pub(super) struct Index<'a> {
    /// Pattern of the names of all tags' sets, and of nothing else.
    pub(super) sets: &'a [&'a [u8]],
    /// `SSCAN`, or `ZSCAN` whose members stand before their scores.
    pub(super) scan: &'static str,
    /// What stands before a member in the name of its record's key.
    pub(super) record_prefix: &'a [u8],
}

/// Number of members whose record does not exist. What a scan gives twice counts twice.
pub(super) fn stale_members(link: &mut Counted, index: &Index<'_>) -> Result<u64, StoreError> {
    let (mut sets, mut members) = (Scan::new(), Scan::new());
    let (mut stale, mut page) = (0, Names::default());
    loop {
        let scan = link.begin(6).part(&[b"SCAN"]).part(&[sets.cursor()]).part(&[b"MATCH"]);
        scan.part(index.sets).part(&[b"COUNT"]).part(&[LOOKED_AT]);
        link.ask_page("SCAN", &mut sets, &mut page)?;
        for set in page.iter() {
            stale += stale_of(link, index, set, &mut members)?;
        }
        if sets.is_over() {
            return Ok(stale);
        }
    }
}

/// Those of one set.
fn stale_of(
    link: &mut Counted,
    index: &Index<'_>,
    set: &[u8],
    scan: &mut Scan,
) -> Result<u64, StoreError> {
    let step = if index.scan == "ZSCAN" { 2 } else { 1 };
    let (mut stale, mut page) = (0, Names::default());
    scan.restart();
    loop {
        let request = link.begin(5).part(&[index.scan.as_bytes()]).part(&[set]);
        request.part(&[scan.cursor()]).part(&[b"COUNT"]).part(&[LOOKED_AT]);
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
