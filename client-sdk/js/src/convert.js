// Fields of messages as values of JavaScript, and back. PURE.
//
// A message is a plain object with the names of its description in camelCase. Numbers of 64 bits are
// numbers, enums are the names of their values, and bytes are a Uint8Array. An absent field is missing,
// unless its description says what that means.

import {
  ScalarType,
  create,
  getExtension,
  getOption,
  hasExtension,
  hasOption,
  isSet,
  set,
  setExtension,
} from "./protobuf.js";

/** @typedef {import("./protobuf.js").Field} Field */
/** @typedef {import("./protobuf.js").Type} MessageType */
/** From a DriverMsg to a field: an extension, then fields of messages.
 * @typedef {[Field, ...Field[]]} Path */
/** @typedef {import("./protobuf.js").Message} Message */

/** @type {number[]} */
const LONG = [
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
];

/** `front_left` and `FrontLeft` as `frontLeft`. @param {string} name */
export function camel(name) {
  const joined = name.replace(/[-_]+(.)/g, (_, letter) => letter.toUpperCase());
  // The first word is lower case, also "GPS".
  return joined.replace(/^[A-Z]+(?![a-z])|^[A-Z]/, (start) => start.toLowerCase());
}

/** The name of a field in JavaScript. @param {Field} field */
export function nameOf(field) {
  return field.kind === "field" ? field.localName : camel(field.name);
}

/** The options of interface.proto. */
export class Options {
  /** @param {import("./schemas.js").Schemas} schemas */
  constructor({ registry }) {
    this._registry = registry;
  }

  /**
   * An option of a service, method, message or field; undefined without it.
   * @param {any} described
   * @param {string} name
   */
  get(described, name) {
    const extension = this._registry.getExtension(`amber.${name}`);
    if (!extension || !hasOption(described, extension)) return undefined;
    return /** @type {any} */ (getOption(described, extension));
  }
}

/** Whether a field is in each message. @param {Field} field */
export function isRequired(field) {
  return field.isRequired;
}

/**
 * The value that a description writes as text.
 * @param {Field} field
 * @param {string} text
 */
export function constant(field, text) {
  if (field.fieldKind === "enum") return text;
  if (field.fieldKind !== "scalar") throw new Error(`${field.name} is not a single value`);
  if (field.scalar === ScalarType.BOOL) return text === "true";
  return field.scalar === ScalarType.STRING ? text : Number(text);
}

/** Reads and writes fields as the options of a set of schemas say. */
export class Codec {
  /**
   * @param {Options} options
   */
  constructor(options) {
    this.options = options;
    /** What texts may stand for devices. @type {import("./address.js").Names | undefined} */
    this.names = undefined;
    /** @type {Map<Field, unknown>} what the absence of a field means */
    this._absent = new Map();
  }

  /**
   * The value at a path; undefined if it is absent. Lists always are there.
   * @param {Message} message
   * @param {Path} path
   */
  read(message, [extension, ...rest]) {
    if (!hasExtension(message, extension)) {
      return rest.length === 0 && extension.fieldKind === "list" ? [] : undefined;
    }
    let found = getExtension(message, extension);
    let field = extension;
    for (const next of rest) {
      if (next.fieldKind !== "list" && !isSet(found, next)) return undefined;
      found = found[next.localName];
      field = next;
    }
    return this._plain(field, found);
  }

  /**
   * A whole message as an object.
   * @param {MessageType} type
   * @param {any} message
   * @returns {Record<string, any>}
   */
  readMessage(type, message) {
    /** @type {Record<string, any>} */
    const plain = {};
    for (const field of type.fields) {
      if (field.fieldKind === "list" || isSet(message, field)) {
        plain[field.localName] = this._plain(field, message[field.localName]);
      } else {
        const absent = this.absent(field);
        if (absent !== undefined) plain[field.localName] = absent;
      }
    }
    if (this.options.get(type, "columns")) checkColumns(type, plain);
    return plain;
  }

  /**
   * The value of an absent field: what its description says, or 0 and the like in fields that are
   * always set. Undefined if it may be absent.
   * @param {Field} field
   */
  absent(field) {
    if (!this._absent.has(field)) this._absent.set(field, this._findAbsent(field));
    return this._absent.get(field);
  }

  /** @param {Field} field */
  _findAbsent(field) {
    const text = this.options.get(field, "absent_means");
    if (text !== undefined) return constant(field, text);
    if (!this.options.get(field, "always_set") && !isRequired(field)) return undefined;
    if (field.fieldKind === "enum") return field.enum.values[0].name;
    if (field.fieldKind === "message") return this.readMessage(field.message, create(field.message));
    if (field.fieldKind !== "scalar") return undefined;
    if (field.scalar === ScalarType.BYTES) return new Uint8Array();
    return constant(field, field.scalar === ScalarType.STRING ? "" : "0");
  }

  /**
   * @param {Field} field
   * @param {any} found
   * @returns {any}
   */
  _plain(field, found) {
    switch (field.fieldKind) {
      case "message":
        return this.readMessage(field.message, found);
      case "enum":
        return field.enum.value[found]?.name ?? found;
      case "scalar":
        return LONG.includes(field.scalar) ? Number(found) : found;
      case "list": {
        const { listKind } = field;
        if (listKind === "message") {
          const { message } = field;
          return found.map((/** @type {any} */ one) => this.readMessage(message, one));
        }
        if (listKind === "enum") {
          const { value } = field.enum;
          return found.map((/** @type {number} */ one) => value[one]?.name ?? one);
        }
        return LONG.includes(field.scalar) ? found.map(Number) : [...found];
      }
      default:
        return found;
    }
  }

  /**
   * Writes the value at a path. Throws a TypeError or RangeError that names the field.
   * @param {Message} message
   * @param {Path} path
   * @param {unknown} value
   */
  write(message, [extension, ...rest], value) {
    if (rest.length === 0) {
      setExtension(message, extension, this._wire(extension, value));
      return;
    }
    // An extension is stored as bytes, so the whole message is written again.
    const outer = getExtension(message, extension);
    let inside = outer;
    const last = /** @type {Field} */ (rest.at(-1));
    for (const field of rest.slice(0, -1)) {
      if (!isSet(inside, field)) set(inside, field, create(field.message));
      inside = inside[field.localName];
    }
    set(inside, last, this._wire(last, value));
    setExtension(message, extension, outer);
  }

  /**
   * A message from an object with its fields.
   * @param {MessageType} type
   * @param {any} value
   */
  writeMessage(type, value) {
    const message = create(type);
    if (type.typeName === "amber.mediator_proto.Device" && typeof value === "string") {
      value = this.names?.parse(value);
    }
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new TypeError(`${type.name} is an object with fields, not ${shown(value)}`);
    }
    const known = type.fields.map((field) => field.localName);
    const strange = Object.keys(value).find((name) => !known.includes(name));
    if (strange !== undefined) {
      const names = known.length > 0 ? `only ${known.join(", ")}` : "no fields at all";
      throw new TypeError(`${type.name} has no field ${strange}, ${names}`);
    }
    for (const field of type.fields) {
      const given = value[field.localName];
      if (given !== undefined) set(message, field, this._wire(field, given));
      else if (isRequired(field)) throw new TypeError(`${type.name} needs ${field.localName}`);
    }
    if (this.options.get(type, "columns")) checkColumns(type, value);
    return message;
  }

  /**
   * A value as protobuf wants it.
   * @param {Field} field
   * @param {any} value
   * @returns {any}
   */
  _wire(field, value) {
    const name = nameOf(field);
    switch (field.fieldKind) {
      case "message":
        return this.writeMessage(field.message, value);
      case "enum":
        return numberOfEnum(name, field.enum, value);
      case "scalar":
        return scalar(name, field.scalar, value);
      case "list": {
        if (typeof value?.[Symbol.iterator] !== "function" || typeof value === "string") {
          throw new TypeError(`${name} is a list, not ${shown(value)}`);
        }
        return Array.from(value, (one) => {
          if (field.listKind === "message") return this.writeMessage(field.message, one);
          if (field.listKind === "enum") return numberOfEnum(name, field.enum, one);
          return scalar(name, field.scalar, one);
        });
      }
      default:
        throw new TypeError(`${name} cannot be written`);
    }
  }
}

/**
 * @param {MessageType} type
 * @param {Record<string, any>} plain
 */
function checkColumns(type, plain) {
  const lengths = type.fields.map((field) => plain[field.localName]?.length ?? 0);
  if (new Set(lengths).size > 1) {
    const columns = type.fields.map((field, i) => `${lengths[i]} ${field.localName}`);
    throw new RangeError(`${type.name} needs lists of equal length, not ${columns.join(", ")}`);
  }
}

/**
 * @param {string} name
 * @param {import("./protobuf.js").EnumType} type
 * @param {unknown} value
 */
function numberOfEnum(name, type, value) {
  const found = type.values.find((it) => it.name === value || it.number === value);
  if (found) return found.number;
  const names = type.values.map((it) => it.name).join(", ");
  throw new RangeError(`${name} is one of ${names}, not ${shown(value)}`);
}

/** The least and the greatest whole number of a type. @type {Map<number, [bigint, bigint]>} */
const WHOLE = new Map(
  [
    { types: [ScalarType.INT32, ScalarType.SINT32, ScalarType.SFIXED32], bits: 31n, low: -1n },
    { types: [ScalarType.UINT32, ScalarType.FIXED32], bits: 32n, low: 0n },
    { types: [ScalarType.INT64, ScalarType.SINT64, ScalarType.SFIXED64], bits: 63n, low: -1n },
    { types: [ScalarType.UINT64, ScalarType.FIXED64], bits: 64n, low: 0n },
  ].flatMap(({ types, bits, low }) =>
    types.map((type) => /** @type {[number, [bigint, bigint]]} */ ([
      type,
      [low * (1n << bits), (1n << bits) - 1n],
    ])),
  ),
);

/**
 * @param {string} name
 * @param {number} type
 * @param {any} value
 */
function scalar(name, type, value) {
  const range = WHOLE.get(type);
  if (range) {
    if (typeof value !== "bigint" && !Number.isSafeInteger(value)) {
      throw new TypeError(`${name} is a whole number, not ${shown(value)}`);
    }
    const whole = BigInt(value);
    if (whole < range[0] || whole > range[1]) {
      throw new RangeError(`${name} is from ${range[0]} to ${range[1]}, not ${value}`);
    }
    return LONG.includes(type) ? whole : Number(value);
  }
  const isBytes = type === ScalarType.BYTES;
  const wanted = { [ScalarType.BOOL]: "boolean", [ScalarType.STRING]: "string" }[Number(type)];
  if (isBytes ? !(value instanceof Uint8Array) : typeof value !== (wanted ?? "number")) {
    throw new TypeError(
      `${name} is a ${isBytes ? "Uint8Array" : (wanted ?? "number")}, not ${shown(value)}`,
    );
  }
  return value;
}

/** A value in an error message. @param {unknown} value */
function shown(value) {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
