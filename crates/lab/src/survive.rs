//! Commands of the user's that act on a path while traffic goes on.

use plumbline_experiment::Treatment;

use crate::dressing::FOLDERS;
use crate::entrance::Entrance;
use crate::error::LabError;

/// Whether traffic that is to survive a command can go on the path of a treatment that
/// wants that.
///
/// # Errors
///
/// [`LabError::Unsupported`] beside what is laid on a path: rules of services and policies
/// are for one port of TCP, and neighbours end by themselves. Nothing in the lab writes a
/// policy again that a command has taken away, or attaches pods as a cluster does.
pub(crate) fn check(treatment: &Treatment) -> Result<(), LabError> {
    match treatment.task.survive() {
        Some(survive) if treatment.scene.is_dressed() => Err(LabError::Unsupported {
            what: format!(
                "the workload `{}` beside services, policies or neighbours",
                survive.name
            ),
            needs: "a path on which nothing is laid".to_owned(),
        }),
        Some(survive) if survive.policy => Err(LabError::Unsupported {
            what: format!("`policy` of `{}`", survive.name),
            needs: "a cluster whose network enforces policies: --target kubernetes".to_owned(),
        }),
        Some(survive) if survive.pods.is_some() => Err(LabError::Unsupported {
            what: format!("`pods` of `{}`", survive.name),
            needs: "a cluster: --target kubernetes".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// What a command is told: the file of each namespace, the processes that carry packets
/// for the network, in the order of the nodes, and where the programs of administrators are.
pub(crate) fn variables(
    entrances: Vec<Entrance>,
    forwarders: impl Iterator<Item = u32>,
) -> Vec<(String, String)> {
    let named = |it: Entrance| (format!("PLUMBLINE_{}", it.name.to_uppercase()), it.file);
    let pids: Vec<String> = forwarders.map(|it| it.to_string()).collect();
    let files = entrances.into_iter().map(named);
    files
        .chain([("PLUMBLINE_PIDS".to_owned(), pids.join(" "))])
        .chain([("PATH".to_owned(), search_path())])
        .collect()
}

/// The user's `PATH`, and behind it the folders that an ordinary user's often lacks.
fn search_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    let own = (!own.is_empty()).then_some(own.as_str());
    let all: Vec<&str> = own.into_iter().chain(FOLDERS).collect();
    all.join(":")
}
