// Makes a map: begins it, lets the robot explore, saves it.

import { $, notice, text } from "./dom.js";

export class Mapping {
  constructor(link) {
    this.link = link;
    this.state = {};
    $("mapping-start").addEventListener("click", () => this.call("start-map"));
    $("mapping-explore").addEventListener("click", () => this.call("explore", `on=${!this.state.explores}`));
    $("mapping-end").addEventListener("click", () => this.call("stop-map"));
    $("mapping-save").addEventListener("submit", (event) => {
      event.preventDefault();
      this.save();
    });
  }

  /** The device that makes maps, if the robot has one, and whether this page may use it. */
  allow(device, mayDrive) {
    this.device = device;
    this.mayDrive = mayDrive;
    this.settle();
  }

  take(state) {
    this.state = state;
    this.settle();
  }

  settle() {
    const { grows, exists, explores, words, trouble, distance_m, area_m2, loops } = this.state;
    $("mapping").hidden = !this.device || (!this.mayDrive && !grows);
    const progress = grows ? `${distance_m.toFixed(1)} m driven, ${area_m2.toFixed(1)} m² free, ${loops} loops` : "";
    text($("mapping-shown"), [words, progress, trouble].filter(Boolean).join(" · "));
    $("mapping-start").hidden = !this.mayDrive || Boolean(grows);
    $("mapping-explore").hidden = $("mapping-end").hidden = !this.mayDrive || !grows;
    text($("mapping-explore"), explores ? "Stop exploring" : "Explore");
    $("mapping-save").hidden = !this.mayDrive || !exists;
  }

  async call(method, ...args) {
    try {
      return await this.link.ask({ t: "call", device: this.device, method, args });
    } catch (error) {
      notice(String(error));
      return undefined;
    }
  }

  async save() {
    const name = $("mapping-name").value.trim();
    const upload = $("mapping-use").checked;
    const args = [`name=${name}`, `replace=${$("mapping-replace").checked}`, `upload=${upload}`];
    const button = $("mapping-save").querySelector("button");
    button.disabled = true;
    const saved = await this.call("save-map", ...args);
    button.disabled = false;
    if (saved === undefined) return;
    notice(upload ? `Saved ${name} on the robot, which uses it now.` : `Saved ${name} on the robot.`);
  }
}
