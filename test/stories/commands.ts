import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type Ended, newPlace, type Started, started } from "../e2e/command.js";
import { type MadeTask, type SandboxProcess, startSandbox } from "../e2e/sandbox.js";
import { type Scripted, type ScriptedService, startProxy } from "../e2e/service.js";
import { isFree } from "./sheets.js";
import { type Key, orders, type Trouble } from "./story.js";

export const noTrouble: Trouble = { kind: "none", nth: 0 };

/** The commands of one person, against a sandbox. */
export class Commands {
  /** The folders that a test's commands find their own state in. */
  private readonly place = newPlace();
  /** Positions of the tasks whose answers were lost, with the folder of the command. */
  readonly unanswered = new Map<number, string>();
  private key: Key = "first";
  private readonly keys = new Map<Key, string>();
  private trouble = noTrouble;
  /** Of the command that runs. */
  private paidRequests = 0;
  private running: Started | null = null;
  /** What was ordered meanwhile. */
  private order: Started | null = null;
  private folder = "";

  private constructor(
    private readonly sandbox: SandboxProcess,
    private readonly service: ScriptedService,
  ) {
    this.keys.set("first", sandbox.key);
  }

  static async open(): Promise<Commands> {
    const sandbox = await startSandbox("--credits", "100000");
    const service = await startProxy(sandbox, ({ what }) =>
      what === "POST generate" ? commands.pays() : "serve",
    );
    const commands = new Commands(sandbox, service);
    return commands;
  }

  async close(): Promise<void> {
    await this.sandbox.tasks();
    await this.service.close();
  }

  newFolder(name: string): string {
    const folder = join(this.place.root, name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  losesSharedState(): void {
    rmSync(this.newFolder("state"), { recursive: true });
  }

  get user(): "own" | "other" {
    return this.key === "another user's" ? "other" : "own";
  }

  async use(key: Key): Promise<void> {
    this.key = key;
    if (this.keys.has(key)) return;
    const user = this.user === "other" ? "grace@example.org" : undefined;
    const made = await this.sandbox.keyOf(`the ${key} key`, user);
    this.keys.set(key, made["BULKGEN_API_KEY"] ?? "");
  }

  /** With each key that was ever used, in turn. */
  async withEachKey(act: () => Promise<void>): Promise<void> {
    const last = this.key;
    for (const key of this.keys.keys()) {
      await this.use(key);
      await act();
    }
    await this.use(last);
  }

  async run(folder: string, args: readonly string[], trouble = noTrouble): Promise<Ended> {
    this.trouble = trouble;
    this.folder = folder;
    this.paidRequests = 0;
    this.running = this.start(args);
    const end = await this.running.ended;
    checkEnd(args, end);
    const order = await this.order?.ended;
    this.order = null;
    if (order !== undefined) checkEnd([trouble.kind], order);
    return end;
  }

  private start(args: readonly string[]): Started {
    const env = { ...this.service.env, BULKGEN_API_KEY: this.keys.get(this.key) ?? "" };
    return started(this.place, args, { env, cwd: this.folder });
  }

  /** All tasks that were made, in order. */
  made(): MadeTask[] {
    return this.sandbox.madeSoFar();
  }

  /** What becomes of a paid request. */
  private async pays(): Promise<Scripted> {
    const { kind, nth } = this.trouble;
    if (this.paidRequests++ !== nth) return "serve";
    if (kind === "unsent") return "cut";
    if (kind === "unanswered") {
      this.unanswered.set(this.made().length, this.folder);
      return "serve and cut";
    }
    if (kind in orders) this.order = this.start(orders[kind as keyof typeof orders]);
    if (kind === "interrupt") {
      this.running?.interrupt();
      await this.running?.prints(/interrupted: /);
    }
    return "serve";
  }
}

function checkEnd(args: readonly string[], end: Ended): void {
  const said = saidBy(args, end);
  expect([0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 130], said).toContain(end.code);
  expect(end.stderr, said).not.toMatch(/\n\s+at .*:\d+/);
}

export function saidBy(args: readonly string[], { code, stdout, stderr }: Ended): string {
  return `${args.join(" ")}: ${code}\n${stdout}${stderr}`;
}

export function documentOf<Kind>({ stdout }: Ended): Kind | null {
  return stdout.startsWith("{") ? (JSON.parse(stdout) as Kind) : null;
}

export function creditsOf(tasks: readonly MadeTask[]): number {
  return tasks.filter(({ prompt }) => !isFree(prompt)).reduce((sum, { credits }) => sum + credits, 0);
}
