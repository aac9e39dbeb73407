//! Histograms: what goes in comes out, within the promised precision.

use plumbline_record::Histogram;
use proptest::prelude::*;

const MINUTE: u64 = 60_000_000_000;

fn filled(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

/// The value at quantile `q` of a sorted list: the smallest at or below which
/// a share of at least `q` lies.
fn in_list(sorted: &[u64], q: f64) -> u64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    // From a nanosecond to a minute, as many small ones as large ones.
    let value = (0.0..24.8f64).prop_map(|exponent| exponent.exp() as u64);
    prop::collection::vec(value, 1..300)
}

#[test]
fn an_empty_histogram_has_nothing() {
    let empty = Histogram::new();
    assert!(empty.is_empty());
    assert_eq!(
        (
            empty.len(),
            empty.value_at(0.99),
            empty.max(),
            empty.overflow()
        ),
        (0, 0, 0, 0)
    );
    assert_eq!(empty.mean(), 0.0);
    assert_eq!(empty.buckets().count(), 0);
}

#[test]
fn the_maximum_is_exact_and_beyond_a_minute_is_overflow() {
    let histogram = filled(&[1_234_567_891, MINUTE, MINUTE + 1, 5 * MINUTE]);
    assert_eq!((histogram.len(), histogram.overflow()), (4, 2));
    assert_eq!(histogram.max(), 5 * MINUTE);
    // What overflowed still weighs in percentiles, at the top of the range.
    assert!(histogram.value_at(0.75) >= MINUTE - MINUTE / 1000);
    let text = serde_json::to_string(&histogram).unwrap();
    assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
}

#[test]
fn zero_counts_as_one_nanosecond() {
    let histogram = filled(&[0, 0]);
    assert_eq!((histogram.len(), histogram.value_at(0.5)), (2, 1));
}

#[test]
fn damaged_histograms_are_refused() {
    let sound = serde_json::to_value(filled(&[10, 20_000, 3_000_000])).unwrap();
    let hdr = sound["hdr_v2"].as_str().unwrap().to_owned();
    for (what, damaged) in [
        ("not base64", "~~~~".to_owned()),
        ("nothing", String::new()),
        ("cut off", hdr[..hdr.len() / 2 / 4 * 4].to_owned()),
        ("another cookie", format!("AAAA{}", &hdr[4..])),
    ] {
        let mut value = sound.clone();
        value["hdr_v2"] = damaged.into();
        assert!(
            serde_json::from_value::<Histogram>(value).is_err(),
            "{what} was accepted"
        );
    }
    let mut miscounted = sound;
    miscounted["count"] = 4.into();
    let error = serde_json::from_value::<Histogram>(miscounted).unwrap_err();
    assert!(
        error.to_string().contains("holds 3 values but says 4"),
        "{error}"
    );
}

/// The text of a histogram with these bytes behind its header, which is made to fit.
fn with_counters(counters: &[u8], count: u64, overflow: u64) -> Result<Histogram, String> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let mut value = serde_json::to_value(filled(&[10])).unwrap();
    let mut bytes = STANDARD.decode(value["hdr_v2"].as_str().unwrap()).unwrap();
    bytes.truncate(40);
    bytes[4..8].copy_from_slice(&(counters.len() as u32).to_be_bytes());
    bytes.extend(counters);
    value["hdr_v2"] = STANDARD.encode(bytes).into();
    value["count"] = count.into();
    value["overflow"] = overflow.into();
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// What is read is added up, and written again: neither may fail.
#[test]
fn a_histogram_that_no_trial_can_have_is_refused() {
    // Zigzag: 1 is written as 2, and a number of zeroes as twice that less one.
    assert_eq!(with_counters(&[2], 1, 1).unwrap().len(), 1);
    let error = with_counters(&[2], 1, 2).unwrap_err();
    assert!(error.contains("2 of them are above 60 s"), "{error}");
    // 27,389 zeroes, and one above 60 s.
    let error = with_counters(&[0xf9, 0xab, 0x03, 2], 1, 0).unwrap_err();
    assert!(error.contains("above its range"), "{error}");
    // 27,388 zeroes, and one at 60 s.
    let top = with_counters(&[0xf7, 0xab, 0x03, 2], 1, 0).unwrap();
    let text = serde_json::to_string(&top).unwrap();
    assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), top);
    // 2^62 of them.
    let many = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80];
    let error = with_counters(&many, 1 << 62, 0).unwrap_err();
    assert!(error.contains("more values than there can be"), "{error}");
}

/// A header may ask for more memory than a machine has; it is not obeyed (S-7).
#[test]
fn a_histogram_of_another_shape_is_refused_before_it_is_made() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let sound = serde_json::to_value(filled(&[10])).unwrap();
    let bytes = STANDARD.decode(sound["hdr_v2"].as_str().unwrap()).unwrap();
    // Offsets of the HDR V2 header: digits at 12, lowest at 16, highest at 24.
    for (what, at, with) in [
        ("five digits", 12, 5u32.to_be_bytes().to_vec()),
        ("from 2 ns", 16, 2u64.to_be_bytes().to_vec()),
        ("to 2^62 ns", 24, (1u64 << 62).to_be_bytes().to_vec()),
    ] {
        let mut changed = bytes.clone();
        changed[at..at + with.len()].copy_from_slice(&with);
        let mut value = sound.clone();
        value["hdr_v2"] = STANDARD.encode(changed).into();
        let error = serde_json::from_value::<Histogram>(value).unwrap_err();
        assert!(
            error.to_string().contains("another range or precision"),
            "{what}: {error}"
        );
    }
}

proptest! {
    // A histogram has 27,648 counters, which a debug build walks slowly.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_histogram_comes_back_from_its_text(values in values()) {
        let histogram = filled(&values);
        let text = serde_json::to_string(&histogram).unwrap();
        prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_list_within_a_thousandth(
        mut values in values(),
        q in 0.0..=1.0f64,
    ) {
        let histogram = filled(&values);
        values.sort_unstable();
        let (found, expected) = (histogram.value_at(q), in_list(&values, q).max(1));
        let error = found.abs_diff(expected) as f64 / expected as f64;
        prop_assert!(error <= 1e-3, "{} instead of {} at {}", found, expected, q);
        prop_assert_eq!(histogram.max(), *values.last().unwrap());
        prop_assert_eq!(histogram.value_at(1.0), histogram.max().max(1));
    }

    /// What was read keeps few counters; it must answer as what was recorded.
    #[test]
    fn a_histogram_that_was_read_answers_as_the_one_that_was_written(
        values in values(),
        q in prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0f64],
        ns in any::<u64>(),
    ) {
        let written = filled(&values);
        let text = serde_json::to_string(&written).unwrap();
        let mut read: Histogram = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.len(), written.len());
        prop_assert_eq!(read.value_at(q), written.value_at(q));
        prop_assert_eq!(read.max(), written.max());
        prop_assert_eq!(read.mean(), written.mean());
        for ns in [ns, ns % MINUTE, values[0], values[0] + 1, values[0].saturating_sub(1)] {
            prop_assert_eq!(read.count_at_or_below(ns), written.count_at_or_below(ns));
        }
        prop_assert!(read.buckets().eq(written.buckets()));
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
        let mut twice = written.clone();
        twice.merge(&read);
        read.merge(&written);
        prop_assert_eq!(&read, &twice);
        read.record(values[0]);
        prop_assert_eq!(read.len(), 2 * written.len() + 1);
    }

    /// S-7: bytes of any kind are a histogram or an error.
    #[test]
    fn any_bytes_are_answered(mut bytes in prop::collection::vec(any::<u8>(), 0..60), cut in 0..60usize) {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;

        let mut value = serde_json::to_value(filled(&[10, 20_000, 3_000_000])).unwrap();
        let sound = STANDARD.decode(value["hdr_v2"].as_str().unwrap()).unwrap();
        let kept = cut.min(sound.len());
        bytes.splice(0..0, sound[..kept].iter().copied());
        value["hdr_v2"] = STANDARD.encode(&bytes).into();
        if let Ok(histogram) = serde_json::from_value::<Histogram>(value) {
            prop_assert_eq!(histogram.len(), 3);
        }
    }

    #[test]
    fn merging_is_recording_together(left in values(), right in values()) {
        let mut merged = filled(&left);
        merged.merge(&filled(&right));
        let together: Vec<u64> = left.iter().chain(&right).copied().collect();
        prop_assert_eq!(merged, filled(&together));
    }

    #[test]
    fn buckets_hold_everything_in_order(values in values()) {
        let histogram = filled(&values);
        let buckets: Vec<(u64, u64)> = histogram.buckets().collect();
        prop_assert!(buckets.is_sorted_by(|a, b| a.0 < b.0));
        let total: u64 = buckets.iter().map(|(_, count)| count).sum();
        prop_assert_eq!(total, values.len() as u64);
        for (highest, _) in &buckets {
            let below: u64 = buckets.iter().filter(|(v, _)| v <= highest).map(|(_, n)| n).sum();
            prop_assert_eq!(histogram.count_at_or_below(*highest), below);
        }
    }
}
