// The panel of any device, made from its description: values, requests, and its driver.

import { pause } from "./client.js";
import { $, el, short, text, time } from "./dom.js";
import { sparkline } from "./plot.js";
import { watch } from "./watch.js";

const HISTORY = 120;
const MAX_SHOWN = 12;
const FEW = 4; // values that fit into one line
const EPOCH_MS = "ms since 1970";
const RETRY_MS = 2000;

export class Panel {
  constructor(link) {
    this.link = link;
    this.dialog = $("panel");
    this.sparklines = new Map(); // canvas -> the values to draw in the next frame
    $("panel-close").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.close());
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.dialog.open) this.dialog.close();
    });
    // A page that nobody sees needs no values.
    document.addEventListener("visibilitychange", () => this.follow());
  }

  open(device) {
    this.device = device;
    this.description = null;
    this.streams = new Map();
    this.sparklines.clear();
    text($("panel-title"), device);
    this.docs = el("p", {}, "Loading …");
    this.values = el("div");
    this.methods = el("div", { style: "display:grid;gap:.5rem" });
    this.driver = el("dl");
    this.words = el("pre", { class: "words" });
    $("panel-body").replaceChildren(this.docs,
      this.valuesTitle = el("h3", {}, "Values"), this.values,
      this.methodsTitle = el("h3", {}, "Requests"), this.methods,
      el("h3", {}, "Driver"), this.driver,
      this.wordsTitle = el("h3", {}, "Log"), this.words);
    this.nothing = el("p", { class: "quiet" }, "Waiting for data …");
    this.values.append(this.nothing);
    this.follow();
    // Not modal: the stop button and the stick stay usable.
    if (!this.dialog.open) this.dialog.show();
  }

  close() {
    this.device = null;
    this.follow();
  }

  /** Shows the device as long as somebody sees it. */
  follow() {
    this.watching?.abort();
    if (!this.device || document.hidden) return;
    const watching = new AbortController();
    const { signal } = watching;
    const { device } = this;
    this.watching = watching;
    watch(device, this.described(device, signal), {
      driver: (driver) => this.showDriver(driver),
      value: (method, value, error) => this.takeValue({ device, method, value, error }),
    }, signal);
  }

  /** Shows the description as soon as there is one. Resolves to whether it came. */
  async described(device, signal) {
    while (!this.description && !signal.aborted) {
      try {
        const description = await this.link.ask({ t: "describe", device });
        if (!signal.aborted) this.describe(description);
      } catch (why) {
        if (!signal.aborted) this.describe(null, String(why));
        await pause(RETRY_MS, signal);
      }
    }
    return !signal.aborted;
  }

  describe(description, problem) {
    this.description = description;
    text(this.docs, description?.docs ?? problem);
    const requests = (description?.methods ?? []).filter((method) => !method.stream);
    this.methodsTitle.hidden = !requests.length;
    // These are polled if nothing is published.
    const isRead = (method) => method.reads && !method.arguments.some((it) => it.required);
    const hasValues = (description?.methods ?? []).some((method) => method.stream || isRead(method));
    this.valuesTitle.hidden = !hasValues;
    this.values.hidden = !hasValues;
    this.methods.replaceChildren(...requests.map((method) => this.form(method)));
  }

  showDriver(driver) {
    const facts = driver.error ? [["Driver", driver.error]] : [
      ["State", `${driver.state.toLowerCase()} for ${time(driver.stateMs ?? 0)}`], ["Process", driver.pid],
      ["Restarts", `${driver.restarts ?? 0} (${driver.restartPolicy ?? ""})`], ["Last exit", driver.lastExit],
      ["Reason", driver.reason], ["Hint", driver.hint ?? driver.lastExitHint], ["Command", driver.command.join(" ")],
    ];
    const shown = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
    this.driver.replaceChildren(...shown.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]));
    const line = ({ timeMs, source, text }) =>
      `${timeMs ? `${new Date(timeMs).toLocaleTimeString([], { hour12: false })} ` : ""}${source === "MEDIATOR" ? "[amber] " : ""}${text}`;
    const words = (driver.lines ?? []).map(line).join("\n");
    this.words.hidden = !words;
    this.wordsTitle.hidden = !words;
    if (words === this.words.textContent) return;
    this.words.textContent = words;
    this.words.scrollTop = this.words.scrollHeight;
  }

  // Values -----------------------------------------------------------------------------------

  takeValue({ device, method, value, error }) {
    if (device !== this.device) return;
    const described = this.description?.methods.find(({ name }) => camel(name) === method);
    method = described?.name ?? method;
    this.nothing.remove();
    let stream = this.streams.get(method);
    if (!stream) {
      stream = { rows: new Map(), table: el("table", { class: "values" }), error: el("p", { class: "quiet" }) };
      this.streams.set(method, stream);
      this.values.append(el("p", { class: "quiet" }, method), stream.error, stream.table);
    }
    text(stream.error, error ?? "");
    if (error || value === undefined) return;
    stream.units ??= described && fieldsOf(described.answer);
    for (const [path, leaf] of leaves(value)) {
      // A value of one part has no name of its own.
      const name = path || camel(described?.answer[0]?.name ?? method);
      this.showLeaf(stream, name, leaf);
    }
  }

  showLeaf(stream, path, leaf) {
    let row = stream.rows.get(path);
    if (!row) {
      const unit = stream.units?.get(path);
      row = { shown: el("td"), canvas: el("canvas", { role: "img", "aria-label": `History of ${path}` }), history: [], unit };
      // A clock needs no sparkline.
      row.canvas.hidden = unit === EPOCH_MS;
      const name = path.includes(".") ? path.slice(path.indexOf(".") + 1) : path;
      stream.table.append(el("tr", {}, el("td", { title: path }, name), row.shown, el("td", {}, row.canvas)));
      stream.rows.set(path, row);
    }
    const unit = row.unit ? ` ${row.unit}` : "";
    if (typeof leaf === "number" && row.unit === EPOCH_MS) {
      text(row.shown, new Date(leaf).toLocaleString([], { hour12: false }));
    } else if (typeof leaf === "number") {
      text(row.shown, short(leaf) + unit);
      row.history.push(leaf);
      if (row.history.length > HISTORY) row.history.shift();
      this.draw(row.canvas, row.history);
    } else if (Array.isArray(leaf)) {
      text(row.shown, leaf.length <= FEW ? leaf.map(short).join(", ") + unit : `${leaf.length} values`);
      this.draw(row.canvas, leaf);
    } else {
      row.shown.style.whiteSpace = "normal";
      text(row.shown, String(leaf));
    }
  }

  /** Draws a sparkline in the next frame. It needs the layout, which every text before it changes. */
  draw(canvas, values) {
    this.sparklines.set(canvas, values);
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      for (const [canvas, values] of this.sparklines) sparkline(canvas, values);
      this.sparklines.clear();
    });
  }

  // Requests ---------------------------------------------------------------------------------

  form(method) {
    const result = el("div", { role: "status" });
    const inputs = method.arguments.map((argument) => [argument, input(argument)]);
    const send = el("button", { class: "primary" }, "Send");
    const form = el("form", {
      onsubmit: async (event) => {
        event.preventDefault();
        const args = inputs.filter(([, field]) => field.value !== "").flatMap(([argument, field]) => words(argument, field.value));
        send.disabled = true;
        try {
          const value = await this.link.ask({ t: "call", device: this.device, method: method.name, args });
          const shown = value === null ? "Sent. This request has no answer." : pretty(value);
          result.replaceChildren(el("pre", {}, shown));
        } catch (error) {
          result.replaceChildren(el("p", { class: "error" }, String(error)));
        }
        send.disabled = false;
      },
    },
    ...inputs.map(([argument, field]) => el("label", {}, caption(argument), field)),
    send, result);
    const summary = method.docs.split(/[.\n]/)[0];
    const hasMore = method.docs.length > summary.length + 1;
    return el("details", { class: "method" },
      el("summary", {}, method.name, el("span", { class: "quiet" }, summary)),
      hasMore ? el("p", { class: "quiet" }, method.docs) : null,
      method.refused ? el("p", {}, `Not available here: ${method.refused}.`) : form);
  }
}

function input(argument) {
  const options = argument.type === "bool" ? ["true", "false"] : argument.choices;
  if (options.length && !argument.list && !argument.table) {
    const choices = argument.required ? options : ["", ...options];
    return el("select", {}, ...choices.map((choice) => el("option", {}, choice)));
  }
  if (argument.type === "string" && !argument.list) return el("textarea", { rows: "2" });
  const isNumber = !argument.list && !argument.table && /int|double|float|fixed/.test(argument.type);
  const placeholder = argument.table ? "one row per word, columns joined by commas" : argument.list ? "1,2,3" : "";
  return el("input", {
    placeholder, required: argument.required, autocomplete: "off",
    inputmode: isNumber ? "decimal" : "text",
  });
}

/** The words of an argument as on the command line. */
function words(argument, value) {
  return argument.table ? value.trim().split(/\s+/) : [`${argument.name}=${value}`];
}

/** The label of an argument: its name, and its unit or range. */
function caption(argument) {
  const about = argument.type === "bool" ? "" : argument.about;
  return [argument.name, argument.required ? "" : " (optional)", about && ` · ${about}`].join("");
}

/** JSON with lists of numbers on one line. Long lists are cut. */
function pretty(value) {
  const cut = (_, inner) => (Array.isArray(inner) && inner.length > MAX_SHOWN
    ? [...inner.slice(0, MAX_SHOWN), `… ${inner.length - MAX_SHOWN} more`] : inner);
  return JSON.stringify(value, cut, 2)
    .replace(/\[[^[\]{}]*\]/g, (list) => list.replace(/\s+/g, " "));
}

/** `set-angle` and `speed_age` as the package writes them. */
function camel(name) {
  return name.replace(/[-_](.)/g, (_, letter) => letter.toUpperCase());
}

/** Numbers, texts and lists of numbers in a value, by their path. */
function leaves(value, path = "") {
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item === "number")) return [[path, value]];
    return value.slice(0, 8).flatMap((item, index) => leaves(item, `${path}.${index + 1}`));
  }
  if (value !== null && typeof value === "object") {
    return Object.entries(value).flatMap(([name, inner]) => leaves(inner, path ? `${path}.${name}` : name));
  }
  return [[path, value]];
}

/** The units of fields by their path in a value, also without its first part: the package leaves that out if it is the
 * only one. Those of a message are those of its numbers. */
function fieldsOf(fields, path = "", outer = undefined, found = new Map()) {
  for (const field of fields) {
    const name = camel(field.name);
    const here = path ? `${path}.${name}` : name;
    const unit = field.unit ?? outer;
    if (unit) found.set(here, unit).set(here.slice(here.indexOf(".") + 1), unit);
    if (field.fields) fieldsOf(field.fields, here, unit, found);
  }
  return found;
}
