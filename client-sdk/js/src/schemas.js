// The messages of all devices, from their descriptions. PURE, except that Amber's own schemas come
// from the platform.

import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, file_google_protobuf_descriptor } from "@bufbuild/protobuf/wkt";
import { readSchemas } from "#platform";

/**
 * A set of files without conflicts.
 * @typedef {object} Schemas
 * @property {import("@bufbuild/protobuf").FileRegistry} registry
 * @property {string[]} names the files that describe devices
 */

const ours = fromBinary(FileDescriptorSetSchema, readSchemas()).file;

/** Amber's own schemas. @type {Schemas} */
export const OURS = { registry: registryOf(ours), names: ours.map((file) => file.name) };

/**
 * The schemas in a serialized FileDescriptorSet, with Amber's own where they are missing.
 * Throws an Error if they do not fit together.
 * @param {Uint8Array} bytes
 * @returns {Schemas}
 */
export function readDescription(bytes) {
  const given = fromBinary(FileDescriptorSetSchema, bytes).file;
  const names = given.map((file) => file.name);
  const files = [...ours.filter((file) => !names.includes(file.name)), ...given];
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

/** @param {import("@bufbuild/protobuf/wkt").FileDescriptorProto[]} file */
function registryOf(file) {
  const options = file_google_protobuf_descriptor.proto;
  const others = file.filter((it) => it.name !== options.name);
  // A file comes after those that it imports.
  /** @type {Map<string, import("@bufbuild/protobuf/wkt").FileDescriptorProto>} */
  const waiting = new Map(others.map((it) => [it.name, it]));
  /** @type {typeof file} */
  const sorted = [options];
  /** @param {import("@bufbuild/protobuf/wkt").FileDescriptorProto} one */
  const add = (one) => {
    if (!waiting.delete(one.name)) return;
    for (const name of one.dependency) {
      const imported = waiting.get(name);
      if (imported) add(imported);
    }
    sorted.push(one);
  };
  others.forEach(add);
  return createFileRegistry(create(FileDescriptorSetSchema, { file: sorted }));
}
