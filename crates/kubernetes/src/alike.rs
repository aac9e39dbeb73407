//! Whether two clusters are alike in all but their networks (C-13).

use plumbline_record::Fingerprint;

use crate::fingerprint::POLICY;

/// Facts of a cluster that are not the network's.
const FACTS: [&str; 8] = [
    "kubernetes",
    POLICY,
    "client node kubelet",
    "client node runtime",
    "client node system",
    "server node kubelet",
    "server node runtime",
    "server node system",
];

/// What differs between the nodes of two clusters, in words. Devices, sysctls
/// and the daemons of a network belong to what is compared; names and identities
/// of machines differ where clusters do. The rest has to be the same.
pub(crate) fn differences(first: &Fingerprint, other: &Fingerprint) -> Vec<String> {
    let mut found = machines("", first, other);
    let server = |of: &Fingerprint| of.others.get("server").cloned();
    if let (Some(first), Some(other)) = (server(first), server(other)) {
        found.extend(machines("the server's ", &first, &other));
    }
    for fact in FACTS {
        let value = |of: &Fingerprint| of.versions.get(fact).cloned().unwrap_or_default();
        found.extend(differing("", fact, value(first), value(other)));
    }
    found
}

fn machines(whose: &str, first: &Fingerprint, other: &Fingerprint) -> Vec<String> {
    let pairs = facts(first).into_iter().zip(facts(other));
    pairs
        .filter_map(|((fact, ours), (_, theirs))| differing(whose, fact, ours, theirs))
        .collect()
}

fn differing(whose: &str, fact: &str, ours: String, theirs: String) -> Option<String> {
    (ours != theirs).then(|| format!("{whose}{fact} is {theirs:?}, not {ours:?}"))
}

fn facts(of: &Fingerprint) -> [(&'static str, String); 11] {
    let known = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        ("kernel", of.kernel.clone()),
        ("kernel command line", of.kernel_command_line.clone()),
        ("architecture", of.architecture.clone()),
        ("CPU", of.cpu_model.clone()),
        ("microcode", known(&of.microcode)),
        ("number of CPUs", of.cpus.to_string()),
        ("threads per core", format!("{:?}", of.threads_per_core)),
        ("hypervisor", known(&of.hypervisor)),
        ("CPU governor", known(&of.governor)),
        ("what is tuned", of.tuned.join(", ")),
        ("clock source", of.clock_source.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_may_differ_and_the_machines_may_not() {
        let mut first = Fingerprint {
            kernel: "6.1".to_owned(),
            cpus: 4,
            ..Fingerprint::default()
        };
        let mut other = first.clone();
        other.versions.insert("daemon cilium".into(), "1.15".into());
        other
            .versions
            .insert("client node name".into(), "b1".into());
        other
            .sysctls
            .insert("net.ipv4.ip_forward".into(), "1".into());
        assert!(differences(&first, &other).is_empty());

        other.cpus = 8;
        other.versions.insert("kubernetes".into(), "v1.34".into());
        first.others.insert("server".into(), first.clone());
        other.others.insert("server".into(), Fingerprint::default());
        let found = differences(&first, &other);
        let starts: Vec<&str> = found
            .iter()
            .map(|it| it.split(" is ").next().unwrap())
            .collect();
        assert_eq!(
            starts,
            [
                "number of CPUs",
                "the server's kernel",
                "the server's number of CPUs",
                "kubernetes"
            ]
        );
    }
}
