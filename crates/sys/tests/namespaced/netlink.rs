//! Netlink verbs, read back by `ip -j` and `bridge -j`, which share nothing
//! with our code.

use std::net::IpAddr;
use std::process::Command;

use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::{
    AddressSpec, LinkSpec, NeighbourSpec, NftFamily, NftWriter, RouteSpec, RuleSelector, RuleSpec,
    VxlanProperties,
};
use plumbline_testkit as testkit;
use serde_json::Value;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// What a tool says in a namespace; `None`, counted as a skip of `test`, where
/// it is not installed.
fn ask(test: &str, namespace: &Namespace, question: &str) -> Option<Value> {
    let mut words = question.split_whitespace();
    let program = words.next().expect("a program");
    let words: Vec<&str> = words.collect();
    let output = namespace.run(|| Command::new(program).args(words).output());
    match output.expect("entered") {
        Ok(output) => {
            assert!(output.status.success(), "{question}: {output:?}");
            Some(serde_json::from_slice(&output.stdout).expect("JSON"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            testkit::skip(test, &format!("`{program}` is not installed"));
            None
        }
        Err(error) => panic!("{question}: {error}"),
    }
}

/// A namespace with a veth pair `left` and `right`, both up; the index of `left`.
fn pair() -> (Namespace, u32) {
    let namespace = Namespace::create().expect("a namespace");
    let netlink = namespace.netlink();
    let link = LinkSpec::veth("left", LinkSpec::peer("right"))
        .mtu(1400)
        .mac(MAC);
    netlink.add_link(link.up()).expect("added");
    let right = netlink.link("right").expect("there").index;
    netlink.set_link_up(right, true).expect("up");
    let left = netlink.link("left").expect("there").index;
    (namespace, left)
}

#[test]
fn a_pair_spans_two_namespaces() {
    let test = "a pair spans two namespaces";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let (here, there) = (
        Namespace::create().expect("a namespace"),
        Namespace::create().expect("a namespace"),
    );
    assert_ne!(here.inode(), there.inode());
    let peer = LinkSpec::peer("far").mtu(1234).inside(&there);
    here.netlink()
        .add_link(LinkSpec::veth("near", peer))
        .expect("added");
    let Some(answer) = ask(test, &there, "ip -j -d link show far") else {
        return;
    };
    assert_eq!(answer[0]["mtu"], 1234);
    assert_eq!(answer[0]["linkinfo"]["info_kind"], "veth");
    let gone = there
        .netlink()
        .link("near")
        .expect_err("it is in the other one");
    assert!(gone.is_gone(), "{gone}");
}

#[test]
fn devices_are_made_as_asked() {
    let test = "devices are made as asked";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let (namespace, left) = pair();
    let netlink = namespace.netlink();
    netlink
        .add_link(LinkSpec::bridge("br").up())
        .expect("bridge");
    let bridge = netlink.link("br").expect("there").index;
    let vxlan = VxlanProperties {
        vni: 77,
        port: 8472,
        local: ip("198.18.0.1"),
        underlay: left,
    };
    netlink
        .add_link(LinkSpec::vxlan("vx", vxlan).mtu(1350).master(bridge))
        .expect("vxlan");
    let Some(answer) = ask(test, &namespace, "ip -j -d link") else {
        return;
    };
    let find = |name: &str| {
        let links = answer.as_array().expect("a list");
        links
            .iter()
            .find(|link| link["ifname"] == name)
            .expect("there")
            .clone()
    };
    let left = find("left");
    assert_eq!(left["mtu"], 1400);
    assert_eq!(left["address"], "02:00:00:00:00:07");
    let vx = find("vx");
    assert_eq!((&vx["master"], &vx["mtu"]), (&"br".into(), &1350.into()));
    let data = &vx["linkinfo"]["info_data"];
    assert_eq!((&data["id"], &data["port"]), (&77.into(), &8472.into()));
    assert_eq!(data["local"], "198.18.0.1");
    assert_eq!(data["learning"], false);
}

#[test]
fn devices_are_changed_as_asked() {
    let test = "devices are changed as asked";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let (namespace, left) = pair();
    let netlink = namespace.netlink();
    netlink.set_link_mtu(left, 1300).expect("MTU");
    netlink.set_link_up(left, false).expect("down");
    netlink.rename_link(left, "moved").expect("renamed");
    let Some(answer) = ask(test, &namespace, "ip -j link show moved") else {
        return;
    };
    assert_eq!(answer[0]["mtu"], 1300);
    assert_eq!(answer[0]["operstate"], "DOWN");
    assert!(netlink.link("left").is_err());
}

#[test]
fn our_view_of_a_device_is_that_of_ip() {
    let test = "our view of a device is that of ip";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let (namespace, _) = pair();
    let ours = namespace.netlink().links().expect("listed");
    let Some(answer) = ask(test, &namespace, "ip -j -s link") else {
        return;
    };
    let theirs = answer.as_array().expect("a list");
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(theirs["ifname"], ours.name.as_str());
        assert_eq!(theirs["ifindex"], ours.index);
        assert_eq!(theirs["mtu"], ours.mtu);
        assert_eq!(theirs["qdisc"], ours.qdisc.as_str());
    }
}

#[test]
fn addresses_and_routes_come_and_go() {
    let test = "addresses and routes come and go";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let (namespace, left) = pair();
    let netlink = namespace.netlink();
    netlink
        .add(&AddressSpec::new(left, ip("198.18.0.1"), 24))
        .expect("v4");
    netlink
        .add(&AddressSpec::new(left, ip("2001:2::1"), 64))
        .expect("v6");
    let plain = RouteSpec::to(ip("198.19.2.0"), 24)
        .via(ip("198.18.0.2"))
        .dev(left);
    let onlink = RouteSpec::to(ip("198.19.3.0"), 24)
        .via(ip("198.19.3.0"))
        .dev(left)
        .onlink();
    let aside = RouteSpec::default_via(ip("198.18.0.9")).dev(left).table(77);
    for route in [&plain, &onlink, &aside] {
        netlink.add(route).expect("route");
    }
    // The way beyond the gateway, and one on the link; nothing leads elsewhere
    // but in the other table.
    for (to, source) in [
        ("198.19.2.7", "198.18.0.1"),
        ("198.18.0.2", "198.18.0.1"),
        ("2001:2::2", "2001:2::1"),
    ] {
        let way = netlink.route_to(ip(to)).expect("a route");
        assert_eq!((way.device, way.source), (left, Some(ip(source))), "{to}");
    }
    let nowhere = netlink.route_to(ip("203.0.113.1")).expect_err("no route");
    assert!(nowhere.to_string().contains("203.0.113.1"), "{nowhere}");
    let addresses = netlink.addresses().expect("listed");
    let v6 = addresses
        .iter()
        .find(|it| it.address == ip("2001:2::1"))
        .expect("there");
    assert_eq!((v6.prefix, v6.tentative), (64, false), "usable at once");

    let Some(routes) = ask(test, &namespace, "ip -j route show table all") else {
        return;
    };
    let routes = routes.as_array().expect("a list").clone();
    let has = |dst: &str, via: &str, extra: &dyn Fn(&Value) -> bool| {
        routes
            .iter()
            .any(|route| route["dst"] == dst && route["gateway"] == via && extra(route))
    };
    assert!(has("198.19.2.0/24", "198.18.0.2", &|_| true), "{routes:?}");
    assert!(has("198.19.3.0/24", "198.19.3.0", &|it| it["flags"][0]
        == "onlink"));
    assert!(has("default", "198.18.0.9", &|it| it["table"] == "77"));

    for route in [&plain, &onlink, &aside] {
        netlink.delete(route).expect("deleted");
    }
    netlink
        .delete(&AddressSpec::new(left, ip("198.18.0.1"), 24))
        .expect("deleted");
    let again = netlink.delete(&plain).expect_err("it is gone");
    assert!(again.is_gone(), "{again}");
    let left = ask(test, &namespace, "ip -j route show table 77").expect("installed");
    assert_eq!(left, Value::Array(Vec::new()));
}

#[test]
fn neighbours_and_rules_come_and_go() {
    let test = "neighbours and rules come and go";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let (namespace, left) = pair();
    let netlink = namespace.netlink();
    let permanent = NeighbourSpec::permanent(left, ip("198.18.0.2"), MAC);
    netlink.add(&permanent).expect("permanent");
    let rule = RuleSpec::new(RuleSelector::From(ip("198.19.1.2"), 32), 77, 100);
    let to = RuleSpec::new(RuleSelector::To(ip("2001:2::2"), 128), 77, 101);
    let all = RuleSpec::new(RuleSelector::AllV4, 10, 102);
    netlink.add(&to).expect("rule");
    netlink.add(&all).expect("rule");
    netlink.add(&rule).expect("rule");

    let Some(shown) = ask(test, &namespace, "ip -j neigh show nud permanent") else {
        return;
    };
    assert_eq!(shown[0]["dst"], "198.18.0.2");
    assert_eq!(shown[0]["lladdr"], "02:00:00:00:00:07");
    let shown = ask(test, &namespace, "ip -j rule show priority 100").expect("installed");
    assert_eq!(
        (&shown[0]["src"], &shown[0]["table"]),
        (&"198.19.1.2".into(), &"77".into())
    );

    let shown = ask(test, &namespace, "ip -j -6 rule show priority 101").expect("installed");
    assert_eq!(shown[0]["dst"], "2001:2::2", "{shown}");
    let shown = ask(test, &namespace, "ip -j rule show priority 102").expect("installed");
    let named = (&shown[0]["src"], &shown[0]["table"]);
    assert_eq!(named, (&"all".into(), &"10".into()), "{shown}");

    netlink.delete(&to).expect("deleted");
    netlink.delete(&all).expect("deleted");
    netlink.delete(&permanent).expect("deleted");
    netlink.delete(&rule).expect("deleted");
    let again = netlink.delete(&rule).expect_err("it is gone");
    assert!(again.is_gone(), "{again}");
}

#[test]
fn a_refusal_says_what_on_what_and_why() {
    if !testkit::in_private_namespaces("a refusal says what, on what, and why") {
        return;
    }
    let (namespace, _) = pair();
    let netlink = namespace.netlink();
    let twice = netlink
        .add_link(LinkSpec::bridge("left"))
        .expect_err("the name is taken");
    let text = twice.to_string();
    assert!(text.contains("cannot add link bridge `left`"), "{text}");
    assert!(text.contains("already exists"), "{text}");
    assert!(!twice.is_unsupported());

    // Words of the kernel's own come along where it has any.
    let far = RouteSpec::to(ip("198.19.2.0"), 24).via(ip("198.18.0.2"));
    let text = netlink.add(&far).expect_err("no way there").to_string();
    assert!(text.contains("198.19.2.0/24 via 198.18.0.2"), "{text}");
    assert!(text.contains("Nexthop has invalid gateway"), "{text}");
}

#[test]
fn a_group_goes_in_one_request() {
    if !testkit::in_private_namespaces("a group goes in one request") {
        return;
    }
    let namespace = Namespace::create().expect("a namespace");
    let netlink = namespace.netlink();
    for name in ["one", "two"] {
        netlink
            .add_link(LinkSpec::bridge(name).group(9))
            .expect("added");
    }
    netlink.add_link(LinkSpec::bridge("other")).expect("added");
    netlink.delete_group(9).expect("deleted");
    let names = netlink
        .links()
        .expect("listed")
        .into_iter()
        .map(|link| link.name);
    assert_eq!(names.collect::<Vec<_>>(), ["lo", "other"]);
}

/// However many messages fail, the first reason is told.
#[test]
fn rules_for_a_table_that_is_not_there_are_refused() {
    if !testkit::in_private_namespaces("rules for a table that is not there are refused") {
        return;
    }
    let namespace = Namespace::create().expect("a namespace");
    let write = || {
        let mut writer = NftWriter::open(NftFamily::Ip, "nowhere")?;
        for number in 0..5_000 {
            writer.chain(&format!("chain-{number}"))?;
        }
        writer.finish()
    };
    let error = namespace.run(write).expect("entered").expect_err("refused");
    assert!(error.is_gone(), "{error}");
    let text = error.to_string();
    assert!(text.contains("table `nowhere`"), "{text}");
}
