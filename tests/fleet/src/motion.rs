//! Compares the motion of the wheels with the orders of the operator. PURE.
//!
//! Each order has a number, and the speeds of the wheels are that number. So the log of the driver
//! shows which order it carried out, and when.

use amber_proto::roboclaw::MotorsSpeed;
use serde::Serialize;

/// Orders that can be told apart: twenty minutes at 10 Hz.
const NUMBERS: u32 = 200 * 200;
/// The slowest speed that stands for a number.
const FIRST_MM_S: i32 = 100;

/// The action of the driver at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    /// CLOCK_MONOTONIC.
    pub(crate) at_ns: u64,
    /// The number of the order, or `None`: the wheels stand.
    pub(crate) order: Option<u32>,
}

/// The motion of the wheels during some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Motion {
    /// Orders that the driver carried out.
    pub(crate) obeyed: usize,
    /// The longest time from an order to the next one or to the stop.
    pub(crate) longest_s: f64,
    /// The oldest order that moved the wheels, from the operator to the driver.
    pub(crate) oldest_s: f64,
}

/// The speeds that stand for an order.
pub(crate) fn speeds(order: u32) -> MotorsSpeed {
    let order = (order % NUMBERS) as i32;
    let (left, right) = (FIRST_MM_S + order % 200, FIRST_MM_S + order / 200);
    MotorsSpeed {
        front_left_speed: Some(left),
        front_right_speed: Some(right),
        rear_left_speed: Some(left),
        rear_right_speed: Some(right),
    }
}

/// A line of the log of a driver.
pub(crate) fn line(at_ns: u64, speeds: &MotorsSpeed) -> String {
    let (left, right) = (speeds.front_left_speed(), speeds.front_right_speed());
    format!("{at_ns} {left} {right}\n")
}

/// Reads the log of a driver. A line that is not yet whole is left out.
pub(crate) fn read(log: &str) -> Vec<Act> {
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    whole.lines().filter_map(act).collect()
}

fn act(line: &str) -> Option<Act> {
    let mut words = line.split(' ');
    let at_ns = words.next()?.parse().ok()?;
    let left: i32 = words.next()?.parse().ok()?;
    let right: i32 = words.next()?.parse().ok()?;
    let order = match (left, right) {
        (0, 0) => None,
        _ => Some(
            (left - FIRST_MM_S + (right - FIRST_MM_S) * 200)
                .try_into()
                .ok()?,
        ),
    };
    Some(Act { at_ns, order })
}

impl Motion {
    /// The motion of the wheels in these acts; `sent_ns` has the time of each order by its number.
    /// An order that is still carried out at the end counts until then.
    pub(crate) fn of(acts: &[Act], sent_ns: &[u64], end_ns: u64) -> Self {
        let mut motion = Self::default();
        let ends = acts.iter().skip(1).map(|it| it.at_ns).chain([end_ns]);
        for (act, until_ns) in acts.iter().zip(ends) {
            let Some(order) = act.order else {
                continue;
            };
            motion.obeyed += 1;
            motion.longest_s = motion.longest_s.max(seconds(act.at_ns, until_ns));
            let sent_ns = sent_ns.get(order as usize).copied().unwrap_or(0);
            motion.oldest_s = motion.oldest_s.max(seconds(sent_ns, act.at_ns));
        }
        motion
    }
}

/// The time from one reading of the clock to another.
pub(crate) fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn orders_are_read_from_the_speeds() {
        let mut log = String::new();
        for order in [0, 7, 200, 39_999] {
            log += &line(u64::from(order), &speeds(order));
        }
        log += &line(50_000, &MotorsSpeed::default());
        log += "60000 10";
        let orders: Vec<_> = read(&log).iter().map(|it| it.order).collect();
        assert_eq!(orders, [Some(0), Some(7), Some(200), Some(39_999), None]);
        assert_eq!(read(""), []);
    }

    #[test]
    fn the_longest_motion_ends_with_the_next_act() {
        let act = |at_s: u64, order| Act {
            at_ns: at_s * S,
            order,
        };
        let acts = [
            act(10, Some(0)),
            act(11, Some(1)),
            act(14, None),
            act(20, Some(2)),
        ];
        let motion = Motion::of(&acts, &[10 * S, 9 * S, 20 * S], 22 * S);
        assert_eq!(motion.obeyed, 3);
        assert_eq!((motion.longest_s, motion.oldest_s), (3.0, 2.0));
    }
}
