// Keeps stdout for frames. IO: this module takes it when it is loaded.

import { Console } from "node:console";

/** Where frames go. */
export const output = process.stdout;

// What a program prints goes to stderr, and so to the log of the mediator.
Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get: () => process.stderr });
const toLog = new Console(process.stderr, process.stderr);
for (const name of /** @type {const} */ (["log", "info", "debug", "dir", "dirxml", "table", "group", "groupCollapsed", "groupEnd",
  "count", "countReset", "time", "timeEnd", "timeLog"])) {
  console[name] = /** @type {any} */ (toLog[name]).bind(toLog);
}

/** Writes a line to the mediator's log. @param {...unknown} words */
export function log(...words) {
  console.error(...words);
}
