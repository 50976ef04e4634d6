import { hash32 } from "./chance.js";
import type { FaultKind, PlannedFault } from "./scenario.js";
import type { Effect, Rule, Sender, Trip } from "./watch.js";
import type { Workspace } from "./workspace.js";

const tailLength = 60;

/** What happened, in order: hashed to compare two runs, its end kept to explain a failure. */
export class Trace implements Rule {
  readonly reached = new Map<string, number>();
  readonly faults = new Map<FaultKind, number>();
  private readonly lines: string[] = [];
  private even = 1;
  private odd = 2;

  constructor(
    private readonly now: () => number,
    private readonly workspaces: readonly Workspace[],
  ) {}

  get hash(): string {
    return (this.even >>> 0).toString(16).padStart(8, "0") + (this.odd >>> 0).toString(16).padStart(8, "0");
  }

  get tail(): readonly string[] {
    return this.lines.slice(-tailLength);
  }

  sent(trip: Trip): void {
    this.note(`${trip.sender.workspace} sent ${trip.endpoint} ${trip.item ?? trip.taskId ?? ""}`);
  }

  arrived(trip: Trip): void {
    this.note(`${trip.endpoint} ${trip.item ?? trip.taskId ?? ""} arrived, answer ${trip.answer?.status}`);
  }

  replied(trip: Trip): void {
    const { reply } = trip;
    const what = reply?.kind === "answer" ? `${reply.status} ${reply.body.length}` : JSON.stringify(reply);
    this.note(
      `${trip.sender.workspace} was handed ${trip.endpoint} ${trip.item ?? trip.taskId ?? ""} ${what}`,
    );
  }

  done({ sender, name, values }: Effect): void {
    const told = values
      .slice(0, 2)
      .map((value) => (typeof value === "object" ? "" : String(value).slice(0, 120)));
    this.note(`${sender.workspace} ${name} ${told.join(" ").slice(0, 120).trimEnd()}`);
  }

  crashed(senders: readonly Sender[], isPowerCut: boolean): void {
    this.note(`${isPowerCut ? "power cut" : "crash"} of ${senders.map((sender) => sender.workspace).join()}`);
  }

  /** A fault of the plan happens: to one item, or to whatever is going on. */
  faultHappens(planned: PlannedFault, at: { item?: string | null; taskId?: string | null }): void {
    const { kind } = planned.fault;
    this.note(`fault ${JSON.stringify(planned)}`);
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1);
    const name = at.item ?? at.taskId ?? null;
    for (const { store, run } of this.workspaces) {
      if (run === null) continue;
      // Reading changes nothing and is done before anything else happens.
      if (name !== null) {
        void store.find(name).then(([item]) => item && this.reach(kind, item.state));
      } else if (planned.at !== "request") {
        void store.counts(run.id).then((counts) => {
          for (const [state, count] of Object.entries(counts)) if (count > 0) this.reach(kind, state);
        });
      }
    }
  }

  private reach(kind: FaultKind, state: string): void {
    const pair = `${kind} ${state}`;
    this.reached.set(pair, (this.reached.get(pair) ?? 0) + 1);
  }

  private note(what: string): void {
    const line = `${this.now()} ${what}`;
    this.even = hash32(`${this.even}${line}`);
    this.odd = hash32(`${line}${this.odd}`);
    this.lines.push(line);
    if (this.lines.length > 4 * tailLength) this.lines.splice(0, 2 * tailLength);
  }
}
