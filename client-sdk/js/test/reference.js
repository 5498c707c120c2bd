// Amber's schemas with the library of Buf, which tests compare with src/protobuf.js.

import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, file_google_protobuf_descriptor } from "@bufbuild/protobuf/wkt";
import { readSchemas } from "../src/node.js";

const options = file_google_protobuf_descriptor.proto;
const { file } = fromBinary(FileDescriptorSetSchema, readSchemas());
/** @type {typeof file} */
const sorted = [options];

/** A file comes after those that it imports. @param {string} name */
function add(name) {
  const found = file.find((it) => it.name === name);
  if (!found || sorted.some((it) => it.name === name)) return;
  found.dependency.forEach(add);
  sorted.push(found);
}
file.forEach((it) => add(it.name));

export const reference = createFileRegistry(create(FileDescriptorSetSchema, { file: sorted }));
