import { cpSync, existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect } from "vitest";
import { indexOf, type Line } from "../e2e/archive.js";
import { type Ended, newPlace, type Place, type Started, started } from "../e2e/command.js";
import { type MadeTask, type SandboxProcess, startSandbox } from "../e2e/sandbox.js";
import { type Scripted, type ScriptedService, startProxy } from "../e2e/service.js";
import { Agreement } from "./agreement.js";
import { isFree, promptOf, type Row, Sheets } from "./sheets.js";
import type { Deed, Trouble } from "./story.js";

interface Planned {
  job: string;
  edition: string;
  money: { needed: number };
  missing: { rowId: string }[];
  standings: Partial<Record<string, number>>;
}

const noTrouble: Trouble = { kind: "none", nth: 0 };

/** A person's folder and account, and what has become of them. Whatever is done holds the program to its promises. */
export class World {
  private readonly place: Place = newPlace();
  private folder = this.place.folder;
  private readonly sheets = new Sheets(() => this.folder);
  private readonly agreed = new Agreement();
  private trouble = noTrouble;
  /** Of the command that runs. */
  private paidRequests = 0;
  private running: Started | null = null;
  /** Positions of the tasks whose answers were lost. */
  private readonly unanswered = new Set<number>();
  private saved: { plan: Planned; rows: Row[] } | null = null;
  /** The sheets that were run for each job. */
  private readonly sheetsOf = new Map<string, Set<string>>();
  private stateWasLost = false;
  private hasTwoFolders = false;
  /** No run has a higher number. */
  private runsMax = 0;

  private constructor(
    private readonly sandbox: SandboxProcess,
    private readonly service: ScriptedService,
  ) {}

  static async open(): Promise<World> {
    const sandbox = await startSandbox("--credits", "100000");
    const service = await startProxy(sandbox, ({ what }) =>
      what === "POST generate" ? world.pays() : "serve",
    );
    const world = new World(sandbox, service);
    return world;
  }

  async close(): Promise<void> {
    await this.sandbox.tasks();
    await this.service.close();
  }

  async does(deed: Deed): Promise<void> {
    switch (deed.do) {
      case "edit":
        return this.sheets.edit(deed);
      case "file":
        return this.sheets.refile(deed);
      case "run":
        return this.plansAndRuns(this.sheets.nameAt(deed.sheet), deed.flags, deed.trouble);
      case "resume":
        return this.orders(["resume", ...(deed.run % 3 === 0 ? [] : [String(deed.run % 3)])], deed);
      case "redo":
        return this.orders(["redo", this.sheets.idAt(deed.row), "--yes"], { ...deed, again: 1 });
      case "retry":
        return this.orders(["retry", "--yes"]);
      case "resolve":
        return this.orders(["resolve", "--all", deed.how, "--yes"], {
          again: deed.how === "--resubmit" ? this.unanswered.size : 0,
        });
      case "cancel":
        return this.orders(["cancel"]);
      case "save plan":
        return this.savesPlan(this.sheets.nameAt(deed.sheet));
      case "run plan":
        return this.runsPlan();
      case "lose file":
        return this.losesFile(deed.file);
      case "lose state":
        // Nobody knows any more of a folder that had another name.
        if (this.hasTwoFolders) return;
        this.stateWasLost = true;
        return rmSync(this.state, { recursive: true, force: true });
      case "move":
        return this.moves();
      case "back up":
        return this.copies(this.state, this.backup);
      case "restore":
        this.stateWasLost ||= existsSync(this.backup);
        return this.copies(this.backup, this.state);
      case "rebuild":
        await this.command(["doctor", "--rebuild", "--yes"]);
        return;
    }
  }

  /** Does what is left to do, and looks at everything. */
  async end(): Promise<void> {
    for (const name of this.sheets.names()) await this.plansAndRuns(name, [], noTrouble);
    for (let run = 1; run <= this.runsMax; run++) await this.collects(run);
    if (this.stateWasLost) return;
    this.checkCollected();
    await this.checkBooks();
    for (const name of this.sheets.names()) await this.checkFiles(name);
  }

  /** What a run has paid for is collected, if not by going on with it then by ending it. */
  private async collects(run: number): Promise<void> {
    const { end } = await this.pursues(["resume", String(run)], {});
    if (!end.stderr.includes(`bulkgen cancel ${run}`)) return;
    await this.orders(["cancel", String(run)]);
    await this.orders(["resume", String(run)]);
  }

  private async plansAndRuns(name: string, flags: readonly string[], trouble: Trouble): Promise<void> {
    const isElsewhere = flags[0] === "--out";
    // Nobody can know of a folder that has neither a history nor its usual name.
    if (isElsewhere && this.stateWasLost) return;
    this.hasTwoFolders ||= isElsewhere;
    const args = [`${name}.csv`, ...flags];
    const planned = await this.command(["plan", ...args, "--json"]);
    const plan = documentOf<Planned>(planned);
    const rows = this.sheets.rows(name);
    if (plan !== null && planned.code === 0) {
      this.agreed.to(plan, rows);
      this.sheetsOf.set(plan.job, (this.sheetsOf.get(plan.job) ?? new Set()).add(name));
      if (flags.includes("pay")) this.agreed.toMore(plan.job, plan.missing.length);
      // A lost history counts no editions.
      if (flags.includes("--fresh") && this.stateWasLost) this.agreed.toMore(plan.job, rows.length);
    }
    const { end, spent } = await this.pursues(["run", ...args, "--yes"], { trouble, job: plan?.job });
    if (plan === null) return;
    const said = `${args.join(" ")}: ${planned.stdout}${end.stdout}${end.stderr}`;
    if (planned.code !== 0) {
      expect([end.code, spent], said).toEqual([planned.code, 0]);
      return;
    }
    expect(end.code, said).not.toBe(2);
    expect(spent, said).toBeLessThanOrEqual(plan.money.needed);
    if (end.code === 0 && !rows.some((row) => isFree(promptOf(row))))
      expect(spent, said).toBe(plan.money.needed);
  }

  private async savesPlan(name: string): Promise<void> {
    const end = await this.command(["plan", `${name}.csv`, "-o", "saved.json", "--json"]);
    const plan = documentOf<Planned>(end);
    if (plan !== null && end.code === 0) this.saved = { plan, rows: structuredClone(this.sheets.rows(name)) };
  }

  private async runsPlan(): Promise<void> {
    if (this.saved === null) return;
    const { plan, rows } = this.saved;
    this.agreed.to(plan, rows);
    const { end, spent } = await this.pursues(["run", "saved.json", "--yes"], { job: plan.job });
    expect(spent, end.stderr).toBeLessThanOrEqual(plan.money.needed);
  }

  /** Gives an order about runs that there are; `again` pictures may be paid for once more. */
  private async orders(
    args: readonly string[],
    { trouble, again = 0 }: { trouble?: Trouble; again?: number } = {},
  ): Promise<void> {
    await this.pursues(args, { trouble, again });
  }

  /** Runs a command that may pay, for nothing twice. What it has spent, in credits. */
  private async pursues(
    args: readonly string[],
    how: { trouble?: Trouble | undefined; job?: string | undefined; again?: number },
  ): Promise<{ end: Ended; spent: number }> {
    const before = this.made().length;
    const end = await this.command([...args, "--json"], how.trouble);
    const news = this.made().slice(before);
    const told = documentOf<{ run: number; job: string }>(end);
    // A rebuild may add one for each job and folder.
    this.runsMax = Math.max(this.runsMax, (told?.run ?? 0) + 3);
    const job = how.job ?? told?.job;
    const said = `${args.join(" ")}: ${end.code}\n${end.stdout}${end.stderr}`;
    if (job === undefined) {
      expect(news, said).toEqual([]);
      return { end, spent: 0 };
    }
    if (end.code !== 2) this.agreed.toMore(job, how.again ?? 0);
    this.agreed.made(job, news.length);
    expect(this.agreed.breach(this.made()), said).toBeNull();
    return { end, spent: creditsOf(news) };
  }

  private async command(args: readonly string[], trouble = noTrouble): Promise<Ended> {
    this.trouble = trouble;
    this.paidRequests = 0;
    this.running = started(this.place, args, { ...this.service, cwd: this.folder });
    const end = await this.running.ended;
    const said = `${args.join(" ")}: ${end.code}\n${end.stdout}${end.stderr}`;
    expect([0, 2, 3, 4, 5, 6, 7, 8, 10, 130], said).toContain(end.code);
    expect(end.stderr, said).not.toMatch(/\n\s+at .*:\d+/);
    return end;
  }

  /** What becomes of a paid request. */
  private async pays(): Promise<Scripted> {
    const { kind, nth } = this.trouble;
    if (this.paidRequests++ !== nth) return "serve";
    if (kind === "unsent") return "cut";
    if (kind === "unanswered") {
      this.unanswered.add(this.made().length);
      return "serve and cut";
    }
    if (kind === "interrupt") {
      this.running?.interrupt();
      await this.running?.prints(/interrupted: /);
    }
    return "serve";
  }

  /** What was paid for is in the archive. */
  private checkCollected(): void {
    const known = new Set(this.folders().flatMap((folder) => indexOf(folder).map(({ task }) => task)));
    const missing = this.made().filter(
      (task, at) => !isFree(task.prompt) && !this.unanswered.has(at) && !known.has(task.id),
    );
    expect(missing, "paid for and not archived").toEqual([]);
  }

  /** The runs have spent what the account was charged. */
  private async checkBooks(): Promise<void> {
    let [spent, pending] = [0, 0];
    for (let run = 1; run <= this.runsMax; run++) {
      const status = documentOf<{ credits: Record<"spent" | "pending" | "lost", number> }>(
        await this.command(["status", String(run), "--json"]),
      );
      spent += status?.credits.spent ?? 0;
      pending += (status?.credits.pending ?? 0) + (status?.credits.lost ?? 0);
    }
    const charged = creditsOf(this.made());
    expect(spent, "credits in the books").toBeLessThanOrEqual(charged);
    expect(
      spent + pending,
      "credits in the books, with those that may have been charged",
    ).toBeGreaterThanOrEqual(charged);
  }

  /** Each row has the picture that it wants, and no other. */
  private async checkFiles(name: string): Promise<void> {
    const planned = await this.command(["plan", `${name}.csv`, "--json"]);
    const plan = documentOf<Planned>(planned);
    const rows = this.sheets.rows(name);
    const isMade = planned.code === 0 && plan?.edition === "" && plan.standings["archived"] === rows.length;
    // Files in another output folder stay there under their names, and of two sheets of a job the last one names them.
    if (!isMade || this.hasTwoFolders || this.hasTwoSheets(plan.job)) return;
    const prompts = new Map(this.made().map(({ id, prompt }) => [id, prompt]));
    const lost = new Set(plan.missing.map(({ rowId }) => rowId));
    const files = filesIn(join(this.folder, "outputs", plan.job)).filter(({ file }) => !file.includes("/"));
    for (const row of rows.filter(({ id }) => !lost.has(id))) {
      const own = files.filter(({ item }) => item === row.id).map(({ task }) => prompts.get(task));
      expect([...new Set(own)], `files of ${row.id} of ${name}`).toEqual([promptOf(row)]);
    }
  }

  private hasTwoSheets(job: string): boolean {
    return (this.sheetsOf.get(job)?.size ?? 0) > 1;
  }

  /** The whole folder gets another name. */
  private moves(): void {
    const to = this.folder === this.place.folder ? `${this.folder} and there` : this.place.folder;
    renameSync(this.folder, to);
    this.folder = to;
  }

  private losesFile(at: number): void {
    const files = this.folders().flatMap((folder) => filesIn(folder).map(({ file }) => join(folder, file)));
    const file = files[at % Math.max(1, files.length)];
    if (file !== undefined) rmSync(file);
  }

  private copies(from: string, to: string): void {
    if (!existsSync(from)) return;
    rmSync(to, { recursive: true, force: true });
    cpSync(from, to, { recursive: true });
  }

  private get state(): string {
    return join(this.folder, ".bulkgen");
  }

  private get backup(): string {
    return join(this.folder, "backup");
  }

  private made(): MadeTask[] {
    return this.sandbox.madeSoFar();
  }

  /** The jobs' folders. */
  private folders(): string[] {
    return readdirSync(this.folder, { recursive: true, encoding: "utf8" })
      .filter((file) => basename(file) === "index.jsonl")
      .map((file) => dirname(join(this.folder, file)))
      .toSorted();
  }
}

function documentOf<Kind>({ stdout }: Ended): Kind | null {
  return stdout.startsWith("{") ? (JSON.parse(stdout) as Kind) : null;
}

function creditsOf(tasks: readonly MadeTask[]): number {
  return tasks.filter(({ prompt }) => !isFree(prompt)).reduce((sum, { credits }) => sum + credits, 0);
}

/** The files that a job's folder has, each with the last line about it. */
function filesIn(folder: string): Line[] {
  const newest = new Map(indexOf(folder).map((line) => [`${line.task} ${line.output}`, line]));
  return [...newest.values()].filter(({ file }) => existsSync(join(folder, file)));
}
