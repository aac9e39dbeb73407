//! What the pods of a path set for themselves, of what a variant of a network sets.

use plumbline_experiment::{CongestionControl, Scene, Tuning};
use serde_json::{Value, json};

/// What the pods of a path set for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PodTuning {
    /// How their sockets have TCP find the rate of the path.
    pub(crate) congestion: Option<CongestionControl>,
    /// Bytes that receive buffers may grow to.
    receive: Option<u32>,
    /// Bytes that send buffers may grow to.
    send: Option<u32>,
}

impl PodTuning {
    /// Nothing.
    pub(crate) const NONE: Self = Self {
        congestion: None,
        receive: None,
        send: None,
    };

    pub(crate) fn of(scene: &Scene) -> Self {
        let tuning = scene.variant.as_ref().map(|it| it.tuning);
        let tuning = tuning.unwrap_or_default();
        Self {
            congestion: tuning.tcp_congestion_control,
            receive: tuning.tcp_rmem,
            send: tuning.tcp_wmem,
        }
    }

    fn as_tuning(self) -> Tuning {
        Tuning {
            tcp_congestion_control: self.congestion,
            tcp_rmem: self.receive,
            tcp_wmem: self.send,
            ..Tuning::default()
        }
    }

    /// Whether it takes a network namespace that is the pods' own.
    pub(crate) fn has_sysctls(self) -> bool {
        self.receive.is_some() || self.send.is_some()
    }

    /// As the securityContext of a pod has them.
    pub(crate) fn sysctls(self) -> Vec<Value> {
        let buffers = self.as_tuning().buffers().into_iter();
        let sysctl = |(name, values): (&str, [u32; 3])| {
            let value = values.map(|it| it.to_string()).join(" ");
            json!({ "name": name, "value": value })
        };
        buffers.map(sysctl).collect()
    }

    /// The end of the pods' names.
    pub(crate) fn word(self) -> String {
        let congestion = self.congestion.map(|it| format!("-{}", it.as_str()));
        let receive = self.receive.map(|it| format!("-r{it}"));
        let send = self.send.map(|it| format!("-s{it}"));
        let set = [congestion, receive, send];
        set.into_iter().flatten().collect()
    }
}

/// What a variant takes that pods cannot set: never anything that could be had otherwise.
///
/// # Errors
///
/// A sentence about what is the node's to set.
pub(crate) fn lacks(variant: &Scene) -> Result<Option<String>, String> {
    let asked = variant.variant.as_ref().map(|it| it.tuning);
    let asked = asked.unwrap_or_default();
    if PodTuning::of(variant).as_tuning() == asked {
        return Ok(None);
    }
    Err(format!(
        "{asked}: in a cluster pods set nothing for themselves but tcp_congestion_control, tcp_rmem \
         and tcp_wmem; the rest is the node's: use --target lab"
    ))
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::Variant;

    use super::*;

    fn varied(tuning: Tuning) -> Scene {
        Scene {
            variant: Some(Variant {
                name: "v".to_owned(),
                tuning,
            }),
            ..Scene::of("pod")
        }
    }

    #[test]
    fn buffers_are_sysctls_of_pods_and_the_rest_is_refused() {
        let own = Tuning {
            tcp_congestion_control: Some(CongestionControl::Reno),
            tcp_rmem: Some(65_536),
            ..Tuning::default()
        };
        let scene = varied(own);
        assert_eq!(lacks(&scene), Ok(None));
        let of_pods = PodTuning::of(&scene);
        assert_eq!(of_pods.word(), "-reno-r65536");
        let expected = json!({ "name": "net.ipv4.tcp_rmem", "value": "4096 65536 65536" });
        assert_eq!(of_pods.sysctls(), [expected]);
        assert!(of_pods.has_sysctls() && !PodTuning::NONE.has_sysctls());
        let of_node = varied(Tuning {
            gro: Some(false),
            ..own
        });
        let why = lacks(&of_node).unwrap_err();
        assert!(
            why.contains("GRO off") && why.contains("--target lab"),
            "{why}"
        );
    }
}
