// Makes a map: begins it, lets the robot explore, saves it.

import { inWords } from "./client.js";
import { $, text } from "./dom.js";

export class Mapping {
  /** `change` runs something with a robot, and `explore` lets the robot explore for this page. */
  constructor(change, explore) {
    Object.assign(this, { change, state: {}, device: null, mayDrive: false, isOpen: false });
    $("mapping-open").addEventListener("click", () => this.open(!this.isOpen));
    const on = (id, act) => $(id).addEventListener("click", () => this.do(act));
    on("mapping-start", () => this.call("startMap"));
    on("mapping-explore", () => (this.state.explores ? this.call("explore", { on: false }) : explore()));
    on("mapping-end", () => this.call("stopMap"));
    $("mapping-save").addEventListener("submit", (event) => {
      event.preventDefault();
      this.do(() => this.save());
    });
    addEventListener("keydown", ({ key }) => {
      if (key !== "Escape" || !this.isOpen) return;
      this.open(false);
      $("mapping-open").focus();
    });
  }

  open(isOpen) {
    this.isOpen = isOpen;
    text($("mapping-said"), "");
    this.settle();
  }

  /** The device that makes maps, if the robot has one, and whether this page may use it. */
  allow(device, mayDrive) {
    Object.assign(this, { device, mayDrive });
    this.settle();
  }

  take(state) {
    this.state = state;
    this.settle();
  }

  settle() {
    const { grows, exists, explores, words, trouble, distance_m, area_m2, loops } = this.state;
    const isOffered = Boolean(this.device) && this.mayDrive;
    $("mapping-open").hidden = !isOffered;
    $("mapping-open").setAttribute("aria-expanded", String(this.isOpen));
    $("mapping").hidden = !isOffered || !this.isOpen;
    const progress = exists ? `${distance_m.toFixed(1)} m driven, ${area_m2.toFixed(1)} m² free, ${loops} loops` : "";
    text($("mapping-shown"), [words, progress, trouble].filter(Boolean).join(" · "));
    $("mapping-start").hidden = grows;
    $("mapping-explore").hidden = $("mapping-end").hidden = !grows;
    text($("mapping-explore"), explores ? "Stop exploring" : "Explore");
    $("mapping-save").hidden = !exists;
  }

  call(method, ...given) {
    return this.change((robot) => robot.device(this.device)[method](...given));
  }

  /** Asks for something, and shows what came of it. */
  async do(act) {
    const say = (words, isProblem) => {
      text($("mapping-said"), words);
      $("mapping-said").classList.toggle("problem", isProblem);
    };
    say("", false);
    try {
      say((await act()) ?? "", false);
    } catch (error) {
      say(error instanceof Error ? inWords(error) : error, true);
    }
  }

  async save() {
    const name = $("mapping-name").value.trim();
    const upload = $("mapping-use").checked;
    const button = $("mapping-save").querySelector("button");
    button.disabled = true;
    try {
      await this.call("saveMap", { name, replace: $("mapping-replace").checked, upload });
    } finally {
      button.disabled = false;
    }
    return upload ? `Saved ${name} on the robot, which uses it now.` : `Saved ${name} on the robot.`;
  }
}
