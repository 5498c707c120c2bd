// The driver of a crane as a program: `node crane_driver.js FILE.proto [start]`. With `start`, it cannot start.

import { Refused, serve } from "../src/driver/index.js";

let text = "";

console.log("this goes to stderr");
process.stdout.write("and this, too\n");

const crane = serve(process.argv[2], {
  periodMs: 50,

  start() {
    if (process.argv[3] === "start") throw new Error("no crane");
  },

  /** @param {{ speed: number }} request */
  lift({ speed }) {
    console.info("speed", speed);
  },

  height: () => 1.5,

  /** @param {string} given */
  async write(given) {
    if (given === "refuse") throw new Refused("not this text");
    if (given === "fail") throw new Error("no display");
    if (given === "crash") setTimeout(() => JSON.parse("{"), 1);
    if (given === "crash") return await new Promise(() => {});
    if (given === "trouble") crane.trouble("no power");
    text = given;
    crane.publishTexts(given);
    return given;
  },

  heights: () => 2.5,
  texts: () => text,

  /** @param {number} client */
  clientGone(client) {
    console.log("client", client, "is gone");
  },

  stop() {
    console.log("stopped");
  },
});
