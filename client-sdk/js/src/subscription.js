// What a device publishes, as an asynchronous iterator. IO only through the robot.

/** The most values that wait; then the oldest is dropped. */
export const BUFFER = 64;

/** @template T */
export class Subscription {
  /**
   * @param {import("./robot.js").Robot} robot
   * @param {object} feed
   * @param {import("./address.js").Address} feed.address
   * @param {string} feed.key the driver keeps one subscription for each key
   * @param {Uint8Array} feed.start
   * @param {Uint8Array} feed.stop
   * @param {import("./interface.js").Interface} feed.device
   * @param {(message: any) => T | undefined} feed.read undefined: the message is of another stream
   * @param {{ signal?: AbortSignal, buffer?: number }} [options]
   */
  constructor(robot, feed, { signal, buffer = BUFFER } = {}) {
    if (!Number.isInteger(buffer) || buffer < 1) throw new RangeError("buffer is at least 1");
    /** Values that are lost: the reader was too slow, or a long message did not arrive completely. */
    this.missed = 0;
    /** Messages that did not fit the device. */
    this.unreadable = 0;
    /** @internal */
    this._feed = feed;
    this._robot = robot;
    this._signal = signal;
    this._buffer = buffer;
    /** @type {{ value: T, stream?: number }[]} */
    this._values = [];
    /** @type {{ resolve: (result: IteratorResult<T, undefined>) => void, reject: (error: unknown) => void }[]} */
    this._waiting = [];
    /** @type {"new" | "open" | "ended"} */
    this._state = "new";
    /** @type {{ error: unknown } | undefined} */
    this._failed = undefined;
    this._abort = () => this._end({ error: signal?.reason });
  }

  /** Subscribes now, if that has not been done yet. Returns the subscription. */
  open() {
    if (this._state === "new") {
      this._signal?.throwIfAborted();
      this._robot._add(this);
      this._state = "open";
      this._signal?.addEventListener("abort", this._abort, { once: true });
    }
    return this;
  }

  /** Unsubscribes. The loop that reads ends. */
  close() {
    this._end();
  }

  /** The next value; done at the end. @returns {Promise<IteratorResult<T, undefined>>} */
  async next() {
    this.open();
    const first = this._values.shift();
    if (first) return { done: false, value: first.value };
    if (this._state === "ended") {
      const failed = this._failed;
      this._failed = undefined;
      if (failed) throw failed.error;
      return { done: true, value: undefined };
    }
    return new Promise((resolve, reject) => this._waiting.push({ resolve, reject }));
  }

  /** The loop was left. @returns {Promise<IteratorResult<T, undefined>>} */
  async return() {
    this._end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /**
   * A message of the device.
   * @internal
   * @param {any} message
   * @param {number} [stream] of a message that came in pieces: only the newest of each waits
   */
  _deliver(message, stream) {
    let value;
    try {
      value = this._feed.read(message);
    } catch {
      this.unreadable += 1;
      return;
    }
    if (value === undefined) return;
    const waiting = this._waiting.shift();
    if (waiting) {
      waiting.resolve({ done: false, value });
      return;
    }
    if (stream !== undefined) {
      const newer = this._values.filter((it) => it.stream !== stream);
      this.missed += this._values.length - newer.length;
      this._values = newer;
    }
    if (this._values.length === this._buffer) {
      this._values.shift();
      this.missed += 1;
    }
    this._values.push({ value, stream });
  }

  /**
   * @internal
   * @param {{ error: unknown }} [failed]
   */
  _end(failed) {
    if (this._state === "ended") return;
    const wasOpen = this._state === "open";
    this._state = "ended";
    this._signal?.removeEventListener("abort", this._abort);
    if (wasOpen) this._robot._remove(this);
    const [first, ...others] = this._waiting.splice(0);
    if (failed) this._values = [];
    if (failed && first) first.reject(failed.error);
    else if (first) first.resolve({ done: true, value: undefined });
    else this._failed = failed;
    for (const other of others) other.resolve({ done: true, value: undefined });
  }
}
