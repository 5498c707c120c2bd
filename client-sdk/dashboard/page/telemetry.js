// The plots and the battery: what these devices tell, with a client of its own, as long as somebody sees the page.

import { connect, pause } from "./client.js";

const IMU_MS = 50;
const SERVOS_MS = 400;
// Wheels that publish nothing for this time are asked: drivers of the original system do not publish.
const SILENCE_MS = 1000;
const ASK_MS = 100;
const DEADLINE_MS = 700; // Later answers are of no use.
const BATTERY_SILENCE_MS = 4000; // It publishes once a second, and nothing while its state is unknown.

export class Telemetry {
  /** `show` has a function for the values of each part: `wheels`, `imu`, `servos`, `battery`. */
  constructor(show) {
    this.show = show;
    this.parts = {};
    document.addEventListener("visibilitychange", () => this.follow());
  }

  /** The devices of the robot. */
  take({ wheels, imu, servos, battery }) {
    const parts = { wheels, imu, servos, battery };
    if (JSON.stringify(parts) === JSON.stringify(this.parts)) return;
    this.parts = parts;
    this.follow();
  }

  /** Begins anew, for the devices that the robot has now. */
  async follow() {
    this.following?.abort();
    const { parts, show } = this;
    if (!parts.battery) show.battery(null);
    const sources = { wheels, imu, servos, battery };
    const found = Object.entries(sources).filter(([part]) => parts[part]);
    if (document.hidden || !found.length) return;
    this.following = new AbortController();
    const { signal } = this.following;
    const robot = await connect(signal);
    const sourcing = robot ? found : [];
    // A loop over a subscription ends with the client.
    await Promise.all(sourcing.map(([part, source]) => source(robot.device(parts[part]), (value) => signal.aborted || show[part](value), signal)));
  }
}

async function wheels(device, show, signal) {
  let heard = performance.now();
  const listen = async () => {
    for await (const { currentSpeed } of device.speedUpdates({ buffer: 1 })) {
      heard = performance.now();
      show(currentSpeed);
    }
  };
  const ask = async () => {
    while (!signal.aborted) {
      await pause(ASK_MS, signal);
      if (performance.now() - heard > SILENCE_MS) await device.speeds({ timeoutMs: DEADLINE_MS }).then(show, () => {});
    }
  };
  await Promise.all([listen(), ask()]);
}

async function imu(device, show) {
  for await (const reading of device.readings({ accel: true, gyro: true, freq: IMU_MS }, { buffer: 1 })) show(reading);
}

/** Drivers of the original system do not answer. */
async function servos(device, show, signal) {
  while (!signal.aborted) {
    await device.angles({ timeoutMs: DEADLINE_MS }).then(show, () => {});
    await pause(SERVOS_MS, signal);
  }
}

async function battery(device, show, signal) {
  let ending;
  const wait = () => {
    clearTimeout(ending);
    ending = setTimeout(() => show(null), BATTERY_SILENCE_MS);
  };
  signal.addEventListener("abort", () => clearTimeout(ending), { once: true });
  wait();
  for await (const state of device.stateUpdates({ buffer: 1 })) {
    show(state);
    wait();
  }
}
