// The UDP socket of a client, which follows changes of the network. IO.
//
// A connected socket keeps the local address that it got when it was opened. When this computer gets
// another address (another Wi-Fi, DHCP, a VPN), that socket is of no use for ever. Connecting a second
// socket shows the local address that the system would choose now, and sends nothing. The second one
// replaces the first if
//
// - the old local address is gone, which is checked twice per second, or
// - the mediator is silent, and the system would choose another address, or
// - the mediator is silent, and its name stands for another address.
//
// A socket that still works is never replaced: with another port, this client would be another one to
// the mediator.

import dgram from "node:dgram";
import dns from "node:dns";
import net from "node:net";
import os from "node:os";
import { UnreachableError } from "./errors.js";

/** The default port of mediators. */
export const PORT = 26233;

/** The size of the receive buffer to ask for: half a second of pictures. Systems may give less. */
const RECEIVE_BUFFER = 4 << 20;
/** The time between two checks whether the local address still exists. */
const CHECK_EVERY_MS = 500;
/** The mediator counts as silent if nothing has arrived for this time. */
const SILENCE_MS = 1000;
/** The time between two look-ups of its name while it is silent. */
const LOOK_UP_EVERY_MS = 1000;
/** So many look-ups must return the known address before another one of the same name is tried. */
const LOOK_UPS_PER_ADDRESS = 5;
/** The name is right, but its server cannot be asked now. */
const TRY_AGAIN = "EAI_AGAIN";

/** @typedef {{ address: string, family: number }} Found */

/** What the system says about the network. */
const SYSTEM = {
  /** @param {string} host @returns {Promise<Found[]>} */
  lookUp: (host) => dns.promises.lookup(host, { all: true, verbatim: true }),
  /** The addresses of this computer. */
  addresses: () => Object.values(os.networkInterfaces()).flatMap((all) => (all ?? []).map((it) => it.address)),
};

export class UdpTransport {
  /**
   * @param {string} text `HOST` or `HOST:PORT`
   * @param {import("./platform.js").Owner} owner
   * @param {typeof SYSTEM} [system] for tests
   */
  constructor(text, owner, system = SYSTEM) {
    this._text = text;
    this._name = hostAndPort(text);
    this._owner = owner;
    this._system = system;
    /** @type {dgram.Socket | undefined} */
    this._socket = undefined;
    /** @type {Found | undefined} */
    this._mediator = undefined;
    this._local = "";
    this._why = new UnreachableError(`there is no way to the mediator ${text} yet`);
    this._heardAt = performance.now();
    this._lookedUpAt = -Infinity;
    this._lookUps = 0;
    this._wantsLookUp = false;
    this._isBusy = false;
    this._isClosed = false;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this._watch = undefined;
  }

  /** Looks up the host. If the network is not there yet, tries again until it is. Rejects with
   * UnreachableError if there is no such host. */
  async open() {
    try {
      await this._takeFirst(await this._lookUp());
    } catch (error) {
      const { code } = /** @type {NodeJS.ErrnoException} */ (error);
      this._why = new UnreachableError(`cannot find the mediator ${this._text}: ${code}`, {
        hint: "use the address of the robot; `amber discover` finds robots nearby",
      });
      if (code !== TRY_AGAIN) throw this._why;
    }
    this._watch = setInterval(() => this._check(), CHECK_EVERY_MS);
    return this;
  }

  get isLocal() {
    return this._mediator !== undefined && isLoopback(this._mediator.address);
  }

  /**
   * @param {Uint8Array} frame
   * @returns {Promise<void>}
   */
  send(frame) {
    return new Promise((resolve, reject) => {
      const socket = this._socket;
      if (!socket) {
        reject(this._why);
        return;
      }
      socket.send(frame, (error) => {
        // The system may report the fate of an earlier datagram.
        if (error) reject(this._failed(error));
        else resolve();
      });
    });
  }

  async close() {
    this._isClosed = true;
    clearInterval(this._watch);
    this._detach();
  }

  /** Answers are missing: the way to the mediator may be another one now. */
  lookForAnotherWay() {
    if (performance.now() >= this._heardAt + SILENCE_MS) this._wantsLookUp = true;
  }

  // Sockets

  /**
   * @param {dgram.Socket} opened
   * @param {Found} mediator
   */
  _attach(opened, mediator) {
    if (this._isClosed) {
      opened.close();
      return;
    }
    const isMove = this._socket !== undefined;
    this._detach();
    this._socket = opened;
    this._mediator = mediator;
    this._local = opened.address().address;
    opened.on("message", (datagram) => {
      this._heardAt = performance.now();
      this._lookUps = 0;
      this._wantsLookUp = false;
      const { buffer, byteOffset, length } = datagram;
      this._owner.received(new Uint8Array(buffer, byteOffset, length));
    });
    opened.removeAllListeners("error");
    opened.on("error", (error) => {
      if (this._socket === opened) this._failed(error);
    });
    if (isMove) this._owner.moved();
  }

  _detach() {
    const socket = this._socket;
    this._socket = undefined;
    if (!socket) return;
    socket.removeAllListeners();
    socket.on("error", () => {});
    socket.close();
  }

  /** @param {Found[]} found */
  async _takeFirst(found) {
    for (const mediator of found) {
      try {
        this._attach(await connected(mediator, this._name.port), mediator);
        return;
      } catch (error) {
        const { code } = /** @type {NodeJS.ErrnoException} */ (error);
        this._why = new UnreachableError(`there is no way to the mediator ${this._text}: ${code}`);
      }
    }
  }

  /** Takes a socket to the same mediator, if the system would choose another local address now. */
  async _takeOtherWay() {
    const mediator = this._mediator;
    if (!mediator || !this._socket) return false;
    let opened;
    try {
      opened = await connected(mediator, this._name.port);
    } catch {
      return false;
    }
    if (opened.address().address === this._local) {
      opened.close();
      return false;
    }
    this._attach(opened, mediator);
    return true;
  }

  /** @param {NodeJS.ErrnoException} error */
  _failed(error) {
    const isRefused = error.code === "ECONNREFUSED" || error.code === "ECONNRESET";
    this._why = isRefused
      ? new UnreachableError(`no mediator is listening at ${this._text}`, {
          hint: "start one there with `amber demo`, or set AMBER_MEDIATOR to HOST or HOST:PORT",
        })
      : new UnreachableError(`cannot reach the mediator ${this._text}: ${error.code}`);
    this._owner.unreachable(this._why);
    this.lookForAnotherWay();
    return this._why;
  }

  // The network

  async _check() {
    if (this._isBusy) return;
    this._isBusy = true;
    try {
      const isNew = this._socket === undefined;
      const isGone = !isNew && !this.isLocal && !this._system.addresses().includes(this._local);
      if (isGone) await this._takeOtherWay();
      else if (isNew || (this._wantsLookUp && !(await this._takeOtherWay()))) await this._lookUpAgain();
      if (isNew && this._socket) this._owner.moved();
    } finally {
      this._isBusy = false;
    }
  }

  async _lookUpAgain() {
    if (performance.now() < this._lookedUpAt + LOOK_UP_EVERY_MS) return;
    this._wantsLookUp = false;
    let found;
    try {
      found = await this._lookUp();
    } catch (error) {
      const { code } = /** @type {NodeJS.ErrnoException} */ (error);
      this._why = new UnreachableError(`cannot find the mediator ${this._text}: ${code}`);
      return;
    }
    const known = this._socket && this._mediator;
    if (known) {
      // Other addresses of the same family first.
      found.sort((a, b) => Number(a.family !== known.family) - Number(b.family !== known.family));
      const at = found.findIndex((it) => it.address === known.address);
      if (at >= 0) {
        this._lookUps += 1;
        if (this._lookUps % LOOK_UPS_PER_ADDRESS !== 0) return;
        found = [...found.slice(at + 1), ...found.slice(0, at)];
      }
    }
    await this._takeFirst(found);
  }

  _lookUp() {
    this._lookedUpAt = performance.now();
    return this._system.lookUp(this._name.host);
  }
}

/** `HOST`, `HOST:PORT`, `[V6]:PORT` or a bare IPv6 address. @param {string} text */
export function hostAndPort(text) {
  const [, v6, name, port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/.exec(text) ?? [];
  const host = v6 ?? name ?? (net.isIPv6(text) ? text : undefined);
  if (host === undefined || Number(port ?? PORT) > 65_535) {
    throw new TypeError(`${JSON.stringify(text)} is not HOST or HOST:PORT`);
  }
  return { host, port: Number(port ?? PORT) };
}

/**
 * @param {Found} mediator
 * @param {number} port
 * @returns {Promise<dgram.Socket>}
 */
function connected({ address, family }, port) {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket(family === 6 ? "udp6" : "udp4");
    const fail = (/** @type {Error} */ error) => {
      socket.close();
      reject(error);
    };
    socket.once("error", fail);
    // The types of Node do not know of the error.
    const done = (/** @type {Error | undefined} */ error = undefined) => {
      if (error) {
        fail(error);
        return;
      }
      try {
        socket.setRecvBufferSize(RECEIVE_BUFFER);
      } catch {
        // A smaller one works as well.
      }
      resolve(socket);
    };
    socket.connect(port, address, done);
  });
}

/** @param {string} address */
function isLoopback(address) {
  return address === "::1" || address.startsWith("127.") || address.startsWith("::ffff:127.");
}
