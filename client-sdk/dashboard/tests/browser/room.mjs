// Checks that a page has room for its controls on screens of many sizes.

import assert from "node:assert/strict";

// Phones in both directions, small displays, tablets, windows that are not high, and large screens.
const SIZES = [
  [320, 480], [320, 568], [360, 640], [390, 844], [480, 320], [568, 320], [667, 375], [740, 360], [844, 390],
  [932, 430], [800, 480], [768, 1024], [1024, 600], [1280, 720], [1440, 500], [1920, 1080], [2560, 1440],
];
export const PHONE = [390, 844];

/** What is not fully visible, what overlaps, and which of these ids are missing. */
function misplaced(needed) {
  const found = [];
  const name = (element) => element?.id || element?.className || element?.tagName;
  const all = (selectors) => [...document.querySelectorAll(selectors)].filter((it) => it.checkVisibility());
  const box = (element) => element.getBoundingClientRect();
  for (const element of all("#stick, #speed, #speed-shown, #halt, #guard-label, #drive-hint, .hint button, .tools button, #layers summary, #camera-options summary")) {
    const { left, top, right, bottom, width, height } = box(element);
    if (left < 0 || top < 0 || right > innerWidth || bottom > innerHeight) found.push(`${name(element)} is outside the window`);
    // Its middle, and near its edges.
    for (const [x, y] of [[0.5, 0.5], [0.5, 0.03], [0.5, 0.97], [0.03, 0.5], [0.97, 0.5]]) {
      const seen = document.elementFromPoint(left + x * width, top + y * height);
      if (!element.contains(seen)) found.push(`${name(element)} is behind ${name(seen)}`);
    }
  }
  // The stick is on the picture if that fills the window.
  const sections = document.body.classList.contains("full") ? "header, #banner, #camera" : "header, nav, #banner, main > section";
  for (const selectors of [sections, "#stick, .settings > *, .hint > *", ".tools, #layers, #camera-options, #map-status > :not(:empty), #camera-status > :not(:empty)", "header > :not(.space)"]) {
    const elements = all(selectors);
    elements.forEach((one, index) => elements.slice(index + 1).forEach((other) => {
      const [a, b] = [box(one), box(other)];
      const isApart = a.right <= b.left + 0.5 || b.right <= a.left + 0.5 || a.bottom <= b.top + 0.5 || b.bottom <= a.top + 0.5;
      if (!isApart) found.push(`${name(one)} overlaps ${name(other)}`);
    }));
  }
  for (const element of all("#drive, #map, #camera, body")) {
    const isCut = element.scrollHeight > element.clientHeight + 1 || element.scrollWidth > element.clientWidth + 1;
    if (isCut) found.push(`${name(element)} is larger than its place`);
  }
  for (const id of ["stick", "speed", "halt", ...needed]) {
    if (!all(`#${id}`).length) found.push(`${id} is missing`);
  }
  const isSmall = innerWidth < 760 || innerHeight < 500;
  const halt = box(document.querySelector("#halt"));
  if (isSmall && (halt.height < 40 || halt.width < 110)) found.push(`the stop button has ${halt.width} x ${halt.height} pixels`);
  const stick = box(document.querySelector("#stick"));
  if (stick.width < 100 || stick.height < 100) found.push(`the stick has ${stick.width} x ${stick.height} pixels`);
  // A picture may be small beside the map, but not so small that it shows nothing.
  for (const picture of all("#camera-canvas")) {
    const { width, height } = box(picture);
    if (width < 140 || height < 90) found.push(`the picture has ${width} x ${height} pixels`);
  }
  return found;
}

/** The page shows its controls, and the elements with these ids, on all screens. */
export async function expectRoom(page, what, needed = ["map-canvas"]) {
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    // The canvases follow in the next frame.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/${what}-${width}x${height}.png` });
    const found = await page.evaluate(misplaced, needed);
    const words = await page.evaluate(() => ["drive", "map"].map((id) => document.getElementById(id).innerText));
    assert.deepEqual(found, [], `${what} on ${width} x ${height}: ${JSON.stringify(words)}`);
  }
  await page.setViewportSize({ width: PHONE[0], height: PHONE[1] });
}
