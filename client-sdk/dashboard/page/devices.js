// The list of devices, with the buttons for their drivers.

import { $, ask, el, icon, notice, text, time } from "./dom.js";

const SIGNS = {
  start: icon("M6 4l10 6-10 6z"),
  restart: icon("M15.500 7A6.500 6.500 0 1 0 16.500 10M16 3v4h-4"),
  stop: icon("M5 5h10v10H5z"),
};

export class DeviceList {
  constructor({ change, open }) {
    this.change = change;
    this.open = open;
    this.rows = new Map();
    this.mayChange = true;
    this.wheels = null;
  }

  take({ devices, parts }) {
    this.wheels = parts.wheels;
    const list = $("device-list");
    const known = new Set(devices.map((it) => it.device));
    for (const [name, row] of this.rows) {
      if (known.has(name)) continue;
      row.root.remove();
      this.rows.delete(name);
    }
    for (const device of devices) {
      if (!this.rows.has(device.device)) {
        const row = this.row(device.device);
        this.rows.set(device.device, row);
        list.append(row.root);
      }
      this.show(this.rows.get(device.device), device);
    }
    const up = devices.filter((it) => it.state === "up" && !it.trouble).length;
    text($("devices-count"), devices.length ? `${up} of ${devices.length} up` : "none");
  }

  row(name) {
    const button = (action, about) => el("button", {
      type: "button", class: "icon", title: about, "aria-label": `${about} ${name}`,
      onclick: () => this.act(name, action),
    }, SIGNS[action].cloneNode(true));
    const row = {
      dot: el("span", { class: "dot", role: "img" }),
      facts: el("p", { class: "facts number" }),
      why: el("p", { class: "why", hidden: true }),
      restart: button("restart", "Restart"),
      stop: button("stop", "Stop"),
      start: button("start", "Start"),
    };
    row.root = el("li", { class: "device" },
      row.dot,
      el("button", { type: "button", class: "name", title: "Open the panel of this device", onclick: () => this.open(name) }, name),
      el("span", { class: "actions" }, row.start, row.restart, row.stop),
      row.facts, row.why);
    return row;
  }

  show(row, device) {
    const { state } = device;
    row.root.dataset.state = state;
    if (device.trouble) row.root.dataset.trouble = "";
    else delete row.root.dataset.trouble;
    row.dot.setAttribute("aria-label", device.trouble ? `${state}, trouble` : state);
    const isOff = state === "down" || state === "failed";
    row.start.hidden = !isOff;
    row.stop.hidden = isOff;
    row.restart.hidden = isOff;
    for (const button of [row.start, row.stop, row.restart]) button.disabled = !this.mayChange;
    const facts = [];
    const isWaiting = state === "backoff" && device.next_start_ms !== null;
    if (state === "up") facts.push(`up ${time(device.state_ms)}`);
    else facts.push(isWaiting ? `restarts in ${time(device.next_start_ms)}` : state);
    if (state === "up" && device.in_per_s !== null) facts.push(`in ${rate(device.in_per_s)}`, `out ${rate(device.out_per_s)}`);
    if (device.restarts) facts.push(device.restarts === 1 ? "1 restart" : `${device.restarts} restarts`);
    if (device.dropped) facts.push(`${device.dropped} dropped`);
    text(row.facts, facts.join("  ·  "));
    let why = device.trouble ?? device.reason;
    if (!why && state !== "up" && state !== "starting") why = device.last_exit;
    row.why.hidden = !why;
    text(row.why, why ?? "");
  }

  async act(device, action) {
    const question = `Stop the driver of the wheels, ${device}? Without it, nothing moves the robot.`;
    if (device === this.wheels && action === "stop" && !await ask(question, "Stop the driver")) return;
    try {
      notice(await this.change(device, action.toUpperCase()));
    } catch (error) {
      notice(error.message);
    }
  }
}

/** Whether a driver or its device does not work. One that a person has stopped is not broken. */
export function isBroken({ state, trouble }) {
  return Boolean(trouble) || state === "failed" || state === "backoff";
}

const rate = (number) => `${number < 10 ? number : Math.round(number)}/s`;
