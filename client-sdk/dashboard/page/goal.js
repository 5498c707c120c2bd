// A click on the map: the target that the robot is given, and the reason why it does not drive there.

const MARKED_MS = 2000; // The path shows a target sooner, unless it is reached or given up at once.
const SAID_MS = 20000; // A reason that nobody can mistake for one of the next click.

export class Goal {
  /** `ask(place)` gives the robot a target. `changed` is called when there is another problem. */
  constructor(map, ask, changed) {
    this.map = map;
    this.ask = ask;
    this.changed = changed;
    // `ended`: the newest order of the robot, if it has ended. `before`: its number at the click.
    Object.assign(this, { place: null, isSet: false, ended: null, before: null, problem: null });
  }

  /** Nothing is wanted any more. */
  clear() {
    this.refuse(null);
  }

  async set(place) {
    clearTimeout(this.ending);
    Object.assign(this, { place, isSet: false, before: this.ended?.id, problem: null });
    this.map.markGoal(place);
    this.changed();
    try {
      await this.ask(place);
    } catch (why) {
      if (this.place === place) this.refuse(String(why));
      return;
    }
    if (this.place !== place) return;
    this.isSet = true;
    setTimeout(() => this.place === place && this.map.markGoal(null), MARKED_MS);
    this.check();
  }

  /** The robot does not drive there, or no page may ask it to. */
  refuse(why) {
    Object.assign(this, { place: null, problem: why });
    clearTimeout(this.ending);
    if (why) this.ending = setTimeout(() => this.refuse(null), SAID_MS);
    this.map.markGoal(null);
    this.changed();
  }

  takePath({ targets, ended }) {
    this.ended = ended;
    // Another page may have set them.
    if (targets?.length) {
      clearTimeout(this.ending);
      this.problem = null;
      this.map.markGoal(null);
    }
    this.check();
  }

  check() {
    const { place, ended } = this;
    if (!place || !this.isSet || !ended || ended.id === this.before) return;
    if (!ended.reason) this.clear();
    else if (!this.map.has(place)) this.refuse("This point is outside the map.");
    else this.refuse(`The robot does not drive to this point: ${ended.reason}.`);
  }
}
