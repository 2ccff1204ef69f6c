//! Sheets of the page; the tests of the page read their snapshots.

use model::Trial;

use super::{cache, happened, outputs, ramp, search};
use crate::recorded::Recorded;
use crate::{judge, sheet};

#[test]
fn sheets_are_those_that_the_page_is_tested_with() {
    let of_ramp = [("redis", ramp::REDIS), ("memcached", ramp::REDIS)];
    let all: [(&str, Recorded); 5] = [
        ("sessions", outputs::recorded()),
        ("ramps", ramp::of(&of_ramp, 3, |_: &mut Trial| {})),
        ("searched", search::searched(search::STORE, |_| {})),
        ("killed", happened::killed(|_| {})),
        ("caches", cache::caches(4, cache::rates)),
    ];
    let line = |(name, recorded): (&str, Recorded)| {
        let sections = sheet::sections(&judge(&recorded));
        let sections: Vec<String> =
            sections.iter().map(|one| serde_json::to_string(one).unwrap()).collect();
        format!("\"{name}\": [\n{}\n]", sections.join(",\n"))
    };
    let text = all.map(line).join(",\n");
    insta::assert_snapshot!(format!("{{\n{text}\n}}"));
}
