// Drives an Amber robot to a point on the map with roslibjs, as a goal of Nav2's action, and prints
// how it went.
//
//     npm install && node goal.mjs ws://127.0.0.1:9090 1.4 -1

const [url = "ws://127.0.0.1:9090", x = "1.4", y = "-1"] = process.argv.slice(2);
const { Action, Ros } = await import("roslib");
const ros = new Ros({ url });
ros.on("error", (error) => {
  console.error(`error: no gateway at ${url}: ${error?.message ?? "connection failed"}`);
  process.exit(1);
});

const action = new Action({
  ros,
  name: "/navigate_to_pose",
  actionType: "nav2_msgs/action/NavigateToPose",
});
// In metres on the map, with y up.
const goal = {
  pose: {
    header: { frame_id: "map" },
    pose: { position: { x: Number(x), y: Number(y), z: 0 } },
  },
};
const distances_m = [];
const end = await new Promise((resolve) => {
  action.sendGoal(
    goal,
    () => resolve("succeeded"),
    (feedback) => distances_m.push(feedback.distance_remaining),
    resolve,
  );
});
console.log(JSON.stringify({ end, feedback: distances_m.length, farthest_m: Math.max(...distances_m) }));
ros.close();
