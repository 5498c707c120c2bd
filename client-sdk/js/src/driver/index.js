// Drivers: programs that the mediator starts, one for each device. IO. Only for Node.

import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { interfacesOf } from "../interface.js";
import { INTERFACES } from "../ours.js";
import { schemasOf } from "../schemas.js";
import { descriptionOf } from "./messages.js";
import { Pipe } from "./pipe.js";
import { readFiles } from "./proto.js";
import { log, output } from "./stdout.js";

export { RefusedError } from "../errors.js";
export { Refused } from "./requests.js";

let isServing = false;

/** @typedef {{ device: import("../interface.js").Interface, description?: Uint8Array }} Described */

/**
 * Runs a driver on stdin and stdout, and ends the process when stdin ends or SIGTERM comes.
 * @param {string | URL} device a name such as `wheels`, or a `.proto` file
 * @param {any} driver
 */
export function serve(device, driver) {
  if (isServing) throw new Error("a process serves one device");
  const described = typeof device === "string" && !device.endsWith(".proto") ? ours(device) : own(device);
  const pipe = new Pipe({ ...described, driver, input: process.stdin, output, environment: process.env, log });
  if (process.stdin.isTTY) {
    const words = `node ${process.argv[1]}`;
    log("this is a driver: a mediator starts it, e.g. with");
    log(`  amber mediator --driver '${described.device.type}:0=${words}'`);
    log(`or check it with \`amber check -- ${words}\``);
  }
  for (const signal of /** @type {const} */ (["SIGTERM", "SIGINT"])) process.on(signal, () => pipe.end());
  // The device must be brought to a safe state whatever happens.
  process.on("uncaughtException", (error) => pipe.end(error));
  isServing = true;
  // Later, so that the caller has what this returns.
  setImmediate(() => pipe.run().then((code) => process.exit(code)));
  return pipe.port;
}

/** @param {string} name @returns {Described} */
function ours(name) {
  const found = INTERFACES.find((it) => it.type !== 0 && (it.name === name || it.alias === name));
  if (found) return { device: found };
  const names = INTERFACES.filter(({ type }) => type !== 0).map((it) => it.name);
  throw new TypeError(
    `Amber has no device ${JSON.stringify(name)}, only ${names.join(", ")}\n` +
      'hint: for a device of your own, give its file: new URL("lamp.proto", import.meta.url)',
  );
}

/** @param {string | URL} file @returns {Described} */
function own(file) {
  const path = file instanceof URL ? fileURLToPath(file) : file;
  const files = readFiles(basename(path), (name) => readIfThere(join(dirname(path), name)));
  const schemas = schemasOf(files);
  const devices = interfacesOf({ ...schemas, names: [basename(path)] });
  const wanted = process.env.AMBER_DEVICE_TYPE;
  const device = devices.length > 1 ? devices.find(({ type }) => String(type) === wanted) : devices[0];
  if (!device) {
    const all = devices.map(({ service, type }) => `${service.name} (${type})`).join(", ");
    throw new TypeError(
      devices.length === 0
        ? `${path} describes no device\nhint: give it a service with the option (amber.device)`
        : `${path} describes several devices: ${all}\nhint: set AMBER_DEVICE_TYPE to one of their types, as the mediator does`,
    );
  }
  return { device, description: descriptionOf(files) };
}

/** @param {string} path */
function readIfThere(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return undefined;
    throw error;
  }
}
