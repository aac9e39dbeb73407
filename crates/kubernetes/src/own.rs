//! What the pods of a path set for themselves, of what a variant of a network sets.

use plumbline_experiment::{Scene, Tuning};
use serde_json::{Value, json};

/// What a variant of a network sets differently.
fn asked(scene: &Scene) -> Tuning {
    scene.variant.as_ref().map_or(Tuning::NONE, |it| it.tuning)
}

/// What the pods of a path set for themselves.
pub(crate) fn own(scene: &Scene) -> Tuning {
    let asked = asked(scene);
    Tuning {
        tcp_congestion_control: asked.tcp_congestion_control,
        tcp_rmem: asked.tcp_rmem,
        tcp_wmem: asked.tcp_wmem,
        ..Tuning::NONE
    }
}

/// Sysctls of the pods' own network namespace, as the securityContext of a pod has them.
pub(crate) fn sysctls(own: &Tuning) -> Vec<Value> {
    let sysctl = |(name, values): (&str, [u32; 3])| {
        let value = values.map(|it| it.to_string()).join(" ");
        json!({ "name": name, "value": value })
    };
    own.buffers().into_iter().map(sysctl).collect()
}

/// The end of the pods' names.
pub(crate) fn word(own: &Tuning) -> String {
    let congestion = own.tcp_congestion_control;
    let congestion = congestion.map(|it| format!("-{}", it.as_str()));
    let receive = own.tcp_rmem.map(|it| format!("-r{it}"));
    let send = own.tcp_wmem.map(|it| format!("-s{it}"));
    let set = [congestion, receive, send];
    set.into_iter().flatten().collect()
}

/// What a variant takes that pods cannot set: never anything that could be had otherwise.
///
/// # Errors
///
/// A sentence about what is the node's to set.
pub(crate) fn lacks(variant: &Scene) -> Result<Option<String>, String> {
    let asked = asked(variant);
    if own(variant) == asked {
        return Ok(None);
    }
    Err(format!(
        "{asked}: in a cluster pods set nothing for themselves but tcp_congestion_control, tcp_rmem \
         and tcp_wmem; the rest is the node's: use --target lab"
    ))
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{CongestionControl, Variant};

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
        let of_pods = Tuning {
            tcp_congestion_control: Some(CongestionControl::Reno),
            tcp_rmem: Some(65_536),
            ..Tuning::default()
        };
        let scene = varied(of_pods);
        assert_eq!(lacks(&scene), Ok(None));
        assert_eq!(own(&scene), of_pods);
        assert_eq!(word(&of_pods), "-reno-r65536");
        let expected = json!({ "name": "net.ipv4.tcp_rmem", "value": "4096 65536 65536" });
        assert_eq!(sysctls(&of_pods), [expected]);
        assert!(sysctls(&Tuning::NONE).is_empty());
        let of_node = varied(Tuning {
            gro: Some(false),
            ..of_pods
        });
        let why = lacks(&of_node).unwrap_err();
        assert!(
            why.contains("GRO off") && why.contains("--target lab"),
            "{why}"
        );
    }
}
