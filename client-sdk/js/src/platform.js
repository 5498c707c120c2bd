// What Node and browsers do in different ways: node.js or browser.js. Neither a build step nor an import
// map is needed. IO.

const isNode = typeof process === "object" && Boolean(process.versions?.node);
const platform = isNode ? await import("./node.js") : await import("./browser.js");

/**
 * The connection to the mediator.
 * @typedef {object} Transport
 * @property {(frame: Uint8Array) => Promise<void>} send rejects with UnreachableError
 * @property {() => Promise<void>} close
 * @property {() => void} lookForAnotherWay answers are missing
 * @property {boolean} isLocal whether the mediator is on this computer, or on that of the dashboard
 */

/**
 * What the transport reports to.
 * @typedef {object} Owner
 * @property {(datagram: Uint8Array) => void} received
 * @property {(error: import("./errors.js").UnreachableError) => void} unreachable earlier requests are lost
 * @property {() => void} moved the mediator does not know this client any more
 * @property {(device: import("./address.js").Address, number: number, words: string) => void} refused a
 *   request was not passed on, by its number
 */

/** @type {(address: string, owner: Owner) => Promise<Transport>} */
export const openTransport = platform.openTransport;

/** The descriptions of Amber's devices, a FileDescriptorSet. @type {() => Uint8Array | Promise<Uint8Array>} */
export const readSchemas = platform.readSchemas;

/** @type {() => string} */
export const defaultAddress = platform.defaultAddress;

/** For how long commands hold that say nothing else, in ms. @type {number | undefined} */
export const VALID_MS = platform.VALID_MS;
