// The panel of any device, made from its description: values, requests, and its driver.

import { $, el, short, text, time } from "./dom.js";
import { sparkline } from "./plot.js";

const HISTORY = 120;

export class Panel {
  constructor(link) {
    this.link = link;
    this.dialog = $("panel");
    $("panel-close").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.close());
    // A click beside the panel closes it.
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
  }

  open(device) {
    this.device = device;
    this.isDescribed = false;
    this.streams = new Map();
    text($("panel-title"), device);
    this.docs = el("p", {}, "Waiting for the description …");
    this.values = el("div");
    this.methods = el("div", { style: "display:grid;gap:.5rem" });
    this.driver = el("dl");
    this.words = el("pre", { class: "words" });
    $("panel-body").replaceChildren(this.docs,
      el("h3", {}, "Values"), this.values,
      this.methodsTitle = el("h3", {}, "Requests"), this.methods,
      el("h3", {}, "Driver"), this.driver, this.words);
    this.nothing = el("p", { class: "quiet" }, "None yet.");
    this.values.append(this.nothing);
    this.link.send({ t: "open", device });
    if (!this.dialog.open) this.dialog.showModal();
  }

  /** After a new connection. */
  reopen() {
    if (this.device) this.link.send({ t: "open", device: this.device });
  }

  close() {
    if (!this.device) return;
    this.link.send({ t: "close", device: this.device });
    this.device = null;
  }

  takeAbout(about) {
    if (about.device !== this.device) return;
    if (!this.isDescribed) this.describe(about.interface);
    this.showDriver(about.driver);
  }

  describe(description) {
    this.isDescribed = true;
    if (!description) {
      text(this.docs, "This device has no description here. Its driver can hand one to the mediator: see docs/write-a-driver.md.");
      this.nothing.remove();
      this.methodsTitle.hidden = true;
      return;
    }
    text(this.docs, description.docs);
    this.units = new Map(description.methods.map((method) => [method.name, fieldsOf(method.answer)]));
    const requests = description.methods.filter((method) => !method.stream);
    this.methodsTitle.hidden = !requests.length;
    this.methods.replaceChildren(...requests.map((method) => this.form(method)));
  }

  showDriver(driver) {
    const facts = driver.error ? [["Driver", driver.error]] : [
      ["State", `${driver.state} for ${time(driver.state_ms)}`], ["Process", driver.pid],
      ["Restarts", `${driver.restarts} (${driver.policy ?? ""})`], ["Last exit", driver.last_exit],
      ["Reason", driver.reason], ["Hint", driver.hint], ["Command", driver.command],
    ];
    const shown = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
    this.driver.replaceChildren(...shown.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]));
    const line = ({ time_ms, amber, text }) =>
      `${time_ms ? `${new Date(time_ms).toLocaleTimeString([], { hour12: false })} ` : ""}${amber ? "[amber] " : ""}${text}`;
    const words = (driver.lines ?? []).map(line).join("\n");
    this.words.hidden = !words;
    text(this.words, words);
  }

  // Values -----------------------------------------------------------------------------------

  takeValue({ device, method, value, error }) {
    if (device !== this.device) return;
    this.nothing.remove();
    let stream = this.streams.get(method);
    if (!stream) {
      stream = { rows: new Map(), table: el("table", { class: "values" }), error: el("p", { class: "quiet" }) };
      this.streams.set(method, stream);
      this.values.append(el("p", { class: "quiet" }, method), stream.error, stream.table);
    }
    text(stream.error, error ?? "");
    if (error) return;
    for (const [path, leaf] of leaves(value)) this.showLeaf(stream, method, path, leaf);
  }

  showLeaf(stream, method, path, leaf) {
    let row = stream.rows.get(path);
    if (!row) {
      const unit = this.units?.get(method)?.get(path);
      row = { shown: el("td"), canvas: el("canvas", { role: "img", "aria-label": `Course of ${path}` }), history: [], unit };
      const name = path.includes(".") ? path.slice(path.indexOf(".") + 1) : path;
      stream.table.append(el("tr", {}, el("td", { title: path }, name), row.shown, el("td", {}, row.canvas)));
      stream.rows.set(path, row);
    }
    const unit = row.unit ? ` ${row.unit}` : "";
    if (typeof leaf === "number") {
      text(row.shown, short(leaf) + unit);
      row.history.push(leaf);
      if (row.history.length > HISTORY) row.history.shift();
      sparkline(row.canvas, row.history);
    } else if (Array.isArray(leaf)) {
      text(row.shown, `${leaf.length} values`);
      sparkline(row.canvas, leaf);
    } else {
      row.shown.style.whiteSpace = "normal";
      text(row.shown, String(leaf));
    }
  }

  // Requests ---------------------------------------------------------------------------------

  form(method) {
    const result = el("div", { role: "status" });
    const inputs = method.arguments.map((argument) => [argument, input(argument)]);
    const send = el("button", { class: "primary", disabled: Boolean(method.refused) }, method.reads ? "Ask" : "Send");
    const form = el("form", {
      onsubmit: async (event) => {
        event.preventDefault();
        const args = inputs.filter(([, field]) => field.value !== "").flatMap(([argument, field]) => words(argument, field.value));
        send.disabled = true;
        try {
          const value = await this.link.ask({ t: "call", device: this.device, method: method.name, args });
          const shown = value === null ? "sent" : JSON.stringify(value, shorten, 2);
          result.replaceChildren(el("pre", {}, shown));
        } catch (error) {
          result.replaceChildren(el("p", { class: "error" }, String(error)));
        }
        send.disabled = false;
      },
    },
    el("p", { class: "quiet" }, method.refused ? `${method.docs}\nHere, ${method.refused}.` : method.docs),
    ...inputs.map(([argument, field]) => el("label", {},
      `${argument.name}${argument.required ? "" : " (optional)"} · ${argument.about}`, field)),
    send, result);
    const summary = method.docs.split(/[.\n]/)[0];
    return el("details", { class: "method" }, el("summary", {}, method.name, el("span", { class: "quiet" }, summary)), form);
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

/** Long lists are cut. */
function shorten(_, value) {
  return Array.isArray(value) && value.length > 12 ? [...value.slice(0, 12), `and ${value.length - 12} more`] : value;
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

/** The units of fields by their path in a value. Those of a message are those of its numbers. */
function fieldsOf(fields, path = "", outer = undefined, found = new Map()) {
  for (const field of fields) {
    const here = path ? `${path}.${field.name}` : field.name;
    const unit = field.unit ?? outer;
    if (unit) found.set(here, unit);
    if (field.fields) fieldsOf(field.fields, here, unit, found);
  }
  return found;
}
