// Reads the `.proto` file of a device: a strict reader of the part of proto2 that descriptions use. PURE.
//
// It knows messages, enums, extensions, services, imports and the options of interface.proto. What it does not
// know is an error that names the line: groups, maps, default values, proto3. `amber describe --proto FILE`
// checks more than this.

import { ScalarType, create, descriptorType, hasExtension, set, setExtension } from "../protobuf.js";
import { OURS } from "../schemas.js";
import { ProtoError, tokensOf } from "./tokens.js";

/** @typedef {import("../protobuf.js").Message} Message */
/** @typedef {import("../protobuf.js").Field} Field */
/** @typedef {import("./tokens.js").Token} Token */

const LABELS = /** @type {Record<string, number>} */ ({ optional: 1, required: 2, repeated: 3 });
const SCALARS = /** @type {Record<string, number>} */ (
  Object.fromEntries(Object.entries(ScalarType).map(([name, type]) => [name.toLowerCase(), type]))
);
const MESSAGE = 11;
const ENUM = 14;
/** Options of protobuf itself that change nothing here, by what they belong to. */
const IGNORED = ["java_package", "java_outer_classname", "java_multiple_files", "deprecated", "allow_alias"];
/** Numbers that protobuf keeps for itself. */
const KEPT = { first: 19_000, last: 19_999 };
const MAX_FIELD = 2 ** 29 - 1;
/** The whole numbers of 32 bits; of 64 bits, only those that are exact in JavaScript are read. */
const WHOLE = /** @type {Record<number, [number, number]>} */ ({
  [ScalarType.INT32]: [-(2 ** 31), 2 ** 31 - 1],
  [ScalarType.SINT32]: [-(2 ** 31), 2 ** 31 - 1],
  [ScalarType.SFIXED32]: [-(2 ** 31), 2 ** 31 - 1],
  [ScalarType.UINT32]: [0, 2 ** 32 - 1],
  [ScalarType.FIXED32]: [0, 2 ** 32 - 1],
  [ScalarType.INT64]: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  [ScalarType.SINT64]: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  [ScalarType.SFIXED64]: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  [ScalarType.UINT64]: [0, Number.MAX_SAFE_INTEGER],
  [ScalarType.FIXED64]: [0, Number.MAX_SAFE_INTEGER],
});

/** What a file declares. @typedef {{ kind: "message" | "enum" | "extension", file: string }} Declared */

/**
 * A file and those that it imports, except for Amber's own, as FileDescriptorProtos: each behind those that it
 * needs. Throws a ProtoError.
 * @param {string} name such as `lamp.proto`
 * @param {(name: string) => string | undefined} read the text of a file, if there is one
 * @param {Message[]} [known] the files that are not read
 * @returns {Message[]}
 */
export function readFiles(name, read, known = OURS.registry.files.map(({ proto }) => /** @type {any} */ (proto))) {
  /** @type {Message[]} */
  const files = [];
  /** @type {Map<string, Declared>} */
  const declared = new Map();
  for (const file of known) declareAll(declared, file);
  /** @param {string} wanted @param {string[]} importing @param {(what: string) => Error} error */
  const add = (wanted, importing, error) => {
    if ([...known, ...files].some((it) => it.name === wanted)) return;
    if (importing.includes(wanted)) throw error(`${wanted} imports itself`);
    const text = read(wanted);
    if (text === undefined) throw error(`there is no file ${wanted}`);
    const parser = new Parser(wanted, text);
    const proto = parser.file();
    for (const { text: one, line } of parser.imports) {
      add(one, [...importing, wanted], (what) => new ProtoError(wanted, line, what));
    }
    parser.finish(declared);
    files.push(proto);
  };
  add(name, [], (what) => new Error(what));
  return files;
}

/**
 * Notes the names in a file.
 * @param {Map<string, Declared>} declared
 * @param {Message} proto a FileDescriptorProto
 * @param {(name: string) => void} [twice]
 */
function declareAll(declared, proto, twice) {
  /** @param {string} outer @param {Message[]} all @param {Declared["kind"]} kind */
  const note = (outer, all, kind) => {
    for (const it of all) {
      const name = outer ? `${outer}.${it.name}` : it.name;
      if (declared.has(name)) twice?.(name);
      declared.set(name, { kind, file: proto.name });
      if (kind !== "message") continue;
      note(name, it.nestedType, "message");
      note(name, it.enumType, "enum");
      note(name, it.extension, "extension");
    }
  };
  note(proto.package, proto.messageType, "message");
  note(proto.package, proto.enumType, "enum");
  note(proto.package, proto.extension, "extension");
}

/** An option as it is written. @typedef {{ name: string, line: number, value: Value }} Option */
/** @typedef {{ line: number, token: Token, isNegative: boolean } | { line: number, fields: { name: string, line: number, value: Value }[] } | { line: number, list: Value[] }} Value */

class Parser {
  /**
   * @param {string} name
   * @param {string} text
   */
  constructor(name, text) {
    this._name = name;
    this._tokens = tokensOf(name, text);
    this._at = 0;
    /** @type {Token[]} */
    this.imports = [];
    /** What needs the names of all files. @type {((declared: Map<string, Declared>) => void)[]} */
    this._later = [];
    /** @type {Message[]} */
    this._comments = [];
    /** @type {Message} */
    this._file = make("FileDescriptorProto", { name, dependency: [] });
  }

  /** The whole file, in which names of other files are not yet resolved. */
  file() {
    const file = this._file;
    this._expect("syntax", 'begin the file with `syntax = "proto2";`');
    this._expect("=");
    if (this._kind("text", "a text").text !== "proto2") {
      throw this._error("the syntax must be proto2", "fields of devices are extensions, which proto3 does not have");
    }
    this._expect(";");
    while (this._peek().kind !== "end") {
      if (this._skips(";")) continue;
      const { comment } = this._peek();
      const word = this._word();
      if (word === "package") {
        if (file.package) throw this._error("a file has one package");
        file.package = this._fullName();
        this._expect(";");
      } else if (word === "import") {
        const name = this._kind("text", "the name of a file");
        file.dependency.push(name.text);
        this.imports.push(name);
        this._expect(";");
      } else if (word === "option") this._option(file, "FileOptions", "");
      else if (word === "message") this._message(list(file, "messageType"), [4], comment, "");
      else if (word === "enum") this._enum(list(file, "enumType"), [5], comment, "");
      else if (word === "service") this._service(list(file, "service"), [6], comment);
      else if (word === "extend") this._extend(list(file, "extension"), [7], "");
      else throw this._error(`unexpected ${word}`, KNOWN);
    }
    return file;
  }

  /** Resolves the names. @param {Map<string, Declared>} declared those of the imports; gets those of this file */
  finish(declared) {
    declareAll(declared, this._file, (name) => {
      throw new ProtoError(this._name, 1, `${name} is declared twice`);
    });
    for (const finish of this._later) finish(declared);
    if (this._comments.length > 0) {
      this._file.sourceCodeInfo = make("SourceCodeInfo", { location: this._comments });
    }
  }

  /** @param {Message[]} all @param {number[]} outer @param {string} comment @param {string} scope */
  _message(all, outer, comment, scope) {
    const path = [...outer, all.length];
    const name = this._word();
    const message = make("DescriptorProto", { name });
    all.push(message);
    this._comment(path, comment);
    const inner = scope ? `${scope}.${name}` : name;
    this._block(() => {
      const { text, comment: above } = this._peek();
      if (text in LABELS) this._field(list(message, "field"), [...path, 2], inner);
      else if (this._skips("message")) this._message(list(message, "nestedType"), [...path, 3], above, inner);
      else if (this._skips("enum")) this._enum(list(message, "enumType"), [...path, 4], above, inner);
      else if (this._skips("extend")) this._extend(list(message, "extension"), [...path, 6], inner);
      else if (this._skips("option")) this._option(message, "MessageOptions", inner);
      else if (this._skips("oneof")) this._oneof(message, path, above, inner);
      else if (this._skips("reserved") || this._skips("extensions")) this._ignore();
      else throw this._error(`unexpected ${text}`, `a field begins with optional, required or repeated. ${KNOWN}`);
    });
    this._unique(message.field);
  }

  /** @param {Message} message @param {number[]} path @param {string} comment @param {string} scope */
  _oneof(message, path, comment, scope) {
    const all = list(message, "oneofDecl");
    this._comment([...path, 8, all.length], comment);
    all.push(make("OneofDescriptorProto", { name: this._word() }));
    this._block(() => {
      const field = this._field(list(message, "field"), [...path, 2], scope, 1);
      field.oneofIndex = all.length - 1;
    });
  }

  /**
   * @param {Message[]} all
   * @param {number[]} outer
   * @param {string} scope
   * @param {number} [label] of a field that is written without one
   */
  _field(all, outer, scope, label) {
    const { comment } = this._peek();
    label ??= LABELS[this._word()];
    if (label === undefined) throw this._error("a field begins with optional, required or repeated");
    const type = this._typeName();
    if (type === "group") throw this._error("groups are not supported", "write a message");
    const { line } = this._peek();
    const field = make("FieldDescriptorProto", { name: this._word() });
    this._expect("=");
    field.number = this._number();
    field.label = label;
    if (field.number < 1 || field.number > MAX_FIELD || (field.number >= KEPT.first && field.number <= KEPT.last)) {
      throw this._error(`a field cannot have the number ${field.number}`);
    }
    if (type in SCALARS) field.type = SCALARS[type];
    else {
      this._later.push((declared) => {
        const { name, kind } = this._find(declared, type, scope, line, ["message", "enum"]);
        field.type = kind === "enum" ? ENUM : MESSAGE;
        field.typeName = `.${name}`;
      });
    }
    this._comment([...outer, all.length], comment);
    all.push(field);
    if (this._skips("[")) {
      do this._setting(field, "FieldOptions", scope);
      while (this._skips(","));
      this._expect("]");
    }
    this._expect(";");
    return field;
  }

  /** @param {Message[]} all @param {number[]} path @param {string} scope */
  _extend(all, path, scope) {
    const { line } = this._peek();
    const type = this._typeName();
    this._block(() => {
      const field = this._field(all, path, scope);
      if (field.label === LABELS.required) throw this._error("an extension cannot be required");
      this._later.push((declared) => {
        field.extendee = `.${this._find(declared, type, scope, line, ["message"]).name}`;
      });
    });
    this._unique(all);
  }

  /** @param {Message[]} all @param {number[]} outer @param {string} comment @param {string} scope */
  _enum(all, outer, comment, scope) {
    const path = [...outer, all.length];
    const made = make("EnumDescriptorProto", { name: this._word() });
    all.push(made);
    this._comment(path, comment);
    const values = list(made, "value");
    this._block(() => {
      const { comment: above } = this._peek();
      if (this._skips("option")) this._option(made, "EnumOptions", scope);
      else if (this._skips("reserved")) this._ignore();
      else {
        const value = make("EnumValueDescriptorProto", { name: this._word() });
        this._expect("=");
        value.number = this._number();
        this._comment([...path, 2, values.length], above);
        values.push(value);
        if (this._skips("[")) {
          do this._setting(value, "EnumValueOptions", scope);
          while (this._skips(","));
          this._expect("]");
        }
        this._expect(";");
      }
    });
    if (values.length === 0) throw this._error(`the enum ${made.name} has no values`);
  }

  /** @param {Message[]} all @param {number[]} outer @param {string} comment */
  _service(all, outer, comment) {
    const path = [...outer, all.length];
    const service = make("ServiceDescriptorProto", { name: this._word() });
    all.push(service);
    this._comment(path, comment);
    const methods = list(service, "method");
    this._block(() => {
      const { comment: above, line } = this._peek();
      if (this._skips("option")) {
        this._option(service, "ServiceOptions", "");
        return;
      }
      this._expect("rpc");
      const method = make("MethodDescriptorProto", { name: this._word() });
      this._comment([...path, 2, methods.length], above);
      methods.push(method);
      const type = (/** @type {string} */ field) => {
        this._expect("(");
        if (field === "outputType" && this._skips("stream")) method.serverStreaming = true;
        const name = this._typeName();
        this._expect(")");
        this._later.push((declared) => {
          method[field] = `.${this._find(declared, name, "", line, ["message"]).name}`;
        });
      };
      type("inputType");
      this._expect("returns");
      type("outputType");
      if (this._skips(";")) return;
      this._block(() => {
        this._expect("option");
        this._option(method, "MethodOptions", "");
      });
    });
  }

  // Options

  /** @param {Message} owner @param {string} type @param {string} scope */
  _option(owner, type, scope) {
    this._setting(owner, type, scope);
    this._expect(";");
  }

  /** `NAME = VALUE`. @param {Message} owner @param {string} type @param {string} scope */
  _setting(owner, type, scope) {
    const { line } = this._peek();
    const isOwn = this._skips("(");
    const name = isOwn ? this._typeName() : this._word();
    if (isOwn) this._expect(")");
    if (this._peek().text === ".") {
      throw this._error("options are not set by their parts", "write `option (amber.device) = { type: 201 }`");
    }
    this._expect("=");
    const value = this._value();
    if (!isOwn) {
      if (name === "packed" && type === "FieldOptions" && "token" in value) {
        owner.options ??= make(type);
        owner.options.packed = value.token.text === "true";
      } else if (!IGNORED.includes(name)) {
        throw new ProtoError(this._name, line, `the option ${name} is not supported`,
          name === "default" ? "say `(amber.absent_means)` instead" : undefined);
      }
      return;
    }
    // Set now, so that the options of an owner are there before its registry is made.
    owner.options ??= make(type);
    const { options } = owner;
    this._later.push((declared) => {
      const { name: fullName } = this._find(declared, name, scope, line, ["extension"]);
      const extension = OURS.registry.getExtension(fullName);
      if (extension?.proto.extendee !== `.google.protobuf.${type}`) {
        throw new ProtoError(this._name, line, `(${name}) is no option for this`);
      }
      if (hasExtension(options, extension)) throw new ProtoError(this._name, line, `(${name}) is set twice`);
      setExtension(options, extension, this._meant(extension, value));
    });
  }

  /** @returns {Value} */
  _value() {
    const { line, text } = this._peek();
    if (text === "{" && this._skips("{")) {
      /** @type {{ name: string, line: number, value: Value }[]} */
      const fields = [];
      while (!this._skips("}")) {
        const { line: at } = this._peek();
        const name = this._word();
        if (!this._skips(":") && this._peek().text !== "{") this._expect(":");
        fields.push({ name, line: at, value: this._value() });
        if (!this._skips(",")) this._skips(";");
      }
      return { line, fields };
    }
    if (text === "[" && this._skips("[")) {
      /** @type {Value[]} */
      const values = [];
      while (!this._skips("]")) {
        if (values.length > 0) this._expect(",");
        values.push(this._value());
      }
      return { line, list: values };
    }
    const isNegative = this._skips("-");
    let token = this._next();
    if (!["word", "number", "text"].includes(token.kind)) throw this._error(`unexpected ${token.text}`);
    // Texts that follow one another are one.
    while (token.kind === "text" && this._peek().kind === "text") {
      token = { ...token, text: token.text + this._next().text };
    }
    return { line, token, isNegative };
  }

  /** A value as the field has it. @param {Field} field @param {Value} value @returns {any} */
  _meant(field, value) {
    const fail = (/** @type {string} */ what) => new ProtoError(this._name, value.line, `${field.name} ${what}`);
    if (field.message) {
      if (!("fields" in value)) throw fail("is a message: { ... }");
      const message = create(field.message);
      for (const { name, line, value: one } of value.fields) {
        const inner = field.message.fields.find((/** @type {Field} */ it) => it.name === name);
        if (!inner) throw new ProtoError(this._name, line, `${field.message.name} has no field ${name}`);
        if (inner.fieldKind === "list") {
          const ones = "list" in one ? one.list : [one];
          const all = Object.hasOwn(message, inner.localName) ? message[inner.localName] : [];
          message[inner.localName] = [...all, ...ones.map((it) => this._meant(inner, it))];
        } else if (Object.hasOwn(message, inner.localName)) {
          throw new ProtoError(this._name, line, `${name} is set twice`);
        } else set(message, inner, this._meant(inner, one));
      }
      for (const it of field.message.fields) {
        if (it.isRequired && !Object.hasOwn(message, it.localName)) throw fail(`needs ${it.name}`);
      }
      return message;
    }
    if (!("token" in value)) throw fail("is a single value");
    const { token: { kind, text }, isNegative } = value;
    if (field.scalar === ScalarType.STRING) {
      if (kind !== "text") throw fail('is a text: "..."');
      return text;
    }
    if (field.scalar === ScalarType.BOOL) {
      if (kind !== "word" || !["true", "false"].includes(text)) throw fail("is true or false");
      return text === "true";
    }
    const number = Number(text) * (isNegative ? -1 : 1);
    if (kind !== "number" || !Number.isFinite(number)) throw fail("is a number");
    const range = WHOLE[field.scalar];
    if (range && !(Number.isInteger(number) && number >= range[0] && number <= range[1])) {
      throw fail(`is a whole number from ${range[0]} to ${range[1]}`);
    }
    return number;
  }

  // Names

  /**
   * What a name means: the innermost scope counts, as in C++.
   * @param {Map<string, Declared>} declared
   * @param {string} name
   * @param {string} scope within the package
   * @param {number} line
   * @param {Declared["kind"][]} kinds
   */
  _find(declared, name, scope, line, kinds) {
    const scopes = [this._file.package, scope].filter(Boolean).join(".").split(".").filter(Boolean);
    for (let length = name.startsWith(".") ? 0 : scopes.length; length >= 0; length--) {
      const fullName = [...scopes.slice(0, length), name.replace(/^\./, "")].join(".");
      const found = declared.get(fullName);
      if (!found || !kinds.includes(found.kind)) continue;
      if (found.file !== this._name && !this._file.dependency.includes(found.file)) {
        throw new ProtoError(this._name, line, `${name} is declared in ${found.file}`, `write \`import "${found.file}";\``);
      }
      return { name: fullName, kind: found.kind };
    }
    throw new ProtoError(this._name, line, `there is no ${kinds.join(" or ")} ${name}`);
  }

  /** @param {Message[]} fields */
  _unique(fields) {
    fields.forEach((field, i) => {
      const other = fields.slice(0, i).find((it) => it.number === field.number || it.name === field.name);
      if (other) throw this._error(`${other.name} and ${field.name} have the same name or number`);
    });
  }

  /** @param {number[]} path @param {string} comment */
  _comment(path, comment) {
    if (comment) this._comments.push(make("Location", { path, leadingComments: comment }));
  }

  // Tokens

  _peek() {
    return this._tokens[this._at];
  }

  _next() {
    const token = this._peek();
    if (token.kind !== "end") this._at += 1;
    return token;
  }

  /** @param {Token["kind"]} kind @param {string} what */
  _kind(kind, what) {
    const token = this._peek();
    if (token.kind !== kind) throw this._error(`expected ${what}, not ${token.text}`);
    return this._next();
  }

  _word() {
    return this._kind("word", "a name").text;
  }

  _number() {
    const isNegative = this._skips("-");
    const number = Number(this._kind("number", "a number").text) * (isNegative ? -1 : 1);
    if (!Number.isInteger(number) || Math.abs(number) >= 2 ** 31) throw this._error(`${number} is no whole number of 32 bits`);
    return number;
  }

  _fullName() {
    let name = this._word();
    while (this._skips(".")) name += `.${this._word()}`;
    return name;
  }

  /** A name that may begin with a dot. */
  _typeName() {
    return this._skips(".") ? `.${this._fullName()}` : this._fullName();
  }

  /** Whether the next token is this one, which is then skipped. @param {string} text */
  _skips(text) {
    const { kind, text: found } = this._peek();
    if (found !== text || kind === "text") return false;
    this._at += 1;
    return true;
  }

  /** @param {string} text @param {string} [hint] */
  _expect(text, hint) {
    if (!this._skips(text)) throw this._error(`expected ${text}, not ${this._peek().text}`, hint);
  }

  /** `{`, statements and `}`. @param {() => void} statement */
  _block(statement) {
    this._expect("{");
    while (!this._skips("}")) {
      if (this._peek().kind === "end") throw this._error("a } is missing");
      if (!this._skips(";")) statement();
    }
  }

  /** A statement that changes nothing here. */
  _ignore() {
    while (!this._skips(";")) {
      if (this._next().kind === "end") throw this._error("a ; is missing");
    }
  }

  /** @param {string} what @param {string} [hint] */
  _error(what, hint) {
    return new ProtoError(this._name, this._peek().line, what, hint);
  }
}

const KNOWN = "this package reads messages, enums, extensions and services; no groups, maps and proto3";

/** @param {string} type @param {Record<string, any>} [fields] @returns {any} */
function make(type, fields) {
  return create(descriptorType(type), fields);
}

/** A list of a message, to be added to. @param {Message} message @param {string} name @returns {Message[]} */
function list(message, name) {
  if (!Object.hasOwn(message, name)) message[name] = [];
  return message[name];
}
