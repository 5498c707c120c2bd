// What the page moves: by stick, to targets, for maps, and its halts, as one client of the mediator with its leases. It runs
// in a worker: browsers slow down the timers of pages that nobody sees, and a target goes on there.

import { inWords } from "./words.js";

/** How long the wheels obey a command of the stick, which comes every 50 ms: six may get lost. */
const VALID_MS = 350;
/** What the page moves stops if nothing comes from this client for this time, as when the browser freezes. */
const PERIOD_MS = 500;
/** If the dashboard is killed, the mediator notices it with the next message to this client. */
const PROOF_MS = 100;
const RETRY_MS = 1000;
/** How long a page that takes over may take for its next motion. */
const TAKE_OVER_MS = 5000;
/** The time between two questions about an order, and how often a request is sent, as UDP loses some. */
const ASK_MS = 200;
const ATTEMPTS = 3;
/** The time between two questions about what is left of an errand. */
const LEFT_MS = 500;
/** How near to a target the robot must come, in m. */
const RADIUS_M = 0.2;

/** Whether something is left of an errand, for the devices that tell it. For others, the page takes no lease: its end would
 * stop the motion. */
const IS_LEFT = {
  "drive-to-point": async (it) => (await it.nextTargets()).targets.longitudes.length > 0,
  "pid-follow-trajectory": async (it) => (await it.nextTargets()).longitudes.length > 0,
  mapping: async (it) => {
    const { state, exploration } = await it.progress();
    return state === "GROWING" && ["WAITING", "EXPLORING", "RETURNING"].includes(exploration);
  },
};
const isLeft = (device) => IS_LEFT[device.address.split(":")[0]];

export class Helm {
  /** `amber` is the package. `tell(event, detail)` tells the page `ready`, `refused`, `lost`, `problem` and `trip`. */
  constructor(amber, tell) {
    Object.assign(this, { amber, tell, ending: new AbortController(), robot: null, way: null, commands: 0, force: 0 });
  }

  /** The page is connected to a robot with these motion sensors or this laser scanner, and may drive. */
  async begin({ address, name, imu, scanner }) {
    this.end();
    const { signal } = (this.ending = new AbortController());
    const { Claims, Robot } = this.amber;
    let robot;
    while (!robot && !signal.aborted) {
      robot = await Robot.connect(address, { signal }).catch(() => pause(RETRY_MS));
    }
    if (signal.aborted) return robot?.close();
    signal.addEventListener("abort", () => robot.close(), { once: true });
    const onLost = (device, error) => {
      if (signal.aborted) return;
      this.denied = robot.device(device);
      this.tell("lost", inWords(error));
    };
    const claims = new Claims(name, { periodMs: PERIOD_MS, onLost });
    Object.assign(this, { robot, claims, name, denied: null, way: null });
    this.tell("ready", true);
    const proofs = imu ? robot.device(imu).readings({ gyro: true, freq: PROOF_MS }, { buffer: 1 }) : scanner && robot.device(scanner).scans({ buffer: 1 });
    // Only that they come matters.
    for await (const _ of proofs ?? []);
  }

  /** The page has lost its connection: what it moves stops. */
  end() {
    this.ending.abort();
    this.trip?.abort();
    this.robot = null;
    this.tell("ready", false);
  }

  /** Turns the wheels, at speeds in mm/s. A motion keeps its device, and first ends these errands: two drivers must not command the
   * wheels at once. */
  async drive({ device, left, right, ends }) {
    const command = (this.commands += 1);
    if (!this.robot) return;
    if (!left && !right) return this.rest();
    if (!this.isDriving) {
      this.isDriving = true;
      this.way = this.robot.device(device);
      for (const errand of ends) this.endErrand(errand).catch((error) => this.refuse(error));
    }
    await this.claim(this.way);
    // Another one may have come in the meantime.
    if (command === this.commands) this.send(this.way, left, right);
  }

  rest() {
    this.isDriving = false;
    // A stick that comes to rest must not stop the robot of another program.
    if (this.way && !this.claims.isDenied(this.way)) this.send(this.way, 0, 0);
  }

  send(way, left, right) {
    const onRefusal = (error) => this.refuse(error);
    const speeds = this.amber.sides(left, right);
    const limits = { validMs: VALID_MS, onRefusal };
    (way.driveAsRoboclaw ? way.driveAsRoboclaw(speeds, limits) : way.drive(speeds, limits)).catch(onRefusal);
  }

  /** Stops devices, whoever moves them. Resolves once that is sent, and rejects if it cannot be. */
  async stop({ devices }) {
    this.commands += 1;
    this.isDriving = false;
    this.trip?.abort();
    const all = devices.map((it) => this.needed().device(it));
    const sent = await Promise.allSettled(all.map((it) => it.stop({ onRefusal: (error) => this.refuse(error) })));
    for (const it of all) this.claims.release(it);
    for (const { reason } of sent) if (reason) throw reason;
    this.haltOthers(all).catch((error) => this.tell("problem", inWords(error)));
  }

  /** Halts everything if others hold a lease: they would drive on with their next command. */
  async haltOthers(devices) {
    const states = await Promise.all(devices.map((it) => again(() => it.motionState()).catch(() => undefined)));
    if (states.some((it) => it?.holder && !it.yours)) await this.needed().halt(this.name);
  }

  async releaseHalt() {
    await this.needed().releaseHalt(this.name);
  }

  /** Takes the lease of what the page moves next from its holder. */
  async takeOver({ wheels }) {
    this.force = performance.now() + TAKE_OVER_MS;
    await this.claim(this.denied ?? this.needed().device(wheels));
  }

  /** Drives to a target. Resolves to the id of the order, whose end is told. */
  async goal({ device, x, y, ends }) {
    const driver = this.needed().device(device);
    this.stopStick(ends);
    this.trip?.abort();
    const trip = (this.trip = new AbortController());
    this.tripDevice = device;
    await this.claim(driver, true);
    const id = this.amber.newOrderId();
    const targets = { longitudes: [x], latitudes: [y], radiuses: [RADIUS_M] };
    const options = { signal: trip.signal };
    let order;
    try {
      order = await again(() => driver.go({ id, name: this.name, targets }, options));
    } catch (error) {
      if (this.trip === trip) this.claims.release(driver);
      if (trip.signal.aborted) throw new Error("stopped before the robot began");
      throw error;
    }
    // The page must know the order first.
    setTimeout(() => this.follow(driver, id, order, trip));
    this.watch(driver);
    return id;
  }

  async follow(driver, id, order, trip) {
    try {
      while (order.state === "RUNNING") {
        await pause(ASK_MS);
        order = await again(() => driver.order(id, { signal: trip.signal }));
      }
      const end = { ARRIVED: "arrived", CANCELLED: "cancelled" }[order.state] ?? "failed";
      this.tell("trip", { order: id, end, why: order.reason ?? "the driver no longer knows the order" });
    } catch (error) {
      if (trip.signal.aborted) return;
      this.tell("trip", { order: id, end: "failed", why: inWords(error) });
    }
  }

  /** Explores while a map grows. */
  async explore({ device, ends }) {
    const driver = this.needed().device(device);
    this.stopStick(ends);
    await this.claim(driver, true);
    try {
      await driver.explore({ on: true });
    } finally {
      this.watch(driver);
    }
  }

  /** Sends a request of a panel. */
  async call({ device, name, given }) {
    const found = await this.needed().load(device);
    const method = this.amber.methodsOf(found).find((it) => it.name === name);
    const motion = method.motion(given);
    const isErrand = motion === "errand" && Boolean(isLeft(found));
    if (motion === "moves" || isErrand) await this.claim(found, isErrand);
    try {
      return await method.call(given);
    } finally {
      if (isErrand) this.watch(found);
    }
  }

  /** Releases the lease of an errand when nothing is left of it. */
  async watch(driver) {
    const { robot, claims } = this;
    while (this.robot === robot && claims.held.includes(driver.address)) {
      await pause(LEFT_MS);
      const isOver = await isLeft(driver)(driver).then((left) => !left, () => false);
      if (isOver) await claims.release(driver);
    }
  }

  /** The same page may still hold the stick. */
  stopStick(ends) {
    this.commands += 1;
    if (this.isDriving) this.rest();
    for (const errand of ends) this.endErrand(errand).catch((error) => this.refuse(error));
  }

  /** Ends the targets or the exploration of a driver. What it does for other programs is no business of this page. */
  async endErrand(device) {
    const driver = this.needed().device(device);
    await this.claim(driver);
    if (device === this.tripDevice) this.trip.abort();
    await driver.stop({ onRefusal: (error) => this.refuse(error) });
    await this.claims.release(driver);
  }

  async claim(device, errand = false) {
    try {
      await this.claims.claim(device, { errand, force: performance.now() < this.force });
      // Once: two pages must not take the robot from each other again and again.
      this.force = 0;
      if (this.denied?.address === device.address) this.denied = null;
    } catch (error) {
      this.denied = device;
      this.refuse(error);
      throw error;
    }
  }

  refuse(error) {
    if (this.robot) this.tell("refused", inWords(error));
  }

  needed() {
    if (!this.robot) throw new Error("not connected");
    return this.robot;
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function again(request) {
  for (let left = ATTEMPTS - 1; ; left--) {
    try {
      return await request();
    } catch (error) {
      if (left === 0 || error.name !== "TimedOutError") throw error;
    }
  }
}

if (typeof DedicatedWorkerGlobalScope === "function") {
  const made = import("/amber/index.js").then((amber) => new Helm(amber, (event, detail) => postMessage({ event, detail })));
  addEventListener("message", async ({ data: { id, act, given } }) => {
    try {
      const helm = await made;
      postMessage({ id, value: await helm[act](given) });
    } catch (error) {
      postMessage({ id, error: inWords(error) });
    }
  });
}
