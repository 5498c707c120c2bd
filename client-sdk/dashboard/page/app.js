// The page: connects its parts with the dashboard's messages.

import { $, forgetColours, notice, text } from "./dom.js";
import { DeviceList } from "./devices.js";
import { Link } from "./link.js";
import { clearLog, takeEvent } from "./log.js";
import { MapView, describePose } from "./map.js";
import { Mapping } from "./mapping.js";
import { Panel } from "./panel.js";
import { Plot } from "./plot.js";
import { Stick, showSpeed, stopKeys } from "./stick.js";

const state = { you: null, role: null, seat: {}, parts: {} };
const link = new Link();
const panel = new Panel(link);
const devices = new DeviceList({
  change: (device, action) => link.ask({ t: "change", device, action }),
  open: (device) => panel.open(device),
});
const map = new MapView($("map-canvas"), (place) => {
  if (state.role !== "drive") return notice("This page is view-only.");
  if (!state.parts.targets) return notice("This robot has no drive-to-point driver.");
  if (link.send({ t: "goal", x: place.x, y: place.y })) map.showGoal(place.x, place.y);
});
const mapping = new Mapping(link);
const stick = new Stick((left, right) => link.send({ t: "drive", left, right, guard: $("guard").checked }));
const plots = {
  wheels: new Plot($("plot-list"), { title: "Wheels", unit: "mm/s", series: ["FL", "FR", "RL", "RR"], least: 100 }),
  gyro: new Plot($("plot-list"), { title: "Turn rate", unit: "deg/s", series: ["x", "y", "z"], least: 10 }),
  accel: new Plot($("plot-list"), { title: "Acceleration", unit: "mg", series: ["x", "y", "z"], least: 200 }),
  servos: new Plot($("plot-list"), { title: "Servos", unit: "deg", series: [], least: 180, lowest: 0 }),
};

function stop() {
  stick.release();
  if (!link.send({ t: "stop" })) notice("Not connected. The robot stops by itself.");
}

// Messages ---------------------------------------------------------------------------------------

const on = (name, take) => link.addEventListener(name, ({ detail }) => take(detail));

on("hello", (hello) => {
  Object.assign(state, { you: hello.you, role: hello.role });
  $("speed").max = hello.max_speed_mm_s;
  showSpeed();
  chip($("link"), "good", hello.role === "drive" ? "connected" : "view only");
  text($("mediator"), hello.mediator);
  banner(null);
  clearLog();
  map.clear();
  for (const plot of Object.values(plots)) plot.clear();
  devices.mayChange = hello.role === "drive";
  panel.reopen();
  settle();
});
on("lost", (reason) => {
  state.role = null;
  chip($("link"), "bad", "disconnected");
  banner(reason ?? "Connection to the dashboard lost. Reconnecting …");
  $("seat").hidden = true;
  settle();
});
on("drivers", (drivers) => {
  state.parts = drivers.parts;
  document.title = `Amber · ${drivers.mediator}`;
  banner(drivers.missing ? `The mediator is unavailable: ${drivers.missing}` : null);
  if (!drivers.missing) devices.take(drivers);
  const missing = drivers.devices.length && !drivers.parts.location && !drivers.parts.scanner;
  $("map-missing").hidden = !missing;
  if (missing) text($("map-missing"), "No map: this robot has no location driver and no laser scanner.");
  settle();
});
on("seat", (seat) => {
  state.seat = seat;
  settle();
});
on("map", (message) => map.takeMap(message));
on("pose", (pose) => {
  map.takePose(pose);
  describePose(pose);
});
on("path", (path) => {
  map.takePath(path);
  const isIdle = path.missing || path.state === "idle" || !path.targets.length;
  const left = path.remaining ? `, ${path.remaining.toFixed(1)} m left` : "";
  // The reason why the robot is slow, if there is one.
  const reason = path.reason && path.reason !== "free" ? ` (${path.reason})` : "";
  text($("drive-state"), isIdle ? "" : `${path.state}${left}${reason}`);
  $("cancel").hidden = isIdle || state.role !== "drive";
});
on("mapping", (message) => {
  if (message.grows !== mapping.state.grows) map.startTrail();
  mapping.take(message);
});
on("points", (buffer) => map.takePoints(buffer));
on("wheels", ({ mm_s }) => plots.wheels.add(mm_s));
on("imu", ({ accel_mg, gyro_deg_s }) => {
  if (gyro_deg_s) plots.gyro.add(gyro_deg_s);
  if (accel_mg) plots.accel.add(accel_mg);
});
on("servos", ({ servos, deg }) => {
  plots.servos.name(servos.map((servo) => `#${servo}`));
  if (deg.length) plots.servos.add(deg);
});
on("event", takeEvent);
on("notice", (message) => notice(message.text));
on("about", (about) => panel.takeAbout(about));
on("value", (value) => panel.takeValue(value));

/** Shows which page drives, and whether this one may. */
function settle() {
  const { you, role, seat, parts } = state;
  const isOther = seat.holder && seat.holder !== you;
  const mayDrive = role === "drive" && !isOther && Boolean(parts.wheels);
  stick.allow(mayDrive);
  mapping.allow(parts.mapping, role === "drive");
  const by = seat.address ? ` (${seat.address})` : "";
  $("seat").hidden = role === null || (!seat.holder && !(seat.viewers > 1));
  if (seat.holder === you) chip($("seat"), "busy", "you are driving");
  else if (isOther) chip($("seat"), "bad", `page ${seat.holder} is driving`);
  else chip($("seat"), "", `${seat.viewers} pages open`);
  $("guard-label").hidden = !parts.guard;
  $("halt").disabled = role !== "drive";
  let hint = stick.hint();
  if (role === "look") hint = "This page is view-only.";
  else if (role === null) hint = "Not connected.";
  else if (!parts.wheels) hint = "This robot has no wheels.";
  else if (isOther) hint = `Page ${seat.holder}${by} is driving.`;
  text($("drive-hint"), hint);
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
$("zoom-in").addEventListener("click", () => map.zoom(1.4));
$("zoom-out").addEventListener("click", () => map.zoom(1 / 1.4));
$("fit").addEventListener("click", () => {
  map.setFollow(false);
  map.isTouched = false;
  map.fit();
});
$("follow").addEventListener("click", () => map.setFollow(!map.follows));
$("speed").addEventListener("input", showSpeed);
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
window.amber = { state, map, mapping, link, stick, plots };
