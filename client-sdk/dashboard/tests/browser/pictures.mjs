// Takes the pictures of docs/: node pictures.mjs AMBER FOLDER
//
// A demo of this program drives to a point: on a desktop and on a phone, light and dark.

import { join } from "node:path";

import { launch } from "./browser.mjs";
import { withDemo } from "./demo.mjs";

const [amber, folder] = process.argv.slice(2);
const GOAL = { t: "goal", x: 6, y: 4.8 };
const TRAIL_STEPS = 60;
const SCREENS = [
  ["dashboard", { viewport: { width: 1440, height: 900 } }],
  ["dashboard-phone", { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true }],
];

/** On a machine that is busy with other things, drivers report that others answer late. Such a picture
 * would show the machine instead of the dashboard, so it is taken again. */
const TRIES = 10;

const browser = await launch();
for (const [name, screen] of SCREENS) {
  for (const colorScheme of ["light", "dark"]) {
    const dark = colorScheme === "dark" ? "-dark" : "";
    const path = join(folder, `${name}${dark}.png`);
    let left = TRIES;
    while (!await taken(path, { ...screen, colorScheme })) {
      if (--left === 0) throw new Error(`${path}: a driver was in trouble each time; is this machine busy?`);
    }
  }
}
await browser.close();

/** Takes a picture of a robot on its way. False if a driver was in trouble. */
function taken(path, screen) {
  return withDemo(amber, async ({ url }) => {
    const context = await browser.newContext(screen);
    const page = await context.newPage();
    await page.goto(url);
    await page.waitForFunction(() => window.amber.stick.isAllowed && window.amber.map.pose && window.amber.map.map && window.amber.camera.shown);
    await page.evaluate(async (goal) => {
      const { link } = window.amber;
      for (const servo of [0, 1, 2, 3]) {
        const args = [`servo-address=${servo}`, `angle=${20 + 40 * servo}`];
        await link.ask({ t: "call", device: "maestro:0", method: "set-angle", args });
      }
      await link.ask(goal);
    }, GOAL);
    // On its way, with a trail behind it.
    await page.waitForFunction((steps) => window.amber.map.trail.length > steps, TRAIL_STEPS);
    await page.screenshot({ path });
    const isCalm = await page.evaluate(() => !document.querySelector("#log-list .bad"));
    await context.close();
    return isCalm;
  });
}
