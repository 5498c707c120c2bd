// What only browsers have: a WebSocket of the dashboard, which passes frames on. IO.
//
// A binary message to the dashboard is the time on the clock of this page, and a frame: the dashboard
// drops motions that the network has delayed. A binary message from it is a frame. Texts are about the
// connection itself.

import { UnreachableError } from "./errors.js";

/** The path of the WebSocket. */
const PATH = "/robot";
/** The time until the next attempt to connect. The last one is repeated. */
const RETRY_MS = [300, 1000, 2000];
/** An attempt that has no answer by then has failed. */
const ATTEMPT_MS = 5000;
/** A connection counts as lost if answers are missing and nothing has come for this time. */
const SILENCE_MS = 4000;
/** The most bytes that may wait for the network, as commands must not queue up: the pieces of a long
 * request that are sent at once. */
const MAX_WAITING = 262_144;
/** The dashboard refuses this page for ever. */
const FORBIDDEN = 1008;

/** What the dashboard is like, and what can be done. */
const HINT = "open the address that `amber dashboard` prints, with its token, or allow the site of this page with --origin";

/** Commands that move something hold for this time, in ms: a page may freeze or vanish at any time. */
export const VALID_MS = 500;

/**
 * @param {string} address
 * @param {import("./platform.js").Owner} owner
 * @returns {Promise<import("./platform.js").Transport>}
 */
export function openTransport(address, owner) {
  return new WebSocketTransport(address, owner).open();
}

export async function readSchemas() {
  const answer = await fetch(new URL("./schemas.binpb", import.meta.url));
  if (!answer.ok) throw new Error(`cannot load ${answer.url}: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** The dashboard that this page comes from, with the token of the page. */
export function defaultAddress() {
  return location.href;
}

export class WebSocketTransport {
  /**
   * @param {string} address `http://HOST:PORT/#TOKEN`; the rest does not matter
   * @param {import("./platform.js").Owner} owner
   * @param {(url: string) => WebSocket} [make] for tests
   */
  constructor(address, owner, make = (url) => new WebSocket(url)) {
    const { url, token, shown } = parts(address);
    this._url = url;
    this._token = token;
    this._shown = shown;
    this._owner = owner;
    this._make = make;
    /** @type {WebSocket | undefined} */
    this._socket = undefined;
    this._isReady = false;
    this._isClosed = false;
    /** The failed attempts since the last connection, and its end. */
    this._attempts = 0;
    this._heardAt = performance.now();
    this._why = new UnreachableError(`there is no connection to ${shown} yet`);
    /** Whether the mediator is on the computer of the dashboard. */
    this.isLocal = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._timer = undefined;
  }

  /** Resolves after the first attempt. If it has failed, others follow. Rejects with UnreachableError if
   * the dashboard refuses this page. */
  async open() {
    const code = await new Promise((resolve) => this._connect(resolve));
    if (code === FORBIDDEN) throw this._why;
    return this;
  }

  /**
   * @param {Uint8Array} frame
   * @returns {Promise<void>}
   */
  async send(frame) {
    const socket = this._socket;
    if (!socket || !this._isReady) throw this._why;
    if (socket.bufferedAmount > MAX_WAITING) {
      throw new UnreachableError(`the network to ${this._shown} is too slow: earlier messages still wait`);
    }
    const message = new Uint8Array(8 + frame.length);
    new DataView(message.buffer).setFloat64(0, performance.now(), true);
    message.set(frame, 8);
    socket.send(message);
  }

  async close() {
    this._isClosed = true;
    this._isReady = false;
    clearTimeout(this._timer);
    this._socket?.close();
    this._why = new UnreachableError(`the connection to ${this._shown} is closed`);
  }

  /** Answers are missing. */
  lookForAnotherWay() {
    if (!this._isReady) return;
    if (performance.now() >= this._heardAt + SILENCE_MS) this._lost(/** @type {WebSocket} */ (this._socket), 0, "");
    else this._socket?.send(JSON.stringify({ t: "silent" }));
  }

  /** @param {(code: number) => void} [done] gets 0, or why the connection was closed */
  _connect(done = () => {}) {
    const socket = this._make(this._url);
    this._socket = socket;
    socket.binaryType = "arraybuffer";
    this._timer = setTimeout(() => this._lost(socket, 0, "", done), ATTEMPT_MS);
    socket.onopen = () => {
      socket.send(JSON.stringify({ t: "hello", token: this._token, at: performance.now() }));
    };
    socket.onmessage = ({ data }) => {
      if (this._socket !== socket) return;
      this._heardAt = performance.now();
      if (typeof data !== "string") this._owner.received(new Uint8Array(data));
      else this._take(JSON.parse(data), done);
    };
    socket.onclose = ({ code, reason }) => this._lost(socket, code, reason, done);
  }

  /**
   * @param {any} told
   * @param {(code: number) => void} done
   */
  _take(told, done) {
    if (told.t === "hello") {
      clearTimeout(this._timer);
      const isAnother = this._attempts > 0;
      this._isReady = true;
      this._attempts = 0;
      this.isLocal = told.local === true;
      // The mediator does not know this client yet.
      if (isAnother) this._owner.moved();
      done(0);
    } else if (told.t === "moved") this._owner.moved();
    else if (told.t === "unreachable") {
      this._owner.unreachable(new UnreachableError(`the dashboard cannot reach the mediator: ${told.text}`));
    } else if (told.t === "refused") {
      this._owner.refused({ type: told.type, id: told.id }, told.number, told.text);
    }
  }

  /**
   * @param {WebSocket} socket
   * @param {number} code
   * @param {string} reason
   * @param {(code: number) => void} [done]
   */
  _lost(socket, code, reason, done = () => {}) {
    if (this._socket !== socket || this._isClosed) return;
    clearTimeout(this._timer);
    this._socket = undefined;
    this._isReady = false;
    socket.close();
    const why = reason ? `: ${reason}` : "";
    this._why = new UnreachableError(`there is no connection to the dashboard at ${this._shown}${why}`, { hint: HINT });
    this._owner.unreachable(this._why);
    done(code);
    // A rejected token stays invalid.
    if (code === FORBIDDEN) return;
    const wait = RETRY_MS[Math.min(this._attempts, RETRY_MS.length - 1)];
    this._attempts += 1;
    this._timer = setTimeout(() => this._connect(), wait);
  }
}

/** The parts of an address that a dashboard prints. Throws TypeError. @param {string} address */
export function parts(address) {
  let given;
  try {
    given = new URL(address);
  } catch {
    // It has no scheme.
  }
  const scheme = { "http:": "ws:", "ws:": "ws:", "https:": "wss:", "wss:": "wss:" }[given?.protocol ?? ""];
  if (!given || !scheme) {
    throw new TypeError(`${JSON.stringify(address)} is not an address of a dashboard, such as http://192.168.2.201:8026`);
  }
  // The token is never sent by HTTP.
  const token = given.hash.slice(1) || null;
  return { url: `${scheme}//${given.host}${PATH}`, token, shown: given.host };
}
