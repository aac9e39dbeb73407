//! The experiments that come with the program.

macro_rules! experiments {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),+]
    };
}

/// Name and text of each ready-made experiment, the tour first. The files are
/// in `experiments/` at the top of the source tree.
pub fn ready_made() -> &'static [(&'static str, &'static str)] {
    experiments![
        "tour",
        "latency",
        "throughput",
        "connections",
        "http",
        "udp",
        "services",
        "policies",
        "programming",
        "interference",
        "pairs",
        "tuning",
        "encryption",
        "launch",
        "survive",
        "gate",
        "cni-comparison",
        "machinezone-2016",
        "pani-2016",
        "gojek-kubecon-2018",
        "gojek-kubecon-2018-launch",
        "gojek-kubecon-2018-policies",
        "centurylink-2016",
        "centurylink-2016-proxies",
        "kube-proxy-2025",
    ]
}
