//! Starts single servers the same way as a run.

use cachedyno_rig::{Guard, RigError, Server, ServerSpec, Templates, start_server};
use model::Product;

/// Starts the single server of a product.
pub(crate) fn start(
    product: Product,
    guard: &Guard,
    spec: &ServerSpec,
) -> Result<Server, RigError> {
    start_from(&mut Templates::default(), product, guard, spec)
}

/// The same, with a shared template data directory.
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
