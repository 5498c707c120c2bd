// Holds the stick of a dashboard by mouse, until it is ended: node hold.mjs http://ADDRESS
// It prints a line when it holds it.

import { launch } from "./browser.mjs";

const browser = await launch();
const page = await browser.newPage();
page.setDefaultTimeout(180_000);
await page.goto(process.argv[2]);
await page.waitForFunction(() => window.amber.stick.isAllowed);
await page.locator("#guard").setChecked(false);
const box = await page.getByRole("application", { name: "Joystick" }).boundingBox();
const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
await page.mouse.move(middle.x, middle.y);
await page.mouse.down();
await page.mouse.move(middle.x - 40, middle.y);
console.log("holding");
setInterval(() => {}, 1000);
