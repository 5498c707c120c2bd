// Messages of a driver that have nothing to do with its device: health, description, lease and halt, pieces.
// PURE.

import { Codec, Options } from "../convert.js";
import { TYPE } from "../interface.js";
import { FileDescriptorSet, create, fromBinary, getExtension, hasExtension, toBinary } from "../protobuf.js";
import { OURS, extensionOf, messageOf } from "../schemas.js";
import { missingFrom } from "./requests.js";

/** @typedef {import("../convert.js").Message} Message */

/** The envelope of all messages. */
export const driverMsg = messageOf(OURS, "amber.DriverMsg");
const codec = new Codec(new Options(OURS));
const mediator = (/** @type {string} */ name) => extensionOf(OURS, `amber.mediator_proto.${name}`);
const motion = (/** @type {string} */ name) => extensionOf(OURS, `amber.motion_proto.${name}`);
const { description, health, outcome, wantOutcome } = {
  description: mediator("description"),
  health: mediator("health"),
  outcome: mediator("outcome"),
  wantOutcome: mediator("want_outcome"),
};
const TERMS = {
  haltRequest: motion("halt_request"),
  leaseRequest: motion("lease_request"),
  getMotionState: motion("get_motion_state"),
  forClient: motion("for_client"),
  validMs: motion("valid_ms"),
};

/**
 * The bytes of a message with base fields and one extension.
 * @param {Record<string, any>} base
 * @param {import("../protobuf.js").Field} [extension]
 * @param {any} [value]
 */
function message(base, extension, value) {
  const made = create(driverMsg, { type: TYPE.DATA, ...base });
  if (extension) codec.write(made, [extension], value);
  return toBinary(driverMsg, made);
}

/**
 * The answer to a PING. It says that outcomes follow requests that want one, if that is asked.
 * @param {Message} ping
 */
export function pong(ping) {
  const number = Object.hasOwn(ping, "synNum") ? { ackNum: ping.synNum } : {};
  const asks = hasExtension(ping, wantOutcome) && getExtension(ping, wantOutcome);
  return message({ type: TYPE.PONG, ...number }, asks ? outcome : undefined, {});
}

/** What the mediator hears of the device: why it does not work, or nothing if it does. @param {string | undefined} trouble */
export function healthMessage(trouble) {
  return message({}, health, trouble === undefined ? { state: "OK" } : { state: "TROUBLE", text: trouble });
}

/** The description of a device of one's own, as a FileDescriptorSet. @param {Message[]} files */
export function descriptionOf(files) {
  return toBinary(FileDescriptorSet, create(FileDescriptorSet, { file: files }));
}

/** @param {Uint8Array} files a FileDescriptorSet */
export function descriptionMessage(files) {
  return message({}, description, { files });
}

/** @param {any} report a MotionReport */
export function reportMessage(report) {
  return message({}, motion("motion_report"), report);
}

/** @param {number} ackNum @param {any} state a MotionState */
export function stateMessage(ackNum, state) {
  return message({ ackNum }, motion("motion_state"), state);
}

/** @param {"missing" | "receipt"} field @param {any} value */
export function aboutPieces(field, value) {
  return message({ [field]: value });
}

/**
 * Lease, halt and validity in a request. Throws if they are invalid.
 * @param {Message} request
 * @returns {{ haltRequest?: any, leaseRequest?: any, getMotionState?: boolean, forClient?: number, validMs?: number }}
 */
export function termsOf(request) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const [name, extension] of Object.entries(TERMS)) {
    if (!hasExtension(request, extension)) continue;
    const missing = extension.message && missingFrom(getExtension(request, extension));
    if (missing) throw new RangeError(`${extension.name} without ${missing}`);
    found[name] = codec.read(request, [extension]);
  }
  return found;
}

/** A message; undefined if the bytes are none, or its type is unknown. @param {Uint8Array} bytes */
export function readMessage(bytes) {
  try {
    const read = fromBinary(driverMsg, bytes);
    const isKnown = Object.hasOwn(read, "type") && Object.values(TYPE).includes(read.type);
    return /** @type {Message | undefined} */ (isKnown ? read : undefined);
  } catch {
    return undefined;
  }
}

/** Whether a message is a piece of a longer one, or about pieces. @param {Message} message */
export function isAboutPieces(message) {
  return message.type === TYPE.DATA && ["piece", "missing", "receipt"].some((name) => Object.hasOwn(message, name));
}
