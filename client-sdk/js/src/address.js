// Addresses of devices: a type, and a number among the devices of that type. PURE.

/** @typedef {{ type: number, id: number }} Address */

/** The names of types of devices. */
export class Names {
  constructor() {
    /** By name and by alias. @type {Map<string, number>} */
    this._types = new Map();
    /** @type {Map<number, string>} */
    this._names = new Map();
  }

  /** The same names, to which others can be added. */
  copy() {
    const copy = new Names();
    this._types.forEach((type, name) => copy._types.set(name, type));
    this._names.forEach((name, type) => copy._names.set(type, name));
    return copy;
  }

  /**
   * @param {number} type
   * @param {string} name
   * @param {string} [alias]
   */
  add(type, name, alias) {
    this._names.set(type, name);
    this._types.set(usual(name), type);
    if (alias) this._types.set(usual(alias), type);
  }

  /**
   * `hokuyo`, `laser`, `hokuyo:1` or `4:1`. Throws a TypeError if it is invalid.
   * @param {string | Address} text
   * @returns {Address}
   */
  parse(text) {
    const found = this.find(text);
    if (found) return found;
    const known = [...this._types.keys()].join(", ");
    throw new TypeError(
      `unknown device ${JSON.stringify(text)}; write TYPE or TYPE:ID with a number or one of ${known}` +
        "\nhint: `await robot.load(device)` finds the other devices of a robot",
    );
  }

  /**
   * The same; undefined if the name is unknown.
   * @param {string | Address} text
   * @returns {Address | undefined}
   */
  find(text) {
    const given = typeof text === "string" ? split(text) : text;
    const type = typeof given?.type === "string" ? this._number(given.type) : given?.type;
    const id = given?.id ?? 0;
    return isNumber(type) && isNumber(id) ? { type, id } : undefined;
  }

  /** `hokuyo:0`. @param {Address} address */
  show({ type, id }) {
    return `${this._names.get(type) ?? type}:${id}`;
  }

  /** @param {string} name */
  _number(name) {
    return this._types.get(usual(name)) ?? (/^\d+$/.test(name) ? Number(name) : undefined);
  }
}

/** `lamp:1` as a name and a number; undefined if it has another form. @param {string} text */
export function split(text) {
  const [, type, id = "0"] = /^([^:]+)(?::(\d+))?$/.exec(text) ?? [];
  return type === undefined ? undefined : { type, id: Number(id) };
}

/** @param {string} name */
function usual(name) {
  return name.replaceAll("_", "-").toLowerCase();
}

/**
 * @param {unknown} value
 * @returns {value is number}
 */
function isNumber(value) {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 31;
}
