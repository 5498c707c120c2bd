// What only Node has. IO.

import { readFileSync } from "node:fs";
import { UdpTransport } from "./udp.js";

/**
 * @param {string} address
 * @param {import("./platform.js").Owner} owner
 * @returns {Promise<import("./platform.js").Transport>}
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

/** Commands hold until the device stops by its own rules. @type {number | undefined} */
export const VALID_MS = undefined;
