import type { Endpoint } from "../../src/api/endpoints.js";
import { type MediaField, mediaFields } from "../../src/api/inputs.js";
import type { ApiRequest, Reply } from "../../src/core/ports/send.js";
import type { ServiceReply as Written } from "../../src/service/answers/reply.js";
import type { TaskRecord } from "../../src/service/state/state.js";
import { itemOf } from "./jobs.js";

/** Who sends: one process of one workspace, working on one of its jobs. */
export interface Sender {
  /** From 0. */
  workspace: number;
  /** From 0. */
  job: number;
  isAlive(): boolean;
}

/** One request from the moment it is put on the wire. */
export interface Trip {
  sender: Sender;
  endpoint: Endpoint;
  sentAt: number;
  /** Id of the item that a POST is for: rows may be equal, and a process asks for its own job's. */
  item: string | null;
  /** What a POST has in its media fields. */
  inputs: Inputs;
  /** The same for all sendings of one request. */
  repeatKey: string | null;
  /** Task that a GET asks for. */
  taskId: string | null;
  /** It is on its way to the service and will arrive. */
  mayArrive: boolean;
  /** The task that it led to at the service. */
  made: TaskRecord | null;
  /** What the service said, once it arrived. */
  answer: Written | null;
  /** What the sender was handed. */
  reply: Reply | null;
}

export function tripOf(sender: Sender, request: ApiRequest, sentAt: number): Trip {
  const body = request.body === undefined ? {} : (JSON.parse(request.body) as { prompt?: string } & Inputs);
  const { prompt } = body;
  return {
    sender,
    endpoint: request.endpoint,
    sentAt,
    item: prompt === undefined ? null : itemOf(sender.job, prompt),
    inputs: inputsOf(body),
    repeatKey: request.repeatKey ?? null,
    taskId: request.endpoint === "task" ? (request.path.split("/").at(-1) ?? null) : null,
    mayArrive: false,
    made: null,
    answer: null,
    reply: null,
  };
}

type Inputs = Readonly<Partial<Record<MediaField, string>>>;

const noInputs: Inputs = {};

function inputsOf(body: Inputs): Inputs {
  const given = mediaFields.filter((field) => body[field] !== undefined);
  return given.length === 0 ? noInputs : Object.fromEntries(given.map((field) => [field, body[field]]));
}

/** What can be told of, as it happens. */
export interface Happenings {
  sent(trip: Trip): void;
  arrived(trip: Trip): void;
  replied(trip: Trip): void;
  /** A method of a port that changes something was carried out. */
  done(effect: Effect): void;
  /** These processes are gone. */
  crashed(senders: readonly Sender[], isPowerCut: boolean): void;
}

export interface Effect {
  sender: Sender;
  /** `store.intend`, `disk.link` … */
  name: string;
  values: readonly unknown[];
  result: unknown;
}

/** A promise of the product that was found broken. */
export class Violation extends Error {
  override readonly name = "Violation";
  constructor(
    readonly promise: string,
    message: string,
  ) {
    super(`${promise}: ${message}`);
  }
}

/** A rule looks at what happens and throws a Violation when a promise is broken. */
export type Rule = Partial<Happenings>;

type Listeners = { [Kind in keyof Happenings]: ((...values: Parameters<Happenings[Kind]>) => void)[] };

/** Tells every rule of everything that happens. */
export class Watch {
  /** `onBroken` hears of a promise that is broken even where the program takes the error for one of its own. */
  constructor(private readonly onBroken: (error: unknown) => void = () => {}) {}

  private readonly listeners: Listeners = { sent: [], arrived: [], replied: [], done: [], crashed: [] };

  add(...rules: Rule[]): void {
    for (const rule of rules) {
      for (const kind of Object.keys(this.listeners) as (keyof Happenings)[]) this.listen(kind, rule);
    }
  }

  tell<Kind extends keyof Happenings>(kind: Kind, ...values: Parameters<Happenings[Kind]>): void {
    try {
      for (const listener of this.listeners[kind]) listener(...values);
    } catch (error) {
      this.onBroken(error);
      throw error;
    }
  }

  private listen<Kind extends keyof Happenings>(kind: Kind, rule: Rule): void {
    const act = rule[kind] as ((...values: Parameters<Happenings[Kind]>) => void) | undefined;
    if (act) this.listeners[kind].push(act.bind(rule));
  }
}
