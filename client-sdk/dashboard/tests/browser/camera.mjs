// Shows what the robot sees: node camera.mjs http://ADDRESS
// It prints a line after each step, and goes on after a line on stdin.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { launch } from "./browser.mjs";
import { PHONE, expectRoom } from "./room.mjs";
import { step } from "./steps.mjs";
import { drawn, noteDrawn, signed } from "./timecode.mjs";

/** Pictures of which the delay is told. */
const PICTURES = 40;
/** Older pictures are not from the present, even on a busy machine. */
const PRESENT_MS = 20_000;

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
context.setDefaultTimeout(180_000);
const page = await context.newPage();
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
// Also violations of its policy.
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
await page.addInitScript(noteDrawn);
await page.goto(process.argv[2]);
await page.waitForFunction(() => window.amber.camera.shown && window.amber.stick.isAllowed);
await page.getByLabel("Options of the camera").click();
const rate = page.locator("#camera-rate");
const width = page.locator("#camera-width");
await width.selectOption("own");
await page.waitForFunction(() => window.amber.camera.shown?.width >= 256);
await page.evaluate(() => window.note());

const pictures = (count) => drawn(page, count);

// How far our clock is ahead of that of the simulation.
const aheadMs = Number(await step("begin"));
const seen = await pictures(PICTURES);
const delays = seen.map(({ codeMs, nowMs }) => signed(nowMs - codeMs - aheadMs));
// On a busy machine, the clock of the simulation waits meanwhile, which looks like a delay.
const waitedMs = Number(await step("seen")) - aheadMs;
seen.forEach(({ codeMs, ageMs }, index) => {
  assert.ok(Math.abs(delays[index]) < PRESENT_MS + waitedMs, `a picture of ${delays[index]} ms ago, waited ${waitedMs} ms`);
  assert.ok(ageMs >= 0 && ageMs < PRESENT_MS, `${ageMs} ms`);
  if (index) assert.ok(signed(codeMs - seen[index - 1].codeMs) > 0, "each picture is new");
});
// What it took is no promise on a busy machine, so it is only told.
const told = (times) => {
  const sorted = times.toSorted((a, b) => a - b).map(Math.round);
  return `median ${sorted[PICTURES / 2]} ms, worst ${sorted.at(-1)} ms`;
};
const fromDriver = seen.map(({ nowMs, capturedMs }) => nowMs - capturedMs);
console.error(`${PICTURES} pictures, capture to page: ${told(delays)}; driver to page: ${told(fromDriver)}; the simulation waited ${Math.round(waitedMs)} ms`);

// As often and as large as the page wants.
await rate.selectOption("2");
await page.waitForFunction(() => {
  const [first, , , last] = window.drawn.slice(-4);
  return last && last.capturedMs - first.capturedMs > 3 * 300;
});
await width.selectOption("160");
await page.waitForFunction(() => window.amber.camera.shown?.width <= 160);
await width.selectOption("own");
await page.waitForFunction(() => window.amber.camera.shown?.width >= 256);
await rate.selectOption("10");
await page.getByLabel("Options of the camera").click();

// The next picture comes only after the last one is drawn, and is the newest then.
await page.evaluate(() => Object.assign(window, { holds: true, drawn: [] }));
await page.waitForFunction(() => window.drawn.length);
const dropped = await page.evaluate(() => window.amber.camera.dropped);
await page.evaluate(() => new Promise((done) => {
  let lists = 0;
  window.amber.link.addEventListener("drivers", () => ++lists === 4 && done());
}));
assert.equal(await page.evaluate(() => window.drawn.length), 1, "a picture comes before the last one is drawn");
// Until then, it is marked as old.
await page.waitForFunction(() => document.querySelector("#camera").classList.contains("old"));
assert.match(await page.locator("#camera-facts").innerText(), /^\d+(\.\d)? m?s old$/);
await page.evaluate(() => {
  const { camera } = window.amber;
  window.holds = false;
  camera.send({ t: "drawn", number: camera.shown.number });
});
await page.waitForFunction((before) => window.amber.camera.dropped > before, dropped);
await page.waitForFunction(() => !document.querySelector("#camera").classList.contains("old"));

// A still is a file of the camera.
const download = page.waitForEvent("download");
await page.getByRole("button", { name: "Save a picture" }).click();
const file = await download;
assert.match(file.suggestedFilename(), /^camera-0-\d{4}-\d\d-\d\dT[\d.-]+Z\.jpg$/);
const jpeg = await readFile(await file.path());
assert.deepEqual([...jpeg.subarray(0, 3)], [0xff, 0xd8, 0xff]);

// Full screen, with the stick and Stop; Escape ends it, and stops the robot.
await page.evaluate(() => {
  const { link } = window.amber;
  const send = link.send.bind(link);
  link.send = (message) => {
    if (message.t === "stop") window.stops = (window.stops ?? 0) + 1;
    return send(message);
  };
});
const full = page.getByRole("button", { name: "Full screen" });
await full.click();
await page.waitForFunction(() => document.body.classList.contains("full") && document.fullscreenElement);
await page.evaluate(() => document.exitFullscreen());
await page.waitForFunction(() => !document.body.classList.contains("full") && window.stops > 0);
// Browsers fix the size of a window that is really full.
await page.evaluate(() => { Element.prototype.requestFullscreen = () => Promise.reject(new Error("not here")); });
await full.click();
await expectRoom(page, "full", ["camera-canvas"]);
const before = await page.evaluate(() => window.stops);
await page.keyboard.press("Escape");
await page.waitForFunction((before) => !document.body.classList.contains("full") && window.stops > before, before);

// On a phone, beside the map or in its place.
await page.setViewportSize({ width: PHONE[0], height: PHONE[1] });
await page.locator("#map-canvas").waitFor();
await page.locator("#camera-canvas").waitFor();
await page.getByRole("button", { name: "Map", exact: true }).click();
await page.locator("#map-canvas").waitFor({ state: "hidden" });
await expectRoom(page, "camera", ["camera-canvas"]);
await page.getByRole("button", { name: "Map", exact: true }).click();
await page.locator("#map-canvas").waitFor();
await page.getByRole("button", { name: "Camera", exact: true }).click();
await page.locator("#camera-canvas").waitFor({ state: "hidden" });
// Nobody asks for pictures that are not seen.
await page.waitForFunction(() => !window.amber.camera.socket);
await page.setViewportSize({ width: 360, height: 640 });
await page.getByRole("button", { name: "Camera", exact: true }).click();
await page.locator("#map-canvas").waitFor({ state: "hidden" });
await page.waitForFunction(() => window.amber.camera.socket);
await page.getByRole("button", { name: "Map", exact: true }).click();
await page.locator("#camera-canvas").waitFor({ state: "hidden" });
await page.setViewportSize({ width: 1280, height: 800 });
await pictures(2);

// A camera without a cable: the picture is old, and the page says why.
await step("unplug the camera");
await page.locator("#camera.old #camera-problem", { hasText: "camera:0: " }).waitFor();
await page.evaluate(() => { document.body.dataset.see = "both"; });
await expectRoom(page, "unplugged-camera");
await step("plug the camera in");
await page.setViewportSize({ width: 1280, height: 800 });
await page.waitForFunction(() => !document.querySelector("#camera").classList.contains("old"));
await page.waitForFunction(() => !document.querySelector("#camera-problem").textContent);
await pictures(2);

// A page that is hidden asks for nothing, and one that is shown again does.
const hide = (isHidden) => page.evaluate((isHidden) => {
  Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}, isHidden);
await hide(true);
await page.waitForFunction(() => !window.amber.camera.socket);
await step("hidden");
await hide(false);
await pictures(2);
await page.getByLabel("Options of the camera").click();
await rate.selectOption("0");
await page.getByText("The pictures are off.").waitFor();
assert.equal(await page.evaluate(() => window.amber.camera.socket), null);

assert.deepEqual(errors, []);
await browser.close();
console.log("closed");
process.exit(0);
