// Writes src/devices.d.ts and src/driver/devices.d.ts: the types of all devices and of their drivers, from their
// descriptions. scripts/python-schemas in the repository runs it. With --check, it only tells whether the
// files are up to date.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Codec, Options, camel, isRequired, nameOf } from "../src/convert.js";
import { Handled } from "../src/driver/requests.js";
import { isBareMessage } from "../src/interface.js";
import { INTERFACES } from "../src/ours.js";
import { ScalarType } from "../src/protobuf.js";
import { OURS, messageOf } from "../src/schemas.js";

const TARGETS = {
  devices: new URL("../src/devices.d.ts", import.meta.url),
  drivers: new URL("../src/driver/devices.d.ts", import.meta.url),
};
/** The same descriptions, with comments. */
const COMMENTED = new URL("../../python/src/amber/schemas.binpb", import.meta.url);

const options = new Options(OURS);
const codec = new Codec(options);
const comments = readComments();
/** Types of messages and enums that are needed, by namespace and name. @type {Map<string, Map<string, string>>} */
const namespaces = new Map();

/** Both files. */
export function types() {
  // First, because the messages of both are in one file.
  const drivers = driverTypes();
  return { devices: deviceTypes(), drivers };
}

function deviceTypes() {
  const devices = INTERFACES.map(deviceType);
  const accessors = INTERFACES.flatMap(({ name, alias, service, type }) =>
    [name, alias].filter(Boolean).map((one) => {
      const docs = comment(comments.get(service.typeName), "  ");
      return `${docs}  ${camel(one)}(${type === 0 ? "" : "id?: number"}): ${classOf(service)};`;
    }),
  );
  const names = INTERFACES.flatMap(({ name, alias, service }) =>
    [name, alias].filter(Boolean).map((one) => `  ${JSON.stringify(one)}: ${classOf(service)};`),
  );
  // That of `Device.motionState`.
  messageType(messageOf(OURS, "amber.motion_proto.MotionState"), false);
  const inner = [...namespaces].sort().map(([name, all]) => {
    const lines = [...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
    return `/** The messages of ${name}. */\nexport namespace ${name} {\n${lines.join("\n")}\n}`;
  });
  return [
    "// Made by scripts/types.js from the descriptions in proto/. Do not edit.",
    'import type { CallOptions, CommandOptions, Device, StreamOptions, Subscription } from "./index.js";',
    ...devices,
    `/** A method for each of Amber's devices. */\nexport interface Devices {\n${accessors.join("\n")}\n}`,
    `/** The devices by name. */\nexport interface DevicesByName {\n${names.join("\n")}\n}`,
    ...inner,
    "",
  ].join("\n\n").trimEnd() + "\n";
}

/** `Robot` is the client in index.d.ts. @param {{ name: string }} service */
function classOf({ name }) {
  return name === "Robot" ? "RobotDevice" : name;
}

function driverTypes() {
  const served = INTERFACES.filter(({ type }) => type !== 0);
  const types = served.map(driverType);
  /** @param {(service: string) => string} typeOfService */
  const byName = (typeOfService) =>
    served.flatMap(({ name, alias, service }) =>
      [name, alias].filter(Boolean).map((one) => `  ${JSON.stringify(one)}: ${typeOfService(service.name)};`),
    ).join("\n");
  const used = [...namespaces.keys()].filter((name) => types.some((text) => new RegExp(`\\b${name}\\.`).test(text)));
  return [
    "// Made by scripts/types.js from the descriptions in proto/. Do not edit.",
    `import type { ${used.sort().join(", ")} } from "../devices.js";\n` +
      'import type { Caller, Driver, Port } from "./index.js";',
    ...types,
    `/** The drivers by the names of their devices. */\nexport interface DriversByName {\n${byName((name) => `${name}Driver`)}\n}`,
    `/** What \`serve\` returns, by the names of the devices. */\nexport interface PortsByName {\n${byName((name) => `${name}Port`)}\n}`,
    "",
  ].join("\n\n").trimEnd() + "\n";
}

/** What a driver implements, and what it may publish. @param {import("../src/interface.js").Interface} device */
function driverType(device) {
  const { service: { name, typeName }, methods } = device;
  const docs = comment(comments.get(typeName), "");
  const streams = methods.filter(({ isStream }) => isStream).map((method) => {
    const published = `publish${method.name[0].toUpperCase()}${method.name.slice(1)}`;
    return `${comment(comments.get(`${typeName}.${method.described.name}`), "  ")}  ${published}(value: ${result(method, true)}): void;`;
  });
  return [
    `${docs}export interface ${name}Driver extends Driver<${name}Port> {\n${methods.map(handlerType).join("\n")}\n}`,
    `/** What the driver of \`${name}\` may do by itself. */\nexport interface ${name}Port extends Port {\n${streams.join("\n")}\n}`,
  ].join("\n\n").replaceAll("{\n\n}", "{}");
}

/** @param {import("../src/interface.js").Method} method */
function handlerType(method) {
  const { kind, device, described } = method;
  const { name } = new Handled(method);
  const given = kind === "subscribe" ? undefined : argument(method, false);
  const parameters = [...(given ? [given] : []), ...(kind === "subscribe" ? [] : ["caller: Caller"])];
  const value = kind === "tell" ? "void" : `${result(method, true)}${method.isStream ? " | undefined" : ""}`;
  const docs = [comments.get(`${device.service.typeName}.${described.name}`)];
  if (method.form === "single") docs.push(about(/** @type {any} */ (method.request[0].at(-1))));
  const mark = kind === "subscribe" ? "?" : "";
  return `${comment(docs.filter(Boolean).join("\n\n"), "  ")}  ${name}${mark}(${parameters.join(", ")}): ${value} | Promise<${value}>;`;
}

/** @param {import("../src/interface.js").Interface} device */
function deviceType(device) {
  const methods = device.methods.map(methodType);
  const { stopper } = device;
  if (stopper && !device.methods.some((method) => method.name === "stop")) {
    methods.push("  /** Stops all motion of the device, whoever moves it. */\n  stop(options?: CommandOptions): Promise<void>;");
  }
  const docs = comment(comments.get(device.service.typeName), "");
  return `${docs}export interface ${classOf(device.service)} extends Device {\n${methods.join("\n")}\n}`;
}

/** @param {import("../src/interface.js").Method} method */
function methodType(method) {
  const { kind, name, device, described } = method;
  const options = { ask: "CallOptions", tell: "CommandOptions", subscribe: "StreamOptions", stream: "StreamOptions" };
  const given = argument(method);
  const parameters = [...(given ? [given] : []), `options?: ${options[kind]}`].join(", ");
  const value = kind === "tell" ? "void" : result(method);
  const returned = method.isStream ? `Subscription<${value}>` : `Promise<${value}>`;
  const docs = [comments.get(`${device.service.typeName}.${described.name}`)];
  if (method.form === "single") docs.push(about(/** @type {any} */ (method.request[0].at(-1))));
  if (method.timeoutMs > 0) docs.push(`Waits ${method.timeoutMs / 1000} s for the answer, unless \`timeoutMs\` says otherwise.`);
  docs.push(throws(method));
  return `${comment(docs.filter(Boolean).join("\n\n"), "  ")}  ${name}(${parameters}): ${returned};`;
}

/** What a call throws besides the errors of all calls: see `Device`. @param {import("../src/interface.js").Method} method */
function throws({ kind, period }) {
  if (kind === "ask") return "@throws {RefusedError} The device refuses the request.";
  if (kind === "tell") return "@throws {RefusedError} The driver reports that it refuses the command.";
  return period ? `@throws {RangeError} \`${nameOf(/** @type {any} */ (period.at(-1)))}\`, in ms, is below 1.` : undefined;
}

/**
 * The arguments: a client writes them, a driver reads them.
 * @param {import("../src/interface.js").Method} method
 * @param {boolean} [isWritten]
 */
function argument(method, isWritten = true) {
  if (method.hasNoArguments) return undefined;
  if (method.form === "several") {
    const fields = method.request.map((path) => {
      const field = path[path.length - 1];
      return `${nameOf(field)}${isWritten && isBareMessage(field) ? "?" : ""}: ${typeOf(field, isWritten)}`;
    });
    return `request: { ${fields.join("; ")} }`;
  }
  const [path] = method.request;
  const field = path[path.length - 1];
  if (method.form === "single") return `${nameOf(field)}: ${typeOf(field, isWritten)}`;
  if (!isWritten) return `request: ${typeOf(field, false)}`;
  const fixed = method.fixed.map((name) => JSON.stringify(name)).join(" | ");
  let type = typeOf(field, true);
  if (fixed) type = `Omit<${type}, ${fixed}>`;
  if (method.period) type = `${type} & { ${nameOf(/** @type {any} */ (method.period.at(-1)))}: number }`;
  if (/** @type {any} */ (field).message.typeName === "amber.mediator_proto.Device") type += " | string";
  return `request${method.isBare ? "?" : ""}: ${type}`;
}

/**
 * An answer or a published value: a client reads it, a driver writes it.
 * @param {import("../src/interface.js").Method} method
 * @param {boolean} [isWritten]
 */
function result({ parts, mayHave, isOneValue }, isWritten = false) {
  /** @param {import("../src/convert.js").Path} path */
  const last = (path) => path[path.length - 1];
  const all = [...parts.map((it) => [last(it), ""]), ...mayHave.map((it) => [last(it), "?"])];
  const fields = all.map(([field, mark]) => `${nameOf(/** @type {any} */ (field))}${mark}: ${typeOf(/** @type {any} */ (field), isWritten)}`);
  if (isOneValue) return `${typeOf(last(parts[0]), isWritten)} & { ${fields.slice(1).join("; ")} }`;
  if (all.length > 1) return `{ ${fields.join("; ")} }`;
  const type = typeOf(/** @type {any} */ (all[0][0]), isWritten);
  return parts.length === 0 ? `${type} | undefined` : type;
}

/**
 * @param {import("../src/convert.js").Field} field
 * @param {boolean} isWritten
 * @returns {string}
 */
function typeOf(field, isWritten) {
  switch (field.fieldKind) {
    case "message":
      return messageType(field.message, isWritten);
    case "enum":
      return enumType(field.enum);
    case "scalar":
      return scalarType(field.scalar, isWritten);
    case "list": {
      const one =
        field.listKind === "message" ? messageType(field.message, isWritten)
        : field.listKind === "enum" ? enumType(field.enum)
        : scalarType(field.scalar, isWritten);
      return isWritten ? `Iterable<${one}>` : `${one}[]`;
    }
    default:
      throw new Error(`${field.name}: maps are not used`);
  }
}

/**
 * @param {number} type
 * @param {boolean} isWritten
 */
function scalarType(type, isWritten) {
  if (type === ScalarType.BOOL) return "boolean";
  if (type === ScalarType.STRING) return "string";
  if (type === ScalarType.BYTES) return "Uint8Array";
  /** @type {number[]} */
  const isLong = [ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64, ScalarType.SFIXED64];
  return isWritten && isLong.includes(type) ? "number | bigint" : "number";
}

/** @param {import("../src/protobuf.js").EnumType} type */
function enumType(type) {
  return declare(type, innerName(type), () => {
    const values = type.values.map((it) => JSON.stringify(it.name)).join(" | ");
    const docs = [comments.get(type.typeName), ...type.values.map((it) => {
      const text = comments.get(`${type.typeName}.${it.name}`);
      return text && `- \`${it.name}\`: ${text.replaceAll("\n", "\n  ")}`;
    })];
    return `${comment(docs.filter(Boolean).join("\n"), "  ")}  type ${innerName(type)} = ${values};`;
  });
}

/**
 * @param {import("../src/protobuf.js").Type} type
 * @param {boolean} isWritten
 */
function messageType(type, isWritten) {
  const name = `${innerName(type)}${isWritten ? "Init" : ""}`;
  return declare(type, name, () => {
    const fields = type.fields.map((field) => {
      const isThere = isWritten ? isRequired(field) : field.fieldKind === "list" || codec.absent(field) !== undefined;
      const docs = comment([comments.get(`${type.typeName}.${field.name}`), about(field)].filter(Boolean).join("\n\n"), "    ");
      return `${docs}    ${field.localName}${isThere ? "" : "?"}: ${typeOf(field, isWritten)};`;
    });
    const body = fields.length > 0 ? `{\n${fields.join("\n")}\n  }` : "{}";
    return `${comment(comments.get(type.typeName), "  ")}  interface ${name} ${body}`;
  });
}

/** Unit, range and default of a field, in one line. @param {import("../src/convert.js").Field} field */
function about(field) {
  const unit = options.get(field, "unit");
  const [least, most] = [options.get(field, "min"), options.get(field, "max")];
  const absent = options.get(field, "absent_means");
  const words = [];
  if (unit) words.push(`In ${unit}.`);
  if (least !== undefined && most !== undefined) words.push(`From ${least} to ${most}.`);
  else if (least !== undefined) words.push(`At least ${least}.`);
  else if (most !== undefined) words.push(`At most ${most}.`);
  if (absent !== undefined) words.push(`Absent means ${absent}.`);
  return words.join(" ");
}

/**
 * A type in the namespace of its file. Returns its full name.
 * @param {import("../src/protobuf.js").Type | import("../src/protobuf.js").EnumType} type
 * @param {string} name
 * @param {() => string} make
 */
function declare(type, name, make) {
  const space = camel((type.file.proto.package ?? "").replace(/^amber\./, "").replace(/_proto$/, ""));
  const all = namespaces.get(space) ?? new Map();
  namespaces.set(space, all);
  if (!all.has(name)) {
    all.set(name, ""); // it may contain itself
    all.set(name, make());
  }
  return `${space}.${name}`;
}

/** `Progress.State` as `ProgressState`. @param {import("../src/protobuf.js").Type | import("../src/protobuf.js").EnumType} type */
function innerName(type) {
  const prefix = type.file.proto.package;
  return type.typeName.slice(prefix ? prefix.length + 1 : 0).replaceAll(".", "");
}

/**
 * @param {string | undefined} text
 * @param {string} indent
 */
function comment(text, indent) {
  if (!text) return "";
  const lines = text.replaceAll("*/", "* /").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

/** The comments of the descriptions, by full name. */
function readComments() {
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const file of fromBinary(FileDescriptorSetSchema, readFileSync(COMMENTED)).file) {
    const at = new Map(file.sourceCodeInfo?.location.map((it) => [it.path.join(), it.leadingComments]));
    /** @param {string} outer @param {{ name: string }} declared @param {number[]} path */
    const note = (outer, declared, path) => {
      const name = outer ? `${outer}.${declared.name}` : declared.name;
      const text = at.get(path.join())?.replace(/^ /gm, "").trim();
      if (text) found.set(name, text);
      return name;
    };
    /** @param {string} outer @param {any[]} all @param {number[]} path */
    const enums = (outer, all, path) =>
      all.forEach((one, i) => {
        const name = note(outer, one, [...path, i]);
        one.value.forEach((/** @type {any} */ it, /** @type {number} */ n) => note(name, it, [...path, i, 2, n]));
      });
    /** @param {string} outer @param {any[]} all @param {number[]} path */
    const messages = (outer, all, path) =>
      all.forEach((one, i) => {
        const name = note(outer, one, [...path, i]);
        one.field.forEach((/** @type {any} */ it, /** @type {number} */ n) => note(name, it, [...path, i, 2, n]));
        messages(name, one.nestedType, [...path, i, 3]);
        enums(name, one.enumType, [...path, i, 4]);
      });
    messages(file.package, /** @type {any[]} */ (file.messageType), [4]);
    enums(file.package, /** @type {any[]} */ (file.enumType), [5]);
    file.service.forEach((one, i) => {
      const name = note(file.package, /** @type {any} */ (one), [6, i]);
      one.method.forEach((it, n) => note(name, /** @type {any} */ (it), [6, i, 2, n]));
    });
  }
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, made] of Object.entries(types())) {
    const target = TARGETS[/** @type {keyof typeof TARGETS} */ (name)];
    const path = fileURLToPath(target);
    if (!process.argv.includes("--check")) {
      writeFileSync(target, made);
      console.log(`wrote ${path}`);
    } else if (readFileSync(target, "utf8") !== made) {
      console.error(`error: ${path} is out of date\nhint: run scripts/python-schemas`);
      process.exitCode = 1;
    }
  }
}
