// The description of a device that the package does not know.

import { create, fromJson, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { reference } from "./reference.js";

const LABEL_OPTIONAL = "LABEL_OPTIONAL";
/** @param {string} name @param {number} number @param {string} type @param {object} [options] */
const field = (name, number, type, options) => ({
  name, number, type, label: LABEL_OPTIONAL, extendee: ".amber.DriverMsg", ...(options ? { options } : {}),
});
/** @param {string} name @param {object} options @param {boolean} [serverStreaming] */
const rpc = (name, options, serverStreaming = false) => ({
  name, inputType: ".amber.DriverMsg", outputType: ".amber.DriverMsg", serverStreaming, options,
});

const file = fromJson(
  FileDescriptorProtoSchema,
  /** @type {any} */ ({
    name: "lamp.proto",
    package: "lamp",
    dependency: ["drivermsg.proto", "interface.proto"],
    extension: [
      field("set_brightness", 130, "TYPE_UINT32", { "[amber.unit]": "%", "[amber.max]": 100 }),
      field("get_brightness", 131, "TYPE_BOOL"),
      field("brightness", 132, "TYPE_UINT32"),
    ],
    service: [
      {
        name: "Lamp",
        options: { "[amber.device]": { type: 201, name: "lamp" } },
        method: [
          rpc("SetBrightness", { "[amber.ask]": { request: ["set_brightness"], answer: ["brightness"] } }),
          rpc("Brightness", { "[amber.stream]": { data: ["brightness"] } }, true),
        ],
      },
    ],
  }),
  { registry: reference },
);

/** A serialized FileDescriptorSet, as a driver sends it. */
export const LAMP = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [file] }));
