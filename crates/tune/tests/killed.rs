//! Killed at every step, it leaves what can be put back: afterwards every setting of the
//! machine is what it was.
//!
//! A child of this program tunes a machine that was made, and kills itself after the n-th
//! change of a file, of a setting or of the journal, for every n in turn. Then another one
//! puts things back, and is killed too. 200 times by default; `PLUMBLINE_CRASHES=1000` for
//! the full count.

mod made;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_tune::{Root, restore, while_tuned};

/// Tells the child what to do, and so that it is the child.
const PART: &str = "PLUMBLINE_TEST_PART";
/// Steps that are left to it; 0 for all.
const STEPS: &str = "PLUMBLINE_TEST_STEPS";
/// The machine.
const MACHINE: &str = "PLUMBLINE_TEST_MACHINE";

static LEFT: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicUsize = AtomicUsize::new(0);

fn main() {
    match std::env::var(PART) {
        Ok(part) => child(&part),
        Err(_) if std::env::args().any(|argument| argument == "--list") => {
            println!("killed: test");
        }
        Err(_) => killed_at_every_step_it_can_be_put_back(),
    }
}

fn step() {
    DONE.fetch_add(1, Ordering::Relaxed);
    if LEFT.load(Ordering::Relaxed) > 0 && LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        kill(Pid::this(), Signal::SIGKILL).unwrap();
    }
}

/// Ends with success when it was not killed, and tells how many steps it took.
fn child(part: &str) {
    let steps = std::env::var(STEPS).unwrap().parse().unwrap();
    LEFT.store(steps, Ordering::Relaxed);
    let directory = std::env::var(MACHINE).unwrap();
    let directory = Path::new(&directory);
    let root = Root::at(directory).with_step(step);
    let tell = &mut |_: &str| {};
    let mut differing = 0;
    match part {
        "tune" => {
            let before = made::contents(directory);
            let work = || {
                differing = made::differing(&before, &made::contents(directory));
                step();
            };
            while_tuned(&root, tell, work).unwrap();
        }
        "restore" => restore(&root, tell).unwrap(),
        other => panic!("{other}"),
    }
    println!("{} {differing}", DONE.load(Ordering::Relaxed));
}

/// Gives how it ended, and what it told.
fn run(part: &str, steps: usize, machine: &Path) -> (ExitStatus, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .env(PART, part)
        .env(STEPS, steps.to_string())
        .env(MACHINE, machine)
        .output()
        .unwrap();
    let status = output.status;
    assert!(
        status.success() || status.signal() == Some(9),
        "{part}, {steps} steps: {status}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    (status, String::from_utf8(output.stdout).unwrap())
}

fn killed_at_every_step_it_can_be_put_back() {
    let crashes: usize = std::env::var("PLUMBLINE_CRASHES")
        .map_or(200, |n| n.parse().expect("PLUMBLINE_CRASHES is a number"));
    let directory = tempfile::tempdir().unwrap();
    let machine = directory.path();
    made::machine(machine);
    let before = made::contents(machine);
    let untouched = |what: &str| {
        let differing = made::differing(&before, &made::contents(machine));
        assert_eq!(differing, 0, "{what}: {differing} files are not as before");
        let kept = std::fs::read_dir(machine.join("run/plumbline")).unwrap();
        let kept: Vec<_> = kept.map(|it| it.unwrap().file_name()).collect();
        assert_eq!(kept, ["tune.lock"], "{what}");
    };

    let (status, told) = run("tune", 0, machine);
    assert!(status.success());
    untouched("nothing was killed");
    let numbers = told.split_whitespace().map(|it| it.parse().unwrap());
    let [steps, set]: [usize; 2] = numbers.collect::<Vec<_>>().try_into().unwrap();
    assert!(set > 25 && steps > 2 * set, "{set} files, {steps} steps");

    let (mut left, mut twice) = (0, 0);
    let kills = crashes.max(steps);
    for crash in 0..kills {
        let at = crash % steps + 1;
        let (status, _) = run("tune", at, machine);
        assert_eq!(status.signal(), Some(9), "step {at} of {steps}");
        let differs = made::differing(&before, &made::contents(machine)) > 0;
        left += usize::from(differs);
        // Killed again while it is put back, somewhere else each time.
        let (status, _) = run("restore", 1 + crash * 7 % (set + 2), machine);
        twice += usize::from(!status.success());
        let next = if crash % 2 == 0 { "restore" } else { "tune" };
        assert!(run(next, 0, machine).0.success());
        untouched(&format!("killed at step {at} of {steps}"));
    }
    assert!(left > kills / 2, "{left} of {kills} left anything");
    assert!(twice > kills / 4, "{twice} of {kills} were killed again");
    println!(
        "{kills} kills at {steps} steps that set {set} files: {left} left something, {twice} killed \
         again while that was put back; all is as before"
    );
}
