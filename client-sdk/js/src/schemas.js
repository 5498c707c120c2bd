// The messages of all devices, from their descriptions. PURE, except that Amber's own schemas come
// from the platform.

import { readSchemas } from "./platform.js";
import { FileDescriptorSet, fromBinary, registryOf } from "./protobuf.js";

/**
 * A set of files without conflicts.
 * @typedef {object} Schemas
 * @property {import("./protobuf.js").Registry} registry
 * @property {string[]} names the files that describe devices
 */

const ours = fromBinary(FileDescriptorSet, await readSchemas()).file;

/** Amber's own schemas. @type {Schemas} */
export const OURS = { registry: registryOf(ours), names: ours.map((/** @type {any} */ file) => file.name) };

/**
 * The schemas in a serialized FileDescriptorSet, with Amber's own where they are missing.
 * Throws an Error if they do not fit together.
 * @param {Uint8Array} bytes
 * @returns {Schemas}
 */
export function readDescription(bytes) {
  return schemasOf(fromBinary(FileDescriptorSet, bytes).file);
}

/**
 * The schemas in these files, with Amber's own where they are missing. Throws an Error if they do not fit
 * together.
 * @param {import("./protobuf.js").Message[]} given FileDescriptorProtos
 * @returns {Schemas}
 */
export function schemasOf(given) {
  const names = given.map((/** @type {any} */ file) => file.name);
  const files = [...ours.filter((/** @type {any} */ file) => !names.includes(file.name)), ...given];
  return { registry: registryOf(files), names };
}

/**
 * The type of a message. Each registry has its own, and any of them reads the fields that all
 * messages share.
 * @param {Schemas} schemas
 * @param {string} name such as "amber.DriverMsg"
 */
export function messageOf({ registry }, name) {
  const found = registry.getMessage(name);
  if (!found) throw new Error(`there is no message ${name}`);
  return found;
}

/**
 * @param {Schemas} schemas
 * @param {string} name such as "amber.mediator_proto.event"
 */
export function extensionOf({ registry }, name) {
  const found = registry.getExtension(name);
  if (!found) throw new Error(`there is no extension ${name}`);
  return found;
}
