// The leases of a program that moves devices now and then, such as a page with a joystick. IO only through
// the robot.

import { RefusedError, TimedOutError } from "./errors.js";
import { pause } from "./pause.js";

/** How long a command waits for the lease. Drivers that keep leases answer in milliseconds; others never
 * do, and get the command then. */
const PATIENCE_MS = 400;
/** A lease that another client holds may be free in a moment: that client has just released it. */
const GRACE_MS = 300;
const AGAIN_MS = 50;
/** The time between two requests for a lease that another client holds. */
const RETRY_MS = 200;
/** A driver that keeps no leases is asked again after this time: it may have been replaced. */
const ASK_AGAIN_MS = 10_000;

/**
 * The lease of one device.
 * @typedef {object} Claim
 * @property {Promise<void>} asked resolves when the state is known
 * @property {"asked" | "held" | "without" | "denied"} state
 * @property {import("./lease.js").Lease} [lease]
 * @property {unknown} [error] why it is denied
 * @property {boolean} isErrand
 * @property {boolean} isReleased
 * @property {number} since when the state was known
 * @property {ReturnType<typeof setTimeout>} [timer] releases it
 */

export class Claims {
  /**
   * @param {string} name
   * @param {{ holdMs?: number, periodMs?: number, onLost?: (device: string, error: Error) => void }} [options]
   */
  constructor(name, { holdMs = 1000, periodMs = 500, onLost = () => {} } = {}) {
    this._name = name;
    this._holdMs = holdMs;
    this._periodMs = periodMs;
    this._onLost = onLost;
    /** @type {Map<string, Claim>} */
    this._claims = new Map();
  }

  /**
   * Takes the lease of a device unless it is held. Rejects if another client holds it.
   * @param {import("./device.js").Device} device
   * @param {{ errand?: boolean, force?: boolean }} [options]
   */
  async claim(device, { errand = false, force = false } = {}) {
    let claim = this._claims.get(device.address);
    if (!claim || !isOfUse(claim, force)) {
      claim = this._ask(device, force, claim);
      this._claims.set(device.address, claim);
    }
    const mine = claim;
    mine.isErrand ||= errand;
    clearTimeout(mine.timer);
    if (!mine.isErrand) mine.timer = setTimeout(() => this._release(mine), this._holdMs);
    if (mine.state === "asked") await Promise.race([mine.asked, pause(PATIENCE_MS)]);
    if (mine.state === "denied") throw mine.error;
  }

  /**
   * Whether another client holds the lease, as far as is known.
   * @param {import("./device.js").Device} device
   */
  isDenied(device) {
    return this._claims.get(device.address)?.state === "denied";
  }

  /** The devices whose leases are held. */
  get held() {
    const held = [...this._claims].filter(([, { state, isReleased }]) => state === "held" && !isReleased);
    return held.map(([device]) => device);
  }

  /**
   * The errand of a device is over, or this program no longer moves it.
   * @param {import("./device.js").Device} device
   */
  async release(device) {
    const claim = this._claims.get(device.address);
    if (claim) await this._release(claim);
  }

  /** Releases all leases. */
  async close() {
    await Promise.all([...this._claims.values()].map((claim) => this._release(claim)));
  }

  /** @param {Claim} claim */
  async _release(claim) {
    clearTimeout(claim.timer);
    claim.isReleased ||= claim.state === "asked" || claim.state === "held";
    claim.isErrand = false;
    await claim.lease?.release();
  }

  /**
   * @param {import("./device.js").Device} device
   * @param {boolean} force
   * @param {Claim} [old]
   */
  _ask(device, force, old) {
    /** @type {Claim} */
    const claim = {
      // Nobody has to wait again for a driver that keeps no leases.
      state: old?.state === "without" ? "without" : "asked",
      asked: Promise.resolve(),
      isErrand: false,
      isReleased: false,
      since: performance.now(),
    };
    const until = performance.now() + (old?.state === "denied" ? 0 : GRACE_MS);
    claim.asked = this._take(device, force, until).then(
      (lease) => {
        claim.state = "held";
        claim.lease = lease;
        lease.signal.addEventListener("abort", () => {
          if (this._claims.get(device.address) === claim) this._claims.delete(device.address);
          this._onLost(device.address, lease.signal.reason);
        });
        if (claim.isReleased) lease.release().catch(() => {}); // it ends by itself
      },
      (error) => {
        claim.state = error instanceof TimedOutError ? "without" : "denied";
        claim.error = error;
      },
    ).finally(() => (claim.since = performance.now()));
    return claim;
  }

  /**
   * @param {import("./device.js").Device} device
   * @param {boolean} force
   * @param {number} until then the refusal of a holder counts
   */
  async _take(device, force, until) {
    for (;;) {
      try {
        return await device.lease(this._name, { force, periodMs: this._periodMs });
      } catch (error) {
        if (!(error instanceof RefusedError) || performance.now() >= until) throw error;
        await pause(AGAIN_MS);
      }
    }
  }
}

/**
 * Whether no new request for the lease is needed.
 * @param {Claim} claim
 * @param {boolean} force
 */
function isOfUse({ state, since, isReleased }, force) {
  if (isReleased) return false;
  const age = performance.now() - since;
  if (state === "denied") return !force && age < RETRY_MS;
  return state !== "without" || age < ASK_AGAIN_MS;
}
