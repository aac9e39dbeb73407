//! Why packets are dropped, as far as a kernel tells.

use crate::btf;

/// The reasons that a kernel has, by their numbers; none before Linux 5.17.
#[derive(Debug, Default)]
pub(crate) struct DropReasons(Vec<(u32, String)>);

impl DropReasons {
    /// Those of this machine's kernel.
    pub(crate) fn of_this_kernel() -> Self {
        Self(btf::enumerators("skb_drop_reason").unwrap_or_default())
    }

    /// The program for packets that are dropped, with its tracepoint, which tells the reason
    /// where there are any.
    pub(crate) fn program(&self) -> (&'static str, &'static str) {
        let program = match self.0.is_empty() {
            true => "on_dropped_for_no_reason",
            false => "on_dropped",
        };
        (program, "kfree_skb")
    }

    /// The kernel's name for a reason.
    pub(crate) fn name(&self, reason: u32) -> String {
        let mut each = self.0.iter();
        match each.find(|(number, _)| *number == reason) {
            Some((_, name)) => name.clone(),
            None if self.0.is_empty() => "reason unknown".to_owned(),
            None => format!("reason {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_never_without_words() {
        let reasons = DropReasons(vec![(9, "WHY_SO".to_owned())]);
        assert_eq!(reasons.name(9), "WHY_SO");
        assert_eq!(reasons.name(8), "reason 8");
        assert_eq!(DropReasons::default().name(0), "reason unknown");
    }

    #[test]
    fn only_a_kernel_that_has_reasons_is_asked_for_them() {
        let reasons = DropReasons(vec![(9, "WHY_SO".to_owned())]);
        assert_eq!(reasons.program().0, "on_dropped");
        assert_eq!(
            DropReasons::default().program().0,
            "on_dropped_for_no_reason"
        );
    }
}
