//! `plumbline doctor --path … --try-offloads`: what it switches off is on again afterwards,
//! whatever becomes of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plumbline_protocol::{OffloadGroup, SoundOrder, ToAgent};

use crate::greeted::Greeted;
use crate::left::{enterable_lab, held_namespaces, inside};
use crate::world::{self, PATIENCE, Running, eventually};

/// A path that has been as it is for so long is built.
const BUILT: Duration = Duration::from_millis(500);

/// The features of every device of a path that are on, by namespace and device.
type Features = BTreeMap<(usize, String), Vec<String>>;

/// The namespaces of a path, which stay as long as they are held here.
struct Held(Vec<File>);

impl Held {
    fn by(program: u32) -> Self {
        let files = held_namespaces(program).into_iter();
        Self(files.filter_map(|it| File::open(it).ok()).collect())
    }

    fn features(&self) -> Features {
        let active = || {
            let devices = nix::net::if_::if_nameindex().expect("it has a loopback");
            let names = devices.iter().map(|it| it.name().to_string_lossy());
            let active = names.filter_map(|name| {
                let features = plumbline_sys::ethtool::active_features(&name).ok()?;
                Some((name.into_owned(), features))
            });
            active.collect::<Vec<_>>()
        };
        let mut all = Features::new();
        for (at, file) in self.0.iter().enumerate() {
            let devices = inside(file, active).into_iter();
            all.extend(devices.map(|(name, features)| ((at, name), features)));
        }
        all
    }
}

/// A trial of offloads that is under way: something is off that was on before.
struct UnderWay {
    doctor: Running,
    held: Held,
    before: Features,
}

fn under_way() -> UnderWay {
    let words = ["doctor", "--json", "--path", "host-gw", "--try-offloads"];
    let doctor = Running::start(&words);
    // Two nodes and two pods.
    eventually("the path stands", PATIENCE, || {
        held_namespaces(doctor.pid()).len() >= 4
    });
    let mut held = Held::by(doctor.pid());
    let mut before = held.features();
    let mut since = Instant::now();
    // Packets are sent for seconds before anything is tried.
    eventually("the path is built", PATIENCE, || {
        held = Held::by(doctor.pid());
        let now = held.features();
        if now != before {
            (before, since) = (now, Instant::now());
        }
        since.elapsed() > BUILT
    });
    eventually("something is switched off", PATIENCE, || {
        held.features() != before
    });
    UnderWay {
        doctor,
        held,
        before,
    }
}

#[test]
fn offloads_that_were_tried_are_on_again() {
    let Some(_alone) = enterable_lab("offloads are on again") else {
        return;
    };
    let UnderWay {
        mut doctor,
        held,
        before,
    } = under_way();
    let mut last = before.clone();
    let mut ended = None;
    while ended.is_none() {
        let now = held.features();
        // When it has ended the devices go.
        if now.keys().eq(before.keys()) {
            last = now;
        }
        ended = doctor.0.try_wait().expect("it is ours");
    }
    assert!(ended.is_some_and(|it| it.success()));
    assert_eq!(last, before);
}

/// An agent puts them back by itself when its input closes, as it does when its controller is
/// killed. (In a lab the agents and their devices go with the controller.)
#[test]
fn an_agent_whose_controller_is_killed_puts_offloads_back() {
    let Some(_alone) = enterable_lab("offloads are on again after a kill") else {
        return;
    };
    // What passes the orders on has the agent's input, and nobody else does.
    let mut controller = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it is part of every Linux");
    let program = world::plumbline(&[]);
    let mut agent = Command::new("unshare")
        .arg("--net")
        .arg(program.get_program())
        .arg("agent")
        .stdin(controller.stdout.take().expect("it is piped"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux is part of every Linux");
    let orders = controller.stdin.take().expect("it is piped");
    let answers = agent.stdout.take().expect("it is piped");
    let mut greeted = Greeted::new(orders, answers);
    let namespace = File::open(format!("/proc/{}/ns/net", agent.id()));
    let held = Held(vec![namespace.expect("it runs")]);
    let before = held.features();
    for offload in OffloadGroup::ALL {
        let devices = vec!["lo".to_owned()];
        let order = SoundOrder::SwitchOff { devices, offload };
        greeted.ask(&ToAgent::Sound(order));
    }
    assert_ne!(held.features(), before);
    controller.kill().expect("it runs");
    controller.wait().expect("it is ours");
    eventually("everything is on again", PATIENCE, || {
        held.features() == before
    });
    agent.wait().expect("it is ours");
}
