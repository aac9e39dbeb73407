//! How a cluster's name server answers.

use plumbline_protocol::ResolvedName;

use crate::finding::{Certainty, Finding};

const CHECK: &str = "name server";
/// The longest that an answer may take, nanoseconds. One from the same cluster takes less than
/// one; one that has to be asked for elsewhere, a few tens of milliseconds.
const SLOW_NS: u64 = 100_000_000;
/// Where its pods are looked at, and by what: which command would help, they have to show.
const SHELL: &str = "a shell with kubectl";
const PODS: &str = "kubectl get pods --all-namespaces --selector k8s-app=kube-dns --output wide";
const SERVICE: &str = "kubectl get endpointslices --namespace kube-system";
const POLICIES: &str = "kubectl get networkpolicies --all-namespaces";

/// Judges how it answered.
pub(super) fn judge(seen: &ResolvedName) -> Finding {
    let (asked, name, server) = (seen.asked, &seen.name, seen.server);
    let mut answers = seen.answers_ns.clone();
    answers.sort_unstable();
    let said = seen.error.as_ref();
    let said = said.map_or(String::new(), |it| format!(" ({it})"));
    let remedy = "look whether its pods run and are ready, whether the service leads to them, and \
                  whether a NetworkPolicy forbids port 53";
    let all = [PODS, SERVICE, POLICIES];
    let Some(slowest) = answers.last() else {
        let evidence = format!("{server} answers none of {asked} questions for {name}{said}");
        return Finding::bad(CHECK, evidence, remedy).shown_by(SHELL, all);
    };
    let millis = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
    let median = millis(answers[answers.len() / 2]);
    let times = format!(
        "{server} answers for {name} in {median}, {} at most",
        millis(*slowest)
    );
    let missing = asked as usize - answers.len();
    if missing > 0 {
        let evidence = format!(
            "{times}, and not at all {missing} of {asked} times{said}: most programs wait 5 s then"
        );
        let found = Finding::bad(CHECK, evidence, remedy).shown_by(SHELL, all);
        return found.with(Certainty::Sampled);
    }
    if *slowest > SLOW_NS {
        let remedy = "more of its pods, or a cache on each node (NodeLocal DNSCache)";
        let found = Finding::note(CHECK, times, remedy).shown_by(SHELL, [PODS]);
        return found.with(Certainty::Sampled);
    }
    Finding::good(CHECK, times).with(Certainty::Sampled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    fn judged(asked: u32, millis: &[u64]) -> Finding {
        judge(&ResolvedName {
            server: [10, 96, 0, 10].into(),
            name: "kubernetes.default.svc.cluster.local".to_owned(),
            asked,
            answers_ns: millis.iter().map(|it| it * 1_000_000).collect(),
            error: (millis.len() < asked as usize).then(|| "timed out".to_owned()),
        })
    }

    #[test]
    fn silence_and_gaps_are_bad_and_what_is_slow_is_told() {
        let silent = judged(3, &[]);
        assert_eq!(silent.level, Severity::Bad);
        assert!(silent.evidence.contains("none of 3"), "{silent}");
        let gap = judged(3, &[1, 1]);
        assert_eq!(gap.level, Severity::Bad);
        assert!(gap.evidence.contains("1 of 3 times (timed out)"), "{gap}");
        let slow = judged(3, &[1, 150, 1]);
        assert_eq!(slow.level, Severity::Note);
        assert!(
            slow.evidence.contains("in 1.0 ms, 150.0 ms at most"),
            "{slow}"
        );
        for found in [silent, gap, slow] {
            let look = found.looks.first().expect("one at least");
            assert!(look.command.contains("k8s-app=kube-dns"), "{found}");
        }
        let good = judged(3, &[1, 2, 30]);
        assert_eq!(good.level, Severity::Good);
        assert!(good.looks.is_empty(), "{good}");
    }
}
