//! The limits of the fleet, each with its reason. PURE.

use std::time::Duration;

/// The longest name of a robot or operator: long enough for a host name.
pub const MAX_NAME: usize = 63;

/// Operators of a robot, each a client of its mediator. Most of them only watch, and need no
/// client.
pub const MAX_OPERATORS: usize = 64;

/// Programs of one operator: a local mediator has some, and a person one or two. Others find room.
pub const MAX_PROGRAMS: usize = 16;

/// Of what waits for the robot, one operator has at most this part.
pub const SHARE: usize = 4;

/// Stops that wait although there is no room for anything else.
pub const MAX_STOPS: usize = 64;

/// Orders without an answer that wait for the thread that decides about them: a tenth of a second of
/// several busy operators.
pub const MAX_ORDERS: usize = 256;

/// Questions about the robot that wait for the task that answers them.
pub const MAX_QUESTIONS: usize = 256;

/// Queries that wait for their answers: those of all operators ([`MAX_CALLS`]).
pub const MAX_QUERIES: usize = MAX_OPERATORS * MAX_CALLS;

/// Reports about trips that wait for the thread that decides about orders. Progress is dropped, ends
/// wait.
pub const MAX_NEWS: usize = 64;

/// Goals of the action `navigate_to_pose` that have no result yet. A new one replaces the last one, whose
/// result comes within a second.
pub const MAX_GOALS: usize = 8;

/// Goals whose results are kept for clients that ask for them late.
pub const MAX_RESULTS: usize = 16;

/// How long saving a map may take.
pub const SAVE_DEADLINE: Duration = Duration::from_secs(60);

/// Messages of one operator that wait for the mediator.
pub const MAX_JOBS: usize = 64;

/// Requests of one operator that are answered at the same time.
pub const MAX_CALLS: usize = 32;

/// Messages per second from one operator. Programs that measure every device twenty times a second
/// need half of it; a flood cannot occupy the drivers.
pub const ORDER_RATE: u32 = 500;

/// An operator without a token leaves the mediator after this time without messages.
pub const IDLE_OPERATOR: Duration = Duration::from_secs(10);

/// An errand, such as a way to targets, ends this long after the last sign of life of the program that
/// has set it. With the time until the driver obeys, the robot stands within two seconds.
pub const ERRAND_LIFE: Duration = Duration::from_millis(1_500);

/// The time between two signs of life of a program with an errand: four may be lost.
pub const SIGN_PERIOD: Duration = Duration::from_millis(300);

/// Programs of ROS 2 that are asked for a sign of life.
pub const MAX_ASKED: usize = 16;

/// How long a claim for a seat is valid: programs repeat it, so that claims of ended programs
/// expire; people drive within this time after a manual request.
pub const SEAT_CLAIM: Duration = Duration::from_secs(3);

/// Claims for the seats of one mediator: one of each operator.
pub const MAX_CLAIMS: usize = MAX_OPERATORS;

/// The time to wait for the answer of a device, unless the request has another.
pub const DEADLINE: Duration = Duration::from_secs(1);

/// The longest time to wait for an answer: calibrations take several seconds.
pub const MAX_DEADLINE: Duration = Duration::from_secs(60);

/// A motion that cannot be sent in this time is outdated.
pub const MOTION_DEADLINE: Duration = Duration::from_millis(100);

/// The time between two lists of drivers. Events of the mediator cause one immediately.
pub const ROSTER_PERIOD: Duration = Duration::from_secs(1);

/// The time between attempts to connect to the mediator or a router.
pub const RETRY: Duration = Duration::from_secs(1);

/// How long to wait for operators to leave the mediator at the end.
pub const LAST_WORDS: Duration = Duration::from_millis(700);

/// Without news from the other side for this time, a Zenoh link is lost.
pub const LEASE: Duration = Duration::from_secs(2);

/// For so many days before the end of a certificate, programs speak of it: people have holidays.
pub const EXPIRY_WARNING_DAYS: i64 = 14;

/// How often they do.
pub const EXPIRY_PERIOD: Duration = Duration::from_secs(12 * 3_600);

/// Sessions of a router, each of a robot or a program. Zenoh's own default of 1000 would limit a fleet
/// before anything else does.
pub const MAX_SESSIONS: usize = 10_000;

/// The longest message that a robot takes: a thousand times a long scan. Nobody sends it pictures.
pub const MAX_TO_ROBOT: usize = 1 << 20;

/// The longest message that the program of an operator takes: a large map or a picture.
pub const MAX_TO_OPERATOR: usize = 16 << 20;

/// The longest message that a router forwards: nodes of ROS 2 send each other point clouds.
pub const MAX_ROUTED: usize = 64 << 20;

/// The period of sensors that publish only at a period: that of the streams for navigation.
pub const SENSOR_PERIOD: Duration = Duration::from_millis(50);

/// A far device counts as dead if its token is gone for this long. Its robot reports the reason in
/// this time.
pub const DOUBT: Duration = Duration::from_millis(200);

/// After the start, requests wait this long for devices that have not appeared. Then the devices
/// are reported as missing. Sessions and tokens take a fraction of a second, and clients wait
/// longer.
pub const SEARCH: Duration = Duration::from_secs(2);

/// Requests of all local clients that wait for devices after the start.
pub const MAX_HELD: usize = 256;

/// Requests of all local clients that wait for far robots.
pub const MAX_PENDING: usize = 1_024;

/// How long a robot waits for the answer of a device for a local client, which has a deadline of its
/// own: longer than a request for a measurement takes.
pub const FAR_DEADLINE: Duration = Duration::from_secs(10);

/// Messages for robots that wait for a slow link.
pub const MAX_LETTERS: usize = 256;

/// A message that may move a robot is not sent later than this after its client has sent it.
pub const MOTION_AGE: Duration = Duration::from_millis(300);

/// Published messages of one far device that wait for the mediator: newer ones replace the oldest.
pub const MAX_PUBLISHED: usize = 32;

/// The time between two checks of the link to the router.
pub const LINK_PERIOD: Duration = Duration::from_millis(250);

/// The time between two log lines about drops.
pub const REPORT_PERIOD: Duration = Duration::from_secs(30);

/// An order that was delayed longer than this does not move the robot: the life of a command.
pub const ORDER_AGE: Duration = Duration::from_millis(500);

/// A command of ROS that is older was delayed by the network: the life of a command.
pub const ROS_AGE: Duration = Duration::from_millis(500);

/// For so long, the first commands of a publisher count by its clock: a few commands must have come
/// before their fastest one says something.
pub const ROS_SETTLED: Duration = Duration::from_secs(1);

/// A clock of a node that differs more than this is reported: no usual network explains it.
pub const CLOCK_TROUBLE: Duration = Duration::from_millis(300);

/// Publishers of commands whose clocks are remembered.
pub const MAX_CLOCKS: usize = 32;

/// For so long, `/diagnostics` shows that a goal was refused: until a person has looked.
pub const GOAL_SHOWN: Duration = Duration::from_secs(30);

/// How often a node of ROS 2 reports the state of its devices: the rate that diagnostic tools
/// expect.
pub const DIAGNOSTICS_PERIOD: Duration = Duration::from_secs(1);

/// The time between two requests for a pose.
pub const POSE_PERIOD: Duration = Duration::from_millis(100);

/// Later measurements are ignored.
pub const MEASUREMENT_DEADLINE: Duration = Duration::from_millis(300);

/// Nodes that have announced that they drive. Others count as those without a token.
pub const MAX_ROS_DRIVERS: usize = 1_024;

/// Subscribers of fixed frames and maps detect a missed message after this time, as with other
/// nodes.
pub const HEARTBEAT: Duration = Duration::from_millis(500);
