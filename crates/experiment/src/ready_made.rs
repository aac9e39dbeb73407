//! The experiments that come with the program.

/// Name and text of each ready-made experiment, the tour first. The files are
/// in `experiments/` at the top of the source tree.
pub fn ready_made() -> &'static [(&'static str, &'static str)] {
    &[
        ("tour", include_str!("../../../experiments/tour.toml")),
        ("latency", include_str!("../../../experiments/latency.toml")),
        (
            "throughput",
            include_str!("../../../experiments/throughput.toml"),
        ),
        (
            "connections",
            include_str!("../../../experiments/connections.toml"),
        ),
        ("http", include_str!("../../../experiments/http.toml")),
        ("udp", include_str!("../../../experiments/udp.toml")),
        (
            "cni-comparison",
            include_str!("../../../experiments/cni-comparison.toml"),
        ),
        (
            "machinezone-2016",
            include_str!("../../../experiments/machinezone-2016.toml"),
        ),
        (
            "gojek-kubecon-2018",
            include_str!("../../../experiments/gojek-kubecon-2018.toml"),
        ),
        (
            "centurylink-2016",
            include_str!("../../../experiments/centurylink-2016.toml"),
        ),
    ]
}
