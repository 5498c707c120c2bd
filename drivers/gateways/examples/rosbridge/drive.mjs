// Drives an Amber robot one metre ahead with roslibjs, and prints what the robot reports.
//
//     npm install && node drive.mjs ws://127.0.0.1:9090
//
// `roslib1` as a second argument takes version 1 of the library instead of version 2.

const DISTANCE_M = 1.0;
const SPEED_M_S = 0.3;
const STANDING_M_S = 0.005;
// The robot stands if this many messages in a row say so, about a second: the first ones may have been
// on their way before it was told to stop.
const STANDING_MESSAGES = 10;

const url = process.argv[2] ?? "ws://127.0.0.1:9090";
const library = await import(process.argv[3] ?? "roslib");
const { Ros, Service, Topic } = library.default ?? library;
const ros = new Ros({ url });
ros.on("error", (error) => {
  console.error(`error: no gateway at ${url}: ${error?.message ?? "connection failed"}`);
  process.exit(1);
});

const topic = (name, messageType, options = {}) =>
  new Topic({ ros, name, messageType, ...options });
const first = (subscribed) =>
  new Promise((resolve) => {
    subscribed.subscribe((message) => {
      subscribed.unsubscribe();
      resolve(message);
    });
  });
const call = (name, serviceType, request = {}) =>
  new Promise((resolve, reject) => {
    new Service({ ros, name, serviceType }).callService(request, resolve, reject);
  });

const scan = await first(topic("/scan", "sensor_msgs/LaserScan"));
// A map in CBOR takes a third of its JSON.
const map = await first(topic("/map", "nav_msgs/OccupancyGrid", { compression: "cbor" }));
const pose = await first(topic("/robot_pose", "geometry_msgs/Pose"));
const motion = topic("/cmd_vel", "geometry_msgs/Twist");
motion.advertise();
const drive = (speed) =>
  motion.publish({
    linear: { x: speed, y: 0, z: 0 },
    angular: { x: 0, y: 0, z: 0 },
  });

// The way counts from the first odometry: the robot must not drive before.
const odometry = topic("/odom", "nav_msgs/Odometry", { throttle_rate: 100 });
let begin;
let way_m = 0;
let waiting = () => {};
/** Waits for odometry that fulfils a condition. */
const until = (holds) =>
  new Promise((resolve) => {
    waiting = (speed) => holds(speed) && resolve();
  });
odometry.subscribe((message) => {
  const { x, y } = message.pose.pose.position;
  begin ??= { x, y };
  way_m = Math.hypot(x - begin.x, y - begin.y);
  waiting(message.twist.twist.linear.x);
});
await until(() => true);
// A command is valid for half a second, so repeat it.
const repeat = setInterval(() => drive(SPEED_M_S), 100);
await until(() => way_m >= DISTANCE_M);
clearInterval(repeat);
drive(0);
const stopped = await call("/stop", "std_srvs/Trigger");
let standing = 0;
await until((speed) => {
  standing = Math.abs(speed) < STANDING_M_S ? standing + 1 : 0;
  return standing >= STANDING_MESSAGES;
});
const { topics } = await call("/rosapi/topics", "rosapi/Topics");
console.log(
  JSON.stringify({
    ranges: scan.ranges.length,
    map_cells: map.data.length,
    x_m: pose.position.x,
    way_m,
    stopped: stopped.success,
    topics,
  }),
);
ros.close();
