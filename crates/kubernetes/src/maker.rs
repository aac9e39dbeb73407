//! Making clusters by the user's commands, and taking them down.

use std::fs::{self, File};
use std::io::{BufWriter, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_harness::TargetError;
use tempfile::TempDir;

use crate::error::ClusterError;
use crate::handed;
use crate::image::{self, ImageError};
use crate::provisioner::{self, Told};

/// The directory of a run that holds the output of the commands.
pub(crate) const LOGS: &str = "provision";

/// Longest time for bringing a cluster up, unless another is given.
const UP: Duration = Duration::from_secs(1800);

const DOWN: Duration = Duration::from_secs(900);

pub(crate) struct Made {
    pub(crate) network: String,
    pub(crate) kubeconfig: PathBuf,
    down: String,
    /// Whether the command said that only this run uses it.
    pub(crate) for_run: bool,
}

#[cfg(test)]
impl Made {
    /// One that stands nowhere.
    pub(crate) fn of(network: &str, for_run: bool) -> Self {
        Self {
            network: network.to_owned(),
            kubeconfig: PathBuf::new(),
            down: String::new(),
            for_run,
        }
    }
}

/// Makes clusters, and takes them down.
pub(crate) struct Maker {
    up: String,
    down: Option<String>,
    limit: Duration,
    /// Where the output of the commands is kept.
    pub(crate) logs: PathBuf,
    interrupted: &'static AtomicBool,
    private: TempDir,
    image: Option<PathBuf>,
    /// Clusters that were begun, for the names of logs.
    count: usize,
    /// What could not be taken down, and may still stand.
    pub(crate) left: Vec<TargetError>,
}

impl Maker {
    pub(crate) fn new(
        up: String,
        down: Option<String>,
        limit: Option<Duration>,
        logs: PathBuf,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, ClusterError> {
        Ok(Self {
            up,
            down,
            limit: limit.unwrap_or(UP),
            logs,
            interrupted,
            private: provisioner::private()?,
            image: None,
            count: 0,
            left: Vec::new(),
        })
    }

    /// Writes the image that the command finds at `PLUMBLINE_IMAGE`.
    pub(crate) fn hand_image(
        &mut self,
        program: &mut impl Read,
        reference: &str,
    ) -> Result<(), ImageError> {
        let path = self.private.path().join("plumbline.tar");
        let mut archive = BufWriter::new(File::create(&path)?);
        image::write(program, reference, &mut archive)?;
        self.image = Some(path);
        Ok(())
    }

    /// Moves the output of the commands into a run directory, and writes it there from
    /// now on.
    pub(crate) fn keep_logs(&mut self, run: &Path) -> std::io::Result<()> {
        let place = run.join(LOGS);
        if self.logs.exists() {
            fs::rename(&self.logs, &place)?;
        }
        self.logs = place;
        Ok(())
    }

    /// The log of the next cluster, within the run directory's own.
    pub(crate) fn next_log(&mut self, network: &str) -> String {
        self.count += 1;
        // A resumed run must not overwrite the logs of an earlier part.
        while self.logs.join(self.log(network, "up")).exists() {
            self.count += 1;
        }
        self.log(network, "up")
    }

    fn log(&self, network: &str, what: &str) -> String {
        format!("{:03}-{network}-{what}.log", self.count)
    }

    /// Runs the command that brings a cluster up. What fails is taken down.
    ///
    /// # Errors
    ///
    /// A sentence with the end of what the command said.
    pub(crate) fn make(&mut self, network: &str, log: &str) -> Result<Made, String> {
        let logs = fs::create_dir_all(&self.logs);
        logs.map_err(|error| format!("{} cannot be made: {error}", self.logs.display()))?;
        let told = self.private.path().join(format!("{log}.kubeconfig"));
        let said = provisioner::run(
            &self.up,
            &Told {
                network,
                kubeconfig: &told,
                image: self.image.as_deref(),
                log: &self.logs.join(log),
                limit: self.limit,
            },
            Some(self.interrupted),
        );
        let handed = said.map(|said| handed::read(&said, &told));
        let (kubeconfig, own_down, made_for_run) = match handed {
            Ok(it) => (it.kubeconfig, it.down, it.made_for_run),
            // A command that ended badly tidies up what only it knows.
            Err(why) if self.down.is_none() => return Err(why),
            Err(why) => (Err(why), None, false),
        };
        let Some(down) = self.down.clone().or(own_down) else {
            let why = format!(
                "{}nothing says how to take the cluster {network} down again, so it was left \
                 standing: give --unprovision 'COMMAND', or print a line UNPROVISION=COMMAND",
                kubeconfig.map_or_else(|why| why + "; and ", |_| String::new())
            );
            self.left.push(TargetError::Failed(why.clone()));
            return Err(why);
        };
        match kubeconfig {
            Ok(kubeconfig) => Ok(Made {
                network: network.to_owned(),
                kubeconfig,
                down,
                for_run: made_for_run,
            }),
            Err(why) => {
                // Half a cluster may stand, or a whole one.
                self.run_down(network, &told, &down);
                Err(why)
            }
        }
    }

    /// Takes a cluster down; whether that went well. What did not is kept in
    /// `left`.
    pub(crate) fn unmake(&mut self, made: &Made) -> bool {
        self.run_down(&made.network, &made.kubeconfig, &made.down)
    }

    fn run_down(&mut self, network: &str, kubeconfig: &Path, down: &str) -> bool {
        let told = Told {
            network,
            kubeconfig,
            image: None,
            log: &self.logs.join(self.log(network, "down")),
            limit: DOWN,
        };
        match provisioner::run(down, &told, None) {
            Ok(_) => true,
            Err(why) => {
                let why = format!("the cluster {network} may still stand: {why}");
                self.left.push(TargetError::Failed(why));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static INTERRUPTED: AtomicBool = AtomicBool::new(false);

    /// Makes a cluster by a command that `printed` this, as `printf` writes it; what
    /// came of it, whether the cluster was taken down, and what was left.
    fn made(printed: &str, knows_down: bool) -> (Result<PathBuf, String>, bool, Vec<String>) {
        let scratch = tempfile::tempdir().unwrap();
        let gone = scratch.path().join("gone");
        let down = format!("touch {}", gone.display());
        let up = format!("printf '{}'", printed.replace("DOWN", &down));
        let down = knows_down.then_some(down);
        let logs = scratch.path().join("logs");
        let mut maker = Maker::new(up, down, None, logs, &INTERRUPTED).unwrap();
        let made = maker.make("calico", "up.log").map(|it| it.kubeconfig);
        let left = maker.left.iter().map(ToString::to_string).collect();
        (made, gone.exists(), left)
    }

    #[test]
    fn a_cluster_whose_command_misspoke_is_taken_down() {
        let wrong = "KUBECONFIG=/nonexistent/k\\nUNPROVISION=DOWN\\n";
        let nothing = "UNPROVISION=DOWN\\n";
        for (printed, knows_down) in [(wrong, false), (nothing, false), (wrong, true), ("", true)] {
            let (made, is_gone, left) = made(printed, knows_down);
            let why = made.unwrap_err();
            assert!(why.contains("KUBECONFIG"), "{printed}: {why}");
            assert!(is_gone && left.is_empty(), "{printed}: {left:?}");
        }
    }

    #[test]
    fn a_byte_that_is_no_text_hides_no_line() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let printed = format!("caf\\351\\nKUBECONFIG={file}\\nUNPROVISION=DOWN\\n");
        let (made, is_gone, _) = made(&printed, false);
        assert_eq!(made.unwrap(), Path::new(file));
        assert!(!is_gone);
    }

    #[test]
    fn a_cluster_that_nothing_takes_down_is_told_to_stand() {
        let (made, _, left) = made("KUBECONFIG=/nonexistent/k\\n", false);
        let why = made.unwrap_err();
        assert!(
            why.contains("no such file") && why.contains("left standing"),
            "{why}"
        );
        assert_eq!(left, [why]);
    }
}
