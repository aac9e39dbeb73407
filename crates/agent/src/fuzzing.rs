//! What fuzzing targets reach of this crate: the readers of `/proc`, of what tells a pod its
//! name server, of datagrams, and of what kube-proxy and nginx say of themselves.

use crate::launched::{PodGreeting, started_ns};
use crate::machine::{cpuinfo_value, kernel_command_line, memory_bytes};
use crate::nginx::{counts_of, is_whole, server_of};
use crate::proxy;
use crate::sounding::fuzzing::{answer_of_name_server, configuration, head_of_train};

/// Reads a text as each of the files that there are; gives the readers that find something.
///
/// # Panics
///
/// When what is read is impossible.
pub fn files(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let of_line = |read: &str| text.lines().any(|line| line.contains(read));
    for key in ["model name", "microcode", "MemTotal"] {
        let value = cpuinfo_value(text, key);
        assert!(value.as_ref().is_none_or(|it| of_line(it)), "{key}");
        found.extend(value.map(|_| key));
    }
    let memory = memory_bytes(text);
    assert!(memory == u64::MAX || memory.is_multiple_of(1024));
    found.extend((memory > 0).then_some("memory"));
    let words = kernel_command_line(text);
    assert!(words.len() <= text.len() && !words.starts_with("init="));
    // No process begins before its kernel.
    let started = started_ns(text);
    assert!(started.is_none_or(|it| it > 0));
    found.extend(started.map(|_| "start"));
    found.extend(configuration(text).then_some("name server"));
    found
}

/// Reads what comes over the network as each of the datagrams that there are; gives those that
/// it can be.
///
/// # Panics
///
/// When what is read is impossible.
pub fn datagram(bytes: &[u8]) -> Vec<&'static str> {
    let mut found = Vec::new();
    found.extend(head_of_train(bytes).then_some("train"));
    found.extend(answer_of_name_server(bytes, 7).then_some("name server"));
    if let Ok(greeting) = serde_json::from_slice::<PodGreeting>(bytes) {
        assert!(greeting.launch.len() <= bytes.len());
        found.push("greeting");
    }
    found
}

/// Reads what came as each of the answers of HTTP that there are; gives the readers that find
/// something.
pub fn answers(bytes: &[u8]) -> Vec<&'static str> {
    let text = String::from_utf8_lossy(bytes);
    let found = [
        ("mode of kube-proxy", proxy::read(&text).is_some()),
        ("server", server_of(&text).is_some()),
        ("whole", is_whole(bytes)),
        ("counts", counts_of(&text).is_some()),
    ];
    let found = found.into_iter().filter(|(_, finds)| *finds);
    found.map(|(reader, _)| reader).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seed;

    #[test]
    fn every_reader_of_files_finds_something_in_a_seed() {
        let seeds = [
            ("proc/proc-cpuinfo-of-a-guest", "model name"),
            ("proc/proc-cpuinfo-of-a-guest", "microcode"),
            ("proc/proc-meminfo", "MemTotal"),
            ("proc/proc-meminfo", "memory"),
            ("proc/proc-self-stat", "start"),
            ("proc/etc-resolv.conf", "name server"),
        ];
        for (name, reader) in seeds {
            let found = files(&String::from_utf8(seed(name)).unwrap());
            assert!(found.contains(&reader), "{name}: {reader} not in {found:?}");
        }
        let line = String::from_utf8(seed("proc/proc-cmdline")).unwrap();
        let without_init = line.replace("init=/sbin/init ", "");
        assert_eq!(kernel_command_line(&line), without_init.trim_end());
    }

    #[test]
    fn every_answer_is_a_seed() {
        // Its first byte says how it is cut into pieces.
        let read = |name: &str| answers(&seed(name)[1..]);
        assert_eq!(
            read("http_client/kube-proxy-mode"),
            ["mode of kube-proxy", "whole"]
        );
        assert_eq!(
            read("http_client/nginx-status"),
            ["server", "whole", "counts"]
        );
    }

    #[test]
    fn every_datagram_is_a_seed() {
        let seeds: [(&str, &[&str]); 4] = [
            ("datagrams/train", &["train"]),
            ("datagrams/name-server", &["train", "name server"]),
            ("datagrams/greeting", &["train", "greeting"]),
            ("datagrams/short", &[]),
        ];
        for (name, expected) in seeds {
            assert_eq!(datagram(&seed(name)), expected, "{name}");
        }
    }
}
