// What a 3D panel draws from the messages that Amber writes for Foxglove and Lichtblick.

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const protobuf = require("protobufjs");
const descriptor = require("protobufjs/ext/descriptor");

/** The topics that `drawing` needs. The map comes only once. */
export const WANTED = [
  "/foxglove/hokuyo/0/scan",
  "/foxglove/location/0/pose",
  "/foxglove/location/0/walls",
  "/foxglove/robot",
  "/foxglove/tf",
  "/hokuyo/0/scan",
  "/roboclaw/0/currentSpeed",
];

/** The type of this name in a serialized FileDescriptorSet. */
export const typeOf = (schema, name) => {
  const root = protobuf.Root.fromDescriptor(descriptor.FileDescriptorSet.decode(schema));
  root.resolveAll();
  return root.lookupType(name);
};

export const transform = (transforms, parent, child) => {
  const found = transforms.transforms.find(
    (it) => it.parentFrameId === parent && it.childFrameId === child,
  );
  return found && { at: found.translation, heading: headingOf(found.rotation) };
};

const headingOf = (turn) => 2 * Math.atan2(turn.z, turn.w);

/** A place in a frame, in the frame above it. */
const above = ({ at, heading }, { x, y }) => ({
  x: at.x + x * Math.cos(heading) - y * Math.sin(heading),
  y: at.y + x * Math.sin(heading) + y * Math.cos(heading),
});

/** What is drawn where, from the last message of each topic. */
export const drawing = (last) => {
  const scan = last.get("/foxglove/hokuyo/0/scan");
  const transforms = last.get("/foxglove/tf");
  const step = (scan.endAngle - scan.startAngle) / (scan.ranges.length - 1);
  const points = scan.ranges
    .map((range, index) => {
      const angle = scan.startAngle + index * step;
      return { x: range * Math.cos(angle), y: range * Math.sin(angle) };
    })
    .filter(({ x }) => Number.isFinite(x))
    .map((point) => above(transform(transforms, "base_link", scan.frameId), point))
    .map((point) => above(transform(transforms, "map", "base_link"), point));
  const walls = last.get("/foxglove/location/0/walls").entities[0].cubes;
  const distance = (point, wall) => {
    const { position, orientation } = wall.pose;
    const heading = headingOf(orientation);
    const [dx, dy] = [point.x - position.x, point.y - position.y];
    const x = dx * Math.cos(heading) + dy * Math.sin(heading);
    const y = dy * Math.cos(heading) - dx * Math.sin(heading);
    const outside = (place, size) => Math.max(0, Math.abs(place) - size / 2);
    return Math.hypot(outside(x, wall.size.x), outside(y, wall.size.y));
  };
  const isOnWall = (point) => walls.some((wall) => distance(point, wall) < 0.1);
  const { pose } = last.get("/foxglove/location/0/pose");
  return {
    x: pose.position.x,
    y: pose.position.y,
    heading: headingOf(pose.orientation),
    points: points.length,
    on_walls: points.filter(isOnWall).length,
    robot_frame: last.get("/foxglove/robot").entities[0].frameId,
    raw_distances: last.get("/hokuyo/0/scan").scan.distances.length,
    speeds: Object.keys(last.get("/roboclaw/0/currentSpeed").currentSpeed.toJSON()),
  };
};
