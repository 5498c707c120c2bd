// Methods of devices that are not single requests. IO through the robot.

import { TimedOutError } from "./errors.js";
import { pause } from "./pause.js";
import { newOrderId } from "./values.js";

/** How near the robot must come to a target, in m. */
const RADIUS_M = 0.2;
/** The time between two questions about an order, in ms. */
const ASK_AGAIN_MS = 200;
/** How often a request is sent: UDP loses datagrams, and a driver does not start an order twice. */
const ATTEMPTS = 3;

/**
 * Drives to a target, or to several, and waits for the end. Returns the order.
 * @this {any}
 * @param {{ x: number, y: number, radius?: number } | Iterable<{ x: number, y: number, radius?: number }>} targets
 * @param {import("./device.js").CallOptions} [options]
 */
async function driveTo(targets, options) {
  const all = Symbol.iterator in targets ? [...targets] : [targets];
  const id = newOrderId();
  const given = {
    id,
    targets: {
      longitudes: all.map(({ x }) => x),
      latitudes: all.map(({ y }) => y),
      radiuses: all.map(({ radius = RADIUS_M }) => radius),
    },
  };
  let order = await repeated(() => this.go(given, options));
  while (order.state === "RUNNING") {
    await pause(ASK_AGAIN_MS, options?.signal ?? this._defaults.signal);
    order = await repeated(() => this.order(id, options));
  }
  return order;
}

/**
 * Repeats a request whose answer is lost.
 * @param {() => Promise<any>} request
 */
export async function repeated(request) {
  for (let left = ATTEMPTS - 1; ; left--) {
    try {
      return await request();
    } catch (error) {
      if (left === 0 || !(error instanceof TimedOutError)) throw error;
    }
  }
}

/** By the name of the service. @type {Record<string, Record<string, (...given: any[]) => any>>} */
export const EXTRAS = { DriveToPoint: { driveTo } };
