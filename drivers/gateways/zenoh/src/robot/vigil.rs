//! Signs of life of the ROS 2 programs that have set a goal. PURE.
//!
//! A node of ROS 2 does not say by itself that it lives, and its token lives on with its link: up to a
//! minute after the node or the network has failed. So the robot asks the Zenoh session of the node,
//! which answers in the admin space `@/SESSION/**` as long as its process runs and can be reached. An
//! answer proves that the program lived when it was asked. What cannot be asked must repeat its goal.
//!
//! A goal of a node with `rmw_zenoh` has the identity of its publisher, which is the hash of a token
//! with the session in it. A goal from a bridge has no sender: then all bridges that publish goals must
//! answer.

use std::collections::BTreeMap;
use std::time::Duration;

use amber_ros2::attachment::Gid;
use amber_ros2::{BridgeToken, Token};

use crate::limits::{MAX_ASKED, MAX_ROS_DRIVERS};
use crate::ros::layout::Layout;

/// The programs that may set goals, and those that have set the present one.
#[derive(Debug, Default)]
pub struct Vigil {
    /// Those who may set goals, by their tokens.
    authors: BTreeMap<String, Author>,
    goal: Option<Sender>,
    /// The sessions to ask, each with the time of the newest question that it has answered.
    asked: BTreeMap<String, Option<Duration>>,
}

/// The sender of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A publisher or client with `rmw_zenoh`.
    Node(Gid),
    /// A node behind one of the bridges.
    Bridge,
}

#[derive(Debug)]
struct Author {
    session: String,
    /// `None` for a bridge.
    gid: Option<Gid>,
}

impl Vigil {
    /// A program that may set goals has a token.
    pub fn appeared(&mut self, layout: Layout, key: &str) {
        let author = match layout {
            Layout::RmwZenoh => key.parse().ok().map(|token: Token| Author {
                session: token.session,
                gid: Some(Gid::of_token(key)),
            }),
            Layout::Ros2dds => key.parse().ok().map(|token: BridgeToken| Author {
                session: token.session,
                gid: None,
            }),
        };
        let Some(author) = author else {
            return;
        };
        if self.authors.len() < MAX_ROS_DRIVERS {
            self.authors.insert(key.to_owned(), author);
        }
        if self.asked.is_empty() {
            // The goal was faster than the token.
            self.choose();
        }
    }

    /// It has none any more. If the present goal is one of its goals, nobody else can answer for it.
    pub fn disappeared(&mut self, key: &str) {
        self.authors.remove(key);
    }

    /// A goal has arrived: from now on, its sender is asked.
    pub fn set(&mut self, sender: Sender) {
        self.goal = Some(sender);
        self.asked.clear();
        self.choose();
    }

    fn choose(&mut self) {
        let gid = match self.goal {
            Some(Sender::Node(gid)) => Some(gid),
            Some(Sender::Bridge) => None,
            None => return,
        };
        let meant = self.authors.values().filter(|it| it.gid == gid);
        let sessions = meant.map(|it| (it.session.clone(), None));
        self.asked = sessions.take(MAX_ASKED).collect();
    }

    /// The sessions to ask.
    pub fn asked(&self) -> impl Iterator<Item = &String> {
        self.asked.keys()
    }

    /// A session has answered a question that was sent at this time. Returns the time of the sign of
    /// life: that of the program that has been silent for the longest time.
    pub fn answered(&mut self, session: &str, sent: Duration) -> Option<Duration> {
        let newest = self.asked.get_mut(session)?;
        *newest = (*newest).max(Some(sent));
        self.asked.values().copied().min().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "@ros2_lv/0/ab12/0/7/MP/%/%/rviz/%r1%goal_pose/\
        geometry_msgs::msg::dds_::PoseStamped_/RIHS01_10f3/::,10:,:,:,,";
    const BRIDGES: [&str; 2] = [
        "@/c1/@ros2_lv/MP/r1§goal_pose/geometry_msgs§msg§PoseStamped/:::10,10",
        "@/c2/@ros2_lv/MP/r1§goal_pose/geometry_msgs§msg§PoseStamped/:::10,10",
    ];

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn asked(vigil: &Vigil) -> Vec<&str> {
        vigil.asked().map(String::as_str).collect()
    }

    #[test]
    fn the_session_of_the_node_is_asked() {
        let mut vigil = Vigil::default();
        vigil.appeared(Layout::RmwZenoh, NODE);
        vigil.appeared(Layout::RmwZenoh, &NODE.replace("ab12", "cd34"));
        vigil.appeared(Layout::Ros2dds, BRIDGES[0]);
        vigil.appeared(Layout::RmwZenoh, "something/else");
        assert!(asked(&vigil).is_empty());
        vigil.set(Sender::Node(Gid::of_token(NODE)));
        assert_eq!(asked(&vigil), ["ab12"]);
        assert_eq!(vigil.answered("cd34", ms(1)), None);
        assert_eq!(vigil.answered("ab12", ms(300)), Some(ms(300)));
        // An older answer that was delayed.
        assert_eq!(vigil.answered("ab12", ms(200)), Some(ms(300)));
        // Its token goes: it is asked on, and does not answer.
        vigil.disappeared(NODE);
        assert_eq!(asked(&vigil), ["ab12"]);
        // A goal of somebody without a token.
        vigil.set(Sender::Node(Gid([9; 16])));
        assert!(asked(&vigil).is_empty());
    }

    #[test]
    fn a_token_may_come_after_its_goal() {
        let mut vigil = Vigil::default();
        vigil.set(Sender::Node(Gid::of_token(NODE)));
        vigil.appeared(Layout::RmwZenoh, &NODE.replace("ab12", "cd34"));
        assert!(asked(&vigil).is_empty());
        vigil.appeared(Layout::RmwZenoh, NODE);
        assert_eq!(asked(&vigil), ["ab12"]);
        // Newer versions append more to tokens. The hash is that of the whole token.
        let newer = format!("{NODE}/backends:cpu:");
        vigil.appeared(Layout::RmwZenoh, &newer);
        vigil.set(Sender::Node(Gid::of_token(&newer)));
        assert_eq!(asked(&vigil), ["ab12"]);
    }

    #[test]
    fn all_bridges_must_answer() {
        let mut vigil = Vigil::default();
        for bridge in BRIDGES {
            vigil.appeared(Layout::Ros2dds, bridge);
        }
        vigil.set(Sender::Bridge);
        assert_eq!(asked(&vigil), ["c1", "c2"]);
        assert_eq!(vigil.answered("c1", ms(300)), None);
        assert_eq!(vigil.answered("c2", ms(600)), Some(ms(300)));
        assert_eq!(vigil.answered("c2", ms(900)), Some(ms(300)));
        assert_eq!(vigil.answered("c1", ms(900)), Some(ms(900)));
    }

    #[test]
    fn few_sessions_are_asked() {
        let mut vigil = Vigil::default();
        for number in 0..2 * MAX_ROS_DRIVERS {
            let bridge = BRIDGES[0].replace("c1", &format!("c{number:x}"));
            vigil.appeared(Layout::Ros2dds, &bridge);
        }
        vigil.set(Sender::Bridge);
        assert_eq!(asked(&vigil).len(), MAX_ASKED);
        assert_eq!(vigil.authors.len(), MAX_ROS_DRIVERS);
    }
}
