//! The table that is printed: a figure of Garret's, below it those of its peers with the ratio.

use std::fmt::{self, Display};

/// Collects what missed its target while figures are printed.
#[derive(Default)]
pub(crate) struct Report {
    met: usize,
    missed: Vec<String>,
}

/// The number of targets that were missed in a measurement that was made to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissedTargets(pub(crate) usize);

impl Display for MissedTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets = if self.0 == 1 { "target" } else { "targets" };
        write!(f, "{} {targets} missed", self.0)
    }
}

impl std::error::Error for MissedTargets {}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Microseconds.
    Time,
    Bytes,
    /// Things.
    Count,
    /// Things in a second.
    Rate,
    /// Bytes in a second.
    Bandwidth,
    /// A share or a ratio.
    Ratio,
}

/// The limit that a number must keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// Garret's figure that peers are compared with.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    value: f64,
    unit: Unit,
}

impl Report {
    /// Begins a group.
    pub(crate) fn heading(&self, title: &str) {
        println!("\n{title}");
    }

    /// Says something that is no figure.
    pub(crate) fn note(&self, text: &str) {
        println!("  ({text})");
    }

    /// Prints a figure of Garret's.
    pub(crate) fn figure(
        &mut self,
        what: &str,
        value: f64,
        unit: Unit,
        target: Option<Target>,
    ) -> Figure {
        let verdict = self.judge(what, value, unit, target);
        println!("  {what:<52} {:>12} {verdict}", Quantity(value, unit).to_string());
        Figure { value, unit }
    }

    /// Prints a peer's figure below Garret's. The ratio says how many times better Garret is.
    pub(crate) fn against(
        &mut self,
        figure: Figure,
        peer: &str,
        value: f64,
        target: Option<Target>,
    ) {
        let ratio = figure.better_than(value);
        let verdict = self.judge(&format!("ratio to {peer}"), ratio, Unit::Ratio, target);
        let value = Quantity(value, figure.unit).to_string();
        println!("    {peer:<50} {value:>12} {ratio:>9.2} x {verdict}");
    }

    /// Says how many targets were met and names those that weren't.
    ///
    /// # Errors
    /// [`MissedTargets`], when some weren't.
    pub(crate) fn finish(&self) -> Result<(), MissedTargets> {
        println!("\n{} targets met, {} missed", self.met, self.missed.len());
        for missed in &self.missed {
            println!("  missed: {missed}");
        }
        match self.missed.len() {
            0 => Ok(()),
            count => Err(MissedTargets(count)),
        }
    }

    fn judge(&mut self, what: &str, value: f64, unit: Unit, target: Option<Target>) -> String {
        let Some(target) = target else { return String::new() };
        let met = target.met(value);
        let wanted = match target {
            Target::AtLeast(least) => format!("at least {}", Quantity(least, unit)),
            Target::AtMost(most) => format!("at most {}", Quantity(most, unit)),
        };
        if met {
            self.met += 1;
            format!("  met: {wanted}")
        } else {
            self.missed.push(format!("{what}: {}, wanted {wanted}", Quantity(value, unit)));
            format!("  MISSED: {wanted}")
        }
    }
}

impl Figure {
    /// Returns how many times better this is than `other`: less time, fewer bytes or things, a
    /// higher rate.
    fn better_than(self, other: f64) -> f64 {
        match self.unit {
            Unit::Time | Unit::Bytes | Unit::Count => other / self.value,
            Unit::Rate | Unit::Bandwidth | Unit::Ratio => self.value / other,
        }
    }
}

impl Target {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// A number with its unit.
struct Quantity(f64, Unit);

impl Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, unit) = *self;
        match unit {
            Unit::Time if value >= 1e6 => write!(f, "{:.2} s", value / 1e6),
            Unit::Time if value >= 1e3 => write!(f, "{:.2} ms", value / 1e3),
            Unit::Time => write!(f, "{value:.1} us"),
            Unit::Bytes if value >= 1048576.0 => write!(f, "{:.1} MiB", value / 1048576.0),
            Unit::Bytes => write!(f, "{value:.0} B"),
            Unit::Count => write!(f, "{value:.0}"),
            Unit::Rate if value >= 100.0 => write!(f, "{value:.0} /s"),
            Unit::Rate => write!(f, "{value:.2} /s"),
            Unit::Bandwidth => write!(f, "{:.2} GB/s", value / 1e9),
            Unit::Ratio => write!(f, "{value:.4}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_say_how_much_better_whatever_the_unit() {
        let figure = |value, unit| Figure { value, unit };
        assert_eq!(figure(2.0, Unit::Time).better_than(10.0), 5.0);
        assert_eq!(figure(2.0, Unit::Bytes).better_than(1.0), 0.5);
        assert_eq!(figure(10.0, Unit::Rate).better_than(2.0), 5.0);
    }

    #[test]
    fn what_misses_its_target_is_named_and_not_counted_as_met() {
        let mut report = Report::default();
        let time = report.figure("a search", 3_000.0, Unit::Time, Some(Target::AtMost(2_000.0)));
        report.against(time, "a peer", 9_000.0, Some(Target::AtLeast(3.0)));
        report.figure("a rate", f64::NAN, Unit::Rate, Some(Target::AtLeast(1.0)));
        assert_eq!(report.met, 1);
        assert_eq!(report.finish(), Err(MissedTargets(2)));
        assert_eq!(Report::default().finish(), Ok(()));
        assert_eq!(
            report.missed,
            [
                "a search: 3.00 ms, wanted at most 2.00 ms",
                "a rate: NaN /s, wanted at least 1.00 /s"
            ]
        );
    }
}
