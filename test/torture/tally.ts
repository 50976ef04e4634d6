import { type Point, pointNames } from "./points.js";

/** What the torture has seen so far. */
export class Tally {
  kills = 0;
  readonly ways = new Map<string, number>();
  readonly reached = new Map<Point, number>();
  rounds = 0;
  serviceKills = 0;
  tasks = 0;
  files = 0;
  /** Items in doubt after one kill, by how many there were. */
  readonly doubts = new Map<number, number>();
  /** The most in doubt after one kill as a share of the lanes. */
  worst = { doubts: 0, lanes: 0 };
  /** Each once, however often it was found. */
  readonly violations = new Set<string>();

  killed(way: string, point: Point | null, doubts: number, lanes: number): void {
    this.kills++;
    add(this.ways, way);
    if (point !== null) add(this.reached, point);
    add(this.doubts, doubts);
    if (doubts / lanes > this.worst.doubts / Math.max(1, this.worst.lanes)) this.worst = { doubts, lanes };
  }

  /** Points at which no process has ended yet. */
  get unreached(): Point[] {
    return pointNames.filter((point) => !this.reached.has(point));
  }

  lines(): string[] {
    if (this.rounds === 0) return [];
    const counted = (counts: ReadonlyMap<string | number, number>) =>
      [...counts].map(([what, count]) => `${what} ${count}`).join(", ");
    const doubts = [...this.doubts]
      .sort(([a], [b]) => a - b)
      .map(([items, kills]) => `${items} items in doubt after ${kills} kills`);
    return [
      `kills             ${this.kills} in ${this.rounds} rounds: ${counted(this.ways)}`,
      `service killed    ${this.serviceKills} times`,
      `judged            ${this.tasks} tasks and ${this.files} files, service against archive`,
      ...pointNames.map(
        (point) => `  ${point.padEnd(24)}${String(this.reached.get(point) ?? 0).padStart(5)}`,
      ),
      `unknowns a kill   ${doubts.join(", ")}; the most: ${this.worst.doubts} with ${this.worst.lanes} lanes`,
    ];
  }
}

function add<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
