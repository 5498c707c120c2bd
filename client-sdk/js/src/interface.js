// The interface of a device, as its `.proto` describes it. PURE.
//
// proto/interface.proto in the repository explains the options. `amber describe --proto FILE` checks
// every rule of a description; this module checks what it needs.

import { BadAnswerError, RefusedError } from "./errors.js";
import { Codec, Options, camel, constant, isRequired, nameOf } from "./convert.js";
import { ScalarType, create, hasExtension } from "./protobuf.js";
import { extensionOf, messageOf } from "./schemas.js";

/** @typedef {import("./convert.js").Path} Path */
/** @typedef {import("./convert.js").Message} Message */
/** @typedef {[Path, unknown]} Setting a path, and the value that the field has */

/** The types of messages, as numbers. */
export const TYPE = {
  DATA: 1,
  PING: 2,
  PONG: 3,
  CLIENT_DIED: 4,
  DRIVER_DIED: 5,
  SUBSCRIBE: 6,
  UNSUBSCRIBE: 7,
};

/** Names that every device has, or that would confuse JavaScript. */
const TAKEN = ["address", "constructor", "lease", "ping", "robot", "then", "with"];

/** A request or a stream of a device. */
export class Method {
  /**
   * @param {Interface} device
   * @param {import("./protobuf.js").MethodType} described
   */
  constructor(device, described) {
    this.device = device;
    this.described = described;
    /** The name in JavaScript, such as `setAngle`. */
    this.name = camel(described.name);
    const { options, codec } = device;
    const ways = /** @type {const} */ (["ask", "tell", "stream"]);
    const found = ways.filter((way) => options.get(described, way) !== undefined);
    if (found.length !== 1) throw this._error("needs one of the options ask, tell and stream");
    const option = options.get(described, found[0]);
    this.codec = codec;
    /** @param {string[]} [names] */
    const paths = (names) => (names ?? []).map((name) => this._path(name));
    /** @param {{ field: string, value: string }[]} [values] @returns {Setting[]} */
    const settings = (values) =>
      (values ?? []).map(({ field, value }) => {
        const path = this._path(field);
        return [path, constant(/** @type {any} */ (path.at(-1)), value)];
      });
    this.flags = paths(option.flag);
    // A stream has at most one request.
    const request = typeof option.request === "string" ? [option.request] : option.request;
    this.request = paths(request?.filter(Boolean));
    this.settings = settings(option.set);
    this.start = settings(option.start);
    this.stop = settings(option.stop);
    /** What answers or published data always have. */
    this.parts = paths(option.answer ?? option.data);
    /** What they may have. */
    this.mayHave = paths(option.mayAnswer ?? option.mayHave);
    this.refusal = option.refusal ? this._path(option.refusal) : undefined;
    this.period = option.period ? this._path(option.period) : undefined;
    this.duration = option.duration ? this._path(option.duration) : undefined;
    /** How long to wait for the answer; 0 for the default of the client. */
    this.timeoutMs = /** @type {number} */ (option.timeoutMs ?? 0);
    /** Whether the fields of the first part and the others are one value. */
    this.isOneValue = Boolean(option.value);
    /** @type {"ask" | "tell" | "subscribe" | "stream"} */
    this.kind = found[0];
    if (this.kind === "stream" && this.request.length === 0) this.kind = "subscribe";
    if (this.kind !== "tell" && this.parts.length + this.mayHave.length === 0) {
      throw this._error("needs a field for its data");
    }
    const moves = options.get(described, "moves");
    /** Whether it moves something. */
    this.moves = moves !== undefined;
    /** Whether the motion goes on until it is done. */
    this.isErrand = Boolean(moves?.errand);
    /** What it has to say to stop; undefined if it cannot stop. */
    this.stopSettings = moves?.stop ? settings(moves.stop.set) : undefined;
    /** How arguments are given: `none`, those of an `empty` message, `fields` of one message, a `single`
     * value, `several` values. */
    this.form = this._form();
    /** Whether the arguments may be left out. */
    this.isBare = this.form === "fields" && !this.moves && !this.period && !this._needsField();
  }

  get isStream() {
    return this.kind === "subscribe" || this.kind === "stream";
  }

  /** Whether it changes nothing, with any arguments. */
  get reads() {
    return this.kind === "ask" && this.device.options.get(this.described, "ask").reads === true;
  }

  /**
   * The arguments for all parts of a stream: those of type bool are true, and others are absent.
   * @param {number} periodMs for a stream with a period
   */
  whole(periodMs) {
    const period = this.period?.at(-1);
    /** @param {import("./protobuf.js").Field} field */
    const valueOf = (field) => {
      if (field === period) return periodMs;
      return field.fieldKind === "scalar" && field.scalar === ScalarType.BOOL ? true : undefined;
    };
    if (this.hasNoArguments) return undefined;
    const parts = this.request.map((path) => path[path.length - 1]);
    if (this.form === "single") return valueOf(parts[0]);
    /** @type {import("./protobuf.js").Field[]} */
    const fields = this.form === "several" ? parts : /** @type {any} */ (parts[0]).message.fields;
    const given = fields.filter((field) => !this.fixed.includes(nameOf(field))).map((field) => [nameOf(field), valueOf(field)]);
    return Object.fromEntries(given.filter(([, value]) => value !== undefined));
  }

  /** The fields of the message that are fixed, so that they are no arguments. */
  get fixed() {
    const inside = [...this.settings, ...this.start].filter(([path]) => path.length > this.request[0]?.length);
    return inside.map(([path]) => nameOf(path[path.length - 1]));
  }

  /**
   * The request. Throws a TypeError or RangeError if an argument does not fit.
   * @param {any} given the arguments
   * @param {Setting[]} [more]
   */
  order(given, more = []) {
    const message = this._flagged();
    if (this.form === "empty") {
      this.codec.write(message, this.request[0], {});
    } else if (this.form === "fields") {
      const fields = given ?? {};
      if (given === undefined && !this.isBare) throw new TypeError(`${this.name} needs its arguments`);
      const fixed = Object.fromEntries(
        [...this.settings, ...more].map(([path, value]) => [nameOf(path[path.length - 1]), value]),
      );
      const isPlain = typeof fields === "object" && !Array.isArray(fields);
      this.codec.write(message, this.request[0], isPlain ? { ...fields, ...fixed } : fields);
    } else if (this.form === "single") {
      if (given === undefined) throw new TypeError(`${this.name} needs its argument`);
      this.codec.write(message, this.request[0], given);
    } else if (this.form === "several") {
      const known = this.request.map((path) => nameOf(path[path.length - 1]));
      const strange = Object.keys(given ?? {}).find((name) => !known.includes(name));
      if (strange !== undefined) throw new TypeError(`${this.name} has no argument ${strange}`);
      this.request.forEach((path, i) => {
        const value = given?.[known[i]];
        if (value !== undefined) this.codec.write(message, path, value);
        else if (!isBareMessage(path[path.length - 1])) {
          throw new TypeError(`${this.name} needs ${known[i]}`);
        }
      });
    }
    for (const [path, value] of [...this.settings, ...more]) this.codec.write(message, path, value);
    return message;
  }

  /** The request that stops all motion; undefined if this cannot stop. */
  stopOrder() {
    if (!this.stopSettings) return undefined;
    const message = this._flagged();
    const [request] = this.request;
    const isWhole = this.form === "fields" || this.form === "empty";
    /** @type {Record<string, any>} */
    const fields = {};
    for (const [path, value] of [...this.settings, ...this.stopSettings]) {
      if (isWhole && request.every((field, i) => path[i] === field)) {
        // Inside of the request, which is written as a whole: it may need several fields.
        const names = path.slice(request.length).map(nameOf);
        const last = /** @type {string} */ (names.pop());
        names.reduce((inside, name) => (inside[name] ??= {}), fields)[last] = value;
      } else this.codec.write(message, path, value);
    }
    if (isWhole) this.codec.write(message, request, fields);
    return message;
  }

  /**
   * The value of an answer. Throws BadAnswerError or RefusedError.
   * @param {Message} message
   * @param {string} device
   */
  answer(message, device) {
    const refused = this.refusal && this._read(message, this.refusal, device);
    if (refused !== undefined) throw refusal(device, refused);
    const found = this._found(message, device);
    const missing = this.parts.find((path) => found[nameOf(path[path.length - 1])] === undefined);
    if (missing) {
      const name = nameOf(missing[missing.length - 1]);
      throw new BadAnswerError(`${device} answered ${this.name} without ${name}`, { device });
    }
    return this._value(found);
  }

  /**
   * The value of a published message; undefined if the message belongs to another stream.
   * @param {Message} message
   * @param {string} device
   */
  published(message, device) {
    const found = this._found(message, device);
    const values = Object.values(found);
    const isOther =
      this.parts.some((path) => found[nameOf(path[path.length - 1])] === undefined) ||
      values.every((value) => value === undefined);
    return isOther ? undefined : this._value(found);
  }

  /**
   * @param {Message} message
   * @param {string} device
   * @returns {Record<string, any>}
   */
  _found(message, device) {
    return Object.fromEntries(
      [...this.parts, ...this.mayHave]
        .map((path) => [nameOf(path[path.length - 1]), this._read(message, path, device)])
        .filter(([, value]) => value !== undefined),
    );
  }

  /**
   * @param {Message} message
   * @param {Path} path
   * @param {string} device
   */
  _read(message, path, device) {
    try {
      return this.codec.read(message, path);
    } catch (error) {
      throw new BadAnswerError(`${device}: ${/** @type {Error} */ (error).message}`, { device });
    }
  }

  /** @param {Record<string, any>} found */
  _value(found) {
    const [first, ...more] = [...this.parts, ...this.mayHave].map((path) => nameOf(path[path.length - 1]));
    if (this.isOneValue) {
      const { [first]: value, ...others } = found;
      return { ...value, ...others };
    }
    return more.length === 0 ? found[first] : found;
  }

  _flagged() {
    const message = create(this.device.message, /** @type {any} */ ({ type: TYPE.DATA }));
    for (const flag of this.flags) this.codec.write(message, flag, true);
    return message;
  }

  /** Whether the first argument of the method is the options. */
  get hasNoArguments() {
    return this.form === "none" || this.form === "empty";
  }

  /** @returns {"none" | "empty" | "fields" | "single" | "several"} */
  _form() {
    if (this.request.length === 0) return "none";
    if (this.request.length > 1) return "several";
    const [path] = this.request;
    const field = path[path.length - 1];
    if (field.fieldKind !== "message") return "single";
    return field.message.fields.length > this.fixed.length ? "fields" : "empty";
  }

  _needsField() {
    const { fields } = /** @type {any} */ (this.request[0].at(-1)).message;
    const fixed = this.fixed;
    return fields.some(
      (/** @type {import("./protobuf.js").Field} */ field) =>
        isRequired(field) && !fixed.includes(field.localName),
    );
  }

  /**
   * The field that a description names: an extension of DriverMsg, or a field in one.
   * @param {string} name
   * @returns {Path}
   */
  _path(name) {
    const words = name.split(".");
    const { registry } = this.device.schemas;
    const prefix = this.device.service.file.proto.package;
    let extension = registry.getExtension(prefix ? `${prefix}.${words[0]}` : words[0]);
    let rest = words.slice(1);
    for (let end = 1; end <= words.length && !extension; end++) {
      extension = registry.getExtension(words.slice(0, end).join("."));
      rest = words.slice(end);
    }
    if (!extension) throw this._error(`there is no field ${JSON.stringify(name)}`);
    /** @type {Path} */
    const path = [extension];
    for (const word of rest) {
      const { message } = /** @type {any} */ (path.at(-1));
      const field = message?.fields.find((/** @type {any} */ it) => it.name === word);
      if (!field) throw this._error(`there is no field ${JSON.stringify(name)}`);
      path.push(field);
    }
    return path;
  }

  /** @param {string} text */
  _error(text) {
    const { service } = this.device;
    return new Error(`${service.file.proto.name}: service ${service.name}: ${this.described.name} ${text}`);
  }
}

/** The interface of a type of device. */
export class Interface {
  /**
   * @param {import("./schemas.js").Schemas} schemas
   * @param {import("./protobuf.js").Service} service
   */
  constructor(schemas, service) {
    this.schemas = schemas;
    this.service = service;
    this.options = new Options(schemas);
    this.codec = new Codec(this.options);
    const device = this.options.get(service, "device");
    this.type = /** @type {number} */ (device.type);
    /** The name for people, such as `drive-to-point`. */
    this.name = /** @type {string} */ (device.name);
    /** A second name that says what the device does, such as `laser`; may be empty. */
    this.alias = /** @type {string} */ (device.alias);
    this.message = messageOf(schemas, "amber.DriverMsg");
    this.wantOutcome = extensionOf(schemas, "amber.mediator_proto.want_outcome");
    this.outcome = extensionOf(schemas, "amber.mediator_proto.outcome");
    this.validMs = extensionOf(schemas, "amber.motion_proto.valid_ms");
    this.methods = service.methods.map((method) => new Method(this, method));
    const names = this.methods.map((method) => method.name);
    const bad = names.find((name, i) => TAKEN.includes(name) || names.indexOf(name) !== i);
    if (bad) throw new Error(`${service.file.proto.name}: a device cannot have the method ${bad}`);
    /** The method that stops the device, if there is one. */
    this.stopper = this.methods.find((method) => method.stopSettings);
  }

  /**
   * The reason why a driver does not carry out a request; undefined if it does, or says nothing.
   * @param {Message} answer
   */
  refusedBy(answer) {
    if (!hasExtension(answer, this.outcome)) return undefined;
    const outcome = /** @type {any} */ (this.codec.read(answer, [this.outcome]));
    return /** @type {string | undefined} */ (outcome.refused);
  }
}

/**
 * The interfaces that files describe, by device type. Throws an Error.
 * @param {import("./schemas.js").Schemas} schemas
 */
export function interfacesOf(schemas) {
  const options = new Options(schemas);
  const services = [...schemas.registry.files]
    .filter((file) => schemas.names.includes(file.proto.name ?? ""))
    .flatMap((file) => file.services)
    .filter((service) => options.get(service, "device") !== undefined);
  return services
    .map((service) => new Interface(schemas, service))
    .sort((a, b) => a.type - b.type);
}

/**
 * @param {string} device
 * @param {any} told a sentence, or a message with a reason
 */
export function refusal(device, told) {
  const words = typeof told === "string" ? told : (told.message ?? JSON.stringify(told));
  return new RefusedError(`${device} refused the request: ${words}`, {
    device,
    words,
    reason: told.reason,
    hint: told.hint,
  });
}

/** Whether an argument may be left out. @param {import("./convert.js").Field} field */
export function isBareMessage(field) {
  return field.fieldKind === "message" && !field.message.fields.some(isRequired);
}
