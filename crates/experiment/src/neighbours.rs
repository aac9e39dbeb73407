//! Neighbours: who works beside a path while it is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::MAX_PAIRS;
use crate::words::words;

/// Who works beside a path while it is measured, each by processes and, where these send, by
/// a pair of endpoints of their own.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub struct Neighbours {
    /// What they do.
    pub kind: NeighbourKind,
    /// What those that send share with the path.
    pub share: SharedPart,
    /// How many there are beyond the first; where no kind is named, beyond the path itself,
    /// and then they do what is measured there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub further: u32,
}

words! {
    /// What neighbours do.
    NeighbourKind {
        /// There are none, or they do as the path does.
        #[default]
        None = "none",
        /// They send a stream, as fast as it goes.
        Bulk = "bulk",
        /// They send small datagrams, as fast as it goes.
        Packets = "packets",
        /// They open a connection for each request, as fast as it goes.
        Connections = "connections",
        /// They add rules of a policy for others to the receiver's node and remove them,
        /// again and again.
        PolicyChurn = "policy-churn",
        /// They compute, as much as one CPU can, and send nothing.
        Cpu = "cpu",
    }
}

words! {
    /// What neighbours share with a path.
    SharedPart {
        /// The nodes; between them they have links of their own.
        #[default]
        Node = "node",
        /// The nodes, and the network's own way between them.
        Link = "link",
    }
}

impl NeighbourKind {
    /// Whether they send packets.
    pub fn sends(self) -> bool {
        matches!(self, Self::Bulk | Self::Packets | Self::Connections)
    }
}

impl Neighbours {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.number() == 0
    }

    /// Whether an experiment file may ask for so many.
    pub(crate) fn is_possible(&self) -> bool {
        // First what the sums have room for.
        self.further < MAX_PAIRS && self.pairs() <= MAX_PAIRS
    }

    /// How many there are.
    pub fn number(&self) -> u32 {
        match self.kind {
            NeighbourKind::None => self.further,
            _ => self.further + 1,
        }
    }

    /// How many pairs of endpoints work at once, the path's among them.
    pub fn pairs(&self) -> u32 {
        self.number() + 1
    }

    /// The same in this number of pairs.
    #[must_use]
    pub(crate) fn in_pairs(self, pairs: u32) -> Self {
        let number = pairs.saturating_sub(1);
        match (self.kind, number) {
            (_, 0) => Self::default(),
            (NeighbourKind::None, further) => Self { further, ..self },
            _ => Self {
                further: number - 1,
                ..self
            },
        }
    }

    /// Whether they do what is measured on the path.
    pub fn are_alike(&self) -> bool {
        self.kind == NeighbourKind::None && !self.is_none()
    }

    /// Whether they send.
    pub fn send(&self) -> bool {
        self.kind.sends() || self.are_alike()
    }

    /// Whether they send on the network's own way between the nodes.
    pub fn share_link(&self) -> bool {
        self.are_alike() || self.kind.sends() && self.share == SharedPart::Link
    }

    /// Without what says nothing of neighbours that send nothing.
    #[must_use]
    pub(crate) fn normalised(self) -> Self {
        match self.kind.sends() {
            true => self,
            false => Self {
                share: SharedPart::default(),
                ..self
            },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_that_send_share_a_link() {
        let normalised = |kind| {
            let named = Neighbours {
                kind,
                share: SharedPart::Link,
                ..Neighbours::default()
            };
            named.normalised()
        };
        for kind in NeighbourKind::ALL {
            let expected = match kind.sends() {
                true => SharedPart::Link,
                false => SharedPart::Node,
            };
            assert_eq!(normalised(*kind).share, expected, "{kind:?}");
            assert_eq!(normalised(*kind).kind, *kind);
        }
        assert_eq!(normalised(NeighbourKind::None), Neighbours::default());
    }
    #[test]
    fn pairs_count_the_path_too() {
        let bulk = Neighbours {
            kind: NeighbourKind::Bulk,
            ..Neighbours::default()
        };
        assert_eq!((bulk.number(), bulk.pairs()), (1, 2));
        for start in [bulk, Neighbours::default()] {
            assert!(start.in_pairs(1).is_none());
            for pairs in 2..5 {
                let some = start.in_pairs(pairs).normalised();
                assert_eq!((some.pairs(), some.kind), (pairs, start.kind));
                assert_eq!(some.are_alike(), start.is_none());
                assert_eq!(some.share_link(), some.are_alike());
            }
        }
    }
}
