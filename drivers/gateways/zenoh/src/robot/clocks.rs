//! The clocks of ROS 2 nodes that do not agree with that of the robot: said once, and shown. IO.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ros::clock::in_words;

/// The trouble with clocks, by topic, in milliseconds that they are ahead.
#[derive(Clone, Default)]
pub(super) struct Clocks(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    now: BTreeMap<String, i64>,
    /// The topics of which the log has spoken.
    said: BTreeMap<String, i64>,
}

impl Clocks {
    /// The state of the clock of the newest command on a topic, with its key. The log says it once.
    pub(super) fn note(&self, key: &str, ahead_ms: Option<i64>) {
        let mut known = self.lock();
        let Some(ahead_ms) = ahead_ms else {
            known.now.remove(key);
            return;
        };
        known.now.insert(key.to_owned(), ahead_ms);
        if known.said.insert(key.to_owned(), ahead_ms).is_none() {
            let words = in_words(ahead_ms);
            tracing::warn!(
                key,
                "the clock of a ROS 2 node is {words}: set the clocks, for example by NTP; \
                 if that is impossible, set `clocks_agree = false` in [ros]"
            );
        }
    }

    /// All trouble, for people: the name of each topic, and the milliseconds that the clock is ahead.
    pub(super) fn all(&self) -> BTreeMap<String, i64> {
        let known = self.lock();
        let all = known.now.iter();
        all.map(|(key, ahead_ms)| (name(key), *ahead_ms)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the topic with this key.
fn name(key: &str) -> String {
    match amber_ros2::DataKey::parse(key) {
        Ok(key) => key.name,
        Err(_) => format!("/{key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trouble_of_each_topic_is_known_until_it_ends() {
        let clocks = Clocks::default();
        clocks.note(
            "0/r1/cmd_vel/geometry_msgs::msg::dds_::Twist_/RIHS01_1",
            Some(700),
        );
        clocks.note("r1/goal_pose", Some(-900));
        clocks.note("r1/goal_pose", None);
        assert_eq!(clocks.all(), [("/r1/cmd_vel".to_owned(), 700)].into());
        assert_eq!(clocks.lock().said.len(), 2);
    }
}
