import { createHash } from "node:crypto";
import { rowOf } from "./jobs.js";
import type { FaultKind, PlannedFault } from "./scenario.js";
import type { Effect, Rule, Sender, Trip } from "./watch.js";
import { itemNumbered, type Workspace } from "./workspace.js";

const tailLength = 60;

/** What happened, in order: hashed to compare two runs, its end kept to explain a failure. */
export class Trace implements Rule {
  readonly reached = new Map<string, number>();
  readonly faults = new Map<FaultKind, number>();
  private lines: string[] = [];
  private hashed = 0;
  private readonly digest = createHash("md5");

  constructor(
    private readonly now: () => number,
    private readonly workspaces: readonly Workspace[],
  ) {}

  get hash(): string {
    this.digestLines();
    return this.digest.copy().digest("hex");
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
    const told = `${wordOf(values[0])} ${wordOf(values[1])}`;
    this.note(`${sender.workspace} ${name} ${told.slice(0, 120)}`);
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
    for (const workspace of this.workspaces) {
      const { store, jobs } = workspace;
      // Reading changes nothing and is done before anything else happens.
      if (name !== null) {
        void store.find(rowOf(name)).then((items) => {
          const item = items.find(({ id }) => at.item !== name || itemNumbered(workspace, id) === name);
          if (item) this.reach(kind, item.state);
        });
        continue;
      }
      if (planned.at === "request") continue;
      for (const { run } of jobs) {
        if (run === null) continue;
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
    this.lines.push(`${this.now()} ${what}`);
    if (this.lines.length < 8 * tailLength) return;
    this.digestLines();
    this.lines = this.lines.slice(-tailLength);
    this.hashed = tailLength;
  }

  /** Many lines at once: a digest costs more to start than to continue. */
  private digestLines(): void {
    this.digest.update(this.lines.slice(this.hashed).join("\n"));
    this.hashed = this.lines.length;
  }
}

/** A value as far as it is short enough to be read. */
function wordOf(value: unknown): string {
  return typeof value === "object" || value === undefined ? "" : String(value).slice(0, 120);
}
