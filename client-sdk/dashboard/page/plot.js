// Plots over time, and sparklines, on canvases.

import { colour, el, fitCanvas, short, text, themeChanged } from "./dom.js";

const SPAN_MS = 20000;
const COLOURS = 6;

/** Several lines over the last 20 s. */
export class Plot {
  constructor(parent, { title, unit, series, least = 1, lowest = -least }) {
    this.unit = unit;
    this.range = [lowest, least]; // The axis covers at least this.
    this.canvas = el("canvas", { role: "img", "aria-label": `${title} over the last 20 seconds` });
    this.root = el("div", { class: "plot", hidden: true },
      this.legend = el("div", { class: "legend number" }, el("b", {}, title, " ", el("small", { class: "quiet" }, unit))),
      this.canvas);
    parent.append(this.root);
    this.series = [];
    this.legends = [];
    this.name(series);
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    themeChanged.addEventListener("change", () => this.redraw());
  }

  /** Sets the names of the lines. If they change, the plot starts over. */
  name(names) {
    if (names.join() === this.series.map((it) => it.name).join()) return;
    const shade = (index) => `s${(index % COLOURS) + 1}`;
    for (const legend of this.legends) legend.remove();
    this.series = names.map((name, index) => ({ name, colour: shade(index), points: [] }));
    this.legends = names.map((name, index) => el("span", { style: `--c:var(--${shade(index)})` }, name));
    this.legend.append(...this.legends);
  }

  add(values) {
    const now = performance.now();
    this.root.hidden = false;
    this.series.forEach((series, index) => {
      series.points.push([now, values[index]]);
      while (series.points[0][0] < now - SPAN_MS - 500) series.points.shift();
    });
    this.last = values;
    this.redraw();
  }

  clear() {
    for (const series of this.series) series.points = [];
    this.root.hidden = true;
  }

  redraw() {
    this.frame ??= requestAnimationFrame((now) => {
      this.frame = undefined;
      this.draw(now);
    });
  }

  draw(now) {
    const { canvas } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || this.root.hidden) return;
    const ratio = fitCanvas(canvas);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    let [fewest, most] = this.range;
    for (const { points } of this.series) {
      for (const [, value] of points) {
        if (value > most) most = value;
        if (value < fewest) fewest = value;
      }
    }
    const step = nice((most - fewest) / 3);
    const top = Math.ceil(most / step) * step;
    const bottom = Math.floor(fewest / step) * step;
    const left = 38;
    const x = (time) => width - ((now - time) / SPAN_MS) * (width - left);
    const y = (value) => 6 + ((top - value) / (top - bottom)) * (height - 12);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let value = bottom; value <= top + step / 2; value += step) {
      const at = Math.round(y(value)) + 0.5;
      context.strokeStyle = colour("line");
      context.globalAlpha = Math.abs(value) < step / 2 ? 1 : 0.55;
      context.beginPath();
      context.moveTo(left, at);
      context.lineTo(width, at);
      context.stroke();
      context.globalAlpha = 1;
      context.fillStyle = colour("quiet");
      context.fillText(short(Math.abs(value) < step / 2 ? 0 : Number(value.toPrecision(6))), left - 6, at);
    }
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left, height);
    context.clip();
    context.lineWidth = 1.6;
    context.lineJoin = "round";
    for (const series of this.series) {
      context.strokeStyle = colour(series.colour);
      context.beginPath();
      for (const [time, value] of series.points) context.lineTo(x(time), y(value));
      context.stroke();
    }
    context.restore();
    this.legends.forEach((legend, index) => text(legend, `${this.series[index].name} ${short(this.last?.[index] ?? 0)}`));
  }
}

/** A round number that is not smaller. */
function nice(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= size * 0.999);
}

/** A sparkline of the last values of a number, or of the numbers of a list. */
export function sparkline(canvas, values) {
  const ratio = fitCanvas(canvas);
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  if (values.length < 2) return;
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const range = high - low || 1;
  context.beginPath();
  values.forEach((value, index) => {
    const x = (index / (values.length - 1)) * (width - 2) + 1;
    const y = height - 2 - ((value - low) / range) * (height - 4) * (high === low ? 0.5 : 1);
    context.lineTo(x, y);
  });
  context.strokeStyle = colour("accent");
  context.lineWidth = 1.4 * ratio;
  context.lineJoin = "round";
  context.stroke();
}
