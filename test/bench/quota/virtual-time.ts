import { Agenda } from "./agenda.js";

/** Virtual time for code that awaits: it moves when everything that can go on without it has done so. */
export class VirtualTime {
  private readonly agenda = new Agenda();
  private time: number;

  constructor(start: number) {
    this.time = start;
  }

  now(): number {
    return this.time;
  }

  until(at: number): Promise<void> {
    return new Promise((resolve) => this.agenda.at(at, resolve));
  }

  /** Moves on until nobody waits any more, or the end is reached. */
  async run(end: number): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const at = this.agenda.next(null);
      if (at === null || at > end) return;
      this.time = at;
      this.agenda.run(at);
    }
  }
}
