//! Numbers as a careful journal prints them.
//!
//! Every function joins number and unit with a no-break space and signs with a
//! true minus (U+2212), fit for HTML. [`plain`] turns the result into what a
//! terminal or a text file wants.

use std::time::Duration;

/// Between a number and its unit.
pub const NO_BREAK_SPACE: char = '\u{a0}';
/// What stands for a number that there is none of.
pub const NONE: &str = "–";
/// Hundredths of what something is compared with.
pub const PERCENT: &str = "%";
/// Percentage points: hundredths of the same whole.
pub const POINTS: &str = "pp";

/// The same text with ordinary spaces, for terminals and text files.
pub fn plain(text: &str) -> String {
    text.replace(NO_BREAK_SPACE, " ")
}

/// A length of time given in nanoseconds, with 3 significant digits: `29.4 µs`. None at all is
/// `0`, in any unit.
pub fn duration(ns: f64) -> String {
    if ns == 0.0 {
        return "0".to_owned();
    }
    let (scaled, unit) = scale_duration(ns);
    format!("{}{NO_BREAK_SPACE}{unit}", significant(scaled))
}

/// A length of time that somebody waits for: `45 s`, `3 min`, `2 h`.
pub fn long_duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{} s", seconds.max(1)),
        seconds @ 100..7_200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3_600)),
    }
}

/// A difference of two lengths of time, always signed, with 2 significant
/// digits below 100: `+9.1 µs`.
pub fn signed_duration(ns: f64) -> String {
    let (scaled, unit) = scale_duration(ns);
    let decimals = usize::from(scaled.abs() < 9.95);
    let digits = format!("{:.decimals$}", scaled.abs());
    format!("{}{digits}{NO_BREAK_SPACE}{unit}", sign(ns, &digits))
}

/// A number and its unit at the tick of an axis, where round values need no
/// zeros behind the point: `5.00 µs` becomes `5 µs`, and any zero `0`.
pub fn tick(text: &str) -> String {
    let Some((digits, unit)) = text.split_once(NO_BREAK_SPACE) else {
        return text.to_owned();
    };
    match trim_zeros(digits) {
        "0" => "0".to_owned(),
        digits => format!("{digits}{NO_BREAK_SPACE}{unit}"),
    }
}

/// A round change at the tick of an axis, in hundredths of a name: `+20 %`.
pub fn tick_change(fraction: f64, unit: &str) -> String {
    let digits = trimmed_decimals(fraction.abs() * 100.0, 1);
    format!("{}{digits}{NO_BREAK_SPACE}{unit}", sign(fraction, &digits))
}

/// An estimate of a length of time and the ends of its interval, all in the unit that
/// is told with them and in as many decimals as the width of the interval is worth:
/// `11`, `10`, `12` and `ns`.
pub fn estimate([value, low, high]: [f64; 3]) -> ([String; 3], &'static str) {
    let all = [value, low, high].map(|ns| if ns.is_finite() { ns } else { value });
    let largest = all.into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let (scaled, unit) = scale_duration(largest.unwrap_or(value));
    let scale = if scaled == 0.0 {
        1.0
    } else {
        scaled / largest.unwrap_or(value)
    };
    let width = match (all[2] - all[1]) / 2.0 * scale {
        0.0 => scaled.abs() / 50.0,
        half => half,
    };
    let decimals = (-width.log10()).ceil().clamp(0.0, 9.0) as usize;
    let text = |ns: f64| {
        let digits = format!("{:.decimals$}", (ns * scale).abs());
        let minus = if is_zero(&digits) { "" } else { minus(ns) };
        format!("{minus}{digits}")
    };
    (all.map(text), unit)
}

/// A rate in bits per second: `9.41 Gbit/s`.
pub fn bit_rate(bits_per_second: f64) -> String {
    let (scaled, unit) = scale(bits_per_second, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
    format!("{}{NO_BREAK_SPACE}{unit}", significant(scaled))
}

/// A rate of events per second: `5,000/s`.
pub fn rate(per_second: f64) -> String {
    format!("{}/s", count(per_second))
}

/// A number of things, whole from 100 on, with commas between thousands.
pub fn count(value: f64) -> String {
    if value.abs() < 100.0 && value.fract() != 0.0 {
        return significant(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{}{grouped}", minus(value))
}

/// So many of what has this name: `1 block`, `12 blocks`.
pub fn counted(number: u64, name: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {name}{ending}", count(number as f64))
}

/// A number of things in at most 5 characters: `999`, `34.5k`, `1.2M`.
pub fn short_count(value: f64) -> String {
    let (scaled, unit) = scale(value, ["", "k", "M", "G"]);
    let decimals = usize::from(!unit.is_empty() && scaled.abs() < 99.95);
    format!("{}{:.decimals$}{unit}", minus(value), scaled.abs())
}

/// A size in bytes: `64 B`, `1.5 kB`.
pub fn bytes(size: f64) -> String {
    let (scaled, unit) = scale(size, ["B", "kB", "MB", "GB"]);
    format!("{}{NO_BREAK_SPACE}{unit}", trimmed(scaled))
}

/// A fraction as a percentage without a sign for gains: `31 %`.
pub fn percent(fraction: f64) -> String {
    hundredths(fraction, PERCENT)
}

/// The same in hundredths of a name: `31 pp`.
pub fn hundredths(fraction: f64, unit: &str) -> String {
    format!("{}{NO_BREAK_SPACE}{unit}", percent_digits(fraction))
}

/// A change as a percentage, always signed: `+31 %`, `−4.2 %`.
pub fn signed_percent(fraction: f64) -> String {
    signed_hundredths(fraction, PERCENT)
}

/// The same in hundredths of a name: `+31 pp`.
pub fn signed_hundredths(fraction: f64, unit: &str) -> String {
    let digits = percent_digits(fraction.abs());
    format!("{}{digits}{NO_BREAK_SPACE}{unit}", sign(fraction, &digits))
}

/// An interval of changes, in hundredths of a name: `27 to 35 %`.
pub fn interval([low, high]: [f64; 2], unit: &str) -> String {
    let (low, high) = interval_digits(low, high);
    format!("{low}{NO_BREAK_SPACE}to{NO_BREAK_SPACE}{high}{NO_BREAK_SPACE}{unit}")
}

/// Half of an interval's width beside its estimate, in as many decimals: ` ±2.1`; of
/// an interval that is far from even, as it gets with much noise, both its ends. So it is of
/// one without zero, which half a width would seem to hold.
pub fn half_width(estimate: f64, [low, high]: [f64; 2]) -> String {
    let half = (high - low) / 2.0;
    let middle = f64::midpoint(low, high);
    let decimals = usize::from(estimate.abs() < 0.0995 && half < 0.0995);
    let shown = digits_in_percent(half, decimals);
    let reaches_zero =
        estimate.abs() <= half || digits_in_percent(estimate.abs(), decimals) == shown;
    let is_even = (middle - estimate).abs() <= half / 4.0;
    if !is_even || reaches_zero && excludes_zero(low, high) {
        let ends = percent_brackets(low, high);
        return format!("{NO_BREAK_SPACE}{ends}");
    }
    format!("{NO_BREAK_SPACE}±{shown}")
}

/// An interval that holds zero, in hundredths of a name: `between −2 and +9 %`.
pub fn between([low, high]: [f64; 2], unit: &str) -> String {
    let (low, high) = interval_digits(low, high);
    format!("between {low} and +{high}{NO_BREAK_SPACE}{unit}")
}

/// An interval of changes for a table: `[27, 35]`, in percent.
pub fn percent_brackets(low: f64, high: f64) -> String {
    let (low, high) = interval_digits(low, high);
    format!("[{low}, {high}]")
}

/// Three significant digits: `0.42`, `9.41`, `38.3`, `412`.
pub fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{}{:.decimals$}", minus(value), value.abs())
}

/// A percentile's name from its quantile: `p99.9`.
pub fn percentile_name(quantile: f64) -> String {
    // 0.9999 * 100 has a tail of nines or zeros; six decimals are beyond any
    // percentile that is shown.
    format!("p{}", trimmed_decimals(quantile * 100.0, 6))
}

/// Digits of a fraction in percent: one decimal below 10.
fn percent_digits(fraction: f64) -> String {
    digits_in_percent(fraction, usize::from(fraction.abs() < 0.0995))
}

/// Both ends of an interval with the same decimals: one where an end lies below
/// 10 and the interval is narrow enough for it to mean something. Where zero lies outside,
/// no end may seem to be zero.
fn interval_digits(low: f64, high: f64) -> (String, String) {
    let is_fine = low.abs().min(high.abs()) < 0.0995 && high - low < 0.1;
    let decimals = usize::from(is_fine);
    let digits = match excludes_zero(low, high) {
        true => digits_beside_zero,
        false => digits_in_percent,
    };
    (digits(low, decimals), digits(high, decimals))
}

fn excludes_zero(low: f64, high: f64) -> bool {
    low > 0.0 || high < 0.0
}

/// As many more decimals as it takes to tell it from zero, at most two; of what is nearer
/// only the side.
fn digits_beside_zero(fraction: f64, decimals: usize) -> String {
    let mut finer = (decimals..=decimals + 2).map(|it| digits_in_percent(fraction, it));
    let told = finer.find(|digits| !is_zero(digits));
    told.unwrap_or_else(|| if fraction < 0.0 { "<0" } else { ">0" }.to_owned())
}

fn digits_in_percent(fraction: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", fraction.abs() * 100.0);
    let sign = if is_zero(&digits) {
        ""
    } else {
        minus(fraction)
    };
    format!("{sign}{digits}")
}

fn is_zero(digits: &str) -> bool {
    digits.chars().all(|digit| matches!(digit, '0' | '.'))
}

fn trimmed(value: f64) -> String {
    trimmed_decimals(value, if value.abs() < 9.95 { 2 } else { 0 })
}

fn trimmed_decimals(value: f64, decimals: usize) -> String {
    trim_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn trim_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

fn scale(value: f64, units: [&str; 4]) -> (f64, &str) {
    match value.abs() {
        size if size < 999.5 => (value, units[0]),
        size if size < 999.5e3 => (value / 1e3, units[1]),
        size if size < 999.5e6 => (value / 1e6, units[2]),
        _ => (value / 1e9, units[3]),
    }
}

fn scale_duration(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        size if size < 999.5 => (ns, "ns"),
        size if size < 999.5e3 => (ns / 1e3, "µs"),
        size if size < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    }
}

/// Plus or minus; nothing before digits that are all zero.
fn sign(value: f64, digits: &str) -> &'static str {
    match value {
        _ if is_zero(digits) => "",
        value if value < 0.0 => minus(value),
        _ => "+",
    }
}

fn minus(value: f64) -> &'static str {
    if value < 0.0 { "\u{2212}" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_three_digits_and_change_unit() {
        let shown = |ns| plain(&duration(ns));
        assert_eq!(shown(0.0), "0");
        assert_eq!(shown(412.0), "412 ns");
        assert_eq!(shown(999.7), "1.00 µs");
        assert_eq!(shown(29_440.0), "29.4 µs");
        assert_eq!(shown(2.5e9), "2.50 s");
        assert_eq!(plain(&signed_duration(-9_120.0)), "−9.1 µs");
        assert_eq!(plain(&signed_duration(31_200.0)), "+31 µs");
        assert_eq!(plain(&signed_duration(0.02)), "0.0 ns");
    }

    #[test]
    fn an_estimate_has_the_decimals_that_its_interval_is_worth() {
        let shown = |values: [f64; 3]| {
            let ([value, low, high], unit) = estimate(values);
            format!("{value} ({low} to {high}) {unit}")
        };
        assert_eq!(shown([11.2, 10.1, 12.3]), "11 (10 to 12) ns");
        assert_eq!(shown([1.0012, 0.984, 1.019]), "1.00 (0.98 to 1.02) ns");
        assert_eq!(shown([-0.0004, -0.05, 0.049]), "0.00 (−0.05 to 0.05) ns");
        assert_eq!(shown([2_310.0, 2_250.0, 2_370.0]), "2.31 (2.25 to 2.37) µs");
        assert_eq!(
            shown([0.004, 0.004, 0.004]),
            "0.00400 (0.00400 to 0.00400) ns"
        );
        assert_eq!(
            shown([0.0; 3]),
            "0.000000000 (0.000000000 to 0.000000000) ns"
        );
    }

    #[test]
    fn percentages_have_a_sign_and_one_decimal_below_ten() {
        assert_eq!(plain(&signed_percent(0.3142)), "+31 %");
        assert_eq!(plain(&signed_percent(-0.042)), "−4.2 %");
        assert_eq!(plain(&signed_percent(0.0001)), "0.0 %");
        assert_eq!(plain(&signed_percent(-0.0001)), "0.0 %");
        assert_eq!(plain(&percent(0.03)), "3.0 %");
    }

    #[test]
    fn both_ends_of_an_interval_have_the_same_decimals() {
        assert_eq!(plain(&interval([0.27, 0.351], PERCENT)), "27 to 35 %");
        assert_eq!(plain(&interval([-0.012, 0.034], PERCENT)), "−1.2 to 3.4 %");
        assert_eq!(plain(&interval([0.05, 0.31], PERCENT)), "5 to 31 %");
        assert_eq!(
            plain(&interval([-0.101, -0.088], PERCENT)),
            "−10.1 to −8.8 %"
        );
    }

    #[test]
    fn a_difference_is_never_printed_as_an_interval_with_zero() {
        let nearest = f64::MIN_POSITIVE;
        assert_eq!(plain(&interval([0.0003, 0.0029], PERCENT)), "0.03 to 0.3 %");
        assert_eq!(plain(&interval([nearest, 0.34], PERCENT)), ">0 to 34 %");
        assert_eq!(percent_brackets(0.003, 0.29), "[0.3, 29]");
        assert_eq!(percent_brackets(-0.29, -nearest), "[−29, <0]");
        assert_eq!(percent_brackets(0.0, 0.29), "[0, 29]");
        let shown = |text: &str| -> f64 {
            let digits = text.trim_matches(|c: char| !c.is_ascii_digit());
            digits.parse().unwrap()
        };
        let check = |low: f64, high: f64, estimate: f64| {
            let (change, half) = (signed_percent(estimate), half_width(estimate, [low, high]));
            match half.split_once('±') {
                Some((_, half)) => assert!(shown(&change) > shown(half), "{change} ±{half}"),
                None => assert!(half.ends_with(&percent_brackets(low, high)), "{half}"),
            }
            for end in <[String; 2]>::from(interval_digits(low, high)) {
                assert!(!is_zero(end.trim_start_matches('−')), "{low} to {high}");
            }
        };
        let ends = [
            nearest, 1e-6, 0.0003, 0.0029, 0.0494, 0.05, 0.0988, 0.1, 0.2, 0.29,
        ];
        for (place, &near) in ends.iter().enumerate() {
            for &far in &ends[place + 1..] {
                for share in [0.0, 0.1, 0.4, 0.5, 0.6, 1.0] {
                    let estimate = near + share * (far - near);
                    check(near, far, estimate);
                    check(-far, -near, -estimate);
                }
            }
        }
    }

    #[test]
    fn ticks_have_no_idle_zeros() {
        assert_eq!(plain(&tick(&duration(5_000.0))), "5 µs");
        assert_eq!(plain(&tick(&bit_rate(12.5e9))), "12.5 Gbit/s");
        assert_eq!(plain(&tick(&duration(200e6))), "200 ms");
        assert_eq!(tick(&duration(0.0)), "0");
        assert_eq!(tick(&rate(5_000.0)), "5,000/s");
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        let blocks = [0, 1, 2, 5000].map(|number| counted(number, "block"));
        assert_eq!(blocks, ["0 blocks", "1 block", "2 blocks", "5,000 blocks"]);
        assert_eq!(count(5000.0), "5,000");
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(count(999.0), "999");
        assert_eq!(count(2.5), "2.50");
        assert_eq!(short_count(34_483.0), "34.5k");
        assert_eq!(short_count(999.6e3), "1.0M");
        assert_eq!(plain(&bytes(1448.0)), "1.45 kB");
        assert_eq!(plain(&bytes(64.0)), "64 B");
        assert_eq!(plain(&bit_rate(9.412e9)), "9.41 Gbit/s");
    }

    #[test]
    fn percentiles_are_named_without_binary_dust() {
        assert_eq!(percentile_name(0.5), "p50");
        assert_eq!(percentile_name(0.999), "p99.9");
        assert_eq!(percentile_name(0.99999), "p99.999");
    }
}
