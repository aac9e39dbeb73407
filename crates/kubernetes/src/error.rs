//! Why a cluster did not do what was asked.

use std::time::Duration;

use kube::client::UpgradeConnectionError;
use plumbline_experiment::SpecError;
use plumbline_harness::TargetError;

/// Why a cluster did not do what was asked. Each text says what failed, on
/// what, the probable cause and the remedy.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ClusterError {
    #[error("{0}")]
    Options(String),
    /// The experiment is wrong.
    #[error(transparent)]
    Experiment(#[from] SpecError),
    #[error(
        "no Kubernetes cluster is configured: {0}; set KUBECONFIG or ~/.kube/config, and name the \
         cluster with --context if it is not the current one"
    )]
    Configuration(String),
    #[error(
        "the API server {url} does not answer: {why}; is the cluster up, and does `kubectl get \
         nodes` work here?"
    )]
    Away { url: String, why: String },
    #[error(
        "the cluster does not let this account {what}: {message}; an administrator can make a \
         namespace and give the rights that a run in it needs (`plumbline manifest role`), then \
         --namespace names it; a mesh and pairs also take `plumbline manifest nodes`"
    )]
    Forbidden { what: String, message: String },
    #[error(
        "the cluster could not {what}: {message}; the namespaces of runs have a ResourceQuota, which \
         the administrator of the cluster can raise or lift for them (those that runs make carry the \
         label app.kubernetes.io/managed-by=plumbline)"
    )]
    Quota { what: String, message: String },
    #[error(
        "the cluster could not {what}: {message}; its range of addresses for services \
         (--service-cluster-ip-range of its API server) holds no more: use fewer services, or a \
         cluster with a larger range"
    )]
    Range { what: String, message: String },
    #[error(
        "the cluster could not {what}: {message}; does what answers this admission webhook run? \
         `kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations` names it"
    )]
    Webhook { what: String, message: String },
    #[error(
        "the cluster could not {what}: {message} (HTTP {code}); is its control plane overloaded, or \
         being replaced?"
    )]
    Troubled {
        what: String,
        message: String,
        code: u16,
    },
    #[error("the cluster could not {what}: {message}")]
    Refused { what: String, message: String },
    #[error("{0}")]
    Nodes(String),
    #[error(
        "node {node} cannot get the image {image}: {message}; make it with `plumbline image -o \
         plumbline.tar` and load it into the nodes (`plumbline image --help` says how), or name \
         the one in your registry with --image"
    )]
    Image {
        node: String,
        image: String,
        message: String,
    },
    #[error("pod {pod} does not start: {message}")]
    Pod { pod: String, message: String },
    #[error("{what} took more than {} s{hint}", limit.as_secs())]
    TooLong {
        what: String,
        limit: Duration,
        hint: String,
    },
    #[error("interrupted")]
    Interrupted,
    /// An agent could not be asked.
    #[error(transparent)]
    Agent(#[from] TargetError),
    #[error("the threads that speak to the cluster could not be started: {0}")]
    Runtime(#[from] std::io::Error),
}

impl ClusterError {
    /// An error of the client library, with what was tried.
    pub(crate) fn of(what: &str, url: &str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::answered(what.to_owned(), &status),
            kube::Error::UpgradeConnection(error) => Self::not_upgraded(what.to_owned(), &error),
            other => Self::Away {
                url: url.to_owned(),
                why: innermost(&other),
            },
        }
    }

    /// A stream that was not opened. Of an answer its code is all that is known.
    fn not_upgraded(what: String, error: &UpgradeConnectionError) -> Self {
        let message = error.to_string();
        match error {
            UpgradeConnectionError::ProtocolSwitch(status) if may_pass(status.as_u16()) => {
                Self::Troubled {
                    what,
                    message,
                    code: status.as_u16(),
                }
            }
            _ => Self::Refused { what, message },
        }
    }

    /// A refusal by the API server. It answers 403 to an account without rights, to one
    /// over its quota, and to what a policy forbids: a role helps only the first.
    fn answered(what: String, status: &kube::core::Status) -> Self {
        let message = status.message.clone();
        let code = status.code;
        let lacks_rights = code == 401 || message.contains("is forbidden: User ");
        if lacks_rights {
            Self::Forbidden { what, message }
        } else if code == 403 && message.contains("quota") {
            Self::Quota { what, message }
        } else if message.contains("range is full") {
            Self::Range { what, message }
        } else if message.contains("failed calling webhook") {
            Self::Webhook { what, message }
        } else if may_pass(code) {
            Self::Troubled {
                what,
                message,
                code,
            }
        } else {
            Self::Refused { what, message }
        }
    }

    /// Whether the API server, or a webhook that it asks, could not be reached or not do its
    /// work, which may pass.
    pub(crate) fn is_away(&self) -> bool {
        matches!(
            self,
            Self::Away { .. } | Self::Webhook { .. } | Self::Troubled { .. }
        )
    }
}

/// Whether a code says that the API server, or what is before it, could not do its work.
fn may_pass(code: u16) -> bool {
    matches!(code, 429 | 500 | 502..=504)
}

/// The last of a chain of errors: the ones before it say where, not why.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

impl From<ClusterError> for TargetError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Agent(error) => error,
            other => Self::Failed(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, message: &str) -> ClusterError {
        let status = kube::core::Status {
            code,
            message: message.to_owned(),
            ..kube::core::Status::default()
        };
        let error = kube::Error::Api(Box::new(status));
        ClusterError::of("create pod a/b", "https://c", error)
    }

    fn told(code: u16, message: &str) -> String {
        answer(code, message).to_string()
    }

    /// The client library tries some of them again too, but not for as long.
    #[test]
    fn what_may_pass_is_told_from_what_does_not() {
        let may_pass = |code| answer(code, "etcd is slow").is_away();
        for code in [429, 500, 502, 503, 504] {
            assert!(may_pass(code), "{code}");
        }
        for code in [400, 401, 403, 404, 409, 422, 501] {
            assert!(!may_pass(code), "{code}");
        }
    }

    #[test]
    fn only_missing_rights_are_helped_by_a_role() {
        let by_role = |code, message| told(code, message).contains("manifest role");
        let rights = r#"pods is forbidden: User "ann" cannot create resource "pods""#;
        assert!(by_role(403, rights));
        assert!(by_role(401, "Unauthorized"));
        let policy = r#"pods "b" is forbidden: violates PodSecurity "restricted:latest""#;
        assert!(!by_role(403, policy));
        assert!(told(403, policy).contains("violates PodSecurity"));
    }

    #[test]
    fn a_range_that_is_full_stays_so() {
        let message = r#"Internal error occurred: failed to allocate a serviceIP: range is full"#;
        let full = answer(500, message);
        assert!(!full.is_away(), "{full:?}");
        assert!(full.to_string().contains("fewer services"), "{full}");
    }

    #[test]
    fn a_webhook_that_does_not_answer_may_yet() {
        let message = "Internal error occurred: failed calling webhook \"few.example\": failed to \
                       call webhook: Post \"https://few.example/\": dial tcp: connection refused";
        let silent = answer(500, message);
        assert!(silent.is_away(), "{silent:?}");
        let told = silent.to_string();
        assert!(told.contains("webhook \"few.example\""), "{told}");
        assert!(told.contains("answers this admission webhook"), "{told}");
    }

    #[test]
    fn a_quota_is_told_with_who_can_raise_it() {
        for message in [
            r#"pods "b" is forbidden: exceeded quota: none, requested: pods=1"#,
            r#"pods "b" is forbidden: failed quota: cpu: must specify limits.cpu"#,
        ] {
            let text = told(403, message);
            assert!(text.contains("ResourceQuota, which"), "{text}");
        }
    }
}
