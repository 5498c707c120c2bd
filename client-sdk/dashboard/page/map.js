// The map with the robot on it: one canvas, drawn only when something changes.

import { $, colour, fitCanvas, text, themeChanged } from "./dom.js";

const POSE_MS = 110; // Poses come every 100 ms; the robot moves smoothly between them.
const TRAIL_LENGTH = 1500;
const TRAIL_STEP_M = 0.02;
// Without a robot device, the size of the robot is unknown.
const USUAL_M = { length: 0.46, width: 0.38 };
const OLD_SCAN_MS = 1500;
const CLICK_PX = 6;
const VISIBLE_PX = 0.3;
const MARGIN_PX = 12;
const TOOLS_PX = 58;
const SCALES_M = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50];
const SCALE_PX = 40;

/** Whether bounds lie within others. */
const contains = (outer, inner) =>
  outer && outer[0] <= inner[0] && outer[1] <= inner[1] && outer[2] >= inner[2] && outer[3] >= inner[3];

export class MapView {
  constructor(canvas, onGoal) {
    this.canvas = canvas;
    this.onGoal = onGoal;
    this.view = { x: 0, y: 0, scale: 60 }; // the place in the middle, and CSS pixels per metre
    this.layers = { scan: true, trail: true, path: true, particles: true };
    this.isFitted = false;
    this.follows = false;
    this.robot = USUAL_M;
    this.pointers = new Map();
    this.isPlacing = false; // whether the next drag is a pose of the robot, for onPlaced
    this.onPlaced = () => {};
    this.clear();
    new ResizeObserver(() => {
      if (!this.isTouched) this.fit();
      this.redraw();
    }).observe(canvas);
    themeChanged.addEventListener("change", () => this.redraw());
    this.listen();
  }

  /** After a new connection, everything shown may be out of date. */
  clear() {
    this.map = null;
    this.pose = null;
    this.lost = null; // where the robot was last, or may be, while its position is unknown
    this.before = null;
    this.scan = null;
    this.particles = null;
    this.path = null;
    this.trail = [];
    this.goal = null;
    this.redraw();
  }

  /** The robot is on another map now. */
  startTrail() {
    this.before = null;
    this.lost = null;
    this.trail = [];
    this.isTouched = false;
    this.fit();
  }

  takeMap(map) {
    // A growing map stays in view.
    const isNew = !this.map || (map.bounds && !contains(this.map.bounds, map.bounds));
    this.map = map.missing ? null : map;
    this.picture = null;
    if (map.grid) {
      const picture = new Image();
      picture.onload = () => {
        this.picture = tinted(picture);
        this.redraw();
      };
      picture.src = `data:image/png;base64,${map.grid.png}`;
    }
    if (isNew && !this.isTouched) this.fit();
    this.redraw();
  }

  takePose(pose) {
    if (pose.missing || !pose.decided) {
      // A pose that is not decided is a guess, or old.
      this.lost = pose.missing ? this.lost ?? this.pose : pose;
      this.pose = null;
      this.before = null;
    } else {
      this.lost = null;
      const shown = this.shownPose(performance.now());
      const jumped = shown && Math.hypot(pose.x - shown.x, pose.y - shown.y) > 0.7;
      this.before = jumped ? null : shown;
      this.pose = pose;
      this.poseAt = performance.now();
      const last = this.trail.at(-1);
      if (jumped) this.trail = [];
      if (!last || Math.hypot(pose.x - last[0], pose.y - last[1]) > TRAIL_STEP_M) {
        this.trail.push([pose.x, pose.y]);
        if (this.trail.length > TRAIL_LENGTH) this.trail.shift();
      }
      if (!this.map && !this.isTouched) this.fit();
    }
    this.redraw();
  }

  takePath(path) {
    this.path = path.missing ? null : path;
    this.redraw();
  }

  takePoints(buffer) {
    const kind = new DataView(buffer).getUint32(0, true);
    const points = new Float32Array(buffer, 4);
    if (kind === 3) this.particles = points;
    else {
      this.scan = { points, at: performance.now(), aroundRobot: kind === 2 };
      // It disappears even if nothing else is new.
      clearTimeout(this.scanEnd);
      this.scanEnd = setTimeout(() => this.redraw(), OLD_SCAN_MS + 1);
    }
    if (!this.map && !this.pose && !this.isTouched) this.fit();
    this.redraw();
  }

  /** Marks a target that the path does not show yet; `null` ends it. */
  markGoal(place) {
    this.goal = place;
    this.redraw();
  }

  setPlacing(isPlacing) {
    Object.assign(this, { isPlacing, placed: null });
    this.canvas.classList.toggle("placing", isPlacing);
    this.redraw();
  }

  /** The pose from the point where a drag began, looking to where it is. */
  dragPose(start, now) {
    const [dx, dy] = [now.x - start.x, now.y - start.y];
    if (Math.hypot(dx, dy) < CLICK_PX) return null;
    return { ...this.place(start.x, start.y), heading: Math.atan2(dy, dx) };
  }

  /** Whether the map shows this place. */
  has({ x, y }) {
    if (!this.map?.bounds) return true;
    const [left, top, right, bottom] = this.map.bounds;
    return x >= left && x <= right && y >= top && y <= bottom;
  }

  // The view ---------------------------------------------------------------------------------

  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    let bounds = this.map?.bounds;
    if (!bounds) {
      const at = this.pose ?? { x: 0, y: 0 };
      bounds = [at.x - 4, at.y - 4, at.x + 4, at.y + 4];
    }
    if (width < 10 || height < 10) return;
    const [left, top, right, bottom] = bounds;
    const room = [width - MARGIN_PX - TOOLS_PX, height - 2 * MARGIN_PX];
    const scale = Math.min(Math.max(Math.min(room[0] / (right - left || 1), room[1] / (bottom - top || 1)), 4), 400);
    // The tools cover the right edge.
    const shift = (TOOLS_PX - MARGIN_PX) / 2 / scale;
    this.view = { x: (left + right) / 2 + shift, y: (top + bottom) / 2, scale };
    this.redraw();
  }

  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    this.isTouched = true;
    const at = this.place(x, y);
    this.view.scale = Math.min(Math.max(this.view.scale * factor, 4), 1500);
    const moved = this.place(x, y);
    if (!this.follows) {
      this.view.x += at.x - moved.x;
      this.view.y += at.y - moved.y;
    }
    this.redraw();
  }

  pan(dx, dy) {
    this.isTouched = true;
    this.setFollow(false);
    this.view.x -= dx / this.view.scale;
    this.view.y -= dy / this.view.scale;
    this.redraw();
  }

  setFollow(follows) {
    this.follows = follows;
    $("follow").setAttribute("aria-pressed", String(follows));
    this.redraw();
  }

  /** The point on the map at a point of the canvas. */
  place(x, y) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return {
      x: this.view.x + (x - width / 2) / this.view.scale,
      y: this.view.y + (y - height / 2) / this.view.scale,
    };
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      this.moved = this.pointers.size > 1 ? CLICK_PX : 0;
      this.pressed = this.pointers.get(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = this.pointers.get(event.pointerId);
      if (!before) return;
      const now = { x: event.offsetX, y: event.offsetY };
      const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      this.moved += Math.hypot(now.x - before.x, now.y - before.y);
      if (others.length) {
        this.placed = null;
        const [other] = others;
        const distance = (point) => Math.hypot(point.x - other.x, point.y - other.y);
        this.zoom(distance(now) / (distance(before) || 1), (now.x + other.x) / 2, (now.y + other.y) / 2);
        this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
      } else if (this.isPlacing) {
        this.placed = this.dragPose(this.pressed, now);
        this.redraw();
      } else if (this.moved >= CLICK_PX) {
        canvas.classList.add("panning");
        this.pan(now.x - before.x, now.y - before.y);
      }
      this.pointers.set(event.pointerId, now);
    });
    const up = (event) => {
      const known = this.pointers.delete(event.pointerId);
      canvas.classList.remove("panning");
      if (this.isPlacing) {
        if (event.type === "pointerup" && this.placed && !this.pointers.size) this.onPlaced(this.placed);
      } else if (known && event.type === "pointerup" && this.moved < CLICK_PX && !this.pointers.size) {
        this.onGoal(this.place(event.offsetX, event.offsetY));
      }
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "+" || event.key === "=") this.zoom(1.25);
      else if (event.key === "-") this.zoom(0.8);
      else if (event.key === "0") this.fit();
      else return;
      event.preventDefault();
    });
  }

  // Drawing ----------------------------------------------------------------------------------

  redraw() {
    this.frame ??= requestAnimationFrame((now) => {
      this.frame = undefined;
      this.draw(now);
    });
  }

  /** The pose between the last two. */
  shownPose(now) {
    const { pose, before } = this;
    if (!pose || !before) return pose;
    const part = Math.min((now - this.poseAt) / POSE_MS, 1);
    const turn = Math.atan2(Math.sin(pose.heading - before.heading), Math.cos(pose.heading - before.heading));
    return {
      ...pose,
      x: before.x + part * (pose.x - before.x),
      y: before.y + part * (pose.y - before.y),
      heading: before.heading + part * turn,
      part,
    };
  }

  /** Whether the last two poses look different: a robot that stands still needs few frames. */
  isMoving() {
    const { pose, before, view } = this;
    if (!before) return false;
    const shift = Math.hypot(pose.x - before.x, pose.y - before.y) * view.scale;
    const turn = Math.abs(Math.sin((pose.heading - before.heading) / 2)) * this.robot.length * view.scale;
    return shift > VISIBLE_PX || turn > VISIBLE_PX;
  }

  draw(now) {
    const ratio = fitCanvas(this.canvas);
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const context = this.canvas.getContext("2d");
    const pose = this.shownPose(now);
    if (this.follows && pose) {
      this.view.x = pose.x;
      this.view.y = pose.y;
    }
    const { x, y, scale } = this.view;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colour("paper");
    context.fillRect(0, 0, width, height);
    // From here on, one unit is a metre.
    context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * (width / 2 - x * scale), ratio * (height / 2 - y * scale));
    const px = 1 / scale;
    this.drawGrid(context, px, width, height);
    this.drawMap(context, px);
    if (this.layers.particles && this.particles) this.drawParticles(context, px);
    if (this.layers.trail) line(context, this.trail, colour("trail"), 2 * px);
    if (this.layers.path && this.path) this.drawPath(context, px, pose);
    // Without a map, the drawing is that of the robot: it is at 0, 0.
    const isOfRobot = !pose && !this.map && this.scan?.aroundRobot;
    const hasPlace = isOfRobot || !this.scan?.aroundRobot;
    if (this.layers.scan && hasPlace && this.scan && now - this.scan.at < OLD_SCAN_MS) this.drawScan(context, px);
    if (pose) this.drawRobot(context, px, pose, "robot");
    else if (isOfRobot) this.drawRobot(context, px, { x: 0, y: 0, heading: 0 }, "robot");
    else if (this.lost) this.drawRobot(context, px, this.lost, "quiet");
    if (this.placed) this.drawRobot(context, px, this.placed, "path");
    if (this.goal) this.drawGoal(context, px, this.goal, 0.2);
    this.showScale();
    if (pose && now - this.poseAt < POSE_MS && this.isMoving()) this.redraw();
  }

  /** The bar that shows how long a round number of metres is. */
  showScale() {
    const metres = SCALES_M.find((metres) => metres * this.view.scale > SCALE_PX) ?? SCALES_M.at(-1);
    const width = `${Math.round(metres * this.view.scale)}px`;
    const shown = metres < 1 ? `${metres * 100} cm` : `${metres} m`;
    const bar = $("scale-bar");
    if (bar.style.width !== width) bar.style.width = width;
    text($("scale-text"), shown);
  }

  drawGrid(context, px, width, height) {
    const step = [0.5, 1, 2, 5, 10, 20, 50].find((metres) => metres / px > 45) ?? 100;
    const from = this.place(0, 0);
    const to = this.place(width, height);
    context.beginPath();
    for (let at = Math.ceil(from.x / step) * step; at <= to.x; at += step) {
      context.moveTo(at, from.y);
      context.lineTo(at, to.y);
    }
    for (let at = Math.ceil(from.y / step) * step; at <= to.y; at += step) {
      context.moveTo(from.x, at);
      context.lineTo(to.x, at);
    }
    context.strokeStyle = colour("grid");
    context.lineWidth = px;
    context.stroke();
  }

  drawMap(context, px) {
    if (!this.map) return;
    const { grid, walls } = this.map;
    if (grid && this.picture) {
      context.imageSmoothingEnabled = false;
      context.drawImage(this.picture, grid.x, grid.y, grid.width, grid.height);
    }
    context.strokeStyle = colour("wall");
    context.lineCap = "round";
    for (const [x1, y1, x2, y2, thickness] of walls) {
      context.lineWidth = Math.max(thickness, 2.5 * px);
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
      context.stroke();
    }
  }

  drawParticles(context, px) {
    const { particles } = this;
    const length = Math.max(0.07, 5 * px);
    context.beginPath();
    for (let k = 0; k < particles.length; k += 4) {
      const [x, y, heading] = [particles[k], particles[k + 1], particles[k + 2]];
      context.moveTo(x, y);
      context.lineTo(x + length * Math.cos(heading), y + length * Math.sin(heading));
    }
    context.strokeStyle = colour("particles");
    context.globalAlpha = 0.55;
    context.lineWidth = 1.2 * px;
    context.stroke();
    context.globalAlpha = 1;
  }

  drawScan(context, px) {
    const { points } = this.scan;
    const size = Math.max(3 * px, 0.012);
    context.fillStyle = colour("scan");
    for (let k = 0; k < points.length; k += 2) {
      context.fillRect(points[k] - size / 2, points[k + 1] - size / 2, size, size);
    }
  }

  drawPath(context, px, pose) {
    const { path, targets } = this.path;
    const start = pose && path.length ? [[pose.x, pose.y]] : [];
    line(context, [...start, ...path], colour("path"), 3 * px);
    for (const [x, y, radius] of targets) this.drawGoal(context, px, { x, y }, radius);
  }

  drawGoal(context, px, { x, y }, radius) {
    context.strokeStyle = colour("path");
    context.fillStyle = colour("path");
    context.lineWidth = 2 * px;
    context.globalAlpha = 0.18;
    context.beginPath();
    context.arc(x, y, Math.max(radius, 6 * px), 0, 7);
    context.fill();
    context.globalAlpha = 1;
    context.stroke();
    context.beginPath();
    context.arc(x, y, 3.5 * px, 0, 7);
    context.fill();
  }

  /** The size of the robot in metres; null if it is unknown. */
  setShape({ length_m, width_m }) {
    this.robot = { length: length_m ?? USUAL_M.length, width: width_m ?? USUAL_M.width };
    this.redraw();
  }

  drawRobot(context, px, pose, shade) {
    const size = Math.max(1, (18 * px) / this.robot.length);
    const [length, width] = [this.robot.length * size, this.robot.width * size];
    context.save();
    context.translate(pose.x, pose.y);
    context.rotate(pose.heading);
    context.fillStyle = colour(shade);
    context.strokeStyle = colour("paper");
    context.lineWidth = 1.5 * px;
    for (const side of [-1, 1]) {
      for (const end of [-1, 1]) {
        const [x, y] = [end * length * 0.3 - length * 0.13, side * width * 0.47 - width * 0.07];
        context.globalAlpha = 0.75;
        context.fillRect(x, y, length * 0.26, width * 0.14);
      }
    }
    context.globalAlpha = 1;
    context.beginPath();
    context.roundRect(-length / 2, -width * 0.36, length, width * 0.72, length * 0.16);
    context.fill();
    context.stroke();
    context.fillStyle = colour("paper");
    context.beginPath();
    context.moveTo(length * 0.38, 0);
    context.lineTo(length * 0.08, -width * 0.2);
    context.lineTo(length * 0.08, width * 0.2);
    context.fill();
    context.restore();
  }
}

function line(context, points, style, width) {
  if (points.length < 2) return;
  context.beginPath();
  context.moveTo(points[0][0], points[0][1]);
  for (const [x, y] of points) context.lineTo(x, y);
  context.strokeStyle = style;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.lineCap = "round";
  context.stroke();
}

/** Occupied cells in the colour of walls, free ones clear, unknown ones pale. */
function tinted(picture) {
  const canvas = document.createElement("canvas");
  canvas.width = picture.width;
  canvas.height = picture.height;
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const image = context.getImageData(0, 0, canvas.width, canvas.height);
  const wall = colour("wall").match(/[\d.]+/g).map(Number);
  for (let k = 0; k < image.data.length; k += 4) {
    const grey = image.data[k];
    const alpha = grey > 230 ? 0 : grey > 150 ? 26 : 255;
    image.data.set([wall[0], wall[1], wall[2], alpha], k);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The line of text below the map. */
export function describePose(pose) {
  // The last step turns -0 into 0.
  const isUnknown = pose.missing || !pose.decided;
  const degrees = isUnknown ? 0 : Math.round((pose.heading * 180) / Math.PI) + 0;
  const hint = $("pose").disabled ? "" : ": say where";
  text($("pose"), isUnknown ? `position unknown${hint}` : `x ${pose.x.toFixed(2)} m  y ${pose.y.toFixed(2)} m  ${degrees}°`);
}
