// Drives the robot by the example of a page that is a client: node program.mjs http://ADDRESS
// It prints a line after each step, and goes on after a line on stdin.

import assert from "node:assert/strict";

import { launch } from "./browser.mjs";
import { step } from "./steps.mjs";

const browser = await launch();
const page = await browser.newPage();
page.setDefaultTimeout(180_000);
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
// The connections of the page, to end them.
await page.addInitScript(() => {
  window.sockets = [];
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      window.sockets.push(this);
    }
  };
});
await page.goto(`${process.argv[2]}/drive.html`);
const state = (text) => page.locator("#state", { hasText: text }).waitFor();
await state("connected");
await page.locator("#nearest", { hasText: "mm" }).waitFor();

const ahead = page.getByRole("button", { name: "ahead" });
/** A busy machine may delay a command by more than it holds; then another one follows. */
const hold = async () => {
  await ahead.hover();
  await page.mouse.down();
};
await hold();
await state("driving");
await step("held");
await page.mouse.up();
await step("released");
await state("connected");

// The subscription goes on after a new connection, which is another client for the mediator.
await page.evaluate(() => window.sockets.at(-1).close());
await page.waitForFunction(() => window.sockets.length === 2);
await page.evaluate(() => (document.getElementById("nearest").textContent = "lost"));
await page.locator("#nearest", { hasText: "mm" }).waitFor();
await hold();
await state("driving");
await step("held after the connection was lost");
assert.deepEqual(errors, []);
await page.close();
console.log("closed");
await browser.close();
process.exit(0);
