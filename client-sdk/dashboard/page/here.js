// A drag on the map that tells the location driver where the robot is.

import { inWords } from "./client.js";
import { $, notice } from "./dom.js";

export class Here {
  /** `change` runs something with a robot. */
  constructor(map, change) {
    Object.assign(this, { map, change, device: null });
    map.onPlaced = (pose) => this.tell(pose);
    $("pose").addEventListener("click", () => this.arm(!map.isPlacing));
    addEventListener("keydown", ({ key }) => key === "Escape" && this.arm(false));
  }

  /** The location driver, if the robot has one and this page may tell it something. */
  allow(device) {
    this.device = device;
    $("pose").disabled = !device;
    if (!device) this.arm(false);
  }

  /** Whether the next drag on the map is a pose. */
  arm(isArmed) {
    if (isArmed) notice("Press on the map where the robot is, and drag to where it looks. Esc ends it.");
    $("pose").setAttribute("aria-pressed", String(isArmed));
    this.map.setPlacing(isArmed);
  }

  async tell({ x, y, heading }) {
    this.arm(false);
    try {
      await this.change((robot) => robot.device(this.device).setPose({ x, y, alfa: heading }));
      notice("The robot compares this place with what it sees.");
    } catch (error) {
      notice(inWords(error));
    }
  }
}
