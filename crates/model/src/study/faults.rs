//! What parses as a study and makes no sense, each with its place in the file.

use toml::Spanned;

use super::choices::is_target_name;
use super::ramp::{self, RAMP};
use super::statements::{Advice, Claim, Expectation};
use super::wire::{
    CACHE_OPERATIONS, Defaults, PAGE_OPERATIONS, PLAIN_OPERATIONS, Profile, RAMP_OPERATIONS,
    STUDY_FORMAT, Study, StudyPhase, StudyTarget, StudyWorkload,
};
use super::{quoted_list, sizes};
use crate::plan::{Layout, Product};

impl Study {
    /// Byte offset and text of the first thing that parses but makes no sense.
    pub(super) fn first_fault(&self) -> Option<(usize, String)> {
        if self.format != STUDY_FORMAT {
            let problem = format!("format `{}` (this version reads {STUDY_FORMAT})", self.format);
            return Some((0, problem));
        }
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(good) {
            let expected = "lower-case letters, digits and `-`";
            return Some((0, format!("name `{}` is no name (expected {expected})", self.name)));
        }
        self.fault_in_names()
            .or_else(|| self.fault_in_data())
            .or_else(|| self.fault_in_ramps())
            .or_else(|| self.profiles.iter().find_map(|p| self.fault_in_profile(p)))
            .or_else(|| self.claims.iter().find_map(|c| self.fault_in_claim(c)))
            .or_else(|| self.advice.as_ref().and_then(|a| self.fault_in_advice(a)))
    }

    fn fault_in_names(&self) -> Option<(usize, String)> {
        if self.targets.is_empty() || self.profiles.is_empty() {
            return Some((0, "a study needs at least one target and one profile".into()));
        }
        let names = |names: Vec<&Spanned<String>>, what: &str| {
            names.iter().enumerate().find_map(|(i, name)| {
                let twice = names[..i].iter().any(|n| n.get_ref() == name.get_ref());
                twice.then(|| (name.span().start, format!("{what} `{}` twice", name.get_ref())))
            })
        };
        let (is_ramp, what) = match self.workload {
            StudyWorkload::Ramp => (true, "values by key"),
            StudyWorkload::Sessions | StudyWorkload::AppCache => (false, "sessions"),
        };
        let fits = |t: &StudyTarget| match (t.product, is_ramp) {
            (None, _) => true,
            (Some(product), true) => product.keeps_keys(),
            (Some(product), false) => product.keeps_sessions(),
        };
        let unfit = self.targets.iter().find(|t| !fits(t)).map(|t| {
            let (name, product) = (t.name.get_ref(), t.product().name());
            (t.name.span().start, format!("target `{name}`: {product} keeps no {what}"))
        });
        let alien = self.targets.iter().find_map(|t| {
            let program = t.program.filter(|_| t.product() != Product::Redis)?.name();
            let (name, product) = (t.name.get_ref(), t.product().name());
            let problem =
                format!("target `{name}`: {program} is no {product} server (expected redis)");
            Some((t.name.span().start, problem))
        });
        let odd = self.targets.iter().find(|t| !is_target_name(t.name.get_ref())).map(|t| {
            let expected = "1 to 40 letters, digits, `-`, `_` or `.`";
            let problem = format!("target name `{}` (expected {expected})", t.name.get_ref());
            (t.name.span().start, problem)
        });
        unfit
            .or(odd)
            .or(alien)
            .or_else(|| names(self.targets.iter().map(|t| &t.name).collect(), "target"))
            .or_else(|| names(self.profiles.iter().map(|p| &p.name).collect(), "profile"))
            .or_else(|| self.unknown_target(self.control.get_ref(), self.control.span().start))
            .or_else(|| {
                let chosen = self.defaults.profile.get_ref();
                let name = chosen.iter().find(|c| !self.profile_names().any(|p| p == *c))?;
                let known = quoted_list(self.profile_names());
                let problem = format!("unknown profile `{name}` (known: {known})");
                Some((self.defaults.profile.span().start, problem))
            })
    }

    /// Values of an application cache that contradict each other.
    fn fault_in_data(&self) -> Option<(usize, String)> {
        if self.workload != StudyWorkload::AppCache {
            return None;
        }
        let problem = self.defaults.fault_in_data()?;
        Some((self.defaults.profile.span().start, problem))
    }

    /// Values of a ramp that make no load.
    fn fault_in_ramps(&self) -> Option<(usize, String)> {
        if self.workload != StudyWorkload::Ramp {
            return None;
        }
        self.fault_in_scales()
    }

    fn unknown_target(&self, name: &str, offset: usize) -> Option<(usize, String)> {
        if self.target_names().any(|t| t == name) {
            return None;
        }
        let known = quoted_list(self.target_names());
        Some((offset, format!("unknown target `{name}` (known: {known})")))
    }

    fn fault_in_claim(&self, claim: &Spanned<Claim>) -> Option<(usize, String)> {
        let offset = claim.span().start;
        let known: &[&str] = match self.workload {
            StudyWorkload::Sessions => &PLAIN_OPERATIONS,
            StudyWorkload::AppCache => &CACHE_OPERATIONS,
            StudyWorkload::Ramp => &RAMP_OPERATIONS,
        };
        let unknown_operation = |operation: &str| {
            let whole = if self.workload == StudyWorkload::Ramp { RAMP } else { "mixed" };
            let fault = !known.contains(&operation) && operation != whole;
            fault.then(|| (offset, unknown_operation(operation, known)))
        };
        match &claim.get_ref().expect {
            Expectation::Ratio { a, b, operation, min, max, .. } => self
                .unknown_target(a, offset)
                .or_else(|| self.unknown_target(b, offset))
                .or_else(|| unknown_operation(operation))
                .or_else(|| {
                    let fault = *min < 0.0 || max.is_some_and(|max| max < *min);
                    fault.then(|| (offset, format!("ratio from {min} to {max:?} is no range")))
                }),
            Expectation::Lowest { target, operations, .. }
            | Expectation::Highest { target, operations, .. } => self
                .unknown_target(target, offset)
                .or_else(|| operations.iter().find_map(|o| unknown_operation(o))),
            Expectation::Narrowest { operation, than, .. } => {
                [operation].into_iter().chain(than).find_map(|o| unknown_operation(o))
            }
            of_ramps @ Expectation::Slower { operation, than, .. } => [operation, than]
                .into_iter()
                .find_map(|o| unknown_operation(o))
                .or_else(|| self.fault_in_claim_of_ramps(of_ramps, offset)),
            of_ramps => self.fault_in_claim_of_ramps(of_ramps, offset),
        }
    }

    fn fault_in_claim_of_ramps(
        &self,
        expect: &Expectation,
        offset: usize,
    ) -> Option<(usize, String)> {
        let (targets, numbers): (Vec<&String>, Vec<f64>) = match expect {
            Expectation::Capacity { a, b, min, max, .. } => {
                (vec![a, b], [Some(*min), *max].into_iter().flatten().collect())
            }
            Expectation::Diverges { a, b, low, high, min } => (vec![a, b], vec![*low, *high, *min]),
            Expectation::Cpu { a, b, shares, min, max } => {
                (vec![a, b], shares.iter().chain([min, max]).copied().collect())
            }
            Expectation::Slower { targets, shares, min, max, .. } => {
                let numbers = shares.iter().chain([min]).chain(max).copied().collect();
                (targets.iter().collect(), numbers)
            }
            Expectation::Steady { targets, cpu, within } => {
                (targets.iter().collect(), vec![*cpu, *within])
            }
            Expectation::Pick { target, over, share } => (vec![target, over], vec![*share]),
            _ => return None,
        };
        if self.workload != StudyWorkload::Ramp {
            let kinds = quoted_list(["ratio", "highest", "lowest", "narrowest"]);
            let problem = format!("a claim about ramps in a study without (expected {kinds})");
            return Some((offset, problem));
        }
        let wrong = |n: &&f64| !(n.is_finite() && **n > 0.0);
        targets.iter().find_map(|t| self.unknown_target(t, offset)).or_else(|| {
            let number = numbers.iter().find(wrong)?;
            Some((offset, format!("`{number}` in a claim (expected a number above 0)")))
        })
    }

    fn fault_in_advice(&self, advice: &Spanned<Advice>) -> Option<(usize, String)> {
        let offset = advice.span().start;
        let table = advice.get_ref();
        table.rows.iter().find_map(|row| {
            if !table.sizes.contains_key(&row.size) {
                let known = quoted_list(table.sizes.keys().map(String::as_str));
                return Some((offset, format!("unknown size `{}` (known: {known})", row.size)));
            }
            self.unknown_target(&row.factory, offset)
                .or_else(|| row.source.iter().find_map(|s| self.unknown_target(s, offset)))
        })
    }

    /// Lists of sizes that say nothing of growth, or that are missing for a scale.
    fn fault_in_sizes(&self, profile: &Profile) -> Option<(usize, String)> {
        let missing = self.scales.keys().find(|scale| !profile.sizes.contains_key(*scale));
        if let Some(scale) = missing.filter(|_| !profile.sizes.is_empty()) {
            let (name, scale) = (profile.name.get_ref(), scale.name());
            let problem = format!("profile `{name}` has no sizes for scale `{scale}`");
            return Some((profile.name.span().start, problem));
        }
        profile.sizes.values().find_map(|list| {
            let problem = sizes::fault(list.get_ref(), self.defaults.max_tags)?;
            Some((list.span().start, problem))
        })
    }

    fn fault_in_profile(&self, profile: &Profile) -> Option<(usize, String)> {
        let known: &[&str] = match (self.workload, profile.layout) {
            (StudyWorkload::Ramp, _) => return ramp::fault_in_profile(profile),
            (StudyWorkload::AppCache, _) => &CACHE_OPERATIONS,
            (StudyWorkload::Sessions, Layout::Plain) => &PLAIN_OPERATIONS,
            (StudyWorkload::Sessions, Layout::Page) => &PAGE_OPERATIONS,
        };
        let of_phase = |phase: &StudyPhase| {
            let offset = phase.mix.span().start;
            let mix = phase.mix.get_ref();
            if let Some(name) = mix.keys().find(|o| !known.contains(&o.as_str())) {
                return Some((offset, unknown_operation(name, known)));
            }
            if profile.as_original {
                let problem = "the original's list decides (expected an empty mix: `{}`)";
                return (!mix.is_empty()).then(|| (offset, problem.into()));
            }
            let weights_fault = mix.is_empty() || mix.values().any(|w| !w.is_finite() || *w <= 0.0);
            weights_fault.then(|| (offset, "weights of a mix must be above 0".into()))
        };
        profile.phases.iter().find_map(of_phase).or_else(|| self.fault_in_sizes(profile))
    }
}

fn unknown_operation(operation: &str, known: &[&str]) -> String {
    format!("unknown operation `{operation}` (known: {})", quoted_list(known.iter().copied()))
}

impl Defaults {
    /// What contradicts itself in the data set of an application cache.
    pub(super) fn fault_in_data(&self) -> Option<String> {
        let Self { tags, min_tags, max_tags, min_rec_size, max_rec_size, .. } = self;
        if min_tags > max_tags || max_tags > tags {
            return Some(format!(
                "min_tags `{min_tags}`, max_tags `{max_tags}` and tags `{tags}` do not fit \
                 (expected min_tags <= max_tags <= tags)"
            ));
        }
        if *min_rec_size == 0 || min_rec_size > max_rec_size {
            return Some(format!(
                "min_rec_size `{min_rec_size}` and max_rec_size `{max_rec_size}` do not fit \
                 (expected 1 <= min_rec_size <= max_rec_size)"
            ));
        }
        let chances = [("write_chance", self.write_chance), ("clean_chance", self.clean_chance)];
        let zero = chances.into_iter().find(|(_, chance)| *chance == 0);
        zero.map(|(name, _)| format!("{name} `0` is no chance (expected 1 or more)"))
    }
}
