// What differs between Node and browsers. IO.

import { readFileSync } from "node:fs";
import { UdpTransport } from "./udp.js";

/**
 * The connection to the mediator. A browser will have another one.
 * @typedef {object} Transport
 * @property {(frame: Uint8Array) => Promise<void>} send rejects with UnreachableError
 * @property {() => Promise<void>} close
 * @property {() => void} lookForAnotherWay answers are missing
 * @property {boolean} isLocal whether the mediator is on this computer
 */

/**
 * What the transport reports to.
 * @typedef {object} Owner
 * @property {(datagram: Uint8Array) => void} received
 * @property {(error: import("./errors.js").UnreachableError) => void} unreachable earlier requests are lost
 * @property {() => void} moved the mediator does not know this client any more
 */

/**
 * @param {string} address
 * @param {Owner} owner
 * @returns {Promise<Transport>}
 */
export function openTransport(address, owner) {
  return new UdpTransport(address, owner).open();
}

/** The descriptions of Amber's devices: a FileDescriptorSet. */
export function readSchemas() {
  return new Uint8Array(readFileSync(new URL("./schemas.binpb", import.meta.url)));
}

export function defaultAddress() {
  return process.env.AMBER_MEDIATOR || "127.0.0.1";
}
