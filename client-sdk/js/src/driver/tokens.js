// The words of a `.proto` file, with the comments above them. PURE.

/**
 * A word, a number, a text or a sign.
 * @typedef {object} Token
 * @property {"word" | "number" | "text" | "sign" | "end"} kind
 * @property {string} text as it is written; of a text, its contents
 * @property {number} line from 1
 * @property {string} comment directly above it, as protoc keeps it; often empty
 */

/** What is wrong in a `.proto` file, and where. */
export class ProtoError extends Error {
  /**
   * @param {string} file
   * @param {number} line
   * @param {string} what
   * @param {string} [hint]
   */
  constructor(file, line, what, hint) {
    super(`${file}:${line}: ${what}${hint ? `\nhint: ${hint}` : ""}`);
    this.name = "ProtoError";
  }
}

const BLANK = /[ \t\r\f\v]+/y;
const LINE_COMMENT = /\/\/([^\n]*)/y;
const BLOCK_COMMENT = /\/\*([^]*?)\*\//y;
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y;
const NUMBER = /0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y;
const TEXT = /"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'/y;
const SIGN = /[{}[\]()<>;:=,.\-]/y;
const ESCAPES = /** @type {Record<string, string>} */ ({
  n: "\n", t: "\t", r: "\r", "\\": "\\", '"': '"', "'": "'",
});

/**
 * The tokens of a file; the last one is its end. Throws a ProtoError.
 * @param {string} file
 * @param {string} source
 */
export function tokensOf(file, source) {
  /** @type {Token[]} */
  const found = [];
  let at = 0;
  let line = 1;
  /** The comment that may belong to the next token, and the line on which it ends. */
  let comment = "";
  let commentEnd = 0;
  /** @param {RegExp} pattern */
  const match = (pattern) => {
    pattern.lastIndex = at;
    const matched = pattern.exec(source);
    if (matched) at = pattern.lastIndex;
    return matched;
  };
  /** @param {Token["kind"]} kind @param {string} text */
  const add = (kind, text) => {
    found.push({ kind, text, line, comment: commentEnd === line - 1 || commentEnd === line ? comment : "" });
    comment = "";
  };
  while (at < source.length) {
    if (match(BLANK)) continue;
    if (source[at] === "\n") {
      at += 1;
      line += 1;
      continue;
    }
    const isBehindToken = found.at(-1)?.line === line;
    let matched = match(LINE_COMMENT);
    if (matched) {
      // Lines that follow one another are one comment.
      const isNext = comment !== "" && commentEnd === line - 1;
      comment = isBehindToken ? "" : `${isNext ? comment : ""}${matched[1].replace(/\r$/, "")}\n`;
      commentEnd = line;
    } else if ((matched = match(BLOCK_COMMENT))) {
      const lines = matched[1].split("\n");
      comment = isBehindToken ? "" : lines.map((it, i) => (i ? it.replace(/^\s*\*?/, "") : it)).join("\n");
      line += lines.length - 1;
      commentEnd = line;
    } else if ((matched = match(WORD))) add("word", matched[0]);
    else if ((matched = match(NUMBER))) add("number", matched[0]);
    else if ((matched = match(TEXT))) add("text", unescaped(file, line, matched[1] ?? matched[2]));
    else if ((matched = match(SIGN))) add("sign", matched[0]);
    else throw new ProtoError(file, line, `unexpected ${JSON.stringify(source[at])}`);
  }
  add("end", "the end of the file");
  return found;
}

/**
 * @param {string} file
 * @param {number} line
 * @param {string} text
 */
function unescaped(file, line, text) {
  return text.replace(/\\(.)/g, (_, letter) => {
    const meant = ESCAPES[letter];
    if (meant === undefined) throw new ProtoError(file, line, `the escape \\${letter} is not supported`);
    return meant;
  });
}
