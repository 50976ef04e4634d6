import type { Endpoint } from "../../src/api/endpoints.js";
import type { ApiRequest, Reply, Send } from "../../src/core/ports/send.js";
import { type Course, courseOf } from "../../src/sandbox/faults/course.js";
import type { WorldRequest } from "../../src/service/answers/answers.js";
import type { ServiceReply as Written } from "../../src/service/answers/reply.js";
import type { TaskRecord } from "../../src/service/state/state.js";
import { type Chance, chance } from "./chance.js";
import type { FaultDesk } from "./fault-desk.js";
import type { Kernel } from "./kernel.js";
import type { Look, WayFault } from "./scenario.js";
import { apiRequest } from "./service.js";
import { type Sender, type Trip, tripOf, type Watch } from "./watch.js";

/** After that long a task counts as overdue. */
const overdueMs = 600_000;

/** Milliseconds that requests and answers are in flight. */
const wayMs = { min: 3, max: 2_500 };

/** The service at the other end. */
export interface WiredService {
  /** Whether nobody listens there now. */
  isDown?(): boolean;
  /** One request, as it arrives, with the task that it led to; null if the service ends before it answers. */
  api(request: WorldRequest): Answered | Promise<Answered | null>;
  ledger: {
    task(id: string): Pick<TaskRecord, "createdAt" | "seenFinal"> | undefined;
    /** Items that tasks were made for. */
    madeFor: Map<string, string>;
  };
}

interface Answered {
  answer: Written;
  made: TaskRecord | null;
}

/**
 * The network in place of `Send`: requests travel, arrive and are answered in virtual time, under the faults of the
 * plan. A sent request continues without its sender: a process that dies does not call its request back.
 */
export class Wire {
  private readonly counts = new Map<Endpoint | Look, number>();

  constructor(
    private readonly kernel: Kernel,
    private readonly service: WiredService,
    private readonly desk: FaultDesk,
    private readonly seed: number,
    private readonly watch: Watch,
    private readonly tellsTime: boolean,
  ) {}

  /** The `Send` of one process. */
  from(sender: Sender): Send {
    return (request, signal) => {
      const nth = this.count(request.endpoint);
      const trip = tripOf(sender, request, this.kernel.now());
      const fault = this.desk.ofRequest(trip, nth, this.pollOf(trip));
      const lot = chance(this.seed, "way", request.endpoint, nth);
      return new Promise((resolve) => {
        const deliver = (reply: Reply) => {
          takeBack();
          signal?.removeEventListener("abort", onAbort);
          if (!sender.isAlive() || trip.reply !== null) return;
          trip.reply = reply;
          this.watch.tell("replied", trip);
          resolve(reply);
        };
        const onAbort = () => deliver({ kind: "no_answer", reason: "interrupted" });
        const timeout = () => deliver({ kind: "no_answer", reason: "timeout" });
        const takeBack = this.kernel.schedule(this.kernel.now() + request.timeoutMs, timeout);
        signal?.addEventListener("abort", onAbort);
        this.watch.tell("sent", trip);
        this.travel({ trip, request, fault, lot, deliver });
      });
    };
  }

  private count(what: Endpoint | Look): number {
    const nth = (this.counts.get(what) ?? 0) + 1;
    this.counts.set(what, nth);
    return nth;
  }

  /** What kind of look it is, by the service's books, and the how many-th of its kind; null for most. */
  private pollOf({ taskId }: Trip): { kind: Look; nth: number } | null {
    const task = taskId === null ? undefined : this.service.ledger.task(taskId);
    if (task === undefined) return null;
    const isLate = this.kernel.now() - task.createdAt > overdueMs;
    const kind = task.seenFinal ? "again" : isLate ? "late" : null;
    return kind && { kind, nth: this.count(kind) };
  }

  private dated(answer: Written): Written {
    if (!this.tellsTime) return answer;
    return { ...answer, headers: { ...answer.headers, Date: new Date(this.kernel.now()).toUTCString() } };
  }

  private travel(journey: Journey): void {
    const { trip, request, fault, lot, deliver } = journey;
    const up = lot.scale(wayMs.min, wayMs.max);
    const down = lot.scale(wayMs.min, wayMs.max);
    const later = (ms: number, act: () => void) => this.kernel.schedule(this.kernel.now() + ms, act);
    if (fault?.kind === "no-connection" || this.service.isDown?.()) {
      later(up, () => deliver({ kind: "not_sent", reason: "connect ECONNREFUSED" }));
      return;
    }
    const course = fault?.kind === "refused" ? refusalCourse(fault) : courseOf(fault);
    const { instead } = course;
    if (course.arrivesMs !== null) {
      trip.mayArrive = true;
      later(up + course.arrivesMs, () => {
        const answers = (answered: Answered | null) => {
          trip.mayArrive = false;
          if (answered === null) {
            later(down, () => deliver({ kind: "no_answer", reason: "read ECONNRESET" }));
            return;
          }
          const { answer, made } = answered;
          trip.answer = answer;
          trip.made = made;
          if (made !== null && trip.item !== null) this.service.ledger.madeFor.set(made.id, trip.item);
          this.watch.tell("arrived", trip);
          if (course.repliesMs === null || instead) return;
          const dated = this.dated(answer);
          later(down + course.repliesMs, () => deliver(received(course, dated)));
        };
        const answered = this.service.api(
          apiRequest(request.method, request.path, request.body, course.inside, undefined, request.repeatKey),
        );
        if (answered instanceof Promise) void answered.then(answers);
        else answers(answered);
      });
    }
    if (instead) later(up + down, () => deliver(received(course, this.dated(instead))));
    // Half of the broken connections say so; of the others nothing is heard until the time is out.
    else if (course.repliesMs === null && lot.is(0.5)) {
      later(up + down, () => deliver({ kind: "no_answer", reason: "read ECONNRESET" }));
    }
  }
}

interface Journey {
  trip: Trip;
  request: ApiRequest;
  fault: WayFault | null;
  lot: Chance;
  deliver(reply: Reply): void;
}

function received(course: Course, answer: Written): Reply {
  const { status, headers, body } = course.spoil(answer);
  if (course.cut) return { kind: "no_answer", reason: "terminated", status };
  const lower: Record<string, string> = {};
  for (const name in headers) lower[name.toLowerCase()] = headers[name] ?? "";
  return { kind: "answer", status, headers: lower, body };
}

function refusalCourse({ status, body, retryAfter }: Extract<WayFault, { kind: "refused" }>): Course {
  const text =
    body === "html"
      ? `<html><title>${status}</title></html>`
      : JSON.stringify({ error: { code: "REFUSED", message: "something in between refused it" } });
  const headers: Record<string, string> = retryAfter === null ? {} : { "Retry-After": retryAfter };
  return {
    ...courseOf(null),
    arrivesMs: null,
    repliesMs: null,
    instead: { status, headers, body: text },
  };
}
