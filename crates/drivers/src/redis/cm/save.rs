//! Saves a record: with a pipeline as of 2019, with a script as of today, or in bulk.

use workloads::app_cache::Record;
use workloads::store::StoreError;

use super::super::counted::digits;
use super::super::errors::unexpected;
use super::super::resp::Reply;
use super::{CmRedis, IDS, RECORD, TAG, TAGS, compress, scripts};
use crate::clock::now_s;
use crate::tags::unique;

/// Longest lifetime: 30 days.
const LIFETIME_S_MAX: u64 = 2_592_000;

impl CmRedis {
    /// Saves a record; duplicate tags are sent once.
    pub(super) fn save_record(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, lifetime_s, .. } = record;
        let tags = &unique(record.tags);
        self.pack(value, tags)?;
        let lifetime_s = stored_lifetime(lifetime_s);
        if self.options.scripts {
            self.save_by_script(id, tags, lifetime_s)
        } else {
            self.save_by_pipeline(id, tags, lifetime_s)
        }
    }

    /// Saves a new record in bulk: does not read the previous tags, and adds members to sets later.
    pub(super) fn fill_record(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, lifetime_s, .. } = record;
        let tags = &unique(record.tags);
        self.pack(value, tags)?;
        self.begin_record(id, stored_lifetime(lifetime_s));
        self.gathered.add(id.as_bytes(), tags.iter().copied());
        if self.gathered.is_full() {
            self.begin_gathered()?;
        }
        self.link.stream()
    }

    /// Ends a fill. Afterwards the server knows the save script, as after normal saves.
    pub(super) fn end_fill(&mut self) -> Result<(), StoreError> {
        self.begin_gathered()?;
        if self.options.scripts {
            self.link.request(&[b"SCRIPT", b"LOAD", scripts::SAVE.text.as_bytes()]);
        }
        self.link.settle()
    }

    /// Adds the filled records to their tag sets.
    fn begin_gathered(&mut self) -> Result<(), StoreError> {
        let gathered = std::mem::take(&mut self.gathered);
        let members = gathered.members();
        let tags = gathered.sets().len();
        if tags > 0 {
            let link = self.link.begin(2 + tags).part(&[b"SADD"]).part(&[TAGS]);
            for (tag, _) in gathered.sets() {
                link.part(&[tag]);
            }
        }
        for (tag, numbers) in gathered.sets() {
            let link = self.link.begin(2 + numbers.len()).part(&[b"SADD"]).part(&[TAG, tag]);
            for number in numbers {
                link.part(&[members.get(*number)]);
            }
            link.stream()?;
        }
        if self.options.not_matching_tags && !members.is_empty() {
            let link = self.link.begin(2 + members.len()).part(&[b"SADD"]).part(&[IDS]);
            for id in members.iter() {
                link.part(&[id]);
            }
        }
        Ok(())
    }

    fn save_by_pipeline(
        &mut self,
        id: &str,
        tags: &[&str],
        lifetime_s: Option<u64>,
    ) -> Result<(), StoreError> {
        self.read_tags(id)?;
        self.begin_pipeline();
        self.begin_record(id, lifetime_s);
        let link = &mut self.link;
        if !tags.is_empty() {
            link.begin(2 + tags.len()).part(&[b"SADD"]).part(&[TAGS]);
            for tag in tags {
                link.part(&[tag.as_bytes()]);
            }
        }
        for tag in tags {
            link.begin(3).part(&[b"SADD"]).part(&[TAG, tag.as_bytes()]).part(&[id.as_bytes()]);
        }
        for tag in dropped_tags(&self.before, tags) {
            link.begin(3).part(&[b"SREM"]).part(&[TAG, tag]).part(&[id.as_bytes()]);
        }
        if self.options.not_matching_tags {
            link.request(&[b"SADD", IDS, id.as_bytes()]);
        }
        self.commit().map(drop)
    }

    /// Starts the requests that write a record, without its tag sets.
    fn begin_record(&mut self, id: &str, lifetime_s: Option<u64>) {
        let infinite: &[u8] = if lifetime_s.is_none() { b"1" } else { b"0" };
        let link = self.link.begin(10).part(&[b"HMSET"]).part(&[RECORD, id.as_bytes()]);
        link.part(&[b"d"]).part(&[&self.data]).part(&[b"t"]).part(&[&self.tags]);
        link.part(&[b"m"]).part(&[&digits(now_s())]).part(&[b"i"]).part(&[infinite]);
        if let Some(lifetime_s) = lifetime_s {
            let link = link.begin(3).part(&[b"EXPIRE"]).part(&[RECORD, id.as_bytes()]);
            link.part(&[&digits(lifetime_s)]);
        }
    }

    fn save_by_script(
        &mut self,
        id: &str,
        tags: &[&str],
        lifetime_s: Option<u64>,
    ) -> Result<(), StoreError> {
        let flag = |is: bool| -> &[u8] { if is { b"1" } else { b"0" } };
        let (data, joined, now) = (&self.data, &self.tags, digits(now_s()));
        // PHP's null as text.
        let lifetime = lifetime_s.map(digits).unwrap_or_default();
        let keeps_ids = flag(self.options.not_matching_tags);
        let reply = self.link.run(&scripts::SAVE, 1 + tags.len() + 15, |link| {
            link.part(&[&digits(tags.len() as u64)]);
            for tag in tags {
                link.part(&[tag.as_bytes()]);
            }
            for part in [RECORD, b"d", b"t", b"m", b"i", TAGS, TAG, IDS, id.as_bytes()] {
                link.part(&[part]);
            }
            let infinite = flag(lifetime_s.is_none());
            for part in [data, joined, now.as_slice(), infinite, &lifetime, keeps_ids] {
                link.part(&[part]);
            }
        })?;
        self.before.clear();
        match reply {
            Reply::Bulk(before) => compress::unpack(before, &mut self.before)?,
            other => return Err(unexpected("EVALSHA", &other)),
        }
        for tag in dropped_tags(&self.before, tags) {
            self.link.begin(3).part(&[b"SREM"]).part(&[TAG, tag]).part(&[id.as_bytes()]);
            self.link.ask_number("SREM")?;
        }
        Ok(())
    }

    fn pack(&mut self, value: &[u8], tags: &[&str]) -> Result<(), StoreError> {
        let compression = |bytes: usize| {
            self.options.compression.filter(|_| bytes >= self.options.compress_from_bytes)
        };
        self.data.clear();
        self.tags.clear();
        compress::pack(value, compression(value.len()), &mut self.data)?;
        let joined = tags.join(",");
        compress::pack(joined.as_bytes(), compression(joined.len()), &mut self.tags)
    }
}

/// The lifetime that the module gives a record; 0 means none.
fn stored_lifetime(lifetime_s: Option<u64>) -> Option<u64> {
    lifetime_s.filter(|s| *s > 0).map(|s| s.min(LIFETIME_S_MAX))
}

/// Tags that a record no longer has. PHP treats a single tag `0` as none.
fn dropped_tags<'a>(before: &'a [u8], tags: &[&str]) -> impl Iterator<Item = &'a [u8]> {
    let had_any = !matches!(before, b"" | b"0");
    let before = before.split(|byte| *byte == b',').filter(move |_| had_any);
    before.filter(|tag| !tags.iter().any(|kept| kept.as_bytes() == *tag))
}
