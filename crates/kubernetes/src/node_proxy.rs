//! What a node shows through the API server's way to it, which leads to its kubelet and to
//! whatever listens at its other ports.

use kube::core::Request;

use crate::ClusterError;
use crate::session::ClusterConnection;

/// Reads what stands behind a path. `node` may have a scheme before it and a port behind it;
/// without, its kubelet answers. It is asked once: at a port where nothing listens nothing will
/// soon. `what` completes "the cluster could not …".
///
/// # Errors
///
/// The cluster does not let this account, or nothing answers there.
pub(crate) fn read(
    session: &ClusterConnection,
    (node, path): (&str, &str),
    what: &str,
) -> Result<String, ClusterError> {
    let request = Request::new("/api/v1/nodes").get_subresource(&format!("proxy/{path}"), node);
    let client = session.client_without_retry()?;
    session.call(what, async {
        let request = request.map_err(kube::Error::BuildRequest)?;
        client.request_text(request).await
    })
}
