// Protobuf by descriptions: messages as objects, and the bytes of both. PURE.
//
// The package has no dependency, so that a page can import it as it is. This module has what the package
// needs, and no more: no JSON, no groups, and no changes of descriptions.
//
// A message is an object of its type. Fields that are set are its own properties; others have the
// default of their type from its prototype. Extensions stay bytes until somebody asks for them.

/** The types of single values, as numbers of `FieldDescriptorProto.Type`. */
export const ScalarType = /** @type {const} */ ({
  DOUBLE: 1,
  FLOAT: 2,
  INT64: 3,
  UINT64: 4,
  INT32: 5,
  FIXED64: 6,
  FIXED32: 7,
  BOOL: 8,
  STRING: 9,
  BYTES: 12,
  UINT32: 13,
  SFIXED32: 15,
  SFIXED64: 16,
  SINT32: 17,
  SINT64: 18,
});

const { DOUBLE, FLOAT, INT64, UINT64, INT32, FIXED64, FIXED32, BOOL, STRING, BYTES, UINT32, SFIXED32, SFIXED64, SINT32, SINT64 } =
  ScalarType;
const GROUP = 10;
const MESSAGE = 11;
const ENUM = 14;
/** Values of `FieldDescriptorProto.Label`. */
const REQUIRED = 2;
const REPEATED = 3;

const WIRE = { VARINT: 0, I64: 1, LEN: 2, START: 3, END: 4, I32: 5 };
/** The deepest nesting of messages. */
const MAX_DEPTH = 100;
const MAX_FIELD = 2 ** 29 - 1;

/** @typedef {{ $type: Type, $rest: Raw[], [field: string]: any }} Message */
/** A field that its type does not know, such as an extension: with its bytes after the tag.
 * @typedef {{ number: number, wire: number, bytes: Uint8Array }} Raw */
/** @typedef {Record<string, any> & { options?: Message }} Proto */
/** @typedef {{ kind: "message", name: string, typeName: string, fields: Field[], field: Record<string, Field>, byNumber: Map<number, Field>, initial: any, file: File, proto: Proto }} Type */
/** @typedef {{ kind: "enum", name: string, typeName: string, values: EnumValue[], value: Record<number, EnumValue>, file: File, proto: Proto }} EnumType */
/** @typedef {{ name: string, number: number, proto: Proto }} EnumValue */
/** @typedef {{ kind: "service", name: string, typeName: string, methods: MethodType[], file: File, proto: Proto }} Service */
/** @typedef {{ kind: "rpc", name: string, proto: Proto }} MethodType */
/** @typedef {{ proto: Proto, services: Service[] }} File */

/**
 * A field of a message, or an extension.
 * @typedef {object} Field
 * @property {"field" | "extension"} kind
 * @property {string} name
 * @property {string} localName the name in JavaScript
 * @property {string} typeName the full name, of an extension
 * @property {number} number
 * @property {"scalar" | "enum" | "message" | "list" | "map"} fieldKind
 * @property {"scalar" | "enum" | "message" | undefined} listKind
 * @property {any} scalar a ScalarType
 * @property {any} message a Type
 * @property {any} enum an EnumType
 * @property {{ fields: Field[] } | undefined} oneof
 * @property {boolean} isPacked
 * @property {boolean} isRequired
 * @property {Proto} proto
 */

/** The names of all types in a set of files. */
export class Registry {
  constructor() {
    /** @type {File[]} */
    this.files = [];
    /** @type {Map<string, Type | EnumType>} */
    this._types = new Map();
    /** @type {Map<string, Field>} */
    this._extensions = new Map();
  }

  /** @param {string} name @returns {Type | undefined} */
  getMessage(name) {
    const found = this._types.get(name);
    return found?.kind === "message" ? found : undefined;
  }

  /** @param {string} name @returns {Field | undefined} */
  getExtension(name) {
    return this._extensions.get(name);
  }
}

/**
 * The types that files describe. Throws an Error if a type is missing.
 * @param {Message[]} files FileDescriptorProtos
 */
export function registryOf(files) {
  const registry = new Registry();
  /** @type {(() => void)[]} */
  const later = [];
  for (const proto of [DESCRIPTOR, ...files.filter((file) => file.name !== DESCRIPTOR.name)]) {
    addFile(registry, proto, later);
  }
  // A field may have the type of any file.
  for (const finish of later) finish();
  return registry;
}

/**
 * @param {Registry} registry
 * @param {Message} proto
 * @param {(() => void)[]} later
 */
function addFile(registry, proto, later) {
  /** @type {File} */
  const file = { proto, services: [] };
  const within = (/** @type {string} */ outer, /** @type {string} */ name) => (outer ? `${outer}.${name}` : name);
  const addEnum = (/** @type {string} */ outer, /** @type {Message} */ given) => {
    const values = given.value.map((/** @type {Message} */ it) => ({ name: it.name, number: it.number, proto: it }));
    const typeName = within(outer, given.name);
    /** @type {EnumType} */
    const made = { kind: "enum", name: given.name, typeName, values, value: {}, file, proto: given };
    for (const value of values) made.value[value.number] ??= value;
    registry._types.set(typeName, made);
  };
  const addExtension = (/** @type {string} */ outer, /** @type {Message} */ given) => {
    const typeName = within(outer, given.name);
    later.push(() => registry._extensions.set(typeName, fieldOf(registry, file, given, typeName)));
  };
  const addType = (/** @type {string} */ outer, /** @type {Message} */ given) => {
    const typeName = within(outer, given.name);
    const made = emptyType(given.name, typeName, file, given);
    registry._types.set(typeName, made);
    for (const it of given.enumType) addEnum(typeName, it);
    for (const it of given.extension) addExtension(typeName, it);
    for (const it of given.nestedType) addType(typeName, it);
    later.push(() => {
      const oneofs = given.oneofDecl.map(() => ({ fields: [] }));
      addFields(made, given.field.map((/** @type {Message} */ it) => {
        const field = fieldOf(registry, file, it);
        if (Object.hasOwn(it, "oneofIndex") && !it.proto3Optional) {
          field.oneof = oneofs[it.oneofIndex];
          field.oneof?.fields.push(field);
        }
        return field;
      }));
    });
  };
  const outer = proto.package;
  for (const it of proto.enumType) addEnum(outer, it);
  for (const it of proto.messageType) addType(outer, it);
  for (const it of proto.extension) addExtension(outer, it);
  for (const it of proto.service) {
    const methods = it.method.map((/** @type {Message} */ one) => ({ kind: "rpc", name: one.name, proto: one }));
    file.services.push({ kind: "service", name: it.name, typeName: within(outer, it.name), methods, file, proto: it });
  }
  registry.files.push(file);
}

/**
 * @param {Registry} registry
 * @param {File} file
 * @param {Message} proto
 * @param {string} [typeName] of an extension
 * @returns {Field}
 */
function fieldOf(registry, file, proto, typeName) {
  const isList = proto.label === REPEATED;
  const named = /** @type {any} */ (registry._types.get(proto.typeName.replace(/^\./, "")));
  if ((proto.type === MESSAGE || proto.type === ENUM) && !named) {
    throw new Error(`${file.proto.name}: there is no type ${proto.typeName}`);
  }
  if (proto.type === GROUP) throw new Error(`${file.proto.name}: ${proto.name} is a group`);
  const single = proto.type === MESSAGE ? "message" : proto.type === ENUM ? "enum" : "scalar";
  const isMap = isList && single === "message" && isMapEntry(named.proto);
  const canPack = isList && (single === "enum" || (single === "scalar" && proto.type !== STRING && proto.type !== BYTES));
  const { options } = proto;
  const isModern = file.proto.syntax === "proto3" || file.proto.syntax === "editions";
  const packs = options && Object.hasOwn(options, "packed") ? options.packed : isModern;
  return {
    kind: typeName === undefined ? "field" : "extension",
    name: proto.name,
    localName: localName(proto.name),
    typeName: typeName ?? "",
    number: proto.number,
    fieldKind: isMap ? "map" : isList ? "list" : single,
    listKind: isList && !isMap ? single : undefined,
    scalar: single === "scalar" ? proto.type : undefined,
    message: single === "message" ? named : undefined,
    enum: single === "enum" ? named : undefined,
    oneof: undefined,
    isPacked: canPack && packs,
    isRequired: proto.label === REQUIRED,
    proto,
  };
}

/** @param {Proto} proto */
function isMapEntry(proto) {
  return Boolean(proto.options?.mapEntry);
}

/** `front_left` as `frontLeft`. @param {string} name */
function localName(name) {
  const joined = name.replace(/_+(.?)/g, (_, letter) => letter.toUpperCase());
  const isTaken = ["constructor", "toString", "toJSON", "valueOf", "__proto__"].includes(joined);
  return isTaken ? `${joined}$` : joined;
}

/**
 * @param {string} name
 * @param {string} typeName
 * @param {File} file
 * @param {Proto} proto
 * @returns {Type}
 */
function emptyType(name, typeName, file, proto) {
  const initial = Object.create(null);
  return { kind: "message", name, typeName, fields: [], field: {}, byNumber: new Map(), initial, file, proto };
}

/**
 * @param {Type} type
 * @param {Field[]} fields
 */
function addFields(type, fields) {
  type.fields = fields;
  for (const field of fields) {
    type.field[field.localName] = field;
    type.byNumber.set(field.number, field);
    if (field.fieldKind !== "message") type.initial[field.localName] = initialOf(field);
  }
}

/** What an absent field is. @param {Field} field */
function initialOf(field) {
  if (field.fieldKind === "list") return Object.freeze([]);
  if (field.fieldKind === "map") return Object.freeze({});
  if (field.fieldKind === "enum") return field.enum.values[0]?.number ?? 0;
  if (field.scalar === STRING) return "";
  if (field.scalar === BYTES) return new Uint8Array();
  return field.scalar === BOOL ? false : 0;
}

// Messages

/**
 * A message with these fields.
 * @param {Type} type
 * @param {Record<string, any>} [fields]
 * @returns {any}
 */
export function create(type, fields = {}) {
  const made = Object.create(type.initial);
  const isHidden = { enumerable: false, writable: true };
  Object.defineProperty(made, "$type", { value: type, ...isHidden });
  Object.defineProperty(made, "$rest", { value: [], ...isHidden });
  for (const [name, value] of Object.entries(fields)) {
    const { message, fieldKind } = type.field[name];
    // A message may be written as its fields.
    made[name] = fieldKind === "message" && !value.$type ? create(message, value) : value;
  }
  return made;
}

/** Whether a message has a field. @param {Message} message @param {Field} field */
export function isSet(message, field) {
  return Object.hasOwn(message, field.localName);
}

/**
 * Sets a field, instead of the others of its oneof.
 * @param {Message} message
 * @param {Field} field
 * @param {any} value
 */
export function set(message, field, value) {
  for (const other of field.oneof?.fields ?? []) delete message[other.localName];
  message[field.localName] = value;
}

/** @param {Message} message @param {Field} extension */
export function hasExtension(message, extension) {
  return message.$rest.some(({ number }) => number === extension.number);
}

/**
 * The value of an extension; that of an absent field if it is absent.
 * @param {Message} message
 * @param {Field} extension
 * @returns {any}
 */
export function getExtension(message, extension) {
  const holder = holderOf(extension);
  for (const { number, wire, bytes } of message.$rest) {
    if (number === extension.number) readField(new Reader(bytes), holder, extension, wire, 0);
  }
  if (!isSet(holder, extension) && extension.fieldKind === "message") return create(extension.message);
  return isSet(holder, extension) ? holder[extension.localName] : initialOf(extension);
}

/**
 * @param {Message} message
 * @param {Field} extension
 * @param {any} value
 */
export function setExtension(message, extension, value) {
  const holder = holderOf(extension);
  holder[extension.localName] = value;
  const writer = new Writer();
  writeField(writer, extension, value);
  const written = readRest(writer.finish());
  message.$rest = [...message.$rest.filter(({ number }) => number !== extension.number), ...written];
}

/** @param {{ proto: Proto }} described @param {Field} extension */
export function hasOption({ proto }, extension) {
  return proto.options !== undefined && hasExtension(proto.options, extension);
}

/** @param {{ proto: Proto }} described @param {Field} extension */
export function getOption({ proto }, extension) {
  return getExtension(/** @type {Message} */ (proto.options), extension);
}

/** A message for the value of an extension alone. @param {Field} extension */
function holderOf(extension) {
  const type = emptyType("", "", { proto: {}, services: [] }, {});
  addFields(type, [extension]);
  return create(type);
}

// Bytes of messages

/**
 * Reads a message. Throws a RangeError or an Error if the bytes are not one.
 * @param {Type} type
 * @param {Uint8Array} bytes
 * @returns {any}
 */
export function fromBinary(type, bytes) {
  const message = create(type);
  readMessage(new Reader(bytes), message, 0);
  return message;
}

/**
 * The bytes of a message. Throws an Error if a required field is missing.
 * @param {Type} type
 * @param {Message} message
 */
export function toBinary(type, message) {
  const writer = new Writer();
  writeMessage(writer, type, message);
  return writer.finish();
}

/**
 * @param {Reader} reader
 * @param {Message} message
 * @param {number} depth
 */
function readMessage(reader, message, depth) {
  if (depth > MAX_DEPTH) throw new RangeError("messages are nested too deeply");
  while (!reader.isAtEnd) {
    const { number, wire } = reader.tag();
    const field = message.$type.byNumber.get(number);
    if (!field || !readField(reader, message, field, wire, depth)) {
      message.$rest.push({ number, wire, bytes: reader.skip(number, wire) });
    }
  }
}

/** The fields of a message as bytes. @param {Uint8Array} bytes */
function readRest(bytes) {
  const reader = new Reader(bytes);
  /** @type {Raw[]} */
  const all = [];
  while (!reader.isAtEnd) {
    const { number, wire } = reader.tag();
    all.push({ number, wire, bytes: reader.skip(number, wire) });
  }
  return all;
}

/**
 * Reads the value of a field; false if it has another form on the wire.
 * @param {Reader} reader
 * @param {Message} message
 * @param {Field} field
 * @param {number} wire
 * @param {number} depth
 */
function readField(reader, message, field, wire, depth) {
  const name = field.localName;
  const isList = field.fieldKind === "list";
  const own = field.message ? WIRE.LEN : field.enum ? WIRE.VARINT : wireOf(field.scalar);
  if (isList && wire === WIRE.LEN && own !== WIRE.LEN) {
    if (!isSet(message, field)) message[name] = [];
    const packed = new Reader(reader.bytes());
    while (!packed.isAtEnd) message[name].push(readSingle(packed, field));
    return true;
  }
  if (wire !== own) return false;
  if (field.fieldKind === "map") {
    const entry = fromBinary(field.message, reader.bytes());
    if (!isSet(message, field)) message[name] = Object.create(null);
    message[name][entry.key] = entry.value;
    return true;
  }
  if (field.message) {
    // A message that comes in parts is one.
    const inner = !isList && isSet(message, field) ? message[name] : create(field.message);
    readMessage(new Reader(reader.bytes()), inner, depth + 1);
    if (!isList) {
      if (!isSet(message, field)) set(message, field, inner);
      return true;
    }
    if (!isSet(message, field)) message[name] = [];
    message[name].push(inner);
    return true;
  }
  const value = readSingle(reader, field);
  if (!isList) {
    set(message, field, value);
    return true;
  }
  if (!isSet(message, field)) message[name] = [];
  message[name].push(value);
  return true;
}

/**
 * @param {Reader} reader
 * @param {Field} field
 */
function readSingle(reader, field) {
  if (field.enum) return Number(BigInt.asIntN(32, reader.varint64()));
  switch (field.scalar) {
    case DOUBLE:
      return reader.fixed(8).getFloat64(0, true);
    case FLOAT:
      return reader.fixed(4).getFloat32(0, true);
    case FIXED32:
      return reader.fixed(4).getUint32(0, true);
    case SFIXED32:
      return reader.fixed(4).getInt32(0, true);
    case FIXED64:
      return reader.fixed(8).getBigUint64(0, true);
    case SFIXED64:
      return reader.fixed(8).getBigInt64(0, true);
    case BOOL:
      return reader.varint64() !== 0n;
    case STRING:
      return new TextDecoder().decode(reader.bytes());
    case BYTES:
      return reader.bytes();
    case UINT32:
      return reader.varint32();
    case INT32:
      return reader.varint32() | 0;
    case SINT32: {
      const value = reader.varint32();
      return (value >>> 1) ^ -(value & 1);
    }
    case UINT64:
      return reader.varint64();
    case SINT64: {
      const value = reader.varint64();
      return (value >> 1n) ^ -(value & 1n);
    }
    default:
      return BigInt.asIntN(64, reader.varint64());
  }
}

/**
 * @param {Writer} writer
 * @param {Type} type
 * @param {Message} message
 */
function writeMessage(writer, type, message) {
  for (const field of type.fields) {
    if (isSet(message, field)) writeField(writer, field, message[field.localName]);
    else if (field.isRequired) throw new Error(`${type.typeName} needs ${field.name}`);
  }
  for (const { number, wire, bytes } of message.$rest) {
    writer.tag(number, wire);
    writer.raw(bytes);
  }
}

/**
 * @param {Writer} writer
 * @param {Field} field
 * @param {any} value
 */
function writeField(writer, field, value) {
  if (field.fieldKind === "map") throw new Error(`${field.name} is a map`);
  const isList = field.fieldKind === "list";
  if (isList && field.isPacked) {
    if (value.length === 0) return;
    const packed = new Writer();
    for (const one of value) writeSingle(packed, field, one);
    writer.tag(field.number, WIRE.LEN);
    writer.bytes(packed.finish());
    return;
  }
  const wire = field.message ? WIRE.LEN : field.enum ? WIRE.VARINT : wireOf(field.scalar);
  for (const one of isList ? value : [value]) {
    writer.tag(field.number, wire);
    writeSingle(writer, field, one);
  }
}

/**
 * @param {Writer} writer
 * @param {Field} field
 * @param {any} value
 */
function writeSingle(writer, field, value) {
  if (field.message) {
    writer.bytes(toBinary(field.message, value));
    return;
  }
  switch (field.enum ? INT32 : field.scalar) {
    case DOUBLE:
      writer.fixed(8, (view) => view.setFloat64(0, value, true));
      break;
    case FLOAT:
      writer.fixed(4, (view) => view.setFloat32(0, value, true));
      break;
    case FIXED32:
    case SFIXED32:
      writer.fixed(4, (view) => view.setUint32(0, value >>> 0, true));
      break;
    case FIXED64:
    case SFIXED64:
      writer.fixed(8, (view) => view.setBigUint64(0, BigInt.asUintN(64, BigInt(value)), true));
      break;
    case BOOL:
      writer.varint(value ? 1 : 0);
      break;
    case STRING:
      writer.bytes(new TextEncoder().encode(value));
      break;
    case BYTES:
      writer.bytes(value);
      break;
    case SINT32:
      writer.varint(((value << 1) ^ (value >> 31)) >>> 0);
      break;
    case SINT64: {
      const whole = BigInt(value);
      writer.varint((whole << 1n) ^ (whole >> 63n));
      break;
    }
    default:
      writer.varint(value);
  }
}

/** @param {number} scalar */
function wireOf(scalar) {
  if (scalar === STRING || scalar === BYTES) return WIRE.LEN;
  if (scalar === DOUBLE || scalar === FIXED64 || scalar === SFIXED64) return WIRE.I64;
  return scalar === FLOAT || scalar === FIXED32 || scalar === SFIXED32 ? WIRE.I32 : WIRE.VARINT;
}

// Bytes of values

class Reader {
  /** @param {Uint8Array} all */
  constructor(all) {
    this._all = all;
    this._at = 0;
  }

  get isAtEnd() {
    return this._at >= this._all.length;
  }

  tag() {
    const tag = this.varint64();
    const number = Number(tag >> 3n);
    if (number < 1 || number > MAX_FIELD) throw new RangeError(`there is no field ${number}`);
    return { number, wire: Number(tag & 7n) };
  }

  /** The lowest 32 bits of a number. */
  varint32() {
    // Most numbers have one or two bytes.
    const first = this._all[this._at];
    if (first < 0x80) {
      this._at += 1;
      return first;
    }
    return Number(BigInt.asUintN(32, this.varint64()));
  }

  varint64() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this._all[this._at];
      if (byte === undefined) break;
      this._at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new RangeError("a number has no end");
  }

  /** @param {number} length */
  fixed(length) {
    const { buffer, byteOffset } = this._all;
    const at = this._take(length);
    return new DataView(buffer, byteOffset + at, length);
  }

  bytes() {
    const length = Number(this.varint64());
    const at = this._take(length);
    return this._all.subarray(at, at + length);
  }

  /**
   * The bytes of a field after its tag.
   * @param {number} number
   * @param {number} wire
   * @param {number} [depth]
   */
  skip(number, wire, depth = 0) {
    const start = this._at;
    if (wire === WIRE.VARINT) this.varint64();
    else if (wire === WIRE.I64) this._take(8);
    else if (wire === WIRE.I32) this._take(4);
    else if (wire === WIRE.LEN) this.bytes();
    else if (wire === WIRE.START && depth < MAX_DEPTH) {
      for (;;) {
        const inner = this.tag();
        if (inner.wire === WIRE.END && inner.number === number) break;
        this.skip(inner.number, inner.wire, depth + 1);
      }
    } else throw new RangeError(`field ${number} has the unknown form ${wire}`);
    return this._all.subarray(start, this._at);
  }

  /** @param {number} length */
  _take(length) {
    const at = this._at;
    if (at + length > this._all.length) throw new RangeError("the bytes end within a field");
    this._at += length;
    return at;
  }
}

class Writer {
  constructor() {
    this._all = new Uint8Array(64);
    this._length = 0;
  }

  /** @param {number} number @param {number} wire */
  tag(number, wire) {
    this.varint(number * 8 + wire);
  }

  /** @param {number | bigint} value a negative one has ten bytes */
  varint(value) {
    if (typeof value === "number" && value >= 0 && value < 0x80) {
      this.raw([value]);
      return;
    }
    let rest = BigInt.asUintN(64, BigInt(value));
    const bytes = [];
    for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    this.raw([...bytes, Number(rest)]);
  }

  /** @param {number} length @param {(view: DataView) => void} write */
  fixed(length, write) {
    const bytes = new Uint8Array(length);
    write(new DataView(bytes.buffer));
    this.raw(bytes);
  }

  /** @param {Uint8Array} bytes */
  bytes(bytes) {
    this.varint(bytes.length);
    this.raw(bytes);
  }

  /** @param {ArrayLike<number>} bytes */
  raw(bytes) {
    const end = this._length + bytes.length;
    if (end > this._all.length) {
      const larger = new Uint8Array(Math.max(end, 2 * this._all.length));
      larger.set(this._all);
      this._all = larger;
    }
    this._all.set(bytes, this._length);
    this._length = end;
  }

  finish() {
    return this._all.slice(0, this._length);
  }
}

// Descriptions of descriptions: the part of google/protobuf/descriptor.proto that is needed here.

const MANY = REPEATED;
/** By type: the fields as name, number, type, and the label of lists. @type {Record<string, [string, number, number | string, number?][]>} */
const DESCRIBED = {
  FileDescriptorSet: [["file", 1, "FileDescriptorProto", MANY]],
  FileDescriptorProto: [
    ["name", 1, STRING],
    ["package", 2, STRING],
    ["dependency", 3, STRING, MANY],
    ["message_type", 4, "DescriptorProto", MANY],
    ["enum_type", 5, "EnumDescriptorProto", MANY],
    ["service", 6, "ServiceDescriptorProto", MANY],
    ["extension", 7, "FieldDescriptorProto", MANY],
    ["options", 8, "FileOptions"],
    ["source_code_info", 9, "SourceCodeInfo"],
    ["syntax", 12, STRING],
  ],
  SourceCodeInfo: [["location", 1, "Location", MANY]],
  Location: [
    ["path", 1, INT32, MANY],
    ["leading_comments", 3, STRING],
  ],
  DescriptorProto: [
    ["name", 1, STRING],
    ["field", 2, "FieldDescriptorProto", MANY],
    ["nested_type", 3, "DescriptorProto", MANY],
    ["enum_type", 4, "EnumDescriptorProto", MANY],
    ["extension", 6, "FieldDescriptorProto", MANY],
    ["options", 7, "MessageOptions"],
    ["oneof_decl", 8, "OneofDescriptorProto", MANY],
  ],
  FieldDescriptorProto: [
    ["name", 1, STRING],
    ["extendee", 2, STRING],
    ["number", 3, INT32],
    ["label", 4, INT32],
    ["type", 5, INT32],
    ["type_name", 6, STRING],
    ["options", 8, "FieldOptions"],
    ["oneof_index", 9, INT32],
    ["proto3_optional", 17, BOOL],
  ],
  OneofDescriptorProto: [["name", 1, STRING]],
  EnumDescriptorProto: [
    ["name", 1, STRING],
    ["value", 2, "EnumValueDescriptorProto", MANY],
    ["options", 3, "EnumOptions"],
  ],
  EnumValueDescriptorProto: [
    ["name", 1, STRING],
    ["number", 2, INT32],
    ["options", 3, "EnumValueOptions"],
  ],
  ServiceDescriptorProto: [
    ["name", 1, STRING],
    ["method", 2, "MethodDescriptorProto", MANY],
    ["options", 3, "ServiceOptions"],
  ],
  MethodDescriptorProto: [
    ["name", 1, STRING],
    ["input_type", 2, STRING],
    ["output_type", 3, STRING],
    ["options", 4, "MethodOptions"],
    ["server_streaming", 6, BOOL],
  ],
  FileOptions: [],
  MessageOptions: [["map_entry", 7, BOOL]],
  FieldOptions: [["packed", 2, BOOL]],
  EnumOptions: [],
  EnumValueOptions: [],
  ServiceOptions: [],
  MethodOptions: [],
};

/** The types of descriptions, by name. @type {Map<string, Type>} */
const descriptorTypes = new Map();

for (const name of Object.keys(DESCRIBED)) {
  const file = { proto: { name: "google/protobuf/descriptor.proto" }, services: [] };
  descriptorTypes.set(name, emptyType(name, `google.protobuf.${name}`, file, {}));
}
for (const [name, fields] of Object.entries(DESCRIBED)) {
  addFields(/** @type {Type} */ (descriptorTypes.get(name)), fields.map(([name, number, type, label = 1]) => {
    const message = typeof type === "string" ? descriptorTypes.get(type) : undefined;
    const single = message ? "message" : "scalar";
    return {
      kind: "field",
      name,
      localName: localName(name),
      typeName: "",
      number,
      fieldKind: label === MANY ? "list" : single,
      listKind: label === MANY ? single : undefined,
      scalar: message ? undefined : type,
      message,
      enum: undefined,
      oneof: undefined,
      isPacked: false,
      isRequired: false,
      proto: {},
    };
  }));
}

/** A type of descriptions, such as `FileDescriptorProto`. @param {string} name */
export function descriptorType(name) {
  return /** @type {Type} */ (descriptorTypes.get(name));
}

/** The type of a set of descriptions. */
export const FileDescriptorSet = descriptorType("FileDescriptorSet");

/** The same types as a file, for fields of other files that have them. @type {Message} */
const DESCRIPTOR = create(descriptorType("FileDescriptorProto"), {
  name: "google/protobuf/descriptor.proto",
  package: "google.protobuf",
  messageType: Object.keys(DESCRIBED).map((name) =>
    create(descriptorType("DescriptorProto"), { name })),
});
