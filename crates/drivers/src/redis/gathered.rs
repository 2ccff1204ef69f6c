//! What many records put into sets, gathered so that one command tells a set of many of them.

use std::collections::HashMap;

use super::counted::Names;

/// Records that are told of together. A shop's record has eight sets and a set one in 270 of the
/// records: 30 of them fit into a command.
const RECORDS_MAX: usize = 8_192;

/// Members of sets, of as many records as one may gather.
#[derive(Default)]
pub(super) struct Gathered {
    members: Names,
    of_sets: HashMap<Box<[u8]>, Vec<usize>>,
}

impl Gathered {
    /// Puts a member into each of the sets.
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

    /// True once it is time to tell the server.
    pub(super) fn is_full(&self) -> bool {
        self.members.len() >= RECORDS_MAX
    }

    /// All members, in the order in which they came.
    pub(super) fn members(&self) -> &Names {
        &self.members
    }

    /// Each set with the numbers of its members, in their order.
    pub(super) fn sets(&self) -> impl ExactSizeIterator<Item = (&[u8], &[usize])> {
        self.of_sets.iter().map(|(set, members)| (&**set, members.as_slice()))
    }
}
