//! Collects the set members of many records, so that one command adds many of them to a set.

use std::collections::HashMap;

use super::counted::Names;

/// Records per batch. A shop's record is in eight sets, and a set contains one in 270 of the
/// records, so a batch puts 30 of them into one command.
const RECORDS_MAX: usize = 8_192;

/// Set members of the records of one batch.
#[derive(Default)]
pub(super) struct SetMembers {
    members: Names,
    of_sets: HashMap<Box<[u8]>, Vec<usize>>,
}

impl SetMembers {
    /// Adds a member to each of the sets.
    pub(super) fn add<'a>(&mut self, member: &[u8], sets: impl IntoIterator<Item = &'a str>) {
        let number = self.members.len();
        self.members.push(member);
        for set in sets {
            match self.of_sets.get_mut(set.as_bytes()) {
                Some(members) => members.push(number),
                None => {
                    self.of_sets.insert(set.as_bytes().into(), vec![number]);
                }
            }
        }
    }

    /// True once the batch is full.
    pub(super) fn is_full(&self) -> bool {
        self.members.len() >= RECORDS_MAX
    }

    /// All members, in insertion order.
    pub(super) fn members(&self) -> &Names {
        &self.members
    }

    /// Each set with the indexes of its members, in order.
    pub(super) fn sets(&self) -> impl ExactSizeIterator<Item = (&[u8], &[usize])> {
        self.of_sets.iter().map(|(set, members)| (&**set, members.as_slice()))
    }
}
