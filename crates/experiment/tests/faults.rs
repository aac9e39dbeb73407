//! Bad input: each fault is found, shown with its line, and answered with a remedy.

use plumbline_experiment::{Experiment, SpecError};
use proptest::prelude::*;

/// A sound experiment; the tests put faults into it.
const SOUND: &str = r#"name = "sound"
baseline = "host"

[factors]
network = ["host", "vxlan"]

[[workload]]
kind = "rr"
rate = 1000

[design]
blocks = 10
duration = "1s"
"#;

fn parse_error(text: &str) -> SpecError {
    match Experiment::parse(text, "bad.toml") {
        Ok(_) => panic!("this was accepted:\n{text}"),
        Err(error) => error,
    }
}

/// Replaces a line of the sound experiment, and expects a fault.
#[track_caller]
fn fault(sound: &str, bad: &str, line: usize, problem: &str, remedy: &str) {
    assert!(SOUND.contains(sound));
    let error = parse_error(&SOUND.replace(sound, bad));
    let shown = error.to_string();
    assert_eq!(error.line(), Some(line), "{shown}");
    assert!(error.problem().contains(problem), "{shown}");
    assert!(error.remedy().contains(remedy), "{shown}");
    assert!(shown.starts_with(&format!("bad.toml:{line}: ")), "{shown}");
    assert!(shown.contains('^'), "{shown}");
}

#[test]
fn the_sound_experiment_is_sound() {
    Experiment::parse(SOUND, "sound.toml").unwrap();
}

#[test]
fn a_fault_is_shown_as_compilers_do() {
    let error = parse_error(&SOUND.replace("rate = 1000", "rates = 1000"));
    assert_eq!(
        error.to_string(),
        "bad.toml:9: `rates` is not a key of a workload\n   \
            |\n \
          9 | rates = 1000\n   \
            | ^^^^^\n   \
            = help: did you mean `rate`?"
    );
}

#[test]
#[rustfmt::skip] // a table reads better
fn text_that_is_not_toml() {
    fault("rate = 1000", "rate = ", 9, "not TOML", "double quotes");
    fault("kind = \"rr\"", "kind = rr", 8, "not TOML", "double quotes");
}

#[test]
#[rustfmt::skip] // a table reads better
fn unknown_keys() {
    fault("baseline", "base_line", 2, "`base_line` is not a key", "`baseline`");
    fault("[factors]", "[factor]", 4, "`factor` is not a key", "`factors`");
    fault("network", "netwrok", 5, "of [factors]", "`network`");
    fault("blocks = 10", "block = 10", 12, "of [design]", "`blocks`");
    fault("rate = 1000", "rate = 1\ncolour = 1", 10, "of a workload", "known here: ");
}

#[test]
#[rustfmt::skip] // a table reads better
fn impossible_values() {
    fault("blocks = 10", "blocks = 0", 12, "`blocks` is 0", "from 1 to 1000");
    fault("blocks = 10", "blocks = \"10\"", 12, "takes a whole number, not text", "without quotes");
    fault("blocks = 10", "seed = -1", 12, "`seed`", "from 0");
    fault("rate = 1000", "rate = 0", 9, "`rate` is 0", "above 0");
    fault("rate = 1000", "rate = -5.5", 9, "`rate` is -5.5", "above 0");
    fault("rate = 1000", "rate = nan", 9, "`rate` is NaN", "above 0");
    fault("rate = 1000", "rate = inf", 9, "`rate` is inf", "above 0");
    fault("rate = 1000", "rate = 5_000_001", 9, "`rate` is 5000001", "up to 5000000");
    fault("rate = 1000", "rate = 99999999999999999999", 9, "too large", "smaller");
    fault("rate = 1000", "rate = 1\nconnections = 0", 10, "`connections` is 0", "from 1 to 100000");
    fault("kind = \"rr\"", "kind = \"datagram\"\nconnections = 5000", 9, "`connections` is 5000", "to 4096");
    fault("rate = 1000", "rate = 1\nrequest_size = 15", 10, "`request_size` is 15", "from 16");
    fault("rate = 1000", "rate = 1\nresponse_size = 16777217", 10, "16777217", "to 16777216");
    fault("duration = \"1s\"", "duration = 1", 13, "a length of time", "\"400ms\"");
    fault("duration = \"1s\"", "duration = \"soon\"", 13, "\"soon\"", "\"400ms\"");
    fault("duration = \"1s\"", "duration = \"1ms\"", 13, "not possible", "from 10ms");
    fault("duration = \"1s\"", "duration = \"25h\"", 13, "not possible", "to 86400s");
    fault("duration = \"1s\"", "warm_up = \"-1s\"", 13, "not possible", "from 0ns");
    fault("kind = \"rr\"", "kind = \"rrr\"", 8, "cannot be \"rrr\"", "`rr`");
    fault("\"sound\"", "\"../sound\"", 1, "cannot name", "letters");
    fault("[\"host\", \"vxlan\"]", "[]", 5, "has no levels", "at least one");
    fault("[\"host\", \"vxlan\"]", "[4]", 5, "takes text", "double quotes");
}

#[test]
#[rustfmt::skip] // a table reads better
fn factors_that_are_wrong() {
    fault("[\"host\", \"vxlan\"]", "\"all\"\nfamily = [4, 5]", 6, "neither 4 nor 6", "[4, 6]");
    fault("[\"host\", \"vxlan\"]", "\"all\"\nfamily = [4, 4]", 6, "listed twice", "remove one");
    fault("[\"host\", \"vxlan\"]", "\"all\"\nplacement = \"near\"", 6, "\"near\"", "cross-node");
    fault("[\"host\", \"vxlan\"]", "\"all\"\nrate = [1, 2]", 10, "a factor and a key", "remove it");
    fault("[\"host\", \"vxlan\"]", "\"all\"\nkeep_alive = [true, false]", 6, "no workload", "remove");
    let many: Vec<u32> = (1..=1_001).collect();
    fault("[\"host\", \"vxlan\"]", &format!("\"all\"\nservices = {many:?}"), 6, "more than 1000 levels", "fewer");
    let long = format!("\"all\"\nservices = {:?}\nendpoints = {:?}", &many[..101], &many[..100]);
    fault("[\"host\", \"vxlan\"]", &long, 7, "more than 10000 combinations", "fewer");
    fault("[\"host\", \"vxlan\"]", "\"all\"\nconnections = [1, 0]", 6, "`connections` is 0", "from 1");
}

#[test]
#[rustfmt::skip] // a table reads better
fn keys_that_contradict_each_other() {
    fault("kind = \"rr\"", "kind = \"http\"\nprotocol = \"udp\"", 9, "http cannot run over udp", "always tcp");
    fault("kind = \"rr\"", "kind = \"crr\"\nprotocol = \"udp\"", 9, "crr cannot", "always tcp");
    fault("kind = \"rr\"", "kind = \"datagram\"\nprotocol = \"tcp\"", 9, "datagram cannot", "always udp");
    fault("kind = \"rr\"", "kind = \"rr\"\nkeep_alive = true", 9, "no meaning for rr", "always keeps");
    fault("kind = \"rr\"", "kind = \"rr\"\ntimestamps = \"1\"", 9, "`timestamps` is \"1\"", "\"1%\"");
    fault("kind = \"rr\"", "kind = \"crr\"\ntimestamps = \"1%\"", 9, "no meaning for crr", "remove");
    fault("kind = \"rr\"", "kind = \"http\"\nkeep_alive = false\ntimestamps = \"1%\"", 10, "stay open", "keep_alive = true");
    fault("kind = \"rr\"", "kind = \"http\"\nserver = \"nginx\"\nthink = \"2us\"", 10, "does not compute", "plumbline");
    fault("kind = \"rr\"", "kind = \"rr\"\nthink = \"2s\"", 9, "`think` is \"2s\"", "1s");
    fault("kind = \"rr\"", "kind = \"rr\"\ndriver = \"uring\"\ntimestamps = \"1%\"", 10, "epoll only", "driver = \"auto\"");
    fault("rate = 1000", "rate = 1\narrival = \"closed\"", 9, "closed loop has no `rate`", "remove `rate`");
    fault("rate = 1000", "arrival = \"poisson\"", 9, "has no `rate`", "arrival = \"closed\"");
    fault("rate = 1000", "", 8, "has no `rate`", "add rate");
    fault("kind = \"rr\"", "kind = \"stream\"", 9, "`rate` has no meaning for stream", "datagram");
    fault("kind = \"rr\"\nrate = 1000", "kind = \"stream\"\narrival = \"constant\"", 9, "stream has no arrivals", "remove");
    fault("kind = \"rr\"", "kind = \"http\"\nrequest_size = 64", 9, "no meaning for http", "GET");
    fault("kind = \"rr\"", "kind = \"rr\"\nprotocol = \"udp\"\nrequest_size = 65508", 10, "65508", "65507");
    fault("rate = 1000", "rate = 0.5", 9, "no request falls into", "raise");
    fault("kind = \"rr\"", "", 9, "has no `kind`", "add kind");
    fault("kind = \"rr\"", "kind = \"rr\"\nchange = \"add\"", 9, "`change` has no meaning for rr", "remove");
    fault("kind = \"rr\"", "kind = \"programming\"\nconnections = 3", 9, "no meaning for programming", "remove");
    fault("kind = \"rr\"", "kind = \"programming\"\nobject = \"thing\"", 9, "\"thing\"", "service");
    fault("kind = \"rr\"", "kind = \"launch\"\nconnections = 3", 9, "no meaning for launch", "remove");
    fault("kind = \"rr\"", "kind = \"launch\"\npods = 101", 9, "`pods` is 101", "from 1 to 100");
    fault("kind = \"rr\"\nrate = 1000", "kind = \"launch\"\nrate = 0", 9, "`rate` is 0", "from 1 to 1000");
    fault("kind = \"rr\"\nrate = 1000", "kind = \"programming\"\nrate = 9", 9, "`rate` is 9", "from 100 to 5000");
    fault("[design]", "[[workload]]\nkind = \"rr\"\nrate = 5\n[design]", 11, "two workloads are named `rr`", "name");
}

#[test]
#[rustfmt::skip] // a table reads better
fn limits_are_percentages_of_known_metrics() {
    fault("[design]", "[limits]\np51 = \"10%\"\n[design]", 12, "`p51` is not a metric", "`p50`");
    fault("[design]", "[limits]\np50 = 0.1\n[design]", 12, "not a percentage", "\"10%\"");
    fault("[design]", "[limits]\np50 = \"-3%\"\n[design]", 12, "not a percentage", "\"10%\"");
}

#[test]
fn what_is_missing_altogether_has_no_line() {
    for (text, problem) in [("", "no `name`"), ("name = \"x\"", "no workload")] {
        let error = parse_error(text);
        assert_eq!(error.line(), None);
        assert!(error.problem().contains(problem), "{error}");
        assert!(!error.remedy().is_empty());
    }
}

proptest! {
    /// S-7: whatever the text, the answer is an experiment or a message.
    #[test]
    fn any_text_is_answered(text in ".{0,200}") {
        if let Err(error) = Experiment::parse(&text, "any.toml") {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    /// The same for text that is nearly an experiment: one stretch is replaced.
    #[test]
    fn a_damaged_experiment_is_answered(
        from in 0..SOUND.len(),
        length in 0..12usize,
        patch in "[\\[\\]=\"a-z0-9é\n .]{0,8}",
    ) {
        let to = (from + length).min(SOUND.len());
        let text = format!("{}{patch}{}", &SOUND[..from], &SOUND[to..]);
        if let Err(error) = Experiment::parse(&text, "damaged.toml") {
            prop_assert!(!error.remedy().is_empty());
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn what_has_no_study_server_or_budget_says_so() {
    fault(
        "name =",
        "study = \"machinezone-2015\"\nname =",
        1,
        "no published study",
        "machinezone-2016",
    );
    fault(
        "rate = 1000",
        "rate = 1000\nserver = \"nginx\"",
        10,
        "`server` has no meaning for rr",
        "remove it",
    );
}
