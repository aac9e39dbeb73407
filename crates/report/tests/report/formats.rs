use plumbline_experiment::{Scene, Workload};
use plumbline_record::{Maximum, ProtocolCounters, Run, Spans};
use plumbline_report::{Summary, csv, html, json, markdown, terminal};
use serde_json::Value;

use crate::documented;
use crate::fake::{self, Fake, Network, load_of};

fn two() -> Fake {
    let vxlan = fake::networks()
        .into_iter()
        .find(|one| one.label == "vxlan");
    Fake::new(&[Network::same("host"), vxlan.unwrap()])
}

fn parsed(summary: &Summary) -> Value {
    documented::read(&json::render(summary))
}

#[test]
fn the_page_leads_to_the_picture_of_hops_that_is_beside_it() {
    let (run, trials) = two().run();
    let summary = Summary::new(&run, &trials);
    let directory = tempfile::tempdir().unwrap();
    let link = "<a href=\"hops.html\">";
    let page = || html::render_in(Some(directory.path()), &summary, &run, &trials);
    assert_eq!(page(), html::render(&summary, &run, &trials));
    assert!(!page().contains(link));
    std::fs::write(directory.path().join(html::HOPS), "").unwrap();
    assert!(page().contains(link), "{}", page());
}

#[test]
fn json_has_the_keys_that_scripts_hold_on_to() {
    let (run, trials) = two().run();
    let report = parsed(&Summary::new(&run, &trials));
    assert_eq!(report["schema_version"], 2);
    let treatment = &report["treatments"][1];
    assert_eq!(treatment["label"], "vxlan");
    assert_eq!(treatment["factors"]["workload"], "rr");
    assert_eq!(treatment["factors"]["family"], 4);
    for object in ["latency_ns", "service_time_ns", "send_lag_ns"] {
        let keys = [
            "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max", "mean",
        ];
        for key in keys {
            assert!(treatment[object].get(key).is_some(), "{object}.{key}");
        }
    }
    assert!(treatment["latency_ns"]["p99"].is_u64());
    assert!(treatment["latency_ns"]["p99.9"].is_null(), "withheld (D4)");
    let interval = &treatment["latency_interval_ns"];
    assert!(interval["p99"][0].as_u64() < interval["p99"][1].as_u64());
    assert!(interval["p99.9"].is_null() && interval.get("p99.999").is_some());
    assert_eq!(treatment["rates"]["offered_requests_per_second"], 5_000.0);
    assert!(treatment["costs"]["cpu_ns_per_request"]["median"].is_f64());
    assert!(treatment["costs"]["cpu_ns_per_byte"].is_null());
    assert_eq!(treatment["trials"]["kept"], 10);
    let comparison = &report["comparisons"][0];
    for key in [
        "treatment",
        "baseline",
        "workload",
        "metric",
        "effect",
        "low",
        "high",
    ] {
        assert!(!comparison[key].is_null(), "{key}");
    }
    assert_eq!(comparison["verdict"], "worse");
    assert!(comparison["smallest_effect"].is_f64());
    // By itself it is narrower than beside others, and holds the effect too.
    let ends = |of: &Value| [&of["low"], &of["high"]].map(|end| end.as_f64().unwrap());
    let ([low, high], [alone_low, alone_high]) = (ends(comparison), ends(&comparison["alone"]));
    let effect = comparison["effect"].as_f64().unwrap();
    assert!(low < alone_low && alone_low < effect, "{comparison}");
    assert!(effect < alone_high && alone_high < high, "{comparison}");
}

#[test]
fn what_is_not_defined_is_null_and_not_missing() {
    let (run, _) = two().run();
    let report = parsed(&Summary::new(&run, &[]));
    let comparison = report["comparisons"][0].as_object().unwrap();
    for key in ["effect", "low", "high", "alone", "smallest_effect"] {
        assert_eq!(comparison[key], Value::Null, "{key}");
    }
    assert_eq!(comparison["verdict"], "undecided");
    assert_eq!(report["cut_off"], true);
    assert!(report["treatments"][0]["latency_ns"]["max"].is_null());
}

#[test]
fn every_row_of_csv_has_every_column() {
    let (run, trials) = two().run();
    let text = csv::render(&Summary::new(&run, &trials));
    let mut lines = text.split_terminator("\r\n");
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|it| *it == name).unwrap();
    let (metric, change) = (column("metric"), column("change"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == head.len()), "{text}");
    let p50 = rows
        .iter()
        .find(|row| row[0] == "vxlan" && row[metric] == "p50_over_trials_ns")
        .unwrap();
    assert_eq!(
        (p50[column("baseline")], p50[column("verdict")]),
        ("host", "worse")
    );
    assert!(
        (p50[change].parse::<f64>().unwrap() - 0.31).abs() < 0.03,
        "{p50:?}"
    );
    let withheld = rows
        .iter()
        .find(|row| row[metric] == "latency_p99.9_ns")
        .unwrap();
    assert_eq!(withheld[column("value")], "");
}

#[test]
fn markdown_has_a_table_for_every_section() {
    let (run, trials) = two().run();
    let text = markdown::render(&Summary::new(&run, &trials));
    assert_eq!(text.matches("\n## ").count(), 3, "{text}");
    for line in text.lines().filter(|line| line.starts_with('|')) {
        assert!(line.ends_with('|'));
    }
    assert!(text.contains("- **vxlan** costs +"), "{text}");
    assert!(!text.contains('\u{a0}'));
}

#[test]
fn every_format_for_readers_names_the_link_that_was_asked_for() {
    let (mut run, trials) = two().run();
    let shown = |run: &_| {
        let summary = Summary::new(run, &trials);
        [
            terminal::render(&summary, terminal::Style::default()),
            markdown::render(&summary),
            html::render(&summary, run, &trials),
        ]
    };
    for text in shown(&run) {
        assert!(!text.contains("The link between nodes"), "{text}");
    }
    run.plan.link.rate_bits = Some(1_000_000_000);
    run.plan.link.delay_ns = 50_000;
    run.plan.link.loss = 0.01;
    run.plan.link.mtu = 9000;
    for text in shown(&run) {
        assert!(
            text.contains(
                "The link between nodes: 1 Gbit/s, 50 µs each way, 1 % lost each way, MTU 9000."
            ),
            "{text}"
        );
    }
    let link = &parsed(&Summary::new(&run, &trials))["link"];
    assert_eq!(
        (&link["mtu"], &link["rate_bits"]),
        (&9000.into(), &1_000_000_000.into())
    );
}

#[test]
fn what_loads_are_shares_of_is_in_every_format() {
    let (mut run, trials) = two().run();
    run.maxima.push(Maximum {
        workload: "rr".to_owned(),
        scene: Scene::of("host"),
        limit: "p99<1ms".parse().unwrap(),
        rate: 31_000.0,
        lower_bound: 30_800.0,
        upper_bound: None,
        generator_limited: false,
        trials: 24,
    });
    let summary = Summary::new(&run, &trials);
    assert_eq!(parsed(&summary)["maxima"][0]["trials"], 24);
    for text in [
        terminal::render(&summary, terminal::Style::default()),
        markdown::render(&summary),
        html::render(&summary, &run, &trials),
    ] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = words.replace("&#60;", "<").replace("&lt;", "<");
        assert!(
            words.contains("maximum of rr with p99<1ms on host"),
            "{words}"
        );
    }
}

#[test]
fn what_is_left_out_and_squeezed_is_shown() {
    let (run, mut trials) = two().run();
    for trial in trials.iter_mut().filter(|one| one.block < 2) {
        let observation = trial.observation.as_mut().unwrap();
        observation.common.softnet.squeezed = 77;
        observation.common.protocols.push(ProtocolCounters {
            tcp_timeouts: 5,
            ..ProtocolCounters::default()
        });
        if trial.treatment == 1 {
            // As busy as without load: there is no ratio of that.
            observation.common.machines[0].busy_ns = 0;
        }
    }
    let summary = Summary::new(&run, &trials);
    let said = "2 pairs left out of comparisons";
    let text = terminal::render(&summary, terminal::Style::default());
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(said), "{text}");
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains(said) && page.contains("<td>8, 2 without a ratio</td>"));
    assert!(page.contains(">squeezed</th>") && page.contains("<td>154</td>"));
    assert!(page.contains(">TCP timeouts</th>") && page.contains("<td>10</td>"));
    // One direction of a stream carries data, the other acknowledgements.
    let packets = &parsed(&summary)["treatments"][2]["packets"];
    assert_eq!(packets["timeouts"], 10);
    assert_eq!(packets["mean_received_bytes"], 66.0);
    assert!(packets["mean_sent_bytes"].as_f64() > packets["mean_size_bytes"].as_f64());
    assert!(
        page.contains("within this run"),
        "percentiles have intervals"
    );
    assert_eq!(
        parsed(&summary)["treatments"][2]["packets"]["squeezed"],
        154
    );
}

#[test]
fn packets_from_the_sender_come_first_on_whichever_side_the_device_is() {
    let answers = Workload {
        response_size: 1_000,
        ..fake::rr()
    };
    let fake = Fake {
        workloads: vec![fake::stream(), answers],
        ..two()
    };
    let (run, mut trials) = fake.run();
    for trial in &mut trials {
        let device = &mut trial.observation.as_mut().unwrap().common.devices[0];
        if trial.treatment >= 2 {
            device.rx_bytes *= 5;
        }
        // The device of the second network is the receiver's.
        if trial.treatment % 2 == 1 {
            std::mem::swap(&mut device.rx_bytes, &mut device.tx_bytes);
            std::mem::swap(&mut device.rx_packets, &mut device.tx_packets);
        }
    }
    let summary = Summary::new(&run, &trials);
    let sizes = |of: usize| {
        let packets = &summary.treatments[of].packets;
        [packets.mean_sent_bytes, packets.mean_received_bytes].map(|size| size.unwrap().round())
    };
    for stream in [0, 1] {
        assert!(sizes(stream)[0] > 30_000.0, "{:?}", sizes(stream));
        assert_eq!(sizes(stream)[1], 66.0);
    }
    for answered in [2, 3] {
        assert_eq!(sizes(answered), [130.0, 650.0]);
    }
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains(">mean packet from, to the sender</th>"));
}

#[test]
fn where_the_time_goes_is_shown_where_it_was_stamped_and_nowhere_else() {
    let (run, mut trials) = two().run();
    let title = "Where the time goes";
    let plain = Summary::new(&run, &trials);
    assert!(!terminal::render(&plain, terminal::Style::default()).contains(title));
    assert!(parsed(&plain)["treatments"][0].get("spans").is_none());
    for trial in trials.iter_mut().filter(|one| one.treatment == 1) {
        let mut spans = Spans {
            share: 0.01,
            complete: 100,
            unstamped: 1,
            ..Spans::default()
        };
        for (span, ns) in [
            (&mut spans.protocol, 3_000),
            (&mut spans.queue, 500),
            (&mut spans.network_and_server, 20_000),
            (&mut spans.wake_up, 6_500),
            (&mut spans.service_time, 30_000),
        ] {
            span.record_n(ns, 100);
        }
        load_of(trial).load.spans = Some(Box::new(spans));
    }
    let summary = Summary::new(&run, &trials);
    let kept = summary.treatments[1].account.kept as u64;
    let text = terminal::render(&summary, terminal::Style::default());
    let (_, table) = text.split_once(title).expect("a table of spans");
    let row: Vec<&str> = table.lines().nth(2).unwrap().split_whitespace().collect();
    let label = summary.treatments[1].treatment.label.as_str();
    assert_eq!(row[0], label, "{table}");
    assert_eq!(row[1..5], ["30.0", "µs", "3.00", "µs"], "{table}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let sample = format!("{} of {}", 100 * kept, 101 * kept);
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains(&sample) && page.contains(title));
    assert!(markdown::render(&summary).contains(&sample));
    let json = parsed(&summary);
    assert_eq!(json["treatments"][1]["spans"]["complete"], 100 * kept);
    assert!(json["treatments"][0].get("spans").is_none());
}

#[test]
fn html_needs_nothing_from_outside() {
    let (run, trials) = Fake::new(&fake::networks()).run();
    let page = html::render(&Summary::new(&run, &trials), &run, &trials);
    for outside in [
        "http:", "https:", "src=", "url(", "@import", "<script", "<link", "<iframe",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("prefers-color-scheme: dark"));
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(
        page.matches("<svg").count(),
        page.matches("role=\"img\"").count()
    );
    // Overhead and CPU twice, latency and throughput once.
    assert_eq!(page.matches("<figure>").count(), 6);
    assert!(
        !page.contains("NaN") && !page.contains("inf"),
        "a position is not a number"
    );
}

#[test]
fn a_run_without_a_single_trial_still_gives_every_format() {
    let (run, _) = two().run();
    let summary = Summary::new(&run, &[]);
    let texts = [
        terminal::render(&summary, terminal::Style::default()),
        html::render(&summary, &run, &[]),
        markdown::render(&summary),
        csv::render(&summary),
        json::render(&summary),
    ];
    for text in &texts[..3] {
        assert!(text.to_lowercase().contains("cut off"), "{text}");
        assert!(text.contains("no valid trial"), "{text}");
    }
    let kept = texts[3].lines().filter(|line| line.contains("trials_kept"));
    let kept = Vec::from_iter(kept);
    let none = |line: &&str| line.split(',').any(|cell| cell == "0");
    assert!(!kept.is_empty() && kept.iter().all(none), "{kept:?}");
    let object = documented::read(&texts[4]);
    assert_eq!(object["trials"]["kept"], 0, "{object}");
}

#[test]
fn a_thousand_trials_are_all_there() {
    let mut fake = Fake::new(&fake::networks()[..5]);
    fake.blocks = 100;
    fake.samples = 400;
    let (run, trials) = fake.run();
    assert_eq!(trials.len(), 1_000);
    let summary = Summary::new(&run, &trials);
    assert_eq!(summary.account.kept, 1_000);
    let page = html::render(&summary, &run, &trials);
    assert_eq!(page.matches("<td>kept</td>").count(), 1_000);
}

#[test]
fn a_page_and_markdown_show_every_latency_where_the_experiment_asks() {
    let (mut run, trials) = Fake::new(&fake::networks()).run();
    let render = |run: &Run| {
        let summary = Summary::new(run, &trials);
        let page = html::render(&summary, run, &trials);
        (page, markdown::render(&summary))
    };
    let (page, text) = render(&run);
    assert!(!page.contains("Histograms of the latencies") && !text.contains("deviation"));
    run.plan.distribution = true;
    let (page, text) = render(&run);
    // Of rr, and not of the bulk.
    assert_eq!(page.matches("Histograms of the latencies").count(), 1);
    assert!(page.contains("<th scope=\"col\">times host</th>"));
    let head = "| network | measured | mean | deviation | times host |";
    assert!(text.contains(head), "{text}");
    assert!(text.contains("| host | 17,500 |"), "{text}");
    let bins = text.split("How many there are in each bin:").nth(1);
    let bins = bins.expect("it is there").trim_start().lines().skip(2);
    let of_host = bins.take_while(|line| line.starts_with('|'));
    let of_host = of_host.filter_map(|line| line.split('|').nth(2));
    let counts = of_host.map(|cell| cell.trim().replace(',', "").parse::<u64>().unwrap());
    assert_eq!(counts.sum::<u64>(), 17_500);
}
