//! Things of each kind that are planted in turn, and found by an inventory. (Namespaces and
//! processes are planted beside it.)

use std::process::Command;

use super::{Inventory, SHARED_MEMORY};
use crate::world;

/// A test that is started with it is in namespaces of its own, and plants there.
const PLANTING: &str = "PLUMBLINE_TEST_PLANTING";

/// Namespaces of the network and of mounts, in which everything that is looked at but the control
/// groups is their own.
const PRIVATE: &str = r#"
set -e
mount -t tmpfs private /run
mkdir /run/groups
mount --rbind /sys/fs/cgroup /run/groups
mount -t sysfs private /sys
mount --rbind /run/groups /sys/fs/cgroup
mount -t bpf private /sys/fs/bpf || true
mount -t tmpfs private /dev/shm
ip link set lo up
exec "$@"
"#;

/// For each kind of thing what plants one, and what takes it away. Modules and the tables of
/// iptables stay once they are there, and so are not planted.
const PLANTED: [(&str, &str, &str); 18] = [
    (
        "device",
        "ip link add planted type veth peer name other",
        "ip link del planted",
    ),
    (
        "address",
        "ip address add 192.0.2.1 dev lo",
        "ip address del 192.0.2.1/32 dev lo",
    ),
    (
        "route",
        "ip route add blackhole 192.0.2.0/24",
        "ip route del blackhole 192.0.2.0/24",
    ),
    (
        "route of IPv6",
        "ip -6 route add blackhole 2001:db8::/32",
        "ip -6 route del blackhole 2001:db8::/32",
    ),
    (
        "rule",
        "ip rule add priority 7 table 7",
        "ip rule del priority 7",
    ),
    (
        "rule of IPv6",
        "ip -6 rule add priority 7 table 7",
        "ip -6 rule del priority 7",
    ),
    (
        "qdisc",
        "tc qdisc add dev lo root pfifo",
        "tc qdisc del dev lo root",
    ),
    (
        "line of nftables",
        "nft add table inet planted",
        "nft delete table inet planted",
    ),
    (
        "set of ipset",
        "ipset create planted hash:ip",
        "ipset destroy planted",
    ),
    (
        "IPsec association",
        "ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 7 enc cipher_null ''",
        "ip xfrm state flush",
    ),
    (
        "IPsec policy",
        "ip xfrm policy add src 192.0.2.1 dst 192.0.2.2 dir out",
        "ip xfrm policy flush",
    ),
    ("mount", "mount -t tmpfs planted /mnt", "umount /mnt"),
    (
        "named namespace",
        "ip netns add planted",
        "ip netns del planted; umount /run/netns",
    ),
    (
        "pinned eBPF object",
        "mkdir /sys/fs/bpf/planted",
        "rmdir /sys/fs/bpf/planted",
    ),
    (
        "file in /run/plumbline",
        "mkdir /run/plumbline && touch /run/plumbline/planted",
        "rm -r /run/plumbline",
    ),
    (
        SHARED_MEMORY,
        "touch /dev/shm/plumbline-planted",
        "rm /dev/shm/plumbline-planted",
    ),
    (
        "control group",
        "for it in /sys/fs/cgroup /sys/fs/cgroup/*/; do \
             mkdir $it/plumbline-planted && exit; \
         done; exit 1",
        "for it in /sys/fs/cgroup/plumbline-planted /sys/fs/cgroup/*/plumbline-planted; do \
             test ! -e $it || rmdir $it; \
         done",
    ),
    (
        "setting",
        "echo 100 >/proc/sys/net/ipv4/ip_default_ttl",
        "echo 64 >/proc/sys/net/ipv4/ip_default_ttl",
    ),
];

#[test]
fn whatever_is_planted_is_found_in_an_inventory() {
    let test = "whatever_is_planted_is_found_in_an_inventory";
    if std::env::var_os(PLANTING).is_some() {
        return each_is_found();
    }
    let why = "an ordinary user changes nothing of the machine";
    let Some(_alone) = world::lab_as_root(test, why) else {
        return;
    };
    let planting = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", PRIVATE, "sh"])
        .arg(std::env::current_exe().expect("it runs"))
        .args([
            "--exact",
            "--nocapture",
            &format!("inventory::planted::{test}"),
        ])
        .env(PLANTING, "yes")
        .output()
        .expect("util-linux is part of every Linux");
    let said = world::stdout(&planting) + &world::stderr(&planting);
    assert!(planting.status.success(), "{said}");
    assert!(said.contains("test result: ok. 1 passed"), "{said}");
}

#[track_caller]
fn each_is_found() {
    let before = Inventory::take().without("module");
    for (kind, plant, remove) in PLANTED {
        let [planted, removed] = [plant, remove].map(|it| {
            move || {
                let mut shell = Command::new("sh");
                shell.args(["-c", it]).output().expect("a shell starts")
            }
        });
        let done = planted();
        if !done.status.success() {
            world::skip(&format!("a planted {kind}"), world::stderr(&done).trim());
            continue;
        }
        let now = Inventory::take();
        let done = removed();
        assert!(done.status.success(), "{remove}: {}", world::stderr(&done));
        let new = now.0[kind].difference(&before.0[kind]);
        assert!(new.count() > 0, "{kind}: {plant}");
    }
    before.assert_unchanged();
}
