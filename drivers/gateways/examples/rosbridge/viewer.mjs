// Connects as viewers for ROS do, and prints what a viewer shows of an Amber robot: it asks for all
// topics with the definitions of their types, and reads messages in the binary form of ROS 2.
//
//     npm install && node viewer.mjs ws://127.0.0.1:9090

import { parse } from "@foxglove/rosmsg";
import { MessageReader } from "@foxglove/rosmsg2-serialization";
import WebSocket from "ws";

// Viewers run in browsers, which have it.
globalThis.WebSocket = WebSocket;
const { default: ROSLIB } = await import("@foxglove/roslibjs");

const TOPICS = ["/scan", "/odom", "/imu", "/map", "/robot_pose", "/amcl_pose", "/tf", "/tf_static"];

const url = process.argv[2] ?? "ws://127.0.0.1:9090";
const ros = new ROSLIB.Ros({ url });
ros.on("error", (error) => {
  console.error(`error: no gateway at ${url}: ${error?.message ?? "connection failed"}`);
  process.exit(1);
});
const ask = (method, ...args) =>
  new Promise((resolve, reject) => ros[method](...args, resolve, reject));

const { topics, types, typedefs_full_text: definitions } = await ask("getTopicsAndRawTypes");
const is_ros_2 = types.includes("rcl_interfaces/msg/Log");
const readers = new Map();
topics.forEach((topic, index) => {
  const parsed = parse(definitions[index], { ros2: is_ros_2 });
  readers.set(topic, { type: types[index], reader: new MessageReader(parsed) });
});

const links = ({ transforms }) =>
  transforms.map((one) => `${one.header.frame_id} ${one.child_frame_id}`);

/** The first message of a topic; of what is fixed on the robot, the first with the laser. */
const first = (name) =>
  new Promise((resolve) => {
    const { type: messageType, reader } = readers.get(name);
    const topic = new ROSLIB.Topic({ ros, name, messageType, compression: "cbor-raw" });
    topic.subscribe(({ bytes }) => {
      const message = reader.readMessage(bytes);
      if (name === "/tf_static" && !links(message).includes("base_link laser")) return;
      topic.unsubscribe();
      resolve(message);
    });
  });
const messages = await Promise.all(TOPICS.map(first));
const [scan, odometry, imu, map, pose, covariant, frames, fixed] = messages;

const nodes = await ask("getNodes");
const details = await new Promise((resolve, reject) => {
  ros.getNodeDetails(
    nodes[0],
    (subscribing, publishing, services) => resolve({ subscribing, publishing, services }),
    reject,
  );
});
const parameters = await ask("getParams");
console.log(
  JSON.stringify({
    is_ros_2,
    ranges: scan.ranges.length,
    turns: odometry.pose.pose.orientation.w,
    gravity_m_s2: imu.linear_acceleration.z,
    map_cells: map.data.length,
    x_m: [pose.position.x, covariant.pose.pose.position.x],
    frames: [...links(frames), ...links(fixed)],
    publishes_scans: details.publishing.includes("/scan"),
    parameters,
  }),
);
ros.close();
