//! The servers of `bench` and `find-max`, and their settings.

use drivers::wire::Dialect;
use model::plan::PlannedTarget;
use model::study::is_name_or_label;
use model::tier::Tier;
use model::{Kv, Product, Program, TargetChoice};
use std::collections::BTreeMap;
use workloads::kv::Sizes;

use crate::exit::CliError;
use crate::limits;
use crate::server_names::{listed, private_servers, titles};

/// Memory of a private server in addition to its data, for slab pages of every size class.
const MEMORY_MIB_MIN: f64 = 128.0;
/// Maximum overhead of a key, excluding name and value, in bytes.
const ITEM_BYTES: f64 = 80.0;
/// Ratio of the memory limit to the data, since slots are larger than their items.
const MEMORY_FACTOR: f64 = 2.0;

/// The protocol of a target. Errors: it is not a key-value server.
pub(super) fn dialect(choice: &TargetChoice) -> Result<Dialect, CliError> {
    let server = server(choice);
    server.and_then(|(p, _)| Dialect::of(p, choice.endpoint.as_ref())).ok_or_else(|| {
        CliError::usage(format!(
            "target `{}` is not a key-value server (expected {}, or NAME=URL with \
             redis://host:port/db, rediss://, redis+cluster://, redis+unix:///socket or \
             memcached://host:port)",
            choice.name,
            private_servers()
        ))
    })
}

fn server(choice: &TargetChoice) -> Option<(Product, Option<Program>)> {
    choice.server().filter(|(product, _)| product.keeps_keys())
}

/// Plans all targets. Private servers get the user's `sets`, and connection and memory limits that
/// fit the clients and the keys.
pub(super) fn planned(
    choices: &[TargetChoice],
    sets: &[String],
    (clients, kv): (u32, &Kv),
) -> Result<Vec<PlannedTarget>, CliError> {
    let (tiers, sets): (Vec<&String>, Vec<&String>) =
        sets.iter().partition(|pair| pair.starts_with(TIER));
    let given = settings(choices, &sets)?;
    let tiers = parse_tiers(choices, &tiers)?;
    let mut targets: Vec<PlannedTarget> = Vec::new();
    for choice in choices {
        if targets.iter().any(|t| t.name == choice.name) {
            return Err(CliError::usage(format!(
                "target `{}` is given twice (use a different name for each: NAME=URL)",
                choice.name
            )));
        }
        dialect(choice)?;
        let Some((product, program)) = server(choice) else { continue };
        let mut settings = BTreeMap::new();
        if choice.endpoint.is_none() {
            settings = given.get(&product).cloned().unwrap_or_default();
            rig::check_settings(product, program, &settings)
                .map_err(|e| CliError::usage(format!("--set: {e}")))?;
            fit_limits(product, &mut settings, clients, kv);
        }
        let mut target = PlannedTarget {
            backend: None,
            cache: None,
            name: choice.name.clone(),
            product,
            program,
            address: choice.endpoint.as_ref().map(ToString::to_string),
            settings,
            directory: choice.directory.clone(),
            disk_limit: None,
            tier: Tier::default(),
            published: None,
            control_of: None,
            named: true,
        };
        let mut own = tiers.iter().filter(|(of, _)| is_name_or_label(of, &choice.name));
        if let Some((_, tier)) = own.next() {
            target.limit(tier).map_err(|problem| CliError::usage(format!("--set: {problem}")))?;
        }
        targets.push(target);
    }
    Ok(targets)
}

/// Sets a private server's connection limit to fit all clients, and its memory limit to fit all
/// keys, unless the user has set them. Evicted keys would count as lost.
fn fit_limits(product: Product, settings: &mut BTreeMap<String, String>, clients: u32, kv: &Kv) {
    let mut set_default = |name: &str, value: u64| {
        settings.entry(name.into()).or_insert_with(|| value.to_string());
    };
    let connections = u64::from(clients) + limits::SPARE_CONNECTIONS;
    if let Some(limit) = product.connections().filter(|limit| connections > limit.usual) {
        set_default(limit.setting, connections);
    }
    let Some(memory) = product.memory_setting() else { return };
    let bytes = |text: &str| text.parse::<Sizes>().map_or(0.0, |sizes| sizes.mean());
    let name = kv.key_bytes.as_deref().map_or(kv.key_prefix.len() as f64 + 12.0, bytes);
    let data = kv.keys as f64 * (bytes(&kv.value_bytes) + name + ITEM_BYTES);
    let memory_mib = MEMORY_MIB_MIN + MEMORY_FACTOR * data / f64::from(1 << 20);
    set_default(memory, memory_mib.ceil() as u64);
}

/// Start of the pairs of `--set` that limit a target.
const TIER: &str = "tier.";

/// Parses `tier.TARGET=LIMITS`, by name or label. Errors: no target has that name, or a limit is
/// wrong.
fn parse_tiers(
    choices: &[TargetChoice],
    pairs: &[&String],
) -> Result<BTreeMap<String, Tier>, CliError> {
    let parse = |pair: &&String| {
        let (of, text) =
            pair.strip_prefix(TIER).unwrap_or(pair).split_once('=').unwrap_or((pair, ""));
        if !choices.iter().any(|choice| is_name_or_label(of, &choice.name)) {
            let chosen: Vec<String> =
                choices.iter().map(|choice| format!("`{}`", choice.name)).collect();
            let chosen = chosen.join(", ");
            return Err(format!(
                "`{of}` is not a chosen target or the label of one (chosen: {chosen})"
            ));
        }
        Ok((of.to_string(), Tier::parse(text)?))
    };
    let parse = |pair| parse(pair).map_err(|e| CliError::usage(format!("--set `{pair}`: {e}")));
    pairs.iter().map(parse).collect()
}

/// Parses `--set` pairs by product: `redis.NAME=VALUE`, or `NAME=VALUE` if all private servers are
/// of one product.
fn settings(
    choices: &[TargetChoice],
    sets: &[&String],
) -> Result<BTreeMap<Product, BTreeMap<String, String>>, CliError> {
    let private = choices.iter().filter(|c| c.endpoint.is_none()).filter_map(server);
    let mut private: Vec<Product> = private.map(|(product, _)| product).collect();
    private.sort();
    private.dedup();
    let mut settings: BTreeMap<Product, BTreeMap<String, String>> = BTreeMap::new();
    for pair in sets {
        let Some((key, value)) = pair.split_once('=') else {
            let message = format!("--set `{pair}` is not of the form KEY=VALUE");
            return Err(CliError::usage(message));
        };
        let prefix = key.split_once('.').map(|(prefix, _)| prefix);
        if prefix.is_some_and(|prefix| Program::of_target(prefix).is_some()) {
            let servers = titles(Program::ALL.map(|program| program.server));
            return Err(CliError::usage(format!(
                "--set `{pair}` has an unknown prefix: settings of Redis also apply to {servers} \
                 (expected redis.NAME=VALUE)"
            )));
        }
        let named = key.split_once('.').and_then(|(product, name)| {
            let product = Product::ALL.into_iter().find(|p| p.name() == product)?;
            Some((product, name))
        });
        let (product, name) = match (named, private.as_slice()) {
            (Some((product, name)), private) if private.contains(&product) => (product, name),
            (None, [only]) => (*only, key),
            (None, [_, ..]) => {
                let whose = private.iter().map(|product| format!("{}.{key}=VALUE", product.name()));
                return Err(CliError::usage(format!(
                    "--set `{pair}` is ambiguous with several products (expected {})",
                    listed(whose, "or")
                )));
            }
            _ => {
                let chosen: Vec<String> =
                    choices.iter().map(|choice| format!("`{}`", choice.name)).collect();
                let named = named.map(|(product, _)| product).filter(|p| p.keeps_keys());
                let all = Product::ALL.into_iter().filter(|product| product.keeps_keys());
                let all = all.filter(|product| named.is_none_or(|named| named == *product));
                let missing = listed(all.map(|product| format!("`{}`", product.name())), "or");
                return Err(CliError::usage(format!(
                    "--set `{pair}` has no effect: it applies to no private server (chosen: {}; \
                     add {missing} as a target or drop the setting: existing servers are measured \
                     as they are)",
                    chosen.join(", ")
                )));
            }
        };
        settings.entry(product).or_default().insert(name.into(), value.into());
    }
    Ok(settings)
}
