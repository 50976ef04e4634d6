import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { kinds } from "../../src/serve/kinds.js";
import { type RunningService, type ServedOptions, serveModels } from "../../src/serve/serve.js";
import { systemRandom } from "../../src/system.js";
import { ManualClock } from "../manual-clock.js";
import { OpenAiUpstream } from "../upstreams/openai.js";

/** Does this after the test, before what was asked for earlier. */
export function afterwards(end: () => unknown): void {
  // A hook of this file would be that of the first test file that loads it.
  onTestFinished(async () => {
    await end();
  });
}

/** A stand-in for OpenAI, as long as the test runs. */
export async function openAi(): Promise<OpenAiUpstream> {
  const upstream = await new OpenAiUpstream().start();
  afterwards(() => upstream.stop());
  return upstream;
}

function freshFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "bulkgen-serve-")));
  afterwards(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

// biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
type Body = any;

export interface Answered {
  status: number;
  body: Body;
}

/** A served models file in a folder of its own, with a clock that is moved by hand and somebody who calls. */
export class Place {
  readonly folder = freshFolder();
  readonly clock = new ManualClock(Date.UTC(2026, 10, 28, 12));
  readonly notes: string[] = [];
  /** How far the clock is moved at a time; less where real programs have to keep up with it. */
  stepMs = 250;
  key = "";
  private running: RunningService | null = null;

  constructor(
    private models: string,
    private readonly more: Partial<ServedOptions> = {},
  ) {
    mkdirSync(this.folder, { recursive: true });
    writeFileSync(this.file, models);
  }

  get file(): string {
    return join(this.folder, "models.yaml");
  }

  get service() {
    if (this.running === null) throw new Error("it is not open");
    return this.running.service;
  }

  /** The address that it listens on itself. */
  get ownUrl(): string {
    return this.running?.ownUrl ?? "";
  }

  get url(): string {
    return this.running?.url ?? "";
  }

  async open(): Promise<this> {
    this.running = await serveModels({
      clock: this.clock,
      random: systemRandom,
      folder: join(this.folder, "state"),
      file: this.file,
      kinds,
      env: { PATH: process.env["PATH"], KEY: "sk-proj-0123456789" },
      onNote: (note) => this.notes.push(note),
      ...this.more,
    });
    if (this.key === "") this.key = this.service.keys.create(anybody, this.clock.now());
    afterwards(() => this.close());
    return this;
  }

  async close(): Promise<void> {
    const { running } = this;
    this.running = null;
    await running?.close();
  }

  async restart(): Promise<void> {
    await this.close();
    await this.open();
  }

  rewrite(models: string): void {
    this.models = models;
    writeFileSync(this.file, this.models);
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answered> {
    const bytes = body instanceof Uint8Array ? body : null;
    const answer = await fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body === undefined || bytes ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: bytes ? new Uint8Array(bytes) : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text.startsWith("{") ? JSON.parse(text) : text };
  }

  /** A task's id. */
  async generate(body: Record<string, unknown>, headers: Record<string, string> = {}): Promise<string> {
    const answer = await this.call("POST", "/api/v1/generate", body, headers);
    if (answer.status !== 200) throw new Error(JSON.stringify(answer));
    return answer.body.task_id;
  }

  async task(id: string): Promise<Body> {
    return (await this.call("GET", `/api/v1/task/${id}`)).body;
  }

  async me(): Promise<Body> {
    return (await this.call("GET", "/api/v1/me")).body;
  }

  /** Moves the clock until this is so. Whoever answers gets time in between. */
  async until(isSo: () => boolean | Promise<boolean>, stepMs = this.stepMs): Promise<void> {
    for (let step = 0; step < Math.max(2_000, 500_000 / stepMs); step++) {
      if (await isSo()) return;
      await rest(1);
      this.clock.advance(stepMs);
    }
    const jobs = this.service.journal.open().map(({ stage, note }) => `${stage} ${note ?? ""}`);
    throw new Error(`it never came to that; jobs: ${jobs.join("; ")}; notes: ${this.notes.join("; ")}`);
  }

  /** The task when it is no longer processing. */
  async finished(id: string): Promise<Body> {
    let task: Body;
    await this.until(async () => {
      task = await this.task(id);
      return task.status !== "processing";
    });
    return task;
  }

  /** The bytes of a task's first output. */
  async bytes(
    task: Body,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; bytes: Buffer; headers: Headers }> {
    const answer = await fetch(task.output_urls[0], { headers });
    return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()), headers: answer.headers };
  }

  stage(id: string): string | undefined {
    return this.service.journal.job(id)?.stage;
  }
}

export const anybody = {
  name: "anybody",
  plan: "Enterprise",
  credits: null,
  perMonth: null,
  perDay: null,
} as const;
