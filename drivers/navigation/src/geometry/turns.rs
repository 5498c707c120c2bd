//! Compares the turns of the scans with those of the wheels. PURE.
//!
//! The turn between two scans is `ratio` times that of the wheels plus `per_m` times their way, if
//! the times of the scans are right. If scans seem newer than they are, this holds for the turn of the
//! wheels some time before. So the sums of a linear regression are kept for many delays, and the delay
//! with the smallest error is the right one.

use std::time::Duration;

use crate::odometry::Odometry;

/// The delays that are tried.
const STEP_MS: i64 = 10;
const FIRST_MS: i64 = -300;
const LAST_MS: i64 = 500;
/// The range of these delays: the odometry must cover so much around a scan.
pub(super) const EARLIEST: Duration = Duration::from_millis(LAST_MS as u64);
pub(super) const LATEST: Duration = Duration::from_millis(FIRST_MS.unsigned_abs());
/// The curvature of the error is measured so many delays before and after the smallest one.
const AROUND: usize = 3;
/// The error of the turn between two scans is never less than this: it keeps simulated scans without
/// noise from pretending certainty.
const MIN_SIGMA_RAD: f64 = 0.002;
/// Equal wheels do not turn the robot: the standard deviation of `per_m` before anything is known.
const PER_M_SIGMA: f64 = 3.0;
/// Neighbouring turns share a scan, and wheels slip for longer than one turn: the standard deviations
/// of the regression times this.
const DEPENDENT: f64 = 2.0;
/// A turn rate counts as another one after this change.
const CHANGE_RAD_S: f64 = 0.3;

/// The turns so far.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// One per delay.
    sums: Vec<Sums>,
    /// The turns in both directions, by the scans and by the wheels.
    pub(super) seen_rad: f64,
    pub(super) driven_rad: f64,
    /// How often the turn rate has changed, by the wheels.
    pub(super) changes: u32,
    rate_rad_s: f64,
}

/// What the turns say together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    /// How much later the scans seem to be than they are, in seconds; `None` if unknown.
    pub(super) delay: Option<Value>,
    /// The turn by the scans per turn by the wheels.
    pub(super) ratio: Value,
    /// The turn by the scans per way by the wheels, in radians per metre.
    pub(super) per_m: Value,
}

/// A measured value with its standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value {
    pub(super) value: f64,
    pub(super) sigma: f64,
}

/// The sums of a regression of turns `y` by turns `x` and ways `d` of the wheels.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f64,
    xx: f64,
    xd: f64,
    dd: f64,
    xy: f64,
    dy: f64,
    yy: f64,
}

/// A solved regression.
#[derive(Clone, Copy, Debug)]
struct Fit {
    ratio: f64,
    per_m: f64,
    /// The sum of the squares of the errors.
    errors: f64,
    /// The variances of both, for errors of 1.
    ratio_variance: f64,
    per_m_variance: f64,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            sums: vec![Sums::default(); shifts_ms().count()],
            seen_rad: 0.0,
            driven_rad: 0.0,
            changes: 0,
            rate_rad_s: 0.0,
        }
    }
}

impl Turns {
    /// Adds the turn between two scans.
    pub(super) fn add(&mut self, from: Duration, to: Duration, turn_rad: f64, odometry: &Odometry) {
        for (sums, shift_ms) in self.sums.iter_mut().zip(shifts_ms()) {
            let motion = odometry.motion(before(from, shift_ms), before(to, shift_ms));
            sums.add(motion.pose.heading, motion.pose.at.x, turn_rad);
        }
        let driven_rad = odometry.motion(from, to).pose.heading;
        self.seen_rad += turn_rad.abs();
        self.driven_rad += driven_rad.abs();
        let rate_rad_s = driven_rad / (to - from).as_secs_f64();
        if (rate_rad_s - self.rate_rad_s).abs() > CHANGE_RAD_S {
            self.rate_rad_s = rate_rad_s;
            self.changes += 1;
        }
    }

    /// The result so far; `None` without turns.
    pub(super) fn compare(&self) -> Option<Compared> {
        let fits: Vec<Fit> = self.sums.iter().map(Sums::fit).collect::<Option<_>>()?;
        let best = (0..fits.len()).min_by(|a, b| fits[*a].errors.total_cmp(&fits[*b].errors))?;
        let fit = &fits[best];
        let count = self.sums[best].count;
        let variance = (fit.errors / (count - 3.0).max(1.0)).max(MIN_SIGMA_RAD.powi(2));
        let value = |value: f64, unit_variance: f64| Value {
            value,
            sigma: DEPENDENT * (variance * unit_variance).sqrt(),
        };
        Some(Compared {
            delay: delay(&fits, best, variance),
            ratio: value(fit.ratio, fit.ratio_variance),
            per_m: value(fit.per_m, fit.per_m_variance),
        })
    }
}

/// The delay with the smallest error, between those that were tried.
fn delay(fits: &[Fit], best: usize, variance: f64) -> Option<Value> {
    let low = fits.get(best.checked_sub(AROUND)?)?.errors;
    let (middle, high) = (fits[best].errors, fits.get(best + AROUND)?.errors);
    // A parabola through the three.
    let bend = low + high - 2.0 * middle;
    if bend <= 0.0 {
        return None;
    }
    let width_s = AROUND as f64 * STEP_MS as f64 / 1000.0;
    let off = (low - high) / (2.0 * bend);
    let best_ms = FIRST_MS + STEP_MS * best as i64;
    Some(Value {
        value: best_ms as f64 / 1000.0 + off * width_s,
        sigma: DEPENDENT * width_s * (2.0 * variance / bend).sqrt(),
    })
}

impl Sums {
    fn add(&mut self, x: f64, d: f64, y: f64) {
        self.count += 1.0;
        self.xx += x * x;
        self.xd += x * d;
        self.dd += d * d;
        self.xy += x * y;
        self.dy += d * y;
        self.yy += y * y;
    }

    /// `None` if the wheels did not turn the robot.
    fn fit(&self) -> Option<Fit> {
        let dd = self.dd + (MIN_SIGMA_RAD / PER_M_SIGMA).powi(2);
        let determinant = self.xx * dd - self.xd * self.xd;
        if determinant <= 1e-9 * self.xx * dd {
            return None;
        }
        let ratio = (self.xy * dd - self.dy * self.xd) / determinant;
        let per_m = (self.dy * self.xx - self.xy * self.xd) / determinant;
        let errors = self.yy - ratio * self.xy - per_m * self.dy;
        Some(Fit {
            ratio,
            per_m,
            errors: errors.max(0.0),
            ratio_variance: dd / determinant,
            per_m_variance: self.xx / determinant,
        })
    }
}

fn shifts_ms() -> impl Iterator<Item = i64> {
    (FIRST_MS..=LAST_MS).step_by(STEP_MS as usize)
}

/// A time so many milliseconds before another one.
fn before(time: Duration, shift_ms: i64) -> Duration {
    let shift = Duration::from_millis(shift_ms.unsigned_abs());
    if shift_ms < 0 {
        time + shift
    } else {
        time.saturating_sub(shift)
    }
}
