// Events of the mediator, newest first.

import { $, el } from "./dom.js";

const MAX_LINES = 300;
const GOOD = new Set(["up", "recovered"]);
const BAD = new Set(["down", "failed", "trouble"]);

export function takeEvent(event) {
  const list = $("log-list");
  const subject = event.device ?? (event.client !== null && event.client !== undefined ? `client ${event.client}` : "configuration");
  const at = new Date(event.time_ms);
  const kind = GOOD.has(event.kind) ? "good" : BAD.has(event.kind) ? "bad" : null;
  list.prepend(el("li", {},
    el("time", { datetime: at.toISOString() }, at.toLocaleTimeString([], { hour12: false })),
    el("span", {}, `${subject} `, el("span", { class: kind }, event.kind), event.text ? `: ${event.text}` : "")));
  while (list.children.length > MAX_LINES) list.lastChild.remove();
}

export function clearLog() {
  $("log-list").replaceChildren();
}
