// Small helpers: elements, colours of the style sheet, numbers.

export const $ = (id) => document.getElementById(id);

/** An element with properties and children; texts are never HTML. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "class") element.className = value;
    // The policy of the page forbids style attributes, but not this.
    else if (name === "style") element.style.cssText = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A picture of lines in a square of 20 by 20. */
export function icon(lines) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", lines);
  svg.append(path);
  return svg;
}

/** Sets a text only if it changes, so that screen readers and layout are left alone. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

// Canvases need plain colours. These follow the theme.
const probe = el("span", { hidden: true });
document.documentElement.append(probe);
let colours = new Map();
export function colour(name) {
  if (!colours.has(name)) {
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}
export const themeChanged = new EventTarget();
export function forgetColours() {
  colours = new Map();
  themeChanged.dispatchEvent(new Event("change"));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", forgetColours);

/** Fits a canvas to its place on screen, with the device's own pixels. Returns the scale. */
export function fitCanvas(canvas) {
  const ratio = devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return ratio;
}

/** A number with a readable number of digits. */
export function short(number) {
  if (!Number.isFinite(number)) return String(number);
  const size = Math.abs(number);
  if (Number.isInteger(number) && size < 1e7) return String(number);
  if (size !== 0 && (size < 0.001 || size >= 1e7)) return number.toExponential(2);
  return number.toFixed(size < 10 ? 3 : size < 1000 ? 1 : 0);
}

/** A time in ms in a readable form. */
export function time(ms) {
  const s = ms / 1000;
  if (s < 1) return `${Math.round(ms)} ms`;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  return `${Math.floor(s / 86400)} d`;
}

/** Asks before something is done. Not modal: the stop button and the stick stay usable. */
export function ask(question, yes) {
  const dialog = $("ask");
  if (dialog.open) return Promise.resolve(false);
  text($("ask-text"), question);
  text($("ask-yes"), yes);
  dialog.returnValue = "";
  dialog.show();
  $("ask-no").focus();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}
$("ask-yes").addEventListener("click", () => $("ask").close("yes"));
$("ask-no").addEventListener("click", () => $("ask").close());
addEventListener("keydown", ({ key }) => key === "Escape" && $("ask").close());

export function notice(message) {
  const box = $("notices");
  if ([...box.children].some((shown) => shown.textContent === message)) return;
  const shown = el("p", {}, message);
  box.append(shown);
  if (box.children.length > 3) box.firstChild.remove();
  setTimeout(() => shown.remove(), 5000);
}
