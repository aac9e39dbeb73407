//! Blocking calls to one API server.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::runtime::{Builder, Runtime};

use crate::ClusterError;

const ANSWER: Duration = Duration::from_secs(15);

/// The same of a request that deletes many things, one after the other. The API server itself
/// ends it after a minute (`--request-timeout`).
const MANY_DELETED: Duration = Duration::from_secs(90);

/// One that took so long has deleted some.
const SOME_DELETED: Duration = Duration::from_secs(45);

/// How often such a request is made while each deletes some: proxies that write what is left
/// after each deletion leave a small control plane time for some 30 a second.
const ROUNDS: usize = 20;

/// How often a wait looks whether the user wants to stop.
const TICK: Duration = Duration::from_millis(100);

/// How long an API server may be silent before what needs it fails. An
/// upgrade of a control plane of one machine takes about a minute.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// How long to wait before a request is made again.
const AWAY: Duration = Duration::from_millis(500);

/// Requests that are made at the same time: an API server lets hundreds of one user's wait
/// and refuses what is beyond, and serves some dozens at once.
const AT_ONCE: usize = 32;

/// A connection to one cluster, and the threads that serve it.
pub(crate) struct ClusterConnection {
    // Before the runtime, whose threads it needs to close its connections.
    client: Client,
    runtime: Runtime,
    config: Config,
    interrupted: &'static AtomicBool,
}

impl ClusterConnection {
    /// Reads the user's configuration; sends nothing to the cluster yet.
    pub(crate) fn open(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, ClusterError> {
        let runtime = runtime()?;
        let config = runtime.block_on(read(kubeconfig, context))?;
        Self::connect(runtime, config, interrupted)
    }

    /// Another connection to the same cluster, with a thread of its own.
    pub(crate) fn another(&self) -> Result<Self, ClusterError> {
        Self::connect(runtime()?, self.config.clone(), self.interrupted)
    }

    fn connect(
        runtime: Runtime,
        config: Config,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, ClusterError> {
        Ok(Self {
            client: client(&runtime, config.clone())?,
            runtime,
            config,
            interrupted,
        })
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client that makes each request once. The other makes one again, for as long as it is
    /// waited for, when the API server says that what is behind it does not answer.
    pub(crate) fn client_without_retry(&self) -> Result<Client, ClusterError> {
        let mut config = self.config.clone();
        config.default_retry = false;
        client(&self.runtime, config)
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn interrupted(&self) -> &'static AtomicBool {
        self.interrupted
    }

    /// Makes one request. `what` completes "the cluster could not …".
    pub(crate) fn call<T>(
        &self,
        what: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ClusterError> {
        self.stoppable(self.bounded(what, request))
    }

    /// Makes a request again and again while the API server is away, as long
    /// as [`PATIENCE`]: an API server that is replaced costs the trial under
    /// way and not the run.
    pub(crate) fn patiently<T, F: Future<Output = kube::Result<T>>>(
        &self,
        what: &str,
        request: impl Fn() -> F,
    ) -> Result<T, ClusterError> {
        let until = Instant::now() + PATIENCE;
        while_away(until, || self.call(what, request()), || self.pause(AWAY))
    }

    /// As [`patiently`](Self::patiently), but until a moment and not stopped by the user:
    /// to undo what was made.
    pub(crate) fn insist<T, F: Future<Output = kube::Result<T>>>(
        &self,
        what: &str,
        until: Instant,
        request: impl Fn() -> F,
    ) -> Result<T, ClusterError> {
        let attempt = || self.runtime.block_on(self.bounded(what, request()));
        let pause = || {
            std::thread::sleep(AWAY);
            Ok(())
        };
        while_away(until, attempt, pause)
    }

    /// Makes many requests, some of them at the same time, and each as
    /// [`patiently`](Self::patiently) does. Gives the answers in the order of the requests;
    /// the first refusal ends it. `what` completes "the cluster could not …".
    pub(crate) fn patiently_each<T, F: Future<Output = kube::Result<T>>>(
        &self,
        what: &str,
        requests: impl IntoIterator<Item = impl Fn() -> F>,
    ) -> Result<Vec<T>, ClusterError> {
        let answers = requests.into_iter().map(|request| async move {
            let until = Instant::now() + PATIENCE;
            self.answer(what, (ANSWER, until), request).await
        });
        self.stoppable(stream::iter(answers).buffered(AT_ONCE).try_collect())
    }

    /// Makes many requests that delete many things each, as [`patiently_each`](Self::patiently_each)
    /// does, but until a moment, and not stopped by the user or by a refusal. Gives what could not
    /// be done.
    pub(crate) fn insist_each<T, F: Future<Output = kube::Result<T>>>(
        &self,
        what: &str,
        until: Instant,
        requests: impl IntoIterator<Item = impl Fn() -> F>,
    ) -> Vec<ClusterError> {
        let answers = requests
            .into_iter()
            .map(|request| self.delete_many(what, until, request));
        let answers = stream::iter(answers).buffer_unordered(AT_ONCE);
        let refused = answers.filter_map(|answer| async { answer.err() });
        self.runtime.block_on(refused.collect())
    }

    /// Makes a request that deletes many things, again where it did not get through all of them.
    async fn delete_many<T, F: Future<Output = kube::Result<T>>>(
        &self,
        what: &str,
        until: Instant,
        request: impl Fn() -> F,
    ) -> Result<T, ClusterError> {
        let mut rounds = ROUNDS;
        loop {
            let began = Instant::now();
            let answer = self.answer(what, (MANY_DELETED, until), &request).await;
            rounds -= 1;
            if answer.is_ok() || began.elapsed() < SOME_DELETED || rounds == 0 {
                return answer;
            }
        }
    }

    /// Makes a request, which may take so long, again and again while the API server is away,
    /// until a moment.
    async fn answer<T, F: Future<Output = kube::Result<T>>>(
        &self,
        what: &str,
        (limit, until): (Duration, Instant),
        request: impl Fn() -> F,
    ) -> Result<T, ClusterError> {
        loop {
            match self.within(limit, what, request()).await {
                Err(error) if error.is_away() && Instant::now() < until => {
                    tokio::time::sleep(AWAY).await;
                }
                other => return other,
            }
        }
    }

    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `Interrupted`, at once, when the user wants to stop.
    pub(crate) fn pause(&self, length: Duration) -> Result<(), ClusterError> {
        self.stoppable(async {
            tokio::time::sleep(length).await;
            Ok(())
        })
    }

    /// Makes one request among others.
    pub(crate) async fn bounded<T>(
        &self,
        what: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ClusterError> {
        self.within(ANSWER, what, request).await
    }

    async fn within<T>(
        &self,
        limit: Duration,
        what: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ClusterError> {
        let url = || self.config.cluster_url.to_string();
        match tokio::time::timeout(limit, request).await {
            Ok(answer) => answer.map_err(|error| ClusterError::of(what, &url(), error)),
            Err(_) => Err(ClusterError::Away {
                url: url(),
                why: format!("no answer within {} s", limit.as_secs()),
            }),
        }
    }

    /// Does what asks for several things at once.
    ///
    /// # Errors
    ///
    /// `Interrupted`, at once, when the user wants to stop.
    pub(crate) fn stoppable<T>(
        &self,
        work: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        self.runtime.block_on(unless(self.interrupted, work))
    }
}

/// Does it until it is done or the flag is set.
///
/// # Errors
///
/// `Interrupted`, within [`TICK`], when the flag is set.
pub(crate) async fn unless<T>(
    stopped: &AtomicBool,
    work: impl Future<Output = Result<T, ClusterError>>,
) -> Result<T, ClusterError> {
    let stop = async {
        while !stopped.load(Ordering::SeqCst) {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::select! {
        biased;
        () = stop => Err(ClusterError::Interrupted),
        result = work => result,
    }
}

/// Tries again until a moment, as long as the API server is away.
fn while_away<T>(
    until: Instant,
    attempt: impl Fn() -> Result<T, ClusterError>,
    pause: impl Fn() -> Result<(), ClusterError>,
) -> Result<T, ClusterError> {
    loop {
        match attempt() {
            Err(error) if error.is_away() && Instant::now() < until => pause()?,
            other => return other,
        }
    }
}

fn client(runtime: &Runtime, config: Config) -> Result<Client, ClusterError> {
    let client = runtime.block_on(async { Client::try_from(config) });
    client.map_err(|error| ClusterError::Configuration(error.to_string()))
}

fn runtime() -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).thread_name("cluster");
    builder.enable_all().build()
}

async fn read(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, ClusterError> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    Ok(match (kubeconfig, context) {
        (Some(file), _) => in_file(file, &options)
            .await
            .map_err(|error| ClusterError::Configuration(format!("{}: {error}", file.display())))?,
        // Without a file, this may be a pod of the cluster itself.
        (None, None) => match Config::from_kubeconfig(&KubeConfigOptions::default()).await {
            Ok(config) => config,
            Err(error) => {
                Config::incluster().map_err(|_| ClusterError::Configuration(error.to_string()))?
            }
        },
        (None, Some(name)) => Config::from_kubeconfig(&options)
            .await
            .map_err(|error| unknown_context(name, &error))?,
    })
}

async fn in_file(
    file: &Path,
    options: &KubeConfigOptions,
) -> Result<Config, kube::config::KubeconfigError> {
    Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, options).await
}

fn unknown_context(name: &str, error: &kube::config::KubeconfigError) -> ClusterError {
    let known = Kubeconfig::read().map(|file| {
        let names: Vec<String> = file.contexts.into_iter().map(|it| it.name).collect();
        names.join(", ")
    });
    ClusterError::Configuration(match known {
        Ok(names) if !names.is_empty() => format!("context {name}: {error} (there are: {names})"),
        _ => format!("context {name}: {error}"),
    })
}
