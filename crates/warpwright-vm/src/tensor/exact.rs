//! A sum of `f64` terms without any error, and its rounding.

/// A running sum, held as parts that do not overlap, in increasing magnitude (J. R. Shewchuk,
/// *Adaptive precision floating-point arithmetic*, 1997). Terms must be far from the ends of the
/// range of `f64`, as products of narrower formats are.
#[derive(Clone, Debug)]
pub(super) struct ExactSum {
    parts: Vec<f64>,
    /// What is neither finite: IEEE addition of the infinities and NaNs met.
    special: f64,
}

impl ExactSum {
    pub(super) fn new(first: f64) -> Self {
        let mut sum = ExactSum { parts: Vec::with_capacity(8), special: 0.0 };
        sum.add(first);
        sum
    }

    pub(super) fn add(&mut self, term: f64) {
        if !term.is_finite() {
            self.special += term;
            return;
        }
        let mut carried = term;
        let mut kept = 0;
        for index in 0..self.parts.len() {
            let part = self.parts[index];
            let (large, small) = if carried.abs() < part.abs() { (part, carried) } else { (carried, part) };
            let sum = large + small;
            let error = small - (sum - large);
            if error != 0.0 {
                self.parts[kept] = error;
                kept += 1;
            }
            carried = sum;
        }
        self.parts.truncate(kept);
        self.parts.push(carried);
    }

    /// The sum if `f64` holds it; else of the two neighbours the one that is odd, which any narrower
    /// rounding then takes to where it would have taken the sum.
    pub(super) fn round_to_odd(&self) -> f64 {
        if self.special != 0.0 {
            return self.special;
        }
        let mut parts = self.parts.iter().rev();
        let mut high = *parts.next().unwrap_or(&0.0);
        for &part in parts {
            let sum = high + part;
            let error = part - (sum - high);
            high = sum;
            if error != 0.0 {
                // What is left below this has no effect: the parts do not overlap.
                let beyond = (error > 0.0) != (high > 0.0);
                return f64::from_bits((high.to_bits() - u64::from(beyond)) | 1);
            }
        }
        // Without the sign of a zero.
        high + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::ExactSum;

    #[test]
    fn nothing_is_lost_and_what_does_not_fit_is_odd() {
        let mut sum = ExactSum::new(2f64.powi(200));
        sum.add(2f64.powi(-200));
        sum.add(-2f64.powi(200));
        assert_eq!(sum.round_to_odd(), 2f64.powi(-200));

        let mut sum = ExactSum::new(1.0);
        sum.add(2f64.powi(-100));
        assert_eq!(sum.round_to_odd(), 1.0f64.next_up());
        sum.add(-2f64.powi(-99));
        assert_eq!(sum.round_to_odd(), 1.0f64.next_down());

        let mut sum = ExactSum::new(f64::INFINITY);
        sum.add(1.0);
        assert_eq!(sum.round_to_odd(), f64::INFINITY);
        sum.add(f64::NEG_INFINITY);
        assert!(sum.round_to_odd().is_nan());
    }
}
