// Opens the page that README.md of the package shows from disk, as it says: node from_disk.mjs http://ADDRESS
// The dashboard at the address allows such pages. It prints a line after each step, and goes on after a line on stdin.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { launch } from "./browser.mjs";
import { step } from "./steps.mjs";

const USUAL = "http://127.0.0.1:8026";

const readme = await readFile(new URL("../../../js/README.md", import.meta.url), "utf8");
const examples = [...readme.matchAll(/^```html\n(.*?)^```$/gms)].map(([, html]) => html);
assert.equal(examples.length, 1, "pages in README.md");
assert.equal(examples[0].split(USUAL).length, 3, "addresses in the page");
const folder = await mkdtemp(join(tmpdir(), "amber-from-disk-"));
const browser = await launch();
try {
  const file = join(folder, "page.html");
  await writeFile(file, examples[0].replaceAll(USUAL, process.argv[2]));
  const page = await browser.newPage();
  page.setDefaultTimeout(180_000);
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => /^\d+ mm$/.test(document.getElementById("nearest").value));
  // A busy machine may delay a command by more than it holds; then another one follows.
  await page.evaluate(() => (window.clicks = setInterval(() => document.getElementById("ahead").click(), 100)));
  await step("clicked again and again");
  await page.evaluate(() => clearInterval(window.clicks));
  await step("clicked no more");
  // The distance is a new one.
  await page.evaluate(() => (document.getElementById("nearest").value = "old"));
  await page.waitForFunction(() => document.getElementById("nearest").value !== "old");
  // A click may be refused while the machine is busy, but for no other reason.
  assert.deepEqual(errors.filter((it) => !it.includes("the network delays this page")), []);
} finally {
  await browser.close();
  await rm(folder, { recursive: true });
}
console.log("closed");
process.exit(0);
