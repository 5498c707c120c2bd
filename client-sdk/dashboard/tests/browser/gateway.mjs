// The page of the rosbridge gateway in a browser: node gateway.mjs http://ADDRESS
// It prints a line after each step, and goes on after a line on stdin.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";

import { launch } from "./browser.mjs";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function step(name) {
  console.log(name);
  await lines.next();
}

const browser = await launch();
const page = await (await browser.newContext()).newPage();
page.setDefaultTimeout(180_000);
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
// Also violations of its policy.
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
await page.addInitScript(() => {
  window.sent = [];
  window.scans = 0;
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    window.sent.push(JSON.parse(text));
    this.onscan ??= this.addEventListener("message", () => { window.scans += 1; }) ?? true;
    return send.call(this, text);
  };
});
await page.goto(process.argv[2]);
await page.getByText("Connected.").waitFor();
await page.waitForFunction(() => window.scans > 2);

const moves = () => window.sent.filter(({ topic, msg }) => topic === "/cmd_vel" && (msg.linear.x || msg.angular.z));
const count = () => page.evaluate(moves).then((found) => found.length);
const stops = {
  button: () => page.getByRole("button", { name: "Stop" }).click(),
  // The button has the focus after the click.
  space: () => page.keyboard.press("Space"),
  escape: () => page.keyboard.press("Escape"),
};
for (const [name, stop] of Object.entries(stops)) {
  await page.keyboard.down("ArrowUp");
  await step(`drives before ${name}`);
  await stop();
  const before = await count();
  // The second press of a key that is down is its repetition.
  for (let repeat = 0; repeat < 5; repeat++) {
    await page.keyboard.down("ArrowUp");
    const scans = await page.evaluate(() => window.scans);
    await page.waitForFunction((scans) => window.scans > scans + 2, scans);
  }
  assert.equal(await count(), before, `a repeated key drives after ${name}`);
  await step(`stopped by ${name}`);
  await page.keyboard.up("ArrowUp");
}
const calls = await page.evaluate(() => window.sent.filter(({ service }) => service === "/stop").length);
assert.equal(calls, 3);
// A space in the address is a letter.
await page.getByLabel("address of the gateway").press("Space");
assert.equal(await page.evaluate(() => window.sent.filter(({ service }) => service === "/stop").length), 3);
assert.deepEqual(errors, []);
await browser.close();
console.log("closed");
process.exit(0);
