//! Scales and where their ticks are.

/// Maps values to positions, evenly or by their logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_logarithmic: bool,
}

impl Axis {
    /// Even steps: `low` lies at `from`, `high` at `to`.
    pub(super) fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            from,
            to,
            is_logarithmic: false,
        }
    }

    /// Even factors, for positive values only.
    pub(super) fn logarithmic((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        Self {
            is_logarithmic: true,
            ..Self::linear((low, high.max(low * 1.001)), (from, to))
        }
    }

    /// Where a value lies.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// The least and the greatest value on it.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// At most about `wanted` round values within the scale.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<f64> {
        if self.is_logarithmic {
            self.logarithmic_ticks(wanted)
        } else {
            self.linear_ticks(wanted)
        }
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<f64> {
        let step = round_step((self.high - self.low) / wanted.max(1) as f64);
        let first = (self.low / step - 1e-9).ceil();
        (0..=4 * wanted.max(1))
            .map(|i| (first + i as f64) * step)
            .take_while(|&tick| tick <= self.high + step * 1e-9)
            // −0 would be printed with its sign.
            .map(|tick| if tick == 0.0 { 0.0 } else { tick })
            .collect()
    }

    fn logarithmic_ticks(&self, wanted: usize) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let of = |steps: &[f64]| -> Vec<f64> {
            let all = decades
                .clone()
                .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
            all.filter(|tick| (self.low..=self.high).contains(tick))
                .collect()
        };
        let fine = of(&[1.0, 2.0, 5.0]);
        if fine.len() <= 2 * wanted {
            fine
        } else {
            of(&[1.0])
        }
    }
}

/// The next of 1, 2, 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let rounded = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= step * (1.0 - 1e-9));
    rounded.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::linear((-0.05, 0.4), (0.0, 100.0));
        let shown: Vec<String> = axis
            .ticks(5)
            .iter()
            .map(|tick| format!("{tick:.1}"))
            .collect();
        assert_eq!(shown, ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        let axis = Axis::logarithmic((25.0, 1200.0), (0.0, 100.0));
        assert_eq!(axis.ticks(4), [50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert!(axis.at(25.0).abs() < 1e-9 && (axis.at(1200.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_scale_without_extent_still_has_positions() {
        let axis = Axis::linear((3.0, 3.0), (0.0, 10.0));
        assert!(axis.at(3.0).is_finite());
        assert!(!axis.ticks(4).is_empty());
        assert!(
            Axis::logarithmic((0.0, 0.0), (0.0, 10.0))
                .at(1.0)
                .is_finite()
        );
    }
}
