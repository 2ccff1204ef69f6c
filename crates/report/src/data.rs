//! One-sentence description of the data set of a profile of sessions, of an application cache or of
//! rows.

use model::{AppCache, CacheAside, Magento, Plan, Sessions, Workload};
use stats::format_bytes;
use std::collections::BTreeMap;

use crate::show::commas;

/// A sentence for each profile, by the profile's name including its size.
pub(crate) fn by_profile(plan: &Plan) -> BTreeMap<String, String> {
    let data = plan.cells.iter().filter_map(|cell| match &cell.workload {
        Workload::Sessions(sessions) => Some((sessions.profile.clone(), of_sessions(sessions))),
        Workload::AppCache(cache) => Some((cache.profile.clone(), sentence(cache))),
        Workload::CacheAside(aside) => Some((aside.profile.clone(), of_rows(aside))),
        Workload::Kv(_) => None,
    });
    data.collect()
}

/// `2,000 sessions of 1,500 bytes`, with `that live for 60 s; in phase `with-gc`, one request in
/// 100 deletes expired ones` if handlers delete.
fn of_sessions(sessions: &Sessions) -> String {
    let bytes = commas(sessions.value_bytes as u64);
    let text = match sessions.filled {
        0 => format!("sessions of {bytes} bytes, created by the phases"),
        filled => format!("{} sessions of {bytes} bytes", commas(filled)),
    };
    let Some(gc) = &sessions.gc else { return text };
    format!(
        "{text} that live for {} s, of all ages; in phase `{}`, one request in {} deletes expired \
         ones",
        commas(sessions.ttl_s),
        gc.phases.join(", "),
        commas(gc.divisor)
    )
}

/// `10,000 rows of 512 bytes, read by Zipf's law with exponent 0.99 and cached for 1 s`.
fn of_rows(aside: &CacheAside) -> String {
    let CacheAside { rows, row_bytes, zipf, ttl_s, .. } = aside;
    let bytes = commas(*row_bytes as u64);
    if *rows == 1 {
        return format!("one row of {bytes} bytes, cached for {ttl_s} s");
    }
    let choice = match *zipf {
        0.0 => "all alike".to_string(),
        exponent => format!("by Zipf's law with exponent {exponent}"),
    };
    format!("{} rows of {bytes} bytes, read {choice} and cached for {ttl_s} s", commas(*rows))
}

/// `20,000 records of 1 to 1,024 bytes, each with 0 to 15 of 2,000 tags; …`.
fn sentence(cache: &AppCache) -> String {
    let AppCache { record_bytes: bytes, tags_of_record: tags, .. } = cache;
    let mut text = match &cache.files {
        Some(files) => format!(
            "{} records with {} tags from `{}`",
            commas(files.keys),
            commas(files.tags),
            files.directory
        ),
        None => format!(
            "{} records of {} bytes, each with {} of {} tags",
            commas(cache.keys),
            range(*bytes),
            range(*tags),
            commas(cache.tags)
        ),
    };
    if cache.as_original {
        text += "; lists of the original benchmark";
    }
    text += match cache.magento {
        Magento::None => "; without Magento's additions",
        Magento::One => "; names and lifetimes as in Magento, each write checked",
        Magento::Two => "; names and cleans as in Magento 2, each write checked",
    };
    if let Some(memory) = cache.memory {
        text += &format!("; memory_limit {}", format_bytes(memory.limit_bytes));
    }
    text
}

fn range((least, most): (u64, u64)) -> String {
    if least == most { commas(least) } else { format!("{} to {}", commas(least), commas(most)) }
}
