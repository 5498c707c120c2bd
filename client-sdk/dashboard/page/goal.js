// A click on the map: the target that the robot is given, and the reason why it does not drive there.

const MARKED_MS = 2000; // The path shows a target sooner, unless it is reached or given up at once.
// Ends of an order that need no words: the robot is there, or the operator of a page has stopped it.
const EXPECTED = ["running", "arrived", "stopped", "cancelled"];

export class Goal {
  /** `ask(place)` gives the robot a target. `changed` is called when there is another problem. */
  constructor(map, ask, changed) {
    this.map = map;
    this.ask = ask;
    this.changed = changed;
    Object.assign(this, { place: null, id: null, newest: null, problem: null });
  }

  /** Nothing is wanted any more. */
  clear() {
    this.refuse(null);
  }

  async set(place) {
    Object.assign(this, { place, id: null, problem: null });
    this.map.markGoal(place);
    this.changed();
    let id;
    try {
      id = await this.ask(place);
    } catch (why) {
      if (this.place === place) this.refuse(String(why));
      return;
    }
    if (this.place !== place) return;
    this.id = id;
    setTimeout(() => this.place === place && this.map.markGoal(null), MARKED_MS);
    this.check();
  }

  /** The robot does not drive there, or no page may ask it to. */
  refuse(why) {
    Object.assign(this, { place: null, problem: why });
    this.map.markGoal(null);
    this.changed();
  }

  takePath({ targets, order }) {
    this.newest = order ?? null;
    // Another page may have set them.
    if (targets?.length) {
      this.problem = null;
      this.map.markGoal(null);
    }
    this.check();
  }

  /** Says why the order of this target has ended. */
  check() {
    const { place, newest } = this;
    if (!place || newest?.id !== this.id || EXPECTED.includes(newest.state)) return;
    const isOutside = newest.state === "skipped" && !this.map.has(place);
    this.refuse(isOutside ? "This point is outside the map." : `The robot does not drive there: ${newest.reason}`);
  }
}
