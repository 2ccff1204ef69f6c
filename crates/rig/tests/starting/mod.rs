//! Servers that serve by themselves, started as a run starts them.

use cachedyno_rig::{Guard, RigError, Server, ServerSpec, Templates, start_server};
use model::Product;

/// Starts the server of a product that serves by itself.
pub(crate) fn start(
    product: Product,
    guard: &Guard,
    spec: &ServerSpec,
) -> Result<Server, RigError> {
    start_from(&mut Templates::default(), product, guard, spec)
}

/// The same with a data directory that is made once.
pub(crate) fn start_from(
    templates: &mut Templates,
    product: Product,
    guard: &Guard,
    spec: &ServerSpec,
) -> Result<Server, RigError> {
    let (_, mut servers) = start_server(product, guard, templates, spec)?.unwrap();
    assert_eq!(servers.len(), 1);
    Ok(servers.remove(0).1)
}
