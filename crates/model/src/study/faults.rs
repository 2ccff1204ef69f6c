//! Faults in a study that parses, each with its position in the file.

use toml::Spanned;
use toml::de::DeTable;

use super::advice::{Advice, AdviceRow, ShopSize};
use super::choices::{NAME_EXPECTED, is_target_name};
use super::claims::{Claim, Parts};
use super::phases::unknown_operation;
use super::planning::{Keys, SHARED, WorkloadTables};
use super::targets::Stores;
use super::wire::{STUDY_FORMAT, Study};
use super::{Fault, RAMP, StudyError, quoted_list, set};

impl Study {
    pub(super) fn first_fault<K: Keys>(
        &self,
        document: &DeTable<'_>,
    ) -> Result<Option<Fault>, StudyError> {
        let mut own = self.own::<WorkloadTables<K>>()?;
        Ok(self
            .fault_in_head()
            .or_else(|| self.fault_in_names(K::STORES))
            .or_else(|| self.fault_in_values(document))
            .or_else(|| own.fault(document))
            .or_else(|| self.fault_in_targets(own.profiles.iter().filter_map(K::targets)))
            .or_else(|| self.fault_in_tiers())
            .or_else(|| self.fault_in_tables())
            .or_else(|| self.fault_in_figures())
            .or_else(|| self.claims.iter().find_map(|c| self.fault_in_claim::<K>(c)))
            .or_else(|| self.advice.as_ref().and_then(|a| self.fault_in_advice(a))))
    }

    fn fault_in_head(&self) -> Option<Fault> {
        let Self { format, name, .. } = self;
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let problem = if *format != STUDY_FORMAT {
            format!("format `{format}` (this version reads {STUDY_FORMAT})")
        } else if name.is_empty() || !name.chars().all(good) {
            format!("invalid name `{name}` (expected lower-case letters, digits and `-`)")
        } else if self.targets.is_empty() || self.profiles.is_empty() {
            "a study needs at least one target and one profile".into()
        } else {
            return None;
        };
        Some((0, problem))
    }

    fn fault_in_names(&self, stores: Stores) -> Option<Fault> {
        let names = |names: Vec<&Spanned<String>>, what: &str| {
            names.iter().enumerate().find_map(|(i, name)| {
                let twice = names[..i].iter().any(|n| n.get_ref() == name.get_ref());
                twice.then(|| (name.span().start, format!("duplicate {what} `{}`", name.get_ref())))
            })
        };
        let unfit = self.targets.iter().find_map(|t| Some((t.name.span().start, stores.fault(t)?)));
        let odd = self.targets.iter().find(|t| !is_target_name(t.name.get_ref())).map(|t| {
            let problem = format!("target name `{}` (expected {NAME_EXPECTED})", t.name.get_ref());
            (t.name.span().start, problem)
        });
        odd.or(unfit)
            .or_else(|| names(self.targets.iter().map(|t| &t.name).collect(), "target"))
            .or_else(|| names(self.profiles.iter().map(|p| &p.name).collect(), "profile"))
            .or_else(|| self.unknown_target(self.control.get_ref(), self.control.span().start))
            .or_else(|| {
                let of_scales = self.scales.values().filter_map(|scale| scale.profile.as_ref());
                [&self.profile].into_iter().chain(of_scales).find_map(|chosen| {
                    let mut names = chosen.get_ref().iter();
                    names.find_map(|name| self.unknown_profile(name, chosen.span().start))
                })
            })
    }

    fn unknown_profile(&self, name: &str, offset: usize) -> Option<Fault> {
        if self.profile_names().any(|p| p == name) {
            return None;
        }
        let known = quoted_list(self.profile_names());
        Some((offset, format!("unknown profile `{name}` (known: {known})")))
    }

    /// Finds the first out-of-range value among those that every study has.
    fn fault_in_values(&self, document: &DeTable<'_>) -> Option<Fault> {
        self.scales.iter().find_map(|(scale, values)| {
            let values = (&mut self.clone(), &mut values.clone());
            set::fault(SHARED, values, document, [&[], &["scales", scale.name()]])
        })
    }

    fn unknown_target(&self, name: &str, offset: usize) -> Option<Fault> {
        if self.target_names().any(|t| t == name) {
            return None;
        }
        let known = quoted_list(self.target_names());
        Some((offset, format!("unknown target `{name}` (known: {known})")))
    }

    /// A target that a profile names and the study does not have.
    fn fault_in_targets<'a>(
        &self,
        mut named: impl Iterator<Item = &'a Spanned<Vec<String>>>,
    ) -> Option<Fault> {
        named.find_map(|names| {
            let mut unknown = names.get_ref().iter();
            unknown.find_map(|name| self.unknown_target(name, names.span().start))
        })
    }

    fn fault_in_tables(&self) -> Option<Fault> {
        self.tables.iter().enumerate().find_map(|(i, table)| {
            let id = &table.get_ref().id;
            let twice = self.tables[..i].iter().any(|other| other.get_ref().id == *id);
            let twice = twice.then(|| format!("duplicate table `{id}`"));
            let problem = twice.or_else(|| table.get_ref().contradiction())?;
            Some((table.span().start, problem))
        })
    }

    /// A table or a column that a claim names and the study does not have.
    fn unknown_column(&self, tables: &[&str], columns: &[&str], offset: usize) -> Option<Fault> {
        let all = || self.tables.iter().map(Spanned::get_ref);
        tables.iter().find_map(|id| {
            let Some(table) = all().find(|table| table.id == *id) else {
                let known = quoted_list(all().map(|table| table.id.as_str()));
                return Some((offset, format!("unknown table `{id}` (known: {known})")));
            };
            let unknown = columns.iter().find(|name| !table.has_column(name))?;
            let known = quoted_list(table.columns.iter().map(String::as_str));
            Some((offset, format!("table `{id}` has no column `{unknown}` (it has {known})")))
        })
    }

    fn fault_in_claim<K: Keys>(&self, claim: &Spanned<Claim>) -> Option<Fault> {
        let offset = claim.span().start;
        let Claim { expect, profiles, .. } = claim.get_ref();
        if expect.is_of_ramps() && !K::IS_RAISED {
            let problem = "a claim about ramps in a study without ramps (expected a relation of \
                           rates with a number of clients)";
            return Some((offset, problem.into()));
        }
        let Parts { targets, operations, numbers, clients, profile, tables, columns, range } =
            expect.parts();
        let together = if K::IS_RAISED { RAMP } else { "mixed" };
        let is_known = |name: &str| K::OPERATIONS.contains(&name) || name == together;
        // A claim can name a target with a label that only the command line gives.
        let unlisted = targets.iter().find(|t| self.target(t).is_none());
        let unknown_target = unlisted.and_then(|t| self.unknown_target(t, offset));
        let unknown_profile = || {
            let mut named = profiles.iter().map(String::as_str).chain(profile);
            named.find_map(|p| self.unknown_profile(p, offset))
        };
        let unknown_operation = || {
            let unknown = operations.iter().find(|name| !is_known(name))?;
            Some((offset, unknown_operation(unknown, K::OPERATIONS)))
        };
        let odd_number = || {
            let odd = numbers.iter().find(|n| !(n.is_finite() && **n > 0.0))?;
            Some((offset, format!("`{odd}` in a claim (expected a number above 0)")))
        };
        let no_range = || {
            let (min, max) = range.filter(|(min, max)| !(0.0 <= *min && min <= max))?;
            let expected = "expected 0 <= min <= max";
            Some((offset, format!("invalid range of a claim, {min} to {max} ({expected})")))
        };
        let no_clients =
            || clients.contains(&0).then(|| (offset, "a claim with 0 clients".to_string()));
        unknown_target
            .or_else(unknown_profile)
            .or_else(unknown_operation)
            .or_else(odd_number)
            .or_else(no_range)
            .or_else(no_clients)
            .or_else(|| self.unknown_column(&tables, &columns, offset))
            .or_else(|| Some((offset, expect.contradiction()?)))
    }

    fn fault_in_advice(&self, advice: &Spanned<Advice>) -> Option<Fault> {
        let offset = advice.span().start;
        let table = advice.get_ref();
        let unknown = table.sizes.values().filter_map(ShopSize::profile);
        let unknown = unknown.map(String::from).find_map(|p| self.unknown_profile(&p, offset));
        let of_row = |row: &AdviceRow| {
            if !table.sizes.contains_key(&row.size) {
                let known = quoted_list(table.sizes.keys().map(String::as_str));
                return Some((offset, format!("unknown size `{}` (known: {known})", row.size)));
            }
            let own = [&row.factory].into_iter().chain(&row.source).chain(&row.second);
            own.chain(&row.targets).find_map(|name| self.unknown_target(name, offset))
        };
        unknown.or_else(|| table.rows.iter().find_map(of_row))
    }
}
