// The calls of a driver that wait. PURE.

/** The maximum number of waiting requests; then the oldest is dropped. */
export const WAITING = 256;

/**
 * A call of the driver that waits.
 * @typedef {object} Work
 * @property {() => unknown} call
 * @property {boolean} [mayDrop] whether it is a request, of which only some wait
 * @property {number} [movedBy] the client whose command moves something
 * @property {boolean} [isUrgent] whether it waits for nothing but the call that is being made
 */

export class Queue {
  constructor() {
    /** @type {Work[]} */
    this._all = [];
    this._requests = 0;
    /** The number of requests that were dropped. */
    this.dropped = 0;
  }

  /** Returns whether an older request was dropped. @param {Work} work */
  push(work) {
    let drops = false;
    if (work.mayDrop && this._requests >= WAITING) {
      this._all.splice(this._all.findIndex((it) => it.mayDrop), 1);
      this._requests -= 1;
      this.dropped += 1;
      drops = true;
    }
    this._all.push(work);
    if (work.mayDrop) this._requests += 1;
    return drops;
  }

  /** Before all others. @param {Work} work */
  pushFirst(work) {
    this._all.unshift(work);
    if (work.mayDrop) this._requests += 1;
  }

  /** Whether the next call is urgent. */
  get isUrgent() {
    return Boolean(this._all[0]?.isUrgent);
  }

  /** The next call. @returns {Work | undefined} */
  shift() {
    const work = this._all.shift();
    if (work?.mayDrop) this._requests -= 1;
    return work;
  }

  /** Drops commands of these clients that move something. @param {Set<number>} clients */
  outdate(clients) {
    this._all = this._all.filter(({ movedBy }) => movedBy === undefined || !clients.has(movedBy));
    this._requests = this._all.filter(({ mayDrop }) => mayDrop).length;
  }

  clear() {
    this._all = [];
    this._requests = 0;
  }
}
