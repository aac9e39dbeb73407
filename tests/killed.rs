//! SIGKILL of a run at any moment: nothing is left, and `--resume` goes on.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::inventory::{self, Inventory};
use crate::left::{self, marked, nothing_left, own_namespaces};
use crate::moments::{Moments, say, times};
use crate::observed;
use crate::world::{
    self, PATIENCE, Running, eventually, output, plumbline, runs_in, short_run, trials,
};

/// Two blocks of host, its control and two networks; no repetitions, so that it is
/// known when the last trial has ended.
const BLOCKS: u64 = 2;
const OF_A_BLOCK: usize = 4;
const TRIALS: usize = 8;
const RUN: &[&str] = &short_run("vxlan,routed", "2");

/// A marked run, and where it writes.
struct Victim {
    process: Running,
    mark: String,
    out: tempfile::TempDir,
    /// Its own directory for temporary files: other tests have some, too.
    temporary: tempfile::TempDir,
}

impl Victim {
    fn start(arguments: &[&str], moments: &mut Moments) -> Self {
        let out = tempfile::tempdir().unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let mark = format!("{}{}.", moments.marks(), moments.next());
        let mut command = plumbline(arguments);
        if arguments == RUN {
            command.arg(out.path());
        }
        let process = command
            .env(left::MARK, &mark)
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self {
            process: Running(process.expect("the program starts")),
            mark,
            out,
            temporary,
        }
    }

    fn finished(&self) -> usize {
        let runs = runs_in(self.out.path());
        runs.first().map_or(0, |run| trials(run))
    }

    fn wait_for_trials(&self, count: usize) {
        let what = format!("{count} trials are finished");
        eventually(&what, PATIENCE, || self.finished() >= count);
    }

    /// Kills the controller, and sees that nothing is left. Gives how many
    /// namespaces it had, `None` when it had ended before.
    ///
    /// With `look_first` it is stopped a moment earlier, so that what it has can
    /// be listed; without, it dies in full flight.
    fn kill(&mut self, look_first: bool) -> Option<usize> {
        if self.process.0.try_wait().unwrap().is_some() {
            nothing_marked(&self.mark);
            return None;
        }
        let (mut pids, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
        if look_first {
            self.process.signal(Signal::SIGSTOP);
            pids = marked(&self.mark);
            namespaces = own_namespaces(&pids);
        }
        self.process.signal(Signal::SIGKILL);
        self.process.wait(PATIENCE);
        nothing_marked(&self.mark);
        nothing_left(&pids, &namespaces);
        let files = inventory::names(self.temporary.path());
        assert!(files.is_empty(), "temporary files: {files:?}");
        Some(namespaces.len())
    }

    /// Goes on with what the killed run left; gives whether there was a run.
    fn resume(&self) -> bool {
        let runs = runs_in(self.out.path());
        assert!(runs.len() <= 1, "{runs:?}");
        let Some(run) = runs.first() else {
            return false;
        };
        let kept = observed_places(run);
        let is_failed = |trial: &serde_json::Value| trial["status"]["status"] == "failed";
        let failed: BTreeSet<u64> = observed::whole_lines(run)
            .iter()
            .filter(|trial| is_failed(trial))
            .filter_map(|trial| trial["block"].as_u64())
            .collect();
        let resumed = output(&["run", "--resume", run.to_str().unwrap()]);
        observed::ran_to_its_end(&resumed, run);
        let places = observed_places(run);
        assert!(places.starts_with(&kept), "a finished trial was lost");
        let different: BTreeSet<_> = places.iter().collect();
        assert_eq!(
            different.len(),
            TRIALS,
            "every place of the plan: {places:?}"
        );
        let of = |places: &[(u64, u64)], block| places.iter().filter(|it| it.0 == block).count();
        for block in 0..BLOCKS {
            let before = of(&kept, block);
            // A block that was cut off, or in which a trial yielded nothing, is run again
            // as a whole, any other not at all.
            let is_open = before < OF_A_BLOCK || failed.contains(&block);
            let again = if is_open { OF_A_BLOCK } else { 0 };
            assert_eq!(of(&places, block), before + again, "{kept:?}, {places:?}");
        }
        assert!(run.join("report.html").exists());
        true
    }
}

/// No process is left, and so no namespace: nothing else holds them.
fn nothing_marked(beginning: &str) {
    eventually("every process has ended", PATIENCE, || {
        marked(beginning).is_empty()
    });
}

/// Block and position of each whole line, in order.
fn observed_places(run: &Path) -> Vec<(u64, u64)> {
    let place = |trial: serde_json::Value| {
        let (block, position) = (&trial["block"], &trial["position"]);
        (block.as_u64().unwrap(), position.as_u64().unwrap())
    };
    observed::whole_lines(run).into_iter().map(place).collect()
}

/// How long an undisturbed run takes until its directory is there, and from its
/// last trial to its end.
fn calibrate(moments: &mut Moments) -> (Duration, Duration) {
    let clock = Instant::now();
    let mut run = Victim::start(RUN, moments);
    eventually("a run directory", PATIENCE, || {
        !runs_in(run.out.path()).is_empty()
    });
    let start_up = clock.elapsed();
    run.wait_for_trials(1);
    eventually("an agent is found by its mark", PATIENCE, || {
        marked(&run.mark).len() > 1
    });
    run.wait_for_trials(TRIALS);
    let clock = Instant::now();
    let code = run.process.wait(PATIENCE);
    let directory = world::run_directory(run.out.path());
    assert_eq!(code, Some(observed::exit_code(&directory)));
    let teardown = clock.elapsed();
    nothing_marked(&run.mark);
    (start_up, teardown)
}

#[test]
fn a_run_killed_at_any_moment_leaves_nothing_and_can_be_resumed() {
    const TEST: &str = "a_run_killed_at_any_moment_leaves_nothing_and_can_be_resumed";
    let Some(_alone) = world::lab(TEST) else {
        return;
    };
    let mut moments = Moments::new(TEST);
    let (start_up, teardown) = calibrate(&mut moments);
    say(&format!("start-up {start_up:?}, teardown {teardown:?}"));

    // The run as root is the one that kills often.
    let is_root = nix::unistd::geteuid().is_root();
    let share = if is_root { 1 } else { 2 };
    // Beyond the calibrated start-up now and then, for it varies.
    let span = start_up * 3 / 2;
    killed(
        "at start-up",
        times(16) / share,
        span,
        &mut moments,
        |_, _| {},
    );
    let span = Duration::from_millis(150);
    killed(
        "between trials",
        times(6) / share,
        span,
        &mut moments,
        |run, at| {
            run.wait_for_trials(at as usize % (TRIALS - 1));
        },
    );
    killed(
        "at teardown",
        times(8) / share,
        teardown,
        &mut moments,
        |run, _| {
            run.wait_for_trials(TRIALS);
        },
    );
    // Once more for all: a moment's look may have missed one that was starting.
    nothing_marked(&moments.marks());
}

/// Kills as many runs, each at a moment within a span that begins when `begins`, which gets a
/// random number, returns; more of them until one still ran, and one had namespaces.
fn killed(
    when: &str,
    least: usize,
    mut span: Duration,
    moments: &mut Moments,
    begins: impl Fn(&Victim, u64),
) {
    let before = Inventory::take();
    let (mut times, mut alive, mut namespaces, mut resumed) = (0, 0, 0, 0);
    while times < least || alive == 0 || namespaces == 0 {
        assert!(
            times < 5 * least,
            "{when}: {alive} of {times} still ran, with {namespaces} namespaces"
        );
        let mut run = Victim::start(RUN, moments);
        begins(&run, moments.next());
        std::thread::sleep(moments.within(span));
        match run.kill(times % 2 == 0) {
            Some(had) => {
                alive += 1;
                namespaces += had;
            }
            // The machine was slower when the span was measured.
            None => span /= 2,
        }
        before.assert_unchanged();
        resumed += usize::from(run.resume());
        times += 1;
    }
    say(&format!(
        "killed {when}: {alive} of {times} still ran, {namespaces} namespaces seen, {resumed} resumed"
    ));
}

#[test]
fn a_standing_lab_killed_leaves_nothing() {
    const TEST: &str = "a_standing_lab_killed_leaves_nothing";
    let Some(_alone) = world::lab(TEST) else {
        return;
    };
    let mut moments = Moments::new(TEST);
    let before = Inventory::take();
    let least = times(8);
    let (mut times, mut namespaces) = (0, 0);
    let mut span = Duration::from_millis(200);
    while times < least || namespaces == 0 {
        assert!(times < 5 * least, "no lab was killed while it stood");
        let mut lab = Victim::start(&["lab", "up", "vxlan"], &mut moments);
        std::thread::sleep(moments.within(span));
        let looks = times % 2 == 0;
        let had = lab.kill(looks);
        let had = had.expect("a lab stands until it is told to end");
        if looks && had == 0 {
            // It takes longer to stand where others use the machine.
            span = (span * 2).min(PATIENCE);
        }
        namespaces += had;
        times += 1;
        before.assert_unchanged();
    }
    nothing_marked(&moments.marks());
}
