// What a camera sees, with its controls. Pictures come over a WebSocket of their own, which is open only while the page
// shows them. The next one comes only after the last one is drawn.

import { $, el, notice, text, time } from "./dom.js";

const RATES_HZ = [1, 2, 5, 10, 15, 30];
const USUAL_HZ = 10;
const WIDTHS_PX = [160, 320, 640, 1280];
// "auto" never asks for less: scaled up, it would show too little.
const LEAST_AUTO_PX = 320;
const HEADER_BYTES = 28;
const STILL = 1;
const DAMAGED = 2;
const OLD_MS = 1000;
const RATE_MS = 3000; // the rate is that of this time
const RETRY_MS = 1000;
const TELL_MS = 250;

export class Camera {
  constructor(link, stop) {
    Object.assign(this, { link, stop, cameras: [], device: null, socket: null, asked: null, refusal: null, isFull: false, dropped: 0 });
    this.canvas = $("camera-canvas");
    this.context = this.canvas.getContext("2d", { alpha: false });
    choices($("camera-rate"), [["0", "off"], ...RATES_HZ.map((hz) => [hz, `${hz} Hz`])], localStorage.cameraRate ?? USUAL_HZ);
    choices($("camera-width"), [["auto", "auto"], ...WIDTHS_PX.map((px) => [px, `${px} px`]), ["own", "camera's own"]], localStorage.cameraWidth ?? "auto");
    this.clear();
    this.listen();
  }

  listen() {
    $("camera-device").addEventListener("change", ({ target }) => {
      localStorage.camera = target.value;
      this.choose(target.value);
    });
    for (const [id, key] of [["camera-rate", "cameraRate"], ["camera-width", "cameraWidth"]]) {
      $(id).addEventListener("change", ({ target }) => {
        localStorage[key] = target.value;
        if (!this.rate) this.clear();
        this.settle();
      });
    }
    $("still").addEventListener("click", () => this.send({ t: "still" }));
    $("full").addEventListener("click", () => this.setFull(!this.isFull));
    // Where there is room for both, a button hides one of them; elsewhere, it shows the other one.
    const hasRoom = matchMedia("(max-width: 760px) and (min-height: 740px)");
    const { dataset } = document.body;
    const see = (one, other) => {
      dataset.see = !hasRoom.matches ? one : dataset.see === "both" ? other : "both";
      $(dataset.see === "camera" ? "see-map" : "see-camera").focus();
    };
    $("see-camera").addEventListener("click", () => see("camera", "map"));
    $("see-map").addEventListener("click", () => see("map", "camera"));
    addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      this.setFull(false);
      const options = $("camera-options");
      if (!options.open) return;
      options.open = false;
      options.querySelector("summary").focus();
    });
    document.addEventListener("fullscreenchange", () => {
      if (document.fullscreenElement || !this.isFull) return;
      this.setFull(false);
      // Browsers take Escape for themselves here, but it stops the robot everywhere.
      this.stop();
    });
    document.addEventListener("visibilitychange", () => this.settle());
    new ResizeObserver(() => this.settle()).observe(this.canvas);
    setInterval(() => this.tell(), TELL_MS);
  }

  /** The cameras of the robot, and what is wrong with each. */
  take(cameras) {
    const names = cameras.map(({ device }) => device);
    if (names.join() !== this.cameras.map(({ device }) => device).join()) {
      const wanted = [this.device, localStorage.camera].find((it) => names.includes(it)) ?? names[0] ?? null;
      choices($("camera-device"), names.map((name) => [name, name]), wanted);
      this.cameras = cameras;
      this.choose(wanted);
    }
    this.cameras = cameras;
    this.settle();
  }

  choose(device) {
    if (device === this.device) return;
    this.device = device;
    this.disconnect();
    this.clear();
    this.settle();
  }

  /** After a new connection, everything shown may be out of date. */
  clear() {
    this.shown = null;
    this.times = [];
    this.canvas.width = this.canvas.width;
    this.tell();
  }

  get rate() {
    return Number($("camera-rate").value);
  }

  /** The width to ask for; `null` for that of the camera. */
  get width() {
    const { value } = $("camera-width");
    if (value !== "auto") return value === "own" ? null : Number(value);
    const { width, height } = this.shown ?? { width: 4, height: 3 };
    const room = Math.min(this.canvas.clientWidth, (this.canvas.clientHeight * width) / height);
    return WIDTHS_PX.find((px) => px >= Math.max(room, LEAST_AUTO_PX)) ?? null;
  }

  get isWanted() {
    return Boolean(this.device) && this.rate > 0 && this.link.isOpen && !document.hidden && this.canvas.clientWidth > 0;
  }

  /** Begins, changes or ends the pictures, as the page is now. */
  settle() {
    $("camera").hidden = !this.device;
    document.body.classList.toggle("has-camera", Boolean(this.device));
    $("camera-choice").hidden = this.cameras.length < 2;
    if (!this.device) this.setFull(false);
    if (!this.isWanted) this.disconnect();
    else if (!this.socket) this.connect();
    else this.ask();
    this.tell();
  }

  connect() {
    const socket = this.link.open("/pictures");
    Object.assign(this, { socket, asked: null });
    socket.onopen = () => this.ask();
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") notice(JSON.parse(data).text);
      else this.receive(socket, data);
    };
    socket.onclose = ({ code, reason }) => {
      if (this.socket !== socket) return;
      this.socket = null;
      // 1013: try again later.
      this.refusal = code === 1008 || code === 1013 ? reason : null;
      setTimeout(() => this.settle(), RETRY_MS);
      this.tell();
    };
  }

  disconnect() {
    const { socket } = this;
    this.socket = null;
    socket?.close();
  }

  /** Asks for the rate and the width that the page wants now. */
  ask() {
    const wish = { t: "show", device: this.device, period: Math.round(1000 / this.rate), max_width: this.width };
    const asked = JSON.stringify(wish);
    if (asked !== this.asked && this.send(wish)) this.asked = asked;
  }

  send(message) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Draws a picture, and confirms it. */
  async receive(socket, data) {
    const head = new DataView(data, 0, HEADER_BYTES);
    const number = (at) => head.getUint32(at, true);
    const flags = number(0);
    const capturedMs = Number(head.getBigInt64(8, true)) / 1000;
    const jpeg = new Blob([new Uint8Array(data, HEADER_BYTES)], { type: "image/jpeg" });
    if (flags & STILL) return save(jpeg, `${this.device.replace(":", "-")}-${fileTime(capturedMs)}.jpg`);
    let picture = null;
    try {
      picture = await createImageBitmap(jpeg);
    } catch {
      // Half a picture may not be readable.
    }
    // It may be that of another camera.
    if (this.socket !== socket) return picture?.close();
    if (picture) {
      const { width, height } = picture;
      if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
      this.context.drawImage(picture, 0, 0);
      picture.close();
      // The way to this page counts with the answer, because clocks of phones differ from that of the robot.
      const ageMs = number(16) + number(20);
      const isFirst = !this.shown;
      this.shown = { number: number(4), capturedMs, ageMs, at: performance.now(), width, height, isDamaged: Boolean(flags & DAMAGED) };
      this.times.push(this.shown.at);
      this.refusal = null;
      // Now its shape is known.
      if (isFirst) this.settle();
    }
    this.dropped = number(24);
    this.send({ t: "drawn", number: number(4) });
  }

  /** The age of the picture that is shown, in ms. */
  get ageMs() {
    return this.shown && this.shown.ageMs + performance.now() - this.shown.at;
  }

  /** Tells how often pictures come, how old the last one is, and why there is none. */
  tell() {
    const { shown, ageMs } = this;
    const now = performance.now();
    this.times = this.times.filter((at) => now - at < RATE_MS);
    const isOld = Boolean(shown) && ageMs > Math.max(OLD_MS, 2000 / (this.rate || 1));
    $("camera").classList.toggle("old", isOld);
    const [first, last] = [this.times[0], this.times.at(-1)];
    const rate = last > first ? `${(((this.times.length - 1) * 1000) / (last - first)).toFixed(1)} Hz` : null;
    const size = shown && `${shown.width} × ${shown.height}`;
    const facts = isOld ? [`${time(ageMs)} old`] : [rate, size, shown && time(shown.ageMs)];
    text($("camera-facts"), facts.filter(Boolean).join(" · "));
    $("camera-facts").title = `Rate, size and age of the pictures. ${this.dropped} were left out, because this page was too slow.`;
    text($("camera-problem"), this.words(isOld) ?? "");
    $("still").disabled = this.socket?.readyState !== WebSocket.OPEN;
  }

  words(isOld) {
    if (!this.device) return null;
    if (!this.rate) return "The pictures are off.";
    if (!this.link.isOpen) return "Not connected.";
    const { problem } = this.cameras.find(({ device }) => device === this.device) ?? {};
    if (problem || this.refusal) return problem ?? this.refusal;
    if (!this.shown) return "Waiting for a picture …";
    if (isOld) return "No new picture comes.";
    return this.shown.isDamaged ? "The end of the picture is missing." : null;
  }

  /** Fills the window with the picture. The stick and Stop stay. */
  setFull(isFull) {
    if (this.isFull === isFull) return;
    this.isFull = isFull;
    document.body.classList.toggle("full", isFull);
    $("full").setAttribute("aria-pressed", String(isFull));
    // Not all browsers can hide their own parts.
    if (isFull) document.documentElement.requestFullscreen?.().catch(() => {});
    else if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
  }
}

/** Fills a list with values and their names. */
function choices(select, all, chosen) {
  select.replaceChildren(...all.map(([value, name]) => el("option", { value: String(value) }, name)));
  select.value = String(chosen);
  if (select.selectedIndex < 0) select.selectedIndex = 0;
}

/** A time for the name of a file. */
const fileTime = (ms) => new Date(ms).toISOString().replaceAll(":", "-");

function save(file, name) {
  const href = URL.createObjectURL(file);
  el("a", { href, download: name }).click();
  // The browser may ask its user where.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
  notice(`Saved ${name}.`);
}
