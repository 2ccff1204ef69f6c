//! Ramps: a store's replies while its load is raised in stages, its knee, and its recovery.
//!
//! - `ladder`: a record's stages, checked with the rule of [`stats::knee`].
//! - `figures`: the highest rates, the shares of the knee and the stages over all blocks.
//! - `helps`: up to which load a cache helps a database.
//! - `limited`: whether the generator was the limit.
//! - `notes`: notes on a ramp in addition to the rules.
//! - `place`: the effect of an operation's place in a pair.
//! - `against`: comparisons of the highest rates of two targets.
//! - `saturation`: samples reduced for drawing.

mod against;
mod figures;
mod helps;
mod ladder;
mod limited;
mod notes;
mod place;
mod saturation;

pub(crate) use against::{comparisons, highest, lower_bound_reason, paired};
pub(crate) use figures::judged;
pub(crate) use ladder::{Ladder, Ramp, StageResult};
pub(crate) use limited::near_null;
pub(crate) use notes::{against_words, note};
pub(crate) use place::Controls;
