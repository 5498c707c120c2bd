// Driving by stick, keys and gamepad. While one of them is held, a command goes out every 50 ms.
// The server stops the wheels when they stop coming; the page also sends a stop when it is hidden.

import { $, text } from "./dom.js";

const PERIOD_MS = 50;
const STOPS = 3;
const TURN = 0.6; // Turning on the spot at full speed would be hard to control.
const DEAD_ZONE = 0.12;
const KEYS = {
  ArrowUp: [0, 1], KeyW: [0, 1], ArrowDown: [0, -1], KeyS: [0, -1],
  ArrowLeft: [-1, 0], KeyA: [-1, 0], ArrowRight: [1, 0], KeyD: [1, 0],
};

export class Stick {
  /** `drive(left, right)` sends wheel speeds in mm/s. */
  constructor(drive) {
    this.send = drive;
    this.element = $("stick");
    this.knob = $("knob");
    this.held = new Set();
    this.dragged = null;
    this.padded = null;
    this.stops = 0;
    this.isAllowed = true;
    this.listen();
    // A timer rather than frames: those stop in hidden pages, and the stop must still go out.
    setInterval(() => this.tick(), PERIOD_MS);
  }

  /** Whether this page may drive now. */
  allow(isAllowed) {
    this.isAllowed = isAllowed;
    this.element.classList.toggle("off", !isAllowed);
    this.element.setAttribute("aria-disabled", String(!isAllowed));
    if (!isAllowed) this.release();
  }

  /** Releases everything. */
  release() {
    const wasHeld = this.wanted() !== null;
    this.held.clear();
    this.dragged = null;
    this.padded = null;
    this.mustCentre = true;
    this.show();
    if (wasHeld || this.stops > 0) this.stopNow();
  }

  stopNow() {
    this.isDriving = false;
    this.stops = STOPS - 1;
    this.send(0, 0);
  }

  listen() {
    const { element } = this;
    const drag = (event) => {
      const { left, top, width } = element.getBoundingClientRect();
      const radius = width / 2;
      let x = (event.clientX - left - radius) / (radius * 0.7);
      let y = -(event.clientY - top - radius) / (radius * 0.7);
      const size = Math.hypot(x, y);
      if (size > 1) [x, y] = [x / size, y / size];
      this.dragged.at = size < DEAD_ZONE ? [0, 0] : [x, y];
      this.show();
    };
    element.addEventListener("pointerdown", (event) => {
      if (event.button > 0 || !this.isAllowed || this.dragged) return;
      element.setPointerCapture(event.pointerId);
      this.dragged = { id: event.pointerId, at: [0, 0] };
      drag(event);
      this.tick();
    });
    element.addEventListener("pointermove", (event) => {
      if (this.dragged?.id === event.pointerId) drag(event);
    });
    const drop = (event) => {
      if (this.dragged?.id !== event.pointerId) return;
      this.dragged = null;
      this.show();
      this.tick();
    };
    for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) element.addEventListener(type, drop);
    // A long touch must not open a menu while the robot moves.
    element.addEventListener("contextmenu", (event) => event.preventDefault());

    addEventListener("keydown", (event) => {
      if (!(event.code in KEYS) || isTyping(event)) return;
      event.preventDefault();
      if (event.repeat || !this.isAllowed) return;
      this.held.add(event.code);
      this.show();
      this.tick();
    });
    addEventListener("keyup", (event) => {
      if (this.held.delete(event.code)) {
        this.show();
        this.tick();
      }
    });
    // The page may miss the release of the key or the finger.
    addEventListener("blur", () => this.release());
    addEventListener("pagehide", () => this.release());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.release();
    });
  }

  /** The motion that the operator asks for: right and ahead, each -1 to 1; `null` if nothing is held. */
  wanted() {
    if (this.dragged) return this.dragged.at;
    if (this.held.size) {
      const sum = [0, 0];
      for (const code of this.held) {
        sum[0] += KEYS[code][0];
        sum[1] += KEYS[code][1];
      }
      return sum.map((part) => Math.max(-1, Math.min(1, part)));
    }
    return this.padded;
  }

  readGamepad() {
    const pads = (navigator.getGamepads?.() ?? []).filter((pad) => pad?.connected);
    this.padded = null;
    for (const pad of pads) {
      const [x = 0, y = 0] = pad.axes;
      const isCentred = Math.hypot(x, y) <= DEAD_ZONE;
      // After a stop, the stick must return to the middle first. Browsers show a gamepad to all
      // windows, but its operator looks at the one that has the focus.
      if (!document.hasFocus()) this.mustCentre = true;
      else if (isCentred) this.mustCentre = false;
      else if (this.isAllowed && !this.mustCentre) this.padded = [x, -y];
    }
    return pads.length > 0;
  }

  tick() {
    if (!document.hidden) this.hasGamepad = this.readGamepad();
    const wanted = this.isAllowed && !document.hidden ? this.wanted() : null;
    if (this.hasGamepad) this.show();
    if (wanted && (wanted[0] || wanted[1])) {
      const [x, y] = wanted;
      const speed = Number($("speed").value);
      // Backwards, the wheel turns the same way as in a car.
      const turn = x * TURN * (y < -0.3 ? -1 : 1);
      const largest = Math.max(1, Math.abs(y) + Math.abs(turn));
      this.isDriving = true;
      this.stops = 0;
      this.send((speed * (y + turn)) / largest, (speed * (y - turn)) / largest);
    } else if (this.isDriving) {
      this.stopNow();
    } else if (this.stops > 0) {
      // The network may lose one.
      this.stops -= 1;
      this.send(0, 0);
    }
  }

  show() {
    const [x, y] = this.wanted() ?? [0, 0];
    const reach = this.element.clientWidth * 0.3;
    this.knob.style.transform = `translate(${x * reach}px, ${-y * reach}px)`;
    this.element.classList.toggle("active", this.dragged !== null);
  }

  hint() {
    return this.hasGamepad ? "Gamepad connected." : matchMedia("(hover: none)").matches ? "Drag the stick to drive." : "Drag the stick, or hold the arrow keys or W\u00a0A\u00a0S\u00a0D.";
  }
}

/** Whether a key belongs to the control that has the focus, or to the browser, and not to the stick. */
function isTyping(event) {
  return event.ctrlKey || event.metaKey || event.altKey || isTextField(event.target)
    || event.target.matches?.("select, dialog *");
}

function isTextField(element) {
  return element.matches?.("input:not([type=range]):not([type=checkbox]), textarea");
}

/**
 * Space and Escape stop the robot, whatever has the focus. Only Space in a text field is a letter.
 * So Space does not press buttons, check boxes and lists: Enter does.
 */
export function stopKeys(stop) {
  const isStop = ({ code, key, target }) => key === "Escape" || ((code === "Space" || key === " ") && !isTextField(target));
  addEventListener("keydown", (event) => {
    // An input method uses these keys itself.
    if (event.isComposing) return;
    if (isStop(event)) {
      event.preventDefault();
      if (!event.repeat) stop();
    } else if (event.key === "Enter" && event.target.matches?.("input[type=checkbox], select")) {
      event.preventDefault();
      if (event.repeat) return;
      if (event.target.matches("select")) event.target.showPicker?.();
      else event.target.click();
    }
  }, { capture: true });
  // Some browsers press a button when Space is released.
  addEventListener("keyup", (event) => isStop(event) && event.preventDefault(), { capture: true });
}

export function showSpeed() {
  text($("speed-shown"), `${$("speed").value} mm/s`);
}
