// A click on the map: the target that the robot is given, and the reason why it does not drive there.

const MARKED_MS = 2000; // The path shows a target sooner, unless it is reached or given up at once.
const SAID_MS = 20000; // A reason that nobody can mistake for one of the next click.

export class Goal {
  /** `ask(place)` gives the robot a target. `changed` is called when there is another problem. */
  constructor(map, ask, changed) {
    this.map = map;
    this.ask = ask;
    this.changed = changed;
    Object.assign(this, { place: null, order: null, problem: null });
  }

  /** Nothing is wanted any more. */
  clear() {
    this.refuse(null);
  }

  async set(place) {
    clearTimeout(this.ending);
    Object.assign(this, { place, order: null, problem: null });
    this.map.markGoal(place);
    this.changed();
    let order;
    try {
      order = await this.ask(place);
    } catch (why) {
      if (this.place === place) this.refuse(String(why));
      return;
    }
    if (this.place !== place) return;
    this.order = order;
    setTimeout(() => this.place === place && this.map.markGoal(null), MARKED_MS);
  }

  /** The robot does not drive there, or no page may ask it to. */
  refuse(why) {
    Object.assign(this, { place: null, problem: why });
    clearTimeout(this.ending);
    if (why) this.ending = setTimeout(() => this.refuse(null), SAID_MS);
    this.map.markGoal(null);
    this.changed();
  }

  takePath({ targets }) {
    // Another page may have set them.
    if (targets?.length) this.map.markGoal(null);
  }

  /** The way to a target has ended: says why the robot is not there. */
  takeEnd({ order, end, why }) {
    if (!this.place || order !== this.order) return;
    const reason = this.map.has(this.place) ? `The robot does not drive there: ${why}.` : "This point is outside the map.";
    this.refuse(end === "failed" ? reason : null);
  }
}
