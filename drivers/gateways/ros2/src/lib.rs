//! The messages of ROS 2 nodes over Zenoh: those with `rmw_zenoh`, and those behind a bridge.
//!
//! ```text
//!  Zenoh key:   0/robot1/scan/sensor_msgs::msg::dds_::LaserScan_/RIHS01_64c1...      keys
//!  payload:     00 01 00 00 ...   the message in CDR                                 cdr, messages
//!  attachment:  sequence number, time, identity of the publisher: 33 bytes           attachment
//!
//!  token:       @ros2_lv/0/1a2b.../0/10/MP/%/%robot1/amber/%robot1%scan/.../::,10:,:,:,,   token, qos
//! ```
//!
//! A ROS 2 node is nothing but such keys and tokens, so a program without ROS can be one. This crate
//! makes and reads them; it knows neither Zenoh nor Amber's devices. Everything in it is PURE: it
//! only computes.
//!
//! The formats are those of `rmw_zenoh` since Jazzy 0.2.4 and Kilted 0.6.0. Nodes that use DDS have
//! another layout, that of `zenoh-bridge-ros2dds`: other keys and tokens, no attachment, and the
//! same payloads. See [`ros2dds`].
//!
//! **Errors in these bytes affect others.** A node of ROS 2 ends when it receives an attachment of
//! another length. So [`Attachment::encode`] has a fixed length, and nothing but [`encode`] makes
//! payloads.

pub mod attachment;
pub mod cdr;
pub mod keys;
pub mod messages;
pub mod qos;
pub mod ros2dds;
pub mod token;
mod types;

pub use attachment::Attachment;
pub use cdr::{CdrError, decode, encode};
pub use keys::DataKey;
pub use qos::Qos;
pub use ros2dds::{BridgeEndpoint, BridgeToken};
pub use token::{Endpoint, EntityKind, Token};
pub use types::{Kind, RosMessage, RosType};
