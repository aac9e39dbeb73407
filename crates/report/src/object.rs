//! Objects whose keys stand in the order in which they are written.

use serde::{Serialize, Serializer};

/// An object of these keys, in this order; `json!` would sort them. What has the
/// attribute `flatten` gives its own keys, and none when it is `None`.
macro_rules! object {
    ($($(#[$attribute:meta])* $key:ident: $value:expr),+ $(,)?) => {{
        #[derive(serde::Serialize)]
        struct Object<$($key),+> {
            $($(#[$attribute])* $key: $key),+
        }
        Object { $($key: $value),+ }
    }};
}
pub(crate) use object;

/// An object whose keys come from a registry, in its order.
pub(crate) struct InOrder<T>(pub(crate) Vec<(&'static str, T)>);

impl<T: Serialize> Serialize for InOrder<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
