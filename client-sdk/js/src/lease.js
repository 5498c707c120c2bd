// The lease of a device that moves: while a client holds it, nobody else moves the device. IO only
// through the robot.

import { AmberError, ClosedError, TimedOutError } from "./errors.js";
import { refusal } from "./interface.js";
import { askAboutMotion } from "./motion.js";
import { pause } from "./pause.js";

/** How often a lease is kept in one period: some datagrams get lost. */
const KEEPS = 4;
/** The time between two requests of a client that waits in turn. */
const ASK_AGAIN_MS = 200;
/** A lease is lost when its device has not answered for this long, or for two periods. The device
 * ends it earlier: this is longer than a busy machine needs for an answer. */
const SILENCE_MS = 5000;

/**
 * @typedef {object} LeaseOptions
 * @property {boolean} [force] take it from its holder
 * @property {boolean} [wait] wait in turn
 * @property {number} [periodMs]
 * @property {AbortSignal} [signal]
 */

export class Lease {
  /**
   * @internal
   * @param {import("./device.js").Device} device
   * @param {string} name
   * @param {LeaseOptions} options
   */
  constructor(device, name, { periodMs = 2000 }) {
    this._device = device;
    this._name = name;
    this._periodMs = Math.round(Math.min(Math.max(periodMs, 200), 10_000));
    this._ending = new AbortController();
    this._losing = new AbortController();
    /** @type {string | undefined} */
    this._lost = undefined;
  }

  /**
   * @param {import("./device.js").Device} device
   * @param {string} name
   * @param {LeaseOptions} [options]
   */
  static async take(device, name, options = {}) {
    const { force = false, wait = false, signal } = options;
    const lease = new Lease(device, name, options);
    const first = wait ? "WAIT" : force ? "TAKE_BY_FORCE" : "TAKE";
    let state = await lease._ask(first, signal);
    while (wait && !state.yours && state.refused === undefined) {
      await pause(Math.min(ASK_AGAIN_MS, lease._periodMs / KEEPS), signal);
      state = await lease._ask(first, signal);
    }
    if (!state.yours) throw refusal(device.address, state.refused ?? "another client holds the lease");
    lease._keep();
    return lease;
  }

  /** Why the lease was lost, such as that another client took it; undefined while it is held. */
  get lost() {
    return this._lost;
  }

  /** Aborts when the lease is lost: for the calls of a program that drives. */
  get signal() {
    return this._losing.signal;
  }

  /** Releases the lease. The device stops if this client moved it. */
  async release() {
    if (this._ending.signal.aborted) return;
    this._ending.abort();
    if (this._lost !== undefined) return;
    try {
      await this._ask("RELEASE");
    } catch (error) {
      // The lease ends by itself.
      if (!(error instanceof TimedOutError || error instanceof ClosedError)) throw error;
    }
  }

  /** An answer counts whenever it comes: on a busy machine, each may take longer than the pause
   * between two requests. */
  async _keep() {
    const { signal } = this._ending;
    const silenceMs = Math.max(SILENCE_MS, 2 * this._periodMs);
    let kept = performance.now();
    while (!signal.aborted && this._lost === undefined) {
      try {
        await pause(this._periodMs / KEEPS, signal);
      } catch {
        return;
      }
      const asked = performance.now();
      this._ask("KEEP", signal, silenceMs).then(
        (state) => {
          if (!state.yours) this._lose(state.refused ?? "another client holds the lease");
          else kept = Math.max(kept, asked);
        },
        (error) => {
          if (signal.aborted || !(error instanceof AmberError)) return;
          // Commands may have kept it.
          if (error instanceof ClosedError || performance.now() - kept >= silenceMs) this._lose(error.message);
        },
      );
    }
  }

  /** @param {string} why */
  _lose(why) {
    if (this._lost !== undefined || this._ending.signal.aborted) return;
    this._lost = why;
    this._losing.abort(refusal(this._device.address, `the lease is lost: ${why}`));
  }

  /**
   * @param {string} action
   * @param {AbortSignal} [signal]
   * @param {number} [timeoutMs]
   * @returns {Promise<any>} a MotionState
   */
  _ask(action, signal, timeoutMs) {
    const request = { action, name: this._name, periodMs: this._periodMs };
    return askAboutMotion(this._device, "lease_request", request, { signal, timeoutMs });
  }
}
