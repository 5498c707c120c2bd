// Who moves a device, and the halt: what each device that moves can be asked besides its own requests. IO
// only through the robot.

import { Codec, Options } from "./convert.js";
import { AmberError, BadAnswerError, DeviceDiedError, RefusedError } from "./errors.js";
import { repeated } from "./extras.js";
import { TYPE, refusal } from "./interface.js";
import { create, setExtension } from "./protobuf.js";
import { OURS, extensionOf, messageOf } from "./schemas.js";

/** @typedef {{ signal?: AbortSignal, timeoutMs?: number }} Wait */

const message = messageOf(OURS, "amber.DriverMsg");
const stateField = extensionOf(OURS, "amber.motion_proto.motion_state");
const codec = new Codec(new Options(OURS));

/**
 * Sends a request about the motion of a device. Resolves to its MotionState.
 * @param {import("./device.js").Device} device
 * @param {string} name of the field of the request
 * @param {unknown} value
 * @param {Wait} [options]
 */
export async function askAboutMotion(device, name, value, options) {
  const { robot, _address: to } = device;
  const order = create(message, /** @type {any} */ ({ type: TYPE.DATA }));
  codec.write(order, [extensionOf(OURS, `amber.motion_proto.${name}`)], value);
  const answer = await robot._ask(to, robot._encode({ message }, order), device._limits(options));
  const state = codec.read(answer, [stateField]);
  if (state === undefined) throw new BadAnswerError(`${device.address} answered without the motion state`);
  return state;
}

/**
 * Halts a device, or releases the halt. Resolves to its MotionState.
 * @param {import("./device.js").Device} device
 * @param {boolean} halt
 * @param {string} name
 * @param {Wait} [options]
 */
export async function changeHalt(device, halt, name, options) {
  const state = await askAboutMotion(device, "halt_request", { halt, name }, options);
  if (state.refused !== undefined) throw refusal(device.address, state.refused);
  return state;
}

/**
 * Halts all devices that move, or releases their halts, at the same time. Resolves to their names. If that
 * fails for one, it throws after it has tried all.
 * @param {import("./robot.js").Robot} robot
 * @param {boolean} halt
 * @param {string} name
 * @param {Wait} [options]
 */
export async function changeHalts(robot, halt, name, options) {
  const drivers = await robot._drivers(options);
  const running = drivers.filter(({ state }) => state === "UP" || state === "STARTING");
  const addresses = running.flatMap(({ devices }) => devices);
  const change = async (/** @type {import("./address.js").Address} */ address) => {
    const device = await movingDevice(robot, address, options);
    if (device) await repeated(() => changeHalt(device, halt, name, options));
    return device?.address;
  };
  const done = await Promise.allSettled(addresses.map(change));
  for (const one of done) if (one.status === "rejected") throw one.reason;
  const names = done.flatMap((one) => (one.status === "fulfilled" && one.value ? [one.value] : []));
  if (names.length === 0) throw new AmberError("no running driver has a device that moves");
  return names;
}

/**
 * The device, if its description has something that moves.
 * @param {import("./robot.js").Robot} robot
 * @param {import("./address.js").Address} address
 * @param {Wait} [options]
 */
async function movingDevice(robot, address, options) {
  try {
    if (!robot._interfaces.has(address.type)) await repeated(() => robot._describe(address, options));
  } catch (error) {
    // Most devices of users have no description, and older mediators refuse the request.
    if ([RefusedError, DeviceDiedError, BadAnswerError].some((kind) => error instanceof kind)) return undefined;
    throw error;
  }
  const moves = robot._interfaces.get(address.type)?.methods.some((method) => method.moves);
  return moves ? robot.device(address) : undefined;
}
