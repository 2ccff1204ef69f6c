//! Removes IDs of deleted or expired records, which stay in tag sets after cleans.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use model::ErrorClass;
use workloads::store::StoreError;

use super::super::counted::{Names, Scan, digits};
use super::super::errors::unexpected;
use super::super::resp::Reply;
use super::{CmRedis, IDS, RECORD, TAG, TAGS, scripts};

/// IDs removed from a set per command.
const FORGOTTEN_AT_ONCE: usize = 100;
/// Approximate number of members that one `SSCAN` inspects.
const SCANNED_AT_ONCE: &[u8] = b"500";
/// Most IDs remembered between tags.
const REMEMBERED: usize = 300_000;
/// Pause between the collections of two tags.
const PAUSE: Duration = Duration::from_millis(1);

/// Whether records exist, for the IDs checked so far.
type Exists = HashMap<Vec<u8>, bool>;

impl CmRedis {
    /// The 2019 method: reads each tag's whole set and sends `EXISTS` for each ID not checked
    /// before.
    pub(super) fn collect(&mut self) -> Result<(), StoreError> {
        let mut exists = Exists::new();
        for tag in self.all_tags()?.iter() {
            self.collect_tag(tag, &mut exists)?;
        }
        Ok(())
    }

    fn all_tags(&mut self) -> Result<Names, StoreError> {
        let mut tags = Names::default();
        self.link.request(&[b"SMEMBERS", TAGS]).ask_names("SMEMBERS", &mut tags)?;
        Ok(tags)
    }

    fn collect_tag(&mut self, tag: &[u8], exists: &mut Exists) -> Result<(), StoreError> {
        let mut members = Names::default();
        self.link.begin(2).part(&[b"SMEMBERS"]).part(&[TAG, tag]);
        self.link.ask_names("SMEMBERS", &mut members)?;
        let (mut gone, mut existing) = (Names::default(), 0);
        for id in members.iter().rev() {
            if self.exists(id, exists)? {
                existing += 1;
                continue;
            }
            gone.push(id);
            // Only once an existing record is found: a set without any is removed as a whole.
            if existing > 0 && gone.len().is_multiple_of(FORGOTTEN_AT_ONCE) {
                self.forget(tag, &gone)?;
                gone.clear();
            }
        }
        if existing == 0 {
            self.link.begin(2).part(&[self.options.removal.command()]).part(&[TAG, tag]);
            self.link.ask_number("DEL")?;
            self.link.request(&[b"SREM", TAGS, tag]).ask_number("SREM")?;
        } else if !gone.is_empty() {
            self.forget(tag, &gone)?;
        }
        Ok(())
    }

    fn exists(&mut self, id: &[u8], exists: &mut Exists) -> Result<bool, StoreError> {
        if let Some(there) = exists.get(id) {
            return Ok(*there);
        }
        self.link.begin(2).part(&[b"EXISTS"]).part(&[RECORD, id]);
        let there = self.link.ask_number("EXISTS")? > 0;
        exists.insert(id.to_vec(), there);
        Ok(there)
    }

    fn forget(&mut self, tag: &[u8], ids: &Names) -> Result<(), StoreError> {
        let keys: [&[&[u8]]; 2] = [&[TAG, tag], &[IDS]];
        for key in &keys[..=usize::from(self.options.not_matching_tags)] {
            self.link.begin(2 + ids.len()).part(&[b"SREM"]).part(key);
            for id in ids.iter() {
                self.link.part(&[id]);
            }
            self.link.ask_number("SREM")?;
        }
        Ok(())
    }

    /// The method since 2026: reads each tag's set in pages, sends one pipeline of `EXISTS` per
    /// page, and runs a script per ID that checks again.
    pub(super) fn collect_by_scan(&mut self) -> Result<(), StoreError> {
        self.load_script()?;
        let (mut exists, mut members, mut scan) = (Exists::new(), Names::default(), Scan::new());
        for tag in self.all_tags()?.iter() {
            scan.restart();
            let mut existing = 0;
            loop {
                let link = self.link.begin(5).part(&[b"SSCAN"]).part(&[TAG, tag]);
                link.part(&[scan.cursor()]).part(&[b"COUNT"]).part(&[SCANNED_AT_ONCE]);
                self.link.ask_page("SSCAN", &mut scan, &mut members)?;
                if members.is_empty() {
                    break;
                }
                let gone = self.gone_of(&members, &mut exists)?;
                existing += members.len() - gone.len();
                self.forget_by_script(tag, &gone)?;
                if scan.is_over() {
                    break;
                }
            }
            if existing == 0 {
                self.begin_pipeline();
                self.link.begin(2).part(&[self.options.removal.command()]).part(&[TAG, tag]);
                self.link.request(&[b"SREM", TAGS, tag]);
                self.commit()?;
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn load_script(&mut self) -> Result<(), StoreError> {
        let sha = scripts::FORGET.sha.as_bytes();
        self.link.request(&[b"SCRIPT", b"EXISTS", sha]).send()?;
        if self.link.elements("SCRIPT")? == 1 && self.link.reply()? == Reply::Integer(1) {
            return Ok(());
        }
        match self.link.request(&[b"SCRIPT", b"LOAD", scripts::FORGET.text.as_bytes()]).ask()? {
            Reply::Bulk(_) => Ok(()),
            other => Err(unexpected("SCRIPT", &other)),
        }
    }

    /// The members whose records do not exist.
    fn gone_of(&mut self, members: &Names, exists: &mut Exists) -> Result<Names, StoreError> {
        let mut unknown = Names::default();
        for id in members.iter().filter(|id| !exists.contains_key(*id)) {
            unknown.push(id);
            self.link.begin(2).part(&[b"EXISTS"]).part(&[RECORD, id]);
        }
        let mut now = Exists::new();
        if !unknown.is_empty() {
            self.link.send()?;
        }
        for id in unknown.iter() {
            let Reply::Integer(there) = self.link.reply()? else {
                let message = "`EXISTS` did not return a number (expected 0 or 1)";
                return Err(StoreError::fatal(ErrorClass::Protocol, message));
            };
            let into = if exists.len() < REMEMBERED { &mut *exists } else { &mut now };
            into.insert(id.to_vec(), there > 0);
        }
        let mut gone = Names::default();
        let is_there = |id: &[u8]| exists.get(id).or_else(|| now.get(id)) == Some(&true);
        for id in members.iter().filter(|id| !is_there(id)) {
            gone.push(id);
        }
        Ok(gone)
    }

    fn forget_by_script(&mut self, tag: &[u8], ids: &Names) -> Result<(), StoreError> {
        let keeps_ids: &[u8] = if self.options.not_matching_tags { b"1" } else { b"0" };
        for (number, id) in ids.iter().enumerate() {
            let link = self.link.begin(8).part(&[b"EVAL"]);
            link.part(&[scripts::FORGET.text.as_bytes()]).part(&[&digits(3)]);
            link.part(&[RECORD, id]).part(&[TAG, tag]).part(&[IDS]).part(&[id]).part(&[keeps_ids]);
            if (number + 1).is_multiple_of(FORGOTTEN_AT_ONCE) || number + 1 == ids.len() {
                self.link.all()?;
            }
        }
        Ok(())
    }
}
