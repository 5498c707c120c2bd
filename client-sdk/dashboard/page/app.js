// The page: connects its parts with the dashboard's messages.

import { Camera } from "./camera.js";
import { once } from "./client.js";
import { $, forgetColours, notice, text } from "./dom.js";
import { DeviceList, isBroken } from "./devices.js";
import { Goal } from "./goal.js";
import { Here } from "./here.js";
import { Link } from "./link.js";
import { clearLog, takeEvent } from "./log.js";
import { MapView, describePose } from "./map.js";
import { Mapping } from "./mapping.js";
import { Panel } from "./panel.js";
import { Plot } from "./plot.js";
import { Stick, showSpeed, stopKeys } from "./stick.js";
import { Telemetry } from "./telemetry.js";

const REFUSED_MS = 4000;

// `missing`: why the mediator does not answer. `refused`: why the robot does not follow the stick now.
// `holder`: the other program that drives. `haltedBy`: the one that has halted the robot.
const state = {
  you: null, name: null, role: null, seat: {}, parts: {}, problems: {}, missing: null, refused: null, holder: null, haltedBy: null,
};
const link = new Link();
const panel = new Panel(link);
const devices = new DeviceList({
  change: (device, action) => once((robot) => robot.mediator().changeDriver({ device, action })),
  open: (device) => panel.open(device),
});
const map = new MapView($("map-canvas"), (place) => {
  if (state.role === "look") goal.refuse("This page is view-only.");
  else if (!state.parts.targets) goal.refuse("This robot has no drive-to-point driver.");
  else goal.set(place);
});
const goal = new Goal(map, ({ x, y }) => link.ask({ t: "goal", x, y }), () => settle());
const here = new Here(map, alone);
const mapping = new Mapping(alone, () => link.ask({ t: "explore" }));
const camera = new Camera(link, () => stop());
const stick = new Stick((left, right) => {
  // The stick replaces the target.
  if ((left || right) && goal.place) goal.clear();
  return link.send({ t: "drive", left, right, guard: $("guard").checked });
});
const plots = {
  wheels: new Plot($("plot-list"), { title: "Wheels", unit: "mm/s", series: ["FL", "FR", "RL", "RR"], least: 100 }),
  gyro: new Plot($("plot-list"), { title: "Turn rate", unit: "deg/s", series: ["x", "y", "z"], least: 10 }),
  accel: new Plot($("plot-list"), { title: "Acceleration", unit: "mg", series: ["x", "y", "z"], least: 200 }),
  servos: new Plot($("plot-list"), { title: "Servos", unit: "deg", series: [], least: 180, lowest: 0 }),
};

const axes = ({ xAxis, yAxis, zAxis }) => [xAxis, yAxis, zAxis];
const telemetry = new Telemetry({
  wheels: (it) => plots.wheels.add([it.frontLeftSpeed, it.frontRightSpeed, it.rearLeftSpeed, it.rearRightSpeed]),
  imu: ({ accel, gyro }) => {
    if (gyro) plots.gyro.add(axes(gyro));
    if (accel) plots.accel.add(axes(accel));
  },
  servos: ({ servoAddresses, angles }) => {
    plots.servos.name(servoAddresses.map((servo) => `#${servo}`));
    if (angles.length) plots.servos.add(angles);
  },
  // In steps that do not change all the time; null if its state is unknown.
  battery: (state) => {
    const { voltage, charge, health, present } = state ?? {};
    $("battery").hidden = voltage === undefined;
    const isWell = [undefined, "GOOD"].includes(health) && present !== false;
    const percent = charge === undefined ? "" : ` · ${Math.round(charge)} %`;
    if (voltage !== undefined) chip($("battery"), isWell ? "good" : "bad", `${(voltage / 1000).toFixed(1)} V${percent}`);
  },
});

function stop() {
  stick.release();
  goal.clear();
  if (!link.send({ t: "stop" })) notice("Not connected. The robot stops by itself.");
}

// Messages ---------------------------------------------------------------------------------------

const on = (name, take) => link.addEventListener(name, ({ detail }) => take(detail));

on("hello", (hello) => {
  Object.assign(state, { you: hello.you, name: hello.name, role: hello.role });
  $("speed").max = hello.max_speed_mm_s;
  showSpeed();
  chip($("link"), "good", hello.role === "drive" ? "connected" : "view only");
  text($("mediator"), hello.mediator);
  banner(null);
  clearLog();
  map.clear();
  goal.clear();
  for (const plot of Object.values(plots)) plot.clear();
  devices.mayChange = hello.role === "drive";
  camera.clear();
  camera.settle();
  settle();
});
on("lost", (reason) => {
  state.role = null;
  chip($("link"), "bad", "disconnected");
  banner(reason ?? "Connection to the dashboard lost. Reconnecting …");
  $("seat").hidden = true;
  $("battery").hidden = true;
  camera.settle();
  settle();
});
on("drivers", (drivers) => {
  state.missing = drivers.missing ?? null;
  if (!drivers.missing) {
    Object.assign(state, { parts: drivers.parts, problems: drivers.problems, devices: drivers.devices });
    takeMotions(drivers.devices);
  }
  document.title = `Amber · ${drivers.mediator}`;
  banner(drivers.missing ? `The mediator is unavailable: ${drivers.missing}` : null);
  if (!drivers.missing) {
    devices.take(drivers);
    telemetry.take(drivers.parts);
    camera.take(drivers.cameras);
  }
  const hasNoMap = drivers.devices.length && !drivers.parts.location && !drivers.parts.scanner;
  $("map-missing").hidden = !hasNoMap;
  if (hasNoMap) text($("map-missing"), "No map: this robot has no location driver and no laser scanner.");
  settle();
});
on("seat", (seat) => {
  state.seat = seat;
  settle();
});
on("shape", (shape) => map.setShape(shape));
on("map", (message) => map.takeMap(message));
on("pose", (pose) => {
  map.takePose(pose);
  describePose(pose);
});
on("path", (path) => {
  map.takePath(path);
  goal.takePath(path);
  const isIdle = path.missing || path.state === "idle" || !path.targets.length;
  const left = path.remaining ? `, ${path.remaining.toFixed(1)} m left` : "";
  // The reason why the robot is slow, if there is one.
  const reason = path.reason && path.reason !== "free" ? ` (${path.reason})` : "";
  text($("drive-state"), isIdle ? "" : `${path.state}${left}${reason}`);
  $("cancel").hidden = isIdle || state.role !== "drive";
});
on("mapping", (message) => {
  if (message.grows !== Boolean(mapping.state.grows)) map.startTrail();
  mapping.take(message);
});
on("trip", (trip) => goal.takeEnd(trip));
on("points", (buffer) => map.takePoints(buffer));
on("event", takeEvent);
on("notice", (message) => notice(message.text));
on("refused", (message) => {
  state.refused = { text: message.text, at: performance.now() };
  settle();
});
// The reason stays while the stick is held.
setInterval(() => {
  if (!state.refused || stick.isDriving || performance.now() - state.refused.at < REFUSED_MS) return;
  state.refused = null;
  settle();
}, 500);

/** Takes who holds the leases of the devices, and who has halted them. */
function takeMotions(devices) {
  // Drivers say for whom they move another device: "NAME via DEVICE".
  const isForeign = (holder) => holder && holder !== state.name && !holder.startsWith(`${state.name} via `);
  state.holder = devices.find(({ holder }) => isForeign(holder))?.holder ?? null;
  state.haltedBy = devices.find((device) => device.halted_by)?.halted_by ?? null;
}

/** Shows who drives, whether this page may, and what does not work. */
function settle() {
  const { you, role, seat, parts, problems, refused, holder, haltedBy } = state;
  const hint = driveHint();
  const problem = driveProblem();
  const shown = hint ?? problem ?? (holder && `${holder} drives.`);
  stick.allow(!hint);
  here.allow(role === "drive" && !state.missing ? parts.location : null);
  mapping.allow(parts.mapping, role === "drive");
  text($("drive-hint"), shown ?? stick.hint());
  $("drive-hint").classList.toggle("problem", Boolean(problem) && shown === problem);
  $("seat").hidden = role === null || (!seat.holder && !haltedBy && !holder && !(seat.viewers > 1));
  if (haltedBy) chip($("seat"), "bad", "halted");
  else if (isOther()) chip($("seat"), "bad", `page ${seat.holder} is driving`);
  else if (holder) chip($("seat"), "bad", `${holder} drives`);
  else if (seat.holder === you && problem) chip($("seat"), "bad", "the robot does not drive");
  else if (seat.holder === you) chip($("seat"), "busy", "you are driving");
  else chip($("seat"), "", `${seat.viewers} pages open`);
  $("take-over").hidden = role !== "drive" || haltedBy !== null || !(isOther() || holder || (refused && !problems.wheels));
  $("release").hidden = role !== "drive" || haltedBy === null;
  $("guard-label").hidden = !parts.guard;
  $("halt").disabled = role !== "drive";
  text($("map-problem"), mapProblem() ?? "");
  mark("drive", Boolean(problem));
  mark("devices", (state.devices ?? []).some(isBroken));
}

/** What a button changes while nobody drives in another page. */
async function alone(act) {
  if (isOther()) throw new Error("another page is driving the robot");
  return once(act);
}

const isOther = () => Boolean(state.seat.holder) && state.seat.holder !== state.you;

/** Why this page may not drive. */
function driveHint() {
  const { role, seat, parts, missing } = state;
  if (role === "look") return "This page is view-only.";
  if (role === null) return "Not connected.";
  if (missing) return "The mediator does not answer.";
  if (!parts.wheels) return "This robot has no wheels.";
  if (isOther()) return `Page ${seat.holder}${seat.address ? ` (${seat.address})` : ""} is driving.`;
  const wheels = state.devices.find((it) => it.device === parts.wheels);
  return ["up", "starting"].includes(wheels?.state) ? null : state.problems.wheels;
}

/** Why the robot does not follow the stick. */
function driveProblem() {
  const { role, parts, problems, refused, haltedBy } = state;
  if (role === null || state.missing) return null;
  if (haltedBy) return `Halted by ${haltedBy}: nothing moves until the release.`;
  const isGuarded = parts.guard && $("guard").checked;
  const guard = isGuarded && problems.guard ? `${sentence(problems.guard)} Without "Stop before obstacles", the stick works.` : null;
  return problems.wheels ?? refused?.text ?? guard;
}

/** Why the robot does not drive to a click on the map, or is not at its place there. */
function mapProblem() {
  const { role, problems } = state;
  if (role === null || state.missing) return null;
  // The causes of a refusal first.
  return problems.map ?? (role === "drive" ? problems.targets : null) ?? goal.problem;
}

const sentence = (words) => (/[.?!]$/.test(words) ? words : `${words}.`);

/** A red mark on a tab, for those who do not see what is behind it. */
function mark(tab, isMarked) {
  const button = document.querySelector(`nav [data-tab="${tab}"]`);
  button.classList.toggle("marked", isMarked);
  button.querySelector(".mark").hidden = !isMarked;
}

function chip(element, kind, shown) {
  element.className = `chip ${kind}`;
  text(element, shown);
}

function banner(shown) {
  $("banner").hidden = !shown;
  text($("banner"), shown ?? "");
}

// Controls ---------------------------------------------------------------------------------------

$("halt").addEventListener("click", stop);
$("cancel").addEventListener("click", stop);
$("take-over").addEventListener("click", () => {
  state.refused = null;
  link.send({ t: "take_over" });
  settle();
});
$("release").addEventListener("click", () => link.send({ t: "halt", halt: false }));
$("zoom-in").addEventListener("click", () => map.zoom(1.4));
$("zoom-out").addEventListener("click", () => map.zoom(1 / 1.4));
$("fit").addEventListener("click", () => {
  map.setFollow(false);
  map.isTouched = false;
  map.fit();
});
$("follow").addEventListener("click", () => map.setFollow(!map.follows));
$("speed").addEventListener("input", showSpeed);
$("guard").addEventListener("change", settle);
addEventListener("keydown", ({ key }) => {
  const layers = $("layers");
  if (key !== "Escape" || !layers.open) return;
  layers.open = false;
  layers.querySelector("summary").focus();
});
for (const box of document.querySelectorAll("[data-layer]")) {
  box.addEventListener("change", () => {
    map.layers[box.dataset.layer] = box.checked;
    map.redraw();
  });
}
for (const button of document.querySelectorAll("nav button")) {
  button.addEventListener("click", () => {
    document.body.dataset.tab = button.dataset.tab;
    for (const other of document.querySelectorAll("nav button")) other.setAttribute("aria-pressed", String(other === button));
  });
}
stopKeys(stop);
for (const name of ["gamepadconnected", "gamepaddisconnected"]) addEventListener(name, () => setTimeout(settle, 100));

const themes = ["light dark", "light", "dark"];
const setTheme = (theme) => {
  document.documentElement.style.colorScheme = theme;
  forgetColours();
};
setTheme(themes.includes(localStorage.theme) ? localStorage.theme : themes[0]);
$("theme").addEventListener("click", () => {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.style.colorScheme;
  const shown = now === themes[0] ? (isDark ? "dark" : "light") : now;
  localStorage.theme = shown === "dark" ? "light" : "dark";
  setTheme(localStorage.theme);
});
showSpeed();

// For tests.
window.amber = { state, map, mapping, camera, link, stick, plots, goal, panel };
