import type { SandboxOptions } from "../../src/sandbox/sandbox.js";
import { type RunningSandbox, serveSandbox } from "../../src/sandbox/serve.js";
import { MadeMedia } from "../../src/sandbox/studio/studio.js";
import { CountingRandom, ManualClock } from "./manual-clock.js";

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
  body: any;
}

/** A sandbox on a socket, a clock to move, and somebody who calls it. */
export class Caller {
  private constructor(
    readonly sandbox: RunningSandbox,
    readonly clock: ManualClock,
  ) {}

  static async start(options: Partial<SandboxOptions> = {}, clock = new ManualClock()): Promise<Caller> {
    const sandbox = await serveSandbox({
      clock,
      random: new CountingRandom(),
      file: ":memory:",
      // What is the same each time is made each time.
      made: new MadeMedia(0),
      ...options,
    });
    return new Caller(sandbox, clock);
  }

  async send(
    method: string,
    path: string,
    init: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<Answer> {
    const response = await fetch(this.sandbox.url + path, { method, ...init });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? null : JSON.parse(text),
    };
  }

  get(path: string): Promise<Answer> {
    return this.send("GET", path, { headers: { authorization: `Bearer ${this.sandbox.key}` } });
  }

  generate(body: unknown): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.sandbox.key}`, "content-type": "application/json" };
    return this.send("POST", "/api/v1/generate", { headers, body: JSON.stringify(body) });
  }

  task(id: string): Promise<Answer> {
    return this.get(`/api/v1/task/${id}`);
  }

  /** Generates, lets the task's time pass and returns the task. */
  async finish(body: unknown): Promise<Answer["body"]> {
    const created = await this.generate(body);
    if (created.status !== 200) throw new Error(JSON.stringify(created.body));
    await this.sandbox.settled();
    this.clock.advance(60_000);
    return (await this.task(created.body.task_id)).body;
  }

  /** The bytes of an output URL. */
  async download(url: string): Promise<Buffer> {
    const response = await fetch(url);
    if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  }
}
