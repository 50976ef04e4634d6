import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { isRefusal } from "../../src/core/exit.js";
import { type Ended, newPlace, type Started, started } from "../e2e/command.js";
import { type MadeTask, type SandboxProcess, startSandbox } from "../e2e/sandbox.js";
import { type Asked, type Passed, type Scripted, type ScriptedService, startProxy } from "../e2e/service.js";
import { cheapModel } from "../e2e/sheet.js";
import { skippingClock } from "../e2e/skipping-clock.js";
import { editor, failure, isCharged, isTwofold } from "./sheets.js";
import { type Address, type Catalogue, days, type Key, kills, type Trouble } from "./story.js";

/** Where commands are run. */
interface Place {
  folder: string;
  /** The address of the database with the state, if it is not in files. */
  database: string | null;
}

/** What somebody orders while a command runs, and where. */
export interface Meanwhile {
  place: Place;
  args: readonly string[];
}

export const noTrouble: Trouble = { kind: "none", nth: 0 };

/** How long the service keeps the files of a task and the task itself, and how long a slow task takes (ms). */
const [filesKeptMs, taskKeptMs, slowMs] = [days(7), days(30), days(4)];

/** The commands of one person, against a sandbox. */
export class Commands {
  /** The folders that a test's commands find their own state in. */
  private readonly home = newPlace();
  /** Positions of the tasks whose answers were lost, with the folder of the command. */
  readonly unanswered = new Map<number, string>();
  /** Positions of the tasks that take days. */
  private readonly slow = new Set<number>();
  catalogue: Catalogue = "usual";
  /** The machine's record of what was bought is lost. */
  private isUnknown = false;
  private key: Key = "first";
  private readonly keys = new Map<Key, string>();
  address: Address = "127.0.0.1";
  private readonly addresses = new Set<Address>(["127.0.0.1"]);
  private trouble = noTrouble;
  private meanwhile: Meanwhile | undefined;
  /** Of the command that runs. */
  private paidRequests = 0;
  private polls = 0;
  /** All files as they were when the process was killed. */
  private atDeath: string | null = null;
  private running: Started | null = null;
  /** What was ordered meanwhile. */
  private order: Started | null = null;
  private folder = "";

  private constructor(
    private readonly sandbox: SandboxProcess,
    private readonly service: ScriptedService,
    private readonly env: Record<string, string>,
  ) {
    this.keys.set("first", sandbox.key);
  }

  static async open(env: Record<string, string>): Promise<Commands> {
    const sandbox = await startSandbox("--credits", "100000");
    const service = await startProxy(
      sandbox,
      (asked) => commands.asks(asked),
      (asked, passed) => {
        if (asked.what === "GET task") return commands.shows(asked, passed);
        return asked.what === "GET models" ? commands.offers(passed) : passed;
      },
    );
    const commands = new Commands(sandbox, service, env);
    return commands;
  }

  async close(): Promise<void> {
    await this.sandbox.tasks();
    await this.service.close();
  }

  get root(): string {
    return this.home.root;
  }

  newFolder(name: string): string {
    const folder = join(this.home.root, name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** A copy of what this machine knows of the account is kept, or brought back. */
  copiesSharedState(way: "keep" | "bring back"): void {
    const [own, kept] = [this.newFolder("state"), join(this.home.root, "kept state")];
    const [from, to] = way === "keep" ? [own, kept] : [kept, own];
    if (!existsSync(from)) return;
    rmSync(to, { recursive: true, force: true });
    // By another process: closing a database's file here would drop its locks.
    execFileSync("cp", ["-a", from, to]);
  }

  losesSharedState(): void {
    rmSync(this.newFolder("state"), { recursive: true });
    this.isUnknown = true;
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

  /** Whether only one key was ever used, at one address. */
  get hasOneKey(): boolean {
    return this.keys.size === 1 && this.addresses.size === 1;
  }

  goTo(address: Address): void {
    this.address = address;
    this.addresses.add(address);
  }

  /** With each key that was ever used, at each address, in turn. */
  async withEachKey(act: () => Promise<void>): Promise<void> {
    const last = [this.key, this.address] as const;
    for (const key of this.keys.keys())
      for (const address of this.addresses) {
        await this.use(key);
        this.address = address;
        await act();
      }
    await this.use(last[0]);
    this.address = last[1];
  }

  /** What the command and the order meanwhile have printed. */
  async run(
    place: Place,
    args: readonly string[],
    {
      trouble = noTrouble,
      meanwhile,
    }: { trouble?: Trouble | undefined; meanwhile?: Meanwhile | undefined } = {},
  ): Promise<Ended & { order?: Ended }> {
    // The files of a database elsewhere are not brought back.
    this.trouble = place.database !== null && isKill(trouble) ? noTrouble : trouble;
    this.meanwhile = meanwhile;
    this.folder = place.folder;
    this.paidRequests = 0;
    this.polls = 0;
    const before = this.made().length;
    // A person who knows that the machine has lost its record says so.
    const agrees = this.isUnknown && buying.includes(args[0] ?? "") ? ["--accept-foreign-use"] : [];
    this.running = this.start({ place, args: [...args, ...agrees] });
    const end = await this.running.ended;
    checkEnd(args, end);
    if (this.atDeath !== null) {
      this.restores(this.atDeath, before);
      return { ...end, code: null };
    }
    const order = await this.order?.ended;
    this.order = null;
    if (order === undefined) return end;
    checkEnd(meanwhile?.args ?? [], order);
    return { ...end, order };
  }

  private start({ place: { folder, database }, args }: Meanwhile): Started {
    const env = {
      ...this.env,
      ...this.service.env,
      BULKGEN_BASE_URL: this.service.url.replace("127.0.0.1", this.address),
      BULKGEN_API_KEY: this.keys.get(this.key) ?? "",
      BULKGEN_PUBLISH: "s3://inputs/photos",
      BULKGEN_PARAM: "mood=calm",
      ...(database === null ? {} : { BULKGEN_DATABASE_URL: database }),
    };
    return started(this.home, args, { env, cwd: folder });
  }

  /** All tasks that were made, in order. */
  made(): MadeTask[] {
    return this.sandbox.madeSoFar();
  }

  /** So much time passes (ms). */
  passes(ms: number): void {
    skippingClock.pass(ms);
  }

  /** Ends every slow task. Whether there was one. */
  finishesAll(): boolean {
    const isAny = this.slow.size > 0;
    this.slow.clear();
    return isAny;
  }

  /** Whether the service still has the files of a task, or will have them. */
  keepsFiles(task: MadeTask): boolean {
    return ageOf(task) < filesKeptMs;
  }

  /** What the service says of a task. */
  private shows({ path }: Asked, passed: Passed): Passed {
    const at = this.made().findIndex(({ id }) => path.includes(id));
    const task = this.made()[at];
    if (task === undefined || passed.status !== 200) return passed;
    if (ageOf(task) > taskKeptMs) return { status: 404, text: JSON.stringify(forgotten) };
    const shown = JSON.parse(passed.text) as { status: string; output_urls: string[] | null };
    const isReady = !this.slow.has(at) || ageOf(task) > slowMs || shown.status === "failed";
    const urls = shown.output_urls?.flatMap((url) => (isTwofold(task) ? [url, url] : [url])) ?? null;
    const kept = this.keepsFiles(task) ? urls : urls?.map((url) => `${url}0`);
    const changes = isReady
      ? { output_urls: kept ?? null }
      : { status: "processing", output_urls: null, completed_at: null, error: null };
    return { status: 200, text: JSON.stringify({ ...shown, ...changes }) };
  }

  /** The models that the service lists. */
  private offers({ status, text }: Passed): Passed {
    if (status !== 200) return { status, text };
    const list = JSON.parse(text) as {
      models: { model_key: string; credits_cost: number; parameters?: object[] }[];
    };
    const models = list.models
      .filter(({ model_key: key }) => key !== this.withdrawn)
      .map((model) => {
        const isCheap = model.model_key === cheapModel;
        const isDearer = this.catalogue === "dearer" && isCheap;
        const hasMood = model.model_key === editor || (isCheap && this.catalogue === "with a mood");
        return {
          ...model,
          ...(isDearer ? { credits_cost: model.credits_cost * 3 } : {}),
          ...(hasMood ? { parameters: [...(model.parameters ?? []), mood] } : {}),
        };
      });
    return { status, text: JSON.stringify({ ...list, models }) };
  }

  private get withdrawn(): string | null {
    if (this.catalogue === "without the cheap model") return cheapModel;
    return this.catalogue === "without the editor" ? editor : null;
  }

  private asks(asked: Asked): Scripted | Promise<Scripted> {
    if (this.atDeath !== null) return "cut";
    if (asked.what === "POST generate") return this.pays(asked);
    const isTime = asked.what === "GET task" && this.polls++ === this.trouble.nth;
    return isTime && this.trouble.kind === "killed while it waits" ? this.dies() : "serve";
  }

  /**
   * The process is killed. It is this one, so it goes on for a moment, with no way to the service, and then the files are
   * brought back as they are now.
   */
  private dies(): "cut" {
    this.atDeath = join(mkdtempSync(join(tmpdir(), "bulkgen-killed-")), "files");
    // By another process: closing a database's file here would drop its locks.
    execFileSync("cp", ["-a", this.root, this.atDeath]);
    this.running?.interrupt();
    return "cut";
  }

  private restores(files: string, before: number): void {
    this.atDeath = null;
    rmSync(this.root, { recursive: true });
    renameSync(files, this.root);
    const receipts = join(this.folder, ".bulkgen", "receipts.jsonl");
    const known = existsSync(receipts) ? readFileSync(receipts, "utf8") : "";
    for (const [at, { id }] of this.made().entries())
      if (at >= before && !known.includes(id)) this.unanswered.set(at, this.folder);
  }

  /** What becomes of a paid request. */
  private async pays(asked: Asked): Promise<Scripted> {
    const { kind, nth } = this.trouble;
    const { model } = JSON.parse(asked.body) as { model: string };
    if (model === this.withdrawn) return { status: 400, json: noModel };
    // The sandbox has no such param.
    asked.body = asked.body.replace(/"mood":"calm",?/, "");
    if (this.paidRequests++ !== nth) return "serve";
    if (kind === "killed before it pays") return this.dies();
    if (kind === "killed after it has paid") {
      this.dies();
      return "serve and cut";
    }
    if (kind === "unsent") return "cut";
    if (kind === "fails") asked.body = asked.body.replace(/"prompt":"/, `$&${failure} `);
    if (kind === "slow") this.slow.add(this.made().length);
    if (kind === "unanswered") {
      this.unanswered.set(this.made().length, this.folder);
      return "serve and cut";
    }
    if (this.meanwhile !== undefined) this.order = this.start(this.meanwhile);
    if (kind === "interrupt") {
      this.running?.interrupt();
      await this.running?.prints(/interrupted: /);
    }
    return "serve";
  }
}

/** The commands that may buy. */
const buying = ["plan", "run", "resume", "redo", "retry", "resolve", "reject", "approve"];

function isKill({ kind }: Trouble): boolean {
  return kind in kills;
}

const mood = { key: "mood", label: "Mood", type: "text", options: [], default: "" };
const noModel = { error: { code: "INVALID_MODEL", message: "There is no such model." } };
const forgotten = { error: { code: "TASK_NOT_FOUND", message: "There is no such task." } };

function ageOf({ at }: MadeTask): number {
  return skippingClock.now() - at;
}

function checkEnd(args: readonly string[], end: Ended): void {
  const said = saidBy(args, end);
  expect([0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 130], said).toContain(end.code);
  expect(end.stderr, said).not.toMatch(/\n\s+at .*:\d+/);
}

export function saidBy(args: readonly string[], { code, stdout, stderr }: Ended): string {
  return `${args.join(" ")}: ${code}\n${stdout}${stderr}`;
}

/** Null if the command was refused. */
export function documentOf<Kind>({ stdout }: Ended): Kind | null {
  if (!stdout.startsWith("{")) return null;
  const document = JSON.parse(stdout) as unknown;
  return isRefusal(document) ? null : (document as Kind);
}

export function creditsOf(tasks: readonly MadeTask[]): number {
  return tasks.filter(isCharged).reduce((sum, { credits }) => sum + credits, 0);
}
