//! Advice: a clear best, a tie, insufficient data, and agreement with the source.

use model::study::ShopSize;

use crate::fixture::{Rates, advice, run, usual};
use crate::view::{AdviceView, View};
use crate::{judge, text};

fn advised(targets: &[&str], blocks: u32, rates: Rates) -> View {
    let mut recorded = run(targets, blocks, rates);
    recorded.header.plan.advice = Some(advice());
    judge(&recorded)
}

fn row<'a>(view: &'a View, shop: &str, size: &str) -> &'a AdviceView {
    view.advised.advice.iter().find(|a| a.shop == shop && a.size == size).unwrap()
}

const ALL: [&str; 3] = ["files", "redis", "mysql"];

#[test]
fn rows_with_the_same_load_answer_and_reason_are_one_line() {
    let mut recorded = run(&ALL, 5, usual);
    let mut advice = advice();
    // A shop like Shopware, and sizes that mean the same load.
    let twins = advice.rows[..2].iter().cloned().map(|row| {
        let shop = "OpenMage".into();
        model::study::AdviceRow { shop, ..row }
    });
    let twins: Vec<_> = twins.collect();
    advice.rows.extend(twins);
    advice.sizes.values_mut().for_each(|size| *size = ShopSize::Clients(8));
    recorded.header.plan.advice = Some(advice);
    let table = text::render(&judge(&recorded), 140, false);
    let line = table.lines().find(|line| line.starts_with("Shopware, OpenMage ")).unwrap();
    assert!(line.contains("small, medium to large (8)"), "{table}");
}

#[test]
fn a_clear_best_is_recommended_with_its_ratio() {
    let view = advised(&ALL, 5, usual);
    let shopware = row(&view, "Shopware", "medium to large");
    assert_eq!((shopware.recommended.as_deref(), shopware.clients), (Some("redis"), 8));
    assert_eq!(shopware.agreement.name(), "same");
    assert!(shopware.why.starts_with("redis is 8.40× ["), "{}", shopware.why);
    assert!(shopware.why.contains("as fast as mysql, the default, and 2.10× ["));
    let magento = row(&view, "Magento 2", "medium to large");
    assert!(magento.why.starts_with("redis is 2.10× ["), "{}", magento.why);
    assert!(magento.why.ends_with("as fast as files, the default"));
}

#[test]
fn without_a_clear_difference_the_default_is_kept() {
    let view = advised(&ALL, 5, usual);
    let magento = row(&view, "Magento 2", "small");
    assert_eq!(magento.recommended.as_deref(), Some("redis or files"));
    assert_eq!(magento.agreement.name(), "undecided");
    assert!(magento.why.starts_with("no clear difference here (redis against files: 1.01× ["));
    assert!(magento.why.contains("files is the default, so there is no reason to change it"));
    let shopware = row(&view, "Shopware", "small");
    assert_eq!(shopware.agreement.name(), "undecided");
    assert!(!shopware.why.contains("the default"), "{}", shopware.why);
}

#[test]
fn the_default_can_be_the_best_and_differ_from_the_source() {
    let files_first: Rates = |target, operation, clients| {
        usual(target, operation, clients) * if target == "files" { 10.0 } else { 1.0 }
    };
    let view = advised(&ALL, 5, files_first);
    let magento = row(&view, "Magento 2", "medium to large");
    assert_eq!(magento.recommended.as_deref(), Some("files"));
    assert_eq!(magento.agreement.name(), "different");
    assert!(magento.why.starts_with("files is the default and 4.76× ["));
    assert_eq!(row(&view, "Magento 2", "small").agreement.name(), "same");
}

#[test]
fn an_unmeasured_default_is_named() {
    let view = advised(&["files", "redis"], 5, usual);
    let shopware = row(&view, "Shopware", "medium to large");
    assert!(shopware.why.ends_with("mysql, the default, has no result"));
}

#[test]
fn insufficient_data_gives_no_recommendation() {
    let none = |view: &View, part: &str| {
        for row in &view.advised.advice {
            assert_eq!((&row.recommended, row.agreement.name()), (&None, "undecided"));
            assert!(row.why.contains(part), "{}", row.why);
        }
    };
    none(&advised(&["files"], 5, usual), "only files was measured with");
    let mut recorded = run(&ALL, 5, usual);
    recorded.header.plan.advice = Some(advice());
    recorded.trials.clear();
    none(&judge(&recorded), "no profile measured all of change, read, write");
    let mut wrong = advice();
    wrong.sizes.clear();
    recorded.header.plan.advice = Some(wrong);
    none(&judge(&recorded), "the study gives no number of clients for");
}

#[test]
fn fewer_than_three_blocks_give_no_clear_recommendation() {
    for (blocks, doubt) in [(1, "1 block; 3 are needed"), (2, "2 blocks; 3 are needed")] {
        let view = advised(&ALL, blocks, usual);
        let large = row(&view, "Magento 2", "medium to large");
        assert_eq!(large.recommended.as_deref(), Some("redis or files or mysql"));
        assert_eq!(large.agreement.name(), "undecided");
        let start = format!("all differences are undecided ({doubt}): redis against files: 2.");
        assert!(
            large.why.starts_with(&start) && large.why.matches("undecided").count() == 1,
            "{}",
            large.why
        );
    }
}

#[test]
fn a_tie_without_the_source_among_the_measured_is_undecided() {
    let mut recorded = run(&["files", "redis"], 5, usual);
    let mut advice = advice();
    for row in &mut advice.rows {
        row.source = vec!["mysql".into()];
    }
    recorded.header.plan.advice = Some(advice.clone());
    let view = judge(&recorded);
    let level = row(&view, "Magento 2", "small");
    assert_eq!(level.recommended.as_deref(), Some("redis or files"));
    assert_eq!(level.agreement.name(), "undecided", "the source's store was not measured");
    // Measured, it is clearly behind both: then the source is contradicted.
    let mut recorded = run(&ALL, 5, usual);
    recorded.header.plan.advice = Some(advice);
    let view = judge(&recorded);
    let level = row(&view, "Magento 2", "small");
    assert_eq!(level.recommended.as_deref(), Some("redis or files"));
    assert_eq!(level.agreement.name(), "different");
}

#[test]
fn the_basis_names_weights_sizes_profile_and_file() {
    let basis = advised(&ALL, 3, usual).advised.advice_basis.unwrap();
    for part in [
        "profile steady",
        // As the phases are measured.
        "write 0.1, read 0.6, change 0.3",
        "small = 1 concurrent request,",
        "medium to large = 8 concurrent requests",
        "study file",
    ] {
        assert!(basis.contains(part), "{basis}");
    }
    assert!(judge(&run(&ALL, 3, usual)).advised.advice_basis.is_none());
}

#[test]
fn a_shop_is_advised_from_its_own_targets() {
    let mut recorded = run(&ALL, 5, usual);
    let mut advice = advice();
    for row in &mut advice.rows {
        row.targets = match row.shop.as_str() {
            "Shopware" => vec!["mysql".into(), "files".into()],
            _ => vec!["valkey".into(), "keydb".into()],
        };
    }
    recorded.header.plan.advice = Some(advice);
    let view = judge(&recorded);
    let shopware = row(&view, "Shopware", "medium to large");
    assert_eq!(shopware.recommended.as_deref(), Some("files"), "redis is not one of them");
    assert!(shopware.why.starts_with("files is 4.00× ["), "{}", shopware.why);
    let magento = row(&view, "Magento 2", "small");
    assert_eq!(magento.recommended, None);
    let why = "none of valkey, keydb was measured: `--target valkey --target keydb` measures them";
    assert_eq!(magento.why, why);
    let ranked: Vec<&str> =
        view.advised.rankings[1].targets.iter().map(|t| t.target.as_str()).collect();
    assert_eq!(ranked, ["redis", "files", "mysql"], "the ranking is of all targets");
}

#[test]
fn the_second_choice_of_the_source_is_compared_with_the_default() {
    let second = |targets: &[&str]| {
        let mut recorded = run(targets, 5, usual);
        let mut advice = advice();
        advice.rows[1].second = Some("files".into());
        recorded.header.plan.advice = Some(advice);
        let view = judge(&recorded);
        let own = row(&view, "Shopware", "medium to large").second.clone().unwrap();
        let words = text::render(&view, 100, false);
        let words: Vec<&str> = words.split_whitespace().collect();
        assert!(words.join(" ").contains(&own), "{own}");
        own
    };
    let start = "without redis, the source moves from mysql to files; ";
    let all = second(&ALL);
    assert!(all.starts_with(&format!("{start}confirmed here: it is 4.00× [")), "{all}");
    assert_eq!(second(&["redis", "files"]), format!("{start}which were not both measured"));
}
