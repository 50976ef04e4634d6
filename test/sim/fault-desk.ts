import type { DownloadFault } from "../../src/sandbox/faults/fault.js";
import type {
  CallFault,
  Crash,
  Event,
  FleetEvent,
  Look,
  PlannedFault,
  UpstreamFault,
  UpstreamStep,
  WayFault,
} from "./scenario.js";
import type { Trip } from "./watch.js";

/** Hands out the faults of a plan, each when its time has come, and reports each that really happens. */
export class FaultDesk {
  private readonly byPlace = new Map<string, PlannedFault>();
  /** Of the effects that a crash is planned for, how often each has happened. */
  private readonly effects = new Map<string, number>();
  private readonly calls = new Map<string, number>();
  private count = 0;
  private readonly effectsPlanned: ReadonlySet<string>;

  constructor(
    private readonly plan: readonly PlannedFault[],
    private readonly happens: (
      fault: PlannedFault,
      at: { item?: string | null; taskId?: string | null },
    ) => void,
  ) {
    this.effectsPlanned = new Set(plan.flatMap((fault) => (fault.at === "effect" ? [fault.effect] : [])));
    for (const fault of plan) {
      const place = placeOf(fault);
      if (place !== null && !this.byPlace.has(place)) this.byPlace.set(place, fault);
    }
  }

  ofRequest(trip: Trip, nth: number, look: { kind: Look; nth: number } | null): WayFault | null {
    const planned =
      (look && this.byPlace.get(`request ${trip.endpoint} ${look.kind} ${look.nth}`)) ??
      this.byPlace.get(`request ${trip.endpoint} ${nth}`);
    if (planned?.at !== "request") return null;
    this.happens(planned, trip);
    return planned.fault;
  }

  ofDownload(nth: number, taskId: string): DownloadFault | null {
    const planned = this.byPlace.get(`download ${nth}`);
    if (planned?.at !== "download") return null;
    this.happens(planned, { taskId });
    return planned.fault;
  }

  ofUpstream(step: UpstreamStep, nth: number): UpstreamFault | null {
    const planned = this.byPlace.get(`upstream ${step} ${nth}`);
    if (planned?.at !== "upstream") return null;
    this.happens(planned, {});
    return planned.fault;
  }

  /** Called once before each effect. */
  ofEffect(name: string): Crash | null {
    this.count++;
    const own = this.effectsPlanned.has(name) ? this.crashAt(name, this.nth(name)) : null;
    const any = this.effectsPlanned.has("any") ? this.crashAt("any", this.count) : null;
    const planned = own ?? any;
    if (planned === null) return null;
    this.happens(planned, {});
    return planned.fault;
  }

  timed(): { ms: number; fault: Event; begin(): void }[] {
    return this.plan.flatMap((planned) =>
      planned.at === "time"
        ? [{ ms: planned.ms, fault: planned.fault, begin: () => this.happens(planned, {}) }]
        : [],
    );
  }

  /** Called once before each call of a process of a fleet. */
  ofCall(name: string): CallFault | null {
    const planned = [name, "any"].map((call) => this.byPlace.get(`call ${call} ${this.nthCall(call)}`));
    const fault = planned.find((one) => one !== undefined);
    if (fault?.at !== "call") return null;
    this.happens(fault, {});
    return fault.fault;
  }

  moments(): { ms: number; fault: FleetEvent; begin(): void }[] {
    return this.plan.flatMap((planned) =>
      planned.at === "moment"
        ? [{ ms: planned.ms, fault: planned.fault, begin: () => this.happens(planned, {}) }]
        : [],
    );
  }

  private nthCall(name: string): number {
    const nth = (this.calls.get(name) ?? 0) + 1;
    this.calls.set(name, nth);
    return nth;
  }

  /** How many effects there were, of all names together. */
  get effectCount(): number {
    return this.count;
  }

  private nth(name: string): number {
    const nth = (this.effects.get(name) ?? 0) + 1;
    this.effects.set(name, nth);
    return nth;
  }

  private crashAt(name: string, nth: number): Extract<PlannedFault, { at: "effect" }> | null {
    const planned = this.byPlace.get(`effect ${name} ${nth}`);
    return planned?.at === "effect" ? planned : null;
  }
}

function placeOf(planned: PlannedFault): string | null {
  if (planned.at === "request") {
    const { endpoint, look, nth } = planned;
    return look === undefined ? `request ${endpoint} ${nth}` : `request ${endpoint} ${look} ${nth}`;
  }
  if (planned.at === "download") return `download ${planned.nth}`;
  if (planned.at === "upstream") return `upstream ${planned.step} ${planned.nth}`;
  if (planned.at === "call") return `call ${planned.call} ${planned.nth}`;
  return planned.at === "effect" ? `effect ${planned.effect} ${planned.nth}` : null;
}
