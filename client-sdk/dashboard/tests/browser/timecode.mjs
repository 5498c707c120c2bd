// The time code of the simulated camera, which is in each picture: 24 bits of milliseconds, and 8 of a number.

/** Runs in the page before its own scripts. `window.note()` then keeps each drawn picture in `window.drawn`. */
export function noteDrawn() {
  window.drawn = [];
  window.note = () => {
    const { camera } = window.amber;
    const send = camera.send.bind(camera);
    camera.send = (message) => {
      if (message.t !== "drawn") return send(message);
      const nowMs = Date.now();
      const { data } = camera.context.getImageData(0, 4, 256, 1);
      let code = 0;
      for (let bit = 0; bit < 32; bit++) code = code * 2 + (data[(bit * 8 + 4) * 4] > 127 ? 1 : 0);
      const { capturedMs, width } = camera.shown;
      window.drawn.push({ codeMs: Math.floor(code / 256), nowMs, capturedMs, width, ageMs: camera.ageMs });
      if (!window.holds) send(message);
    };
  };
}

/** The next pictures that are drawn. */
export async function drawn(page, count) {
  await page.evaluate(() => { window.drawn = []; });
  await page.waitForFunction((count) => window.drawn.length >= count, count, { timeout: 0 });
  return page.evaluate((count) => window.drawn.slice(0, count), count);
}

/** A difference of times of which only 24 bits are known. */
export const signed = (ms) => ms - 2 ** 24 * Math.round(ms / 2 ** 24);
