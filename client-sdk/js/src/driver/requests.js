// What requests of a device mean to its driver, by its description, and how answers are written. PURE.

import { nameOf } from "../convert.js";
import { TYPE, isBareMessage } from "../interface.js";
import { RefusedError } from "../errors.js";
import { ScalarType, create, getExtension, hasExtension, isSet } from "../protobuf.js";
import { MOTION } from "./control.js";

/** @typedef {import("../convert.js").Message} Message */
/** @typedef {import("../convert.js").Path} Path */
/** @typedef {import("../interface.js").Method} Method */
/** @typedef {import("../interface.js").Setting} Setting */

/** The longest reason of a refusal, in characters. */
const REASON = 200;
/** Names that a driver needs itself. */
const TAKEN = ["start", "stop", "clientGone", "periodMs"];

/** A driver throws this to refuse a request. */
export class Refused extends RefusedError {
  /**
   * @param {string} words why, as a sentence
   * @param {{ reason?: string, hint?: string }} [more]
   */
  constructor(words, { reason, hint } = {}) {
    super(words, { words, reason, hint });
  }
}

/**
 * The refusal of a request that the driver could not handle.
 * @param {unknown} error
 * @param {string} device for the hint
 */
export function failure(error, device) {
  const hint = `\`amber logs ${device}\` shows where`;
  const told = `the driver failed: ${error instanceof Error ? `${error.name}: ${error.message}` : error}`;
  return new Refused(`${told.slice(0, REASON - hint.length - 2)}; ${hint}`, { reason: "FAILED" });
}

/** A request or a stream, at its driver. */
export class Handled {
  /** @param {Method} method */
  constructor(method) {
    this.method = method;
    /** The name of the method of the driver. */
    this.name = TAKEN.includes(method.name) ? `${method.name}_` : method.name;
    const { options } = method.device;
    this._repeatsFlag = method.kind === "ask" && options.get(method.described, "ask").repeatsFlag === true;
  }

  /** Whether a driver must have a method for it. */
  get isNeeded() {
    return this.method.kind !== "subscribe";
  }

  /** Whether a message is a request for this. @param {Message} message */
  fits(message) {
    const { kind, flags, request, settings } = this.method;
    if (kind === "subscribe") return false;
    if (!flags.every((path) => isPresent(message, path) && this._read(message, path))) return false;
    if (flags.length === 0 && !request.some((path) => isPresent(message, path))) return false;
    return this._holds(message, settings);
  }

  /** Whether a message that fits ends a stream. @param {Message} message */
  isStop(message) {
    return this._holds(message, this.method.stop);
  }

  /** What a message that fits does to things that move: a value of MOTION. @param {Message} message */
  motion(message) {
    const { moves, isErrand, stopSettings, request } = this.method;
    if (!moves) return MOTION.NOTHING;
    if (stopSettings && this._holds(message, stopSettings)) {
      const inside = (/** @type {Path} */ one) =>
        stopSettings.some(([path]) => one.every((field, i) => path[i]?.number === field.number));
      if (request.every((one) => inside(one) || isEmpty(message, one))) return MOTION.STOPS;
    }
    return isErrand ? MOTION.ERRAND : MOTION.MOVES;
  }

  /**
   * The arguments of the method of the driver, as clients of this package give them. Throws Refused.
   * @param {Message} message
   * @returns {any[]}
   */
  read(message) {
    const { method } = this;
    if (method.hasNoArguments) return [];
    const values = method.request.map((path) => this._argument(message, path));
    if (method.form !== "several") return values;
    const named = method.request.map((path, i) => [nameOf(path[path.length - 1]), values[i]]);
    return [Object.fromEntries(named.filter(([, value]) => value !== undefined))];
  }

  /** @param {Message} message @param {Path} path */
  _argument(message, path) {
    const { codec, options } = this.method.device;
    const field = path[path.length - 1];
    try {
      if (isPresent(message, path)) {
        const missing = missingIn(message, path);
        if (missing) throw new RangeError(`${nameOf(field)} needs ${missing}`);
        return this._read(message, path);
      }
      if (isBareMessage(field)) return codec.readMessage(field.message, create(field.message));
      if (field.fieldKind === "list") return [];
    } catch (error) {
      throw new Refused(`the request is invalid: ${/** @type {Error} */ (error).message}`);
    }
    if (options.get(field, "absent_means") !== undefined) return codec.absent(field);
    throw new Refused(`the request is invalid: ${this.method.name} needs ${nameOf(field)}`);
  }

  /** The period of a stream for each client, in ms; undefined without one. @param {Message} message */
  periodMs(message) {
    const { period } = this.method;
    return period && isPresent(message, period) ? Number(this._read(message, period)) : undefined;
  }

  /**
   * The message that carries an answer or published data. Throws a TypeError or RangeError if the value does
   * not fit the description.
   * @param {any} value
   */
  reply(value) {
    const { method, name } = this;
    const message = this._message();
    const paths = [...method.parts, ...method.mayHave];
    const names = paths.map((path) => nameOf(path[path.length - 1]));
    /** @type {Record<string, any>} */
    let found = {};
    if (paths.length === 1) found = { [names[0]]: value };
    else if ((value === undefined || value === null) && method.parts.length === 0) found = {};
    else if (typeof value !== "object" || value === null) {
      throw new TypeError(`${name} returns an object with ${names.join(", ")}`);
    } else if (method.isOneValue) {
      const others = names.slice(1);
      const fields = Object.entries(value);
      found = Object.fromEntries(fields.filter(([field]) => others.includes(field)));
      found[names[0]] = Object.fromEntries(fields.filter(([field]) => !others.includes(field)));
    } else {
      const strange = Object.keys(value).find((field) => !names.includes(field));
      if (strange !== undefined) throw new TypeError(`${name} returns only ${names.join(", ")}, not ${strange}`);
      found = value;
    }
    for (const flag of this._repeatsFlag ? method.flags : []) method.codec.write(message, flag, true);
    paths.forEach((path, i) => {
      const part = found[names[i]];
      if (part !== undefined && part !== null) method.codec.write(message, path, part);
      else if (i < method.parts.length) throw new TypeError(`${name} must return ${names[i]}`);
    });
    return message;
  }

  /**
   * The message that refuses a request; undefined if the device has no such answer.
   * @param {RefusedError} error
   */
  refuse({ words, reason, hint }) {
    const { refusal, codec } = this.method;
    if (!refusal) return undefined;
    const message = this._message();
    const field = refusal[refusal.length - 1];
    if (field.fieldKind !== "message") codec.write(message, refusal, words);
    else {
      /** @type {Record<string, any>} */
      const told = { message: words, hint };
      const { fields } = field.message;
      const ofReason = fields.find((/** @type {any} */ it) => it.localName === "reason");
      const known = ofReason?.enum?.values.map((/** @type {any} */ it) => it.name);
      // A reason that the device does not have is left out; the words are what counts.
      if (!known || known.includes(reason)) told.reason = reason;
      const has = (/** @type {string} */ name) => fields.some((/** @type {any} */ it) => it.localName === name);
      codec.write(message, refusal, Object.fromEntries(Object.entries(told).filter(([name]) => has(name))));
    }
    return message;
  }

  _message() {
    return create(this.method.device.message, { type: TYPE.DATA });
  }

  /** @param {Message} message @param {Path} path */
  _read(message, path) {
    return /** @type {any} */ (this.method.codec.read(message, path));
  }

  /** @param {Message} message @param {Setting[]} settings */
  _holds(message, settings) {
    return settings.every(([path, value]) => {
      const field = path[path.length - 1];
      return (isPresent(message, path) ? this._read(message, path) : defaultOf(field)) === value;
    });
  }
}

/**
 * The answer to a command for a client that asks whether it is carried out; undefined for others.
 * @param {import("../interface.js").Interface} device
 * @param {Message} message
 * @param {RefusedError} [refused]
 */
export function outcome(device, message, refused) {
  if (!hasExtension(message, device.wantOutcome) || !getExtension(message, device.wantOutcome)) return undefined;
  const answer = create(device.message, { type: TYPE.DATA });
  device.codec.write(answer, [device.outcome], refused ? { refused: refused.words.slice(0, REASON) } : {});
  return answer;
}

/** Whether the field at a path is there. @param {Message} message @param {Path} path */
function isPresent(message, [extension, ...rest]) {
  if (!hasExtension(message, extension)) return false;
  let inside = getExtension(message, extension);
  for (const field of rest) {
    if (!isSet(inside, field)) return false;
    inside = inside[field.localName];
  }
  return true;
}

/** Whether a field is absent, or a message or list without content. @param {Message} message @param {Path} path */
function isEmpty(message, path) {
  if (!isPresent(message, path)) return true;
  const [extension, ...rest] = path;
  const field = path[path.length - 1];
  const value = rest.reduce((inside, it) => inside[it.localName], getExtension(message, extension));
  if (field.fieldKind === "list") return value.length === 0;
  return field.fieldKind === "message" && Object.keys(value).length === 0 && value.$rest.length === 0;
}

/** The first required field that is missing at a path. @param {Message} message @param {Path} path */
function missingIn(message, [extension, ...rest]) {
  const value = rest.reduce((inside, it) => inside[it.localName], getExtension(message, extension));
  const field = rest.at(-1) ?? extension;
  if (!field.message) return undefined;
  const all = field.fieldKind === "list" ? value : [value];
  for (const one of all) {
    const missing = missingFrom(one);
    if (missing) return missing;
  }
  return undefined;
}

/** The first required field that a message lacks. @param {Message} message @returns {string | undefined} */
export function missingFrom(message) {
  for (const field of message.$type.fields) {
    if (!isSet(message, field)) {
      if (field.isRequired) return field.localName;
      continue;
    }
    if (!field.message) continue;
    const value = message[field.localName];
    for (const one of field.fieldKind === "list" ? value : [value]) {
      const missing = missingFrom(one);
      if (missing) return missing;
    }
  }
  return undefined;
}

/** What protobuf says of an absent field. @param {import("../convert.js").Field} field */
function defaultOf(field) {
  if (field.fieldKind === "enum") return field.enum.values[0].name;
  if (field.fieldKind !== "scalar") return undefined;

  return field.scalar === ScalarType.STRING ? "" : field.scalar === ScalarType.BOOL ? false : 0;
}
