// Who may move a device, and until when: lease, halt and expiry. PURE.
//
// The same rules as in the driver SDK for Rust (drivers/sdk/src/motion). Times are milliseconds on the clock
// of the caller.

/** What a request does, by severity. */
export const MOTION = /** @type {const} */ ({ NOTHING: 0, STOPS: 1, MOVES: 2, ERRAND: 3 });

const PERIOD_MS = { usual: 2000, least: 200, most: 10_000 };
/** The longest name of a client, in bytes. */
const NAME_BYTES = 100;
/** The maximum number of clients that wait for a lease. */
const WAITING = 16;
/** While there are leases, the driver looks at the clock this often. */
const TICK_MS = 50;
/** A driver that looks so late did not run in between: its machine is busy. Its clients may be just as late,
 * so their leases get another period, once. */
const LATE_MS = 100;
/** The interval of news about refused commands, and of those about stops. */
const NEWS_MS = 1000;

/** A request that moves is not allowed. */
export class NotAllowed extends Error {}

class Lease {
  /**
   * @param {number} client
   * @param {number | undefined} forClient
   * @param {string} name
   * @param {number} now
   * @param {number} periodMs
   */
  constructor(client, forClient, name, now, periodMs) {
    this.client = client;
    this.forClient = forClient;
    this.name = name;
    this.since = now;
    this.periodMs = periodMs;
    this.until = now + periodMs;
    /** Whether it was extended since the last sign of its client, because this driver was late. */
    this.isExtended = false;
  }

  /** @param {number} now */
  keep(now) {
    this.until = now + this.periodMs;
    this.isExtended = false;
  }

  /** The driver was late. Extends the lease, once until the next sign of its client. @param {number} now */
  extend(now) {
    if (this.isExtended) return;
    this.keep(now);
    this.isExtended = true;
  }

  /** @param {number | undefined} client */
  isOf(client) {
    return client !== undefined && (client === this.client || client === this.forClient);
  }

  /** A LeaseClient. @param {number} now */
  told(now) {
    return {
      clientId: this.client,
      name: this.name,
      sinceMs: Math.max(0, Math.trunc(now - this.since)),
      leftMs: Math.max(0, Math.trunc(this.until - now)),
      ...(this.forClient === undefined ? {} : { forClient: this.forClient }),
    };
  }
}

/**
 * The device must stop, or commands that wait are outdated.
 * @typedef {object} Stop
 * @property {boolean} isNeeded
 * @property {number} client the client that moved it
 * @property {Set<number>} outdated commands of these clients that still wait are outdated
 */

/** Lease, halt and expiry of one device. */
export class Control {
  /** @param {string} [haltedBy] who has halted it before */
  constructor(haltedBy) {
    /** @type {Lease | undefined} */
    this._holder = undefined;
    /** @type {Lease[]} */
    this._waiting = [];
    /** @type {{ by: string, since: number | undefined } | undefined} */
    this._halt = haltedBy === undefined ? undefined : { by: haltedBy, since: undefined };
    /** The client of the last command that moves, and until when it holds.
     * @type {{ client: number, until: number | undefined } | undefined} */
    this._moving = undefined;
    /** When the driver looks at the clock next, while there are leases. @type {number | undefined} */
    this._tick = undefined;
    /** @type {Stop | undefined} */
    this._stop = undefined;
    /** @type {{ news: string, text: string }[]} */
    this._news = [];
    /** @type {Map<string, number>} */
    this._nextNews = new Map();
    this._counts = { refusedForHolder: 0, refusedForHalt: 0, tooLate: 0, expired: 0 };
  }

  /**
   * Answers a request for the lease or a halt with a MotionState; undefined if the message is none.
   * @param {number} now
   * @param {number} client
   * @param {{ haltRequest?: any, leaseRequest?: any, getMotionState?: boolean, forClient?: number }} terms
   */
  request(now, client, { haltRequest, leaseRequest, getMotionState, forClient }) {
    /** @type {string | undefined} */
    let refused;
    let behalf;
    if (haltRequest) refused = this._changeHalt(now, client, haltRequest);
    else if (leaseRequest) {
      behalf = forClient;
      refused = this._lease(now, client, behalf, leaseRequest);
    } else if (!getMotionState) return undefined;
    if (this._tick === undefined && this._hasLeases) this._tick = now + TICK_MS;
    return {
      yours: Boolean(this._holder?.isOf(client) || this._holder?.isOf(behalf)),
      ...this._counts,
      ...this._described(now),
      waiting: this._waiting.map((it) => it.told(now)),
      ...(refused === undefined ? {} : { refused }),
    };
  }

  /**
   * A request moves or stops the device. Throws NotAllowed.
   * @param {number} now
   * @param {number} motion a value of MOTION
   * @param {number} client
   * @param {{ forClient?: number, validUntil?: number }} [terms]
   */
  command(now, motion, client, { forClient, validUntil } = {}) {
    if (motion === MOTION.NOTHING) return;
    if (motion === MOTION.STOPS) {
      this._moving = undefined;
      return;
    }
    if (this._halt) {
      this._counts.refusedForHalt += 1;
      throw this._refuse(now, client, `the device was halted by ${this._halt.by}`);
    }
    if (this._holder) {
      if (!this._holder.isOf(client) && !this._holder.isOf(forClient)) {
        this._counts.refusedForHolder += 1;
        throw this._refuse(now, client, this._held);
      }
      this._holder.keep(now);
    }
    if (validUntil !== undefined && validUntil <= now) {
      this._counts.tooLate += 1;
      throw this._refuse(now, client, "the command came too late: it is no longer valid");
    }
    this._moving = { client, until: validUntil };
    // A stop that was not carried out yet is about an earlier command.
    this._stop = undefined;
  }

  /**
   * @param {number} now
   * @param {number} client
   * @param {boolean} stops whether the driver does not stop by itself what the client moved
   */
  clientGone(now, client, stops) {
    this._leaveList(client);
    if (this._holder?.isOf(client)) this._endLease(now, "is gone");
    if (!stops) return;
    this._outdate(client);
    if (this._moving?.client === client) this._stopNow();
  }

  /** When `timeout` is due; Infinity for never. */
  get nextTimeout() {
    return Math.min(
      ...this._waiting.map((it) => it.until),
      this._tick ?? Infinity,
      this._holder?.until ?? Infinity,
      this._moving?.until ?? Infinity,
    );
  }

  /**
   * Ends what is due. Before this, all requests that have come by now must have been handled: one of them
   * may keep a lease.
   * @param {number} now
   */
  timeout(now) {
    if (this._tick !== undefined && now - this._tick > LATE_MS) {
      for (const lease of this._waiting) lease.extend(now);
      this._holder?.extend(now);
    }
    this._waiting = this._waiting.filter((it) => it.until > now);
    const { client, until } = this._moving ?? {};
    if (until !== undefined && until <= now) {
      this._counts.expired += 1;
      this._say(now, "STOPPED", `stopped: the last command of client ${client} is no longer valid`);
      this._stopNow();
    }
    if (this._holder && this._holder.until <= now) this._endLease(now, "did not keep its lease");
    this._tick = this._hasLeases ? now + TICK_MS : undefined;
  }

  /** What to do now. */
  pollStop() {
    const stop = this._stop;
    this._stop = undefined;
    return stop;
  }

  /** The next MotionReport for the mediator, if there is one. @param {number} now */
  pollReport(now) {
    const next = this._news.shift();
    return next && { ...next, waiting: this._waiting.length, ...this._described(now) };
  }

  get _hasLeases() {
    return this._holder !== undefined || this._waiting.length > 0;
  }

  /**
   * Returns why the request is not carried out.
   * @param {number} now
   * @param {number} client
   * @param {number | undefined} forClient
   * @param {{ action: string, name?: string, periodMs?: number }} request
   */
  _lease(now, client, forClient, { action, name, periodMs = PERIOD_MS.usual }) {
    const period = Math.min(Math.max(periodMs, PERIOD_MS.least), PERIOD_MS.most);
    const lease = new Lease(client, forClient, nameOf(name, client), now, period);
    const holder = this._holder;
    const isHolder = holder?.isOf(client) ?? false;
    const takes = ["TAKE", "WAIT", "TAKE_BY_FORCE"].includes(action);
    // A driver of the holder may move the device already.
    if (holder && !isHolder && (takes || action === "KEEP") && holder.isOf(forClient)) {
      holder.keep(now);
      return undefined;
    }
    if (takes && holder && isHolder) {
      lease.since = holder.since;
      this._holder = lease;
      return undefined;
    }
    const isNext = this._waiting.length === 0 || this._waiting[0].client === client;
    if ((action === "TAKE" || action === "WAIT") && !holder && isNext) {
      this._leaveList(client);
      this._grant(now, lease);
      return undefined;
    }
    switch (action) {
      case "TAKE":
        return holder ? this._held : `${this._waiting[0].name} waits for the lease of this device`;
      case "WAIT": {
        const index = this._waiting.findIndex((it) => it.client === client);
        if (index >= 0) {
          lease.since = this._waiting[index].since;
          this._waiting[index] = lease;
          return undefined;
        }
        if (this._waiting.length === WAITING) return `${WAITING} clients wait already`;
        this._waiting.push(lease);
        return undefined;
      }
      case "TAKE_BY_FORCE":
        this._leaveList(client);
        if (!holder) {
          this._grant(now, lease);
          return undefined;
        }
        this._holder = undefined;
        this._stopMotionOf(holder);
        this._holder = lease;
        this._say(now, "LEASE", `${lease.name} took the lease from ${holder.name} by force`);
        return undefined;
      case "KEEP":
        if (!holder) return "nobody holds the lease of this device";
        if (!isHolder) return this._held;
        holder.keep(now);
        return undefined;
      default:
        this._leaveList(client);
        if (isHolder) this._endLease(now, "released the lease");
        return undefined;
    }
  }

  /** @param {number} client */
  _leaveList(client) {
    this._waiting = this._waiting.filter((it) => it.client !== client);
  }

  /** @param {number} now @param {Lease} lease */
  _grant(now, lease) {
    // What others moved before is no longer allowed.
    if (this._moving && !lease.isOf(this._moving.client)) this._stopNow();
    this._holder = lease;
    this._say(now, "LEASE", `${lease.name} holds the lease`);
  }

  /** @param {number} now @param {string} why */
  _endLease(now, why) {
    const old = /** @type {Lease} */ (this._holder);
    this._holder = undefined;
    this._stopMotionOf(old);
    let after = "nobody holds it now";
    const next = this._waiting.shift();
    if (next) {
      next.since = now;
      next.keep(now);
      this._holder = next;
      after = `${next.name} holds the lease`;
    }
    this._say(now, "LEASE", `${old.name} ${why}; ${after}`);
  }

  /** @param {Lease} lease */
  _stopMotionOf(lease) {
    this._outdate(lease.client, lease.forClient);
    if (this._moving && lease.isOf(this._moving.client)) this._stopNow();
  }

  /** The stop to carry out, which this begins. */
  _beginStop() {
    this._stop ??= { isNeeded: false, client: 0, outdated: new Set() };
    return this._stop;
  }

  _stopNow() {
    const stop = this._beginStop();
    stop.isNeeded = true;
    if (this._moving) stop.client = this._moving.client;
    this._moving = undefined;
  }

  /** Commands of these clients that wait are older than what has just happened. @param {(number | undefined)[]} clients */
  _outdate(...clients) {
    const { outdated } = this._beginStop();
    for (const client of clients) if (client !== undefined) outdated.add(client);
  }

  /**
   * @param {number} now
   * @param {number} client
   * @param {{ halt: boolean, name?: string }} request
   */
  _changeHalt(now, client, { halt, name }) {
    const by = nameOf(name, client);
    if (halt) {
      // Also if nothing is known to move: it may be something that was there before.
      this._stopNow();
      const stop = this._beginStop();
      if (!stop.client) stop.client = client;
      if (!this._halt) {
        this._halt = { by, since: now };
        this._say(now, "HALTED", `halted by ${by}`);
      }
      return undefined;
    }
    if (this._holder && !this._holder.isOf(client)) return this._held;
    if (this._halt) {
      this._halt = undefined;
      this._say(now, "HALT_RELEASED", `halt released by ${by}`);
    }
    return undefined;
  }

  get _held() {
    return `${this._holder?.name} holds the lease of this device`;
  }

  /** @param {number} now @param {number} client @param {string} why */
  _refuse(now, client, why) {
    this._say(now, "REFUSED", `refused a command of client ${client}: ${why}`);
    return new NotAllowed(why);
  }

  /** @param {number} now @param {string} news @param {string} text */
  _say(now, news, text) {
    if (news === "REFUSED" || news === "STOPPED") {
      if (now < (this._nextNews.get(news) ?? now)) return;
      this._nextNews.set(news, now + NEWS_MS);
    }
    this._news.push({ news, text });
  }

  /** Holder and halt, as MotionState and MotionReport have them. @param {number} now */
  _described(now) {
    const { _holder: holder, _halt: halt } = this;
    const sinceMs = halt?.since === undefined ? {} : { sinceMs: Math.max(0, Math.trunc(now - halt.since)) };
    return {
      ...(holder ? { holder: holder.told(now) } : {}),
      ...(halt ? { halt: { by: halt.by, ...sinceMs } } : {}),
    };
  }
}

/**
 * Who has halted the device of a new process, as the mediator hands it over: a line `TYPE:ID=BY` for each
 * device.
 * @param {string} text
 */
export function readHalt(text) {
  const found = text.split("\n").flatMap((line) => /^\d+:\d+=(.*)$/.exec(line)?.[1] ?? []);
  return /** @type {string | undefined} */ (found[0]);
}

/** The name of a client in one printable line. @param {string | undefined} name @param {number} client */
function nameOf(name, client) {
  const line = (name ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ");
  let short = line.trim();
  const bytes = new TextEncoder();
  while (bytes.encode(short).length > NAME_BYTES) short = [...short].slice(0, -1).join("");
  return short.trim() || `client ${client}`;
}
