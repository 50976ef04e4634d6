import { existsSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "vitest";
import type { Ended } from "../e2e/command.js";
import type { MadeTask } from "../e2e/sandbox.js";
import { skippingClock } from "../e2e/skipping-clock.js";
import { Agreement } from "./agreement.js";
import { Commands, creditsOf, documentOf, type Meanwhile, noTrouble, saidBy } from "./commands.js";
import { Desk, type Planned } from "./desk.js";
import { checkBooks, checkCollected, checkFiles } from "./ending.js";
import { askedOf, isCharged, isFree, itemsMax, promptOf } from "./sheets.js";
import {
  type Address,
  bucket,
  type Deed,
  days,
  orders,
  type Restored,
  type SecondRun,
  secondRuns,
  type Trouble,
  times,
  type Which,
} from "./story.js";

/** A person's two folders and account, and what has become of them. Whatever is done holds the program to its promises. */
export class World {
  private nextId = 0;
  private readonly desks: readonly [Desk, Desk];
  private desk: Desk;
  private sharedStateWasLost = false;
  private sharedStateIsOlder = false;
  private keysAtBackup = false;
  private hasNewPrices = false;
  private readonly agreed = new Agreement();
  /** In whose folder and for which user each task was paid for. */
  private readonly payers: { desk: Desk; user: string; address: Address; called: string }[] = [];
  /** Tasks whose files the service no longer had when somebody came to collect them. */
  private readonly tooLate = new Set<string>();
  /** Tasks that nobody knew of any more. */
  private readonly forgotten = new Set<string>();
  /** Jobs that a person has said to make, whatever was made elsewhere. */
  private readonly madeHereToo = new Set<string>();

  private constructor(
    private readonly commands: Commands,
    private readonly newDatabase: (() => string) | null,
  ) {
    const newId = () => `r${this.nextId++}`;
    this.desks = [new Desk(commands.newFolder("here"), newId), new Desk(commands.newFolder("there"), newId)];
    this.desk = this.desks[0];
  }

  /** `env` gives access to a bucket. With `newDatabase`, states can be moved to databases. */
  static async open(env: Record<string, string>, newDatabase: (() => string) | null = null): Promise<World> {
    return new World(await Commands.open(env), newDatabase);
  }

  close(): Promise<void> {
    return this.commands.close();
  }

  async does(deed: Deed): Promise<void> {
    switch (deed.do) {
      case "edit":
        return this.desk.sheets.edit(deed);
      case "file":
        return this.desk.sheets.refile(deed);
      case "run":
        return this.plansAndRuns(this.desk.sheets.nameAt(deed.sheet), deed.flags, deed.trouble);
      case "resume":
        return this.resumes(deed);
      case "redo":
        return this.orders(["redo", this.desk.sheets.idAt(deed.row), "--yes"], { ...deed, again: 1 });
      case "approve":
        return this.orders(["approve", ...this.named(deed.which)]);
      case "reject":
        this.desk.hasRejected = true;
        return this.orders(["reject", ...this.named(deed.which)]);
      case "reject again":
        this.desk.hasRejected = true;
        return this.orders(["reject", ...this.named(deed.which), "--again", "--yes"], { again: 1 });
      case "review":
        return this.reviews(deed);
      case "retry":
        return this.orders(["retry", "--yes"]);
      case "resolve":
        return this.orders(["resolve", "--all", deed.how, "--yes"], {
          again: deed.how === "--resubmit" ? this.commands.unanswered.size : 0,
        });
      case "adopt task":
        return this.adoptsTask(deed.task, this.desk.sheets.idAt(deed.row));
      case "adopt files":
        return this.adoptsFiles(this.desk.sheets.nameAt(deed.sheet));
      case "redo some":
        return this.orders(["redo", ...deed.flags, "--yes"], { again: itemsMax });
      case "retry some":
        return this.orders(["retry", ...deed.flags, "--yes"]);
      case "cancel":
        return this.orders(["cancel"]);
      case "save plan":
        return this.savesPlan(this.desk.sheets.nameAt(deed.sheet));
      case "run plan":
        return this.runsPlan();
      case "harm file":
        this.desk.hasHarmed = true;
        return this.desk.files.harm(deed.file, deed.how);
      case "verify":
        return this.verifies(deed.flags);
      case "lose state":
        this.desk.losesState();
        return this.forgets();
      case "move":
        return this.desk.moves();
      case "go to another machine":
        return this.desk.comesFromElsewhere();
      case "use address":
        return this.commands.goTo(deed.address);
      case "migrate":
        return this.migrates();
      case "catalogue":
        this.commands.catalogue = deed.how;
        this.hasNewPrices ||= deed.how === "dearer";
        return;
      case "wait":
        return this.waits(times[deed.time]);
      case "back up":
        this.keysAtBackup = this.commands.hasOneKey;
        this.commands.copiesSharedState("keep");
        return this.desk.backsUp();
      case "restore":
        return this.restores(deed.what);
      case "go to the other folder":
        this.desk = this.otherDesk;
        return;
      case "fetch a sheet":
        return this.desk.sheets.take(this.otherDesk.sheets, deed.sheet, deed.how);
      case "lose shared state":
        this.sharedStateWasLost = true;
        this.commands.losesSharedState();
        for (const desk of this.desks) await this.commands.run(desk, ["trust", "--yes"]);
        return this.forgets();
      case "use key":
        this.desk.hasTwoUsers ||= deed.key === "another user's";
        return this.commands.use(deed.key);
      case "rebuild":
        await this.command(["doctor", "--rebuild", "--yes"]);
        return;
    }
  }

  private async resumes({ run, flags, trouble }: Deed & { do: "resume" }): Promise<void> {
    const which = run % 3 === 0 ? [] : [String(run % 3)];
    const before = this.made().length;
    await this.orders(["resume", ...which, ...flags], { trouble });
    if (this.meanwhile(trouble) === undefined) this.keepsCaps(flags, before);
  }

  /** A command spends no more than its caps. */
  private keepsCaps([flag, value]: readonly string[], before: number): void {
    const news = this.made().slice(before);
    if (flag === "--max-credits") expect(creditsOf(news)).toBeLessThanOrEqual(Number(value));
    if (flag !== "--max-credits-per-model") return;
    const edits = news.filter((task) => /^drawing| after photo /.test(askedOf(task)));
    expect(creditsOf(edits)).toBeLessThanOrEqual(Number(value?.split("=")[1]));
  }

  /** The state goes to a database, or back to files. */
  private async migrates(): Promise<void> {
    const { desk } = this;
    const before = this.paidFor();
    const away = desk.database ?? desk.lastDatabase ?? this.newDatabase?.();
    if (away === undefined) return;
    const file = join(".bulkgen", "state.db");
    const [from, to] = desk.database === null ? [file, away] : [away, file];
    const end = await this.command(["migrate", "--from", from, "--to", to]);
    expect(this.paidFor(), end.stderr).toEqual(before);
    if (end.code !== 0) return;
    desk.database = desk.database === null ? away : null;
    desk.lastDatabase = away;
  }

  /** What nobody has collected meanwhile may be gone. */
  private waits(ms: number): void {
    this.commands.passes(ms);
    const known = this.archived();
    for (const [at, task] of this.made().entries()) {
      if (this.commands.keepsFiles(task) || known.has(task.id) || this.tooLate.has(task.id)) continue;
      this.tooLate.add(task.id);
      const payer = this.payers[at];
      // Without the history, a task counts for two weeks.
      if (payer?.desk.stateWasLost) this.agreed.toMore(payer.called, 1);
    }
  }

  /** A copy comes back. What was bought since is known to the folder, to the machine, or to the key's counters alone. */
  private restores(what: Restored): void {
    if (!this.desk.hasBackup) return;
    if (what === "state") {
      this.desk.restores(false);
      this.forgets();
      return;
    }
    const isClear = this.commands.unanswered.size === 0 && this.made().every(isCharged);
    // Neither can be told from what other keys, lost answers and returned credits have done to the counters.
    if (what === "everything" && !(isClear && this.keysAtBackup && this.commands.hasOneKey)) return;
    this.commands.copiesSharedState("bring back");
    this.sharedStateIsOlder = true;
    if (what === "everything") this.desk.restores(true);
  }

  /** With a folder's state and the account's both lost, only the archive says what was paid for. */
  private forgets(): void {
    if (!this.sharedStateWasLost) return;
    const known = this.archived();
    for (const [at, task] of this.made().entries()) {
      const payer = this.payers[at];
      if (payer?.desk.stateWasLost !== true || known.has(task.id) || this.forgotten.has(task.id)) continue;
      this.forgotten.add(task.id);
      this.agreed.toMore(payer.called, 1);
    }
  }

  /** The tasks whose outputs are in an archive. */
  private archived(): Set<string> {
    return new Set(this.desks.flatMap(({ files }) => files.lines()).map(({ task }) => task));
  }

  /** Does what is left to do, and looks at everything. */
  async end(): Promise<void> {
    // A folder in which nothing was done has nothing to look at.
    const desks = this.desks.filter((desk) => desk === this.desk || desk.runsMax > 0);
    // Such a task is polled rarely.
    if (this.commands.finishesAll()) this.waits(days(1));
    this.commands.catalogue = "usual";
    for (const desk of desks) desk.sheets.putBack();
    for (const desk of desks) {
      this.desk = desk;
      for (const name of desk.sheets.names()) await this.plansAndRuns(name, [], noTrouble);
      await this.collectsAll();
    }
    if (desks.some(({ stateWasLost }) => stateWasLost)) return;
    for (const desk of desks) {
      this.desk = desk;
      await this.verifies(["--read-data", "--repair"]);
      // What a repair has brought back gets its place in the next run.
      for (const name of desk.sheets.names()) await this.plansAndRuns(name, [], noTrouble);
    }
    checkCollected(this.commands, desks, this.tooLate);
    await checkBooks(this.commands, desks);
    for (const desk of desks)
      for (const name of desk.sheets.names()) await checkFiles(this.commands, desk, name);
  }

  /** Collects for every user, and approves until nothing waits for it. */
  private collectsAll(): Promise<void> {
    return this.commands.withEachKey(async () => {
      for (let isLeft = true; isLeft; isLeft = await this.approvesAll())
        for (let run = 1; run <= this.desk.runsMax; run++) await this.collects(run);
    });
  }

  /** Whether anything waited. */
  private async approvesAll(): Promise<boolean> {
    for (let count = 0; ; count++) {
      const { end } = await this.pursues(["approve", "--all"], {});
      if (end.code !== 0 || end.stderr.includes("no item waits for approval")) return count > 0;
    }
  }

  /** What a run has paid for is collected, if not by going on with it then by ending it. */
  private async collects(run: number): Promise<void> {
    let { end } = await this.pursues(["resume", String(run)], {});
    // A run keeps its own limit of requests a day.
    for (let day = 0; day < 5 && end.stderr.includes("the day's requests are used up"); day++) {
      this.waits(days(1));
      ({ end } = await this.pursues(["resume", String(run)], {}));
    }
    if (!end.stderr.includes(`bulkgen cancel ${run}`)) return;
    await this.orders(["cancel", String(run)]);
    await this.orders(["resume", String(run)]);
  }

  private named(which: Which): readonly string[] {
    if (which === null) return ["--all"];
    return [`${this.desk.sheets.idAt(which.row)}${which.variant === 1 ? "" : `-v${which.variant}`}`];
  }

  private async reviews({ command, decisions }: Deed & { do: "review" }): Promise<void> {
    const lines = decisions.map(({ which, decision }) => `${this.named(which).join()},${decision}`);
    writeFileSync(join(this.desk.folder, "review.csv"), ["id,decision", ...lines].join("\n"));
    this.desk.hasRejected ||= command[0] === "reject";
    const isPaid = command[0] === "redo" || command.length > 1;
    const again = isPaid ? new Set(lines.filter((line) => line.endsWith(",redo"))).size : 0;
    await this.orders([...command, "--from", "review.csv", ...(isPaid ? ["--yes"] : [])], { again });
  }

  /** Finds a task whose answer was lost, and says which row it is of. */
  private async adoptsTask(at: number, row: string): Promise<void> {
    const own = [...this.commands.unanswered]
      .filter(([, folder]) => folder === this.desk.folder)
      .map(([position]) => position);
    const position = own[at % Math.max(1, own.length)];
    const task = position === undefined ? undefined : this.made()[position];
    if (position === undefined || task === undefined) return;
    const { end } = await this.pursues(["resolve", row, "--adopt", task.id, "--yes"], {});
    if (end.code !== 2) this.commands.unanswered.delete(position);
  }

  /** Takes what is in the output folder, also from where the workspace has lost it, for the rows of a sheet. */
  private async adoptsFiles(name: string): Promise<void> {
    if (!existsSync(join(this.desk.folder, "outputs"))) return;
    this.desk.hasAdopted = true;
    const before = this.paidFor();
    const end = await this.command(["adopt", "outputs", this.desk.sheets.manifest(name), "--json"]);
    expect(this.paidFor(), end.stderr).toEqual(before);
  }

  private async plansAndRuns(name: string, given: readonly string[], trouble: Trouble): Promise<void> {
    const flags = given.map((word) => (word === bucket ? this.bucketOf(this.desk) : word));
    const isElsewhere = flags[0] === "--out";
    // Nobody can know of a folder that has neither a history nor its usual name.
    if (isElsewhere && this.desk.stateWasLost) return;
    this.desk.hasTwoFolders ||= isElsewhere;
    this.desk.hasBucketAlone ||= flags.includes("--archive-only");
    const { plan, planned } = await this.plans(name, flags);
    if (trouble.kind in secondRuns) await this.plansToo(trouble.kind as SecondRun);
    const rows = this.desk.sheets.rows(name);
    const args = [this.desk.sheets.manifest(name), ...flags];
    const consent = flags.includes("--max-price") ? [] : ["--yes"];
    const before = this.made().length;
    const { end, spent } = await this.pursues(["run", ...args, ...consent], { trouble, job: plan?.job });
    if (plan === null) return;
    const said = `${args.join(" ")}: ${planned.stdout}${end.stdout}${end.stderr}`;
    if (planned.code !== 0) {
      // The plan may have used the last requests of the day. Without a failed row nobody's run is in the way.
      const hasNothing = flags.includes("--only-failed") ? [0] : [];
      expect([planned.code, 8, ...hasNothing], said).toContain(end.code);
      expect(spent, said).toBe(0);
      return;
    }
    if (consent.length > 0) expect(end.code, said).not.toBe(2);
    else expect(spent, said).toBeLessThanOrEqual(3);
    // Orders what was lost again, or something else meanwhile, which no plan can know.
    if (flags.includes("resubmit") || this.meanwhile(trouble) !== undefined) return;
    this.keepsCaps(flags, before);
    const { needed, inDoubt } = plan.money;
    expect(spent, said).toBeLessThanOrEqual(needed + inDoubt);
    const isListed = inDoubt === 0 && !this.hasNewPrices;
    const isFixed = isListed && !this.desk.hasRejected && !rows.some((row) => isFree(promptOf(row)));
    if (end.code === 0 && isFixed) expect(spent, said).toBe(needed);
  }

  /** Asks what a run would do, and agrees to it. */
  private async plans(name: string, flags: readonly string[]) {
    const manifest = this.desk.sheets.manifest(name);
    const planned = await this.command(["plan", manifest, ...flags, "--json"]);
    const plan = documentOf<Planned>(planned);
    if (plan === null || planned.code !== 0) return { plan, planned };
    const rows = this.desk.sheets.rows(name);
    const called = this.called(plan.job);
    this.agreed.to({ ...plan, job: called }, rows);
    this.desk.ran(plan.job, name);
    if (["--job", "--edition", "--fresh", "pay"].some((flag) => flags.includes(flag)))
      this.agreesToMake(plan.job);
    if (flags.includes("resubmit")) this.agreed.toMore(called, this.commands.unanswered.size + 1);
    if (flags.includes("pay")) this.agreed.toMore(called, plan.missing.length);
    // A lost history counts no editions.
    if (flags.includes("--fresh") && this.desk.stateWasLost) this.agreed.toMore(called, rows.length);
    return { plan, planned };
  }

  /** The same for a run that begins during another one. Of two folders at a time, neither may know what the other pays. */
  private async plansToo(kind: SecondRun): Promise<void> {
    const desk = this.desk;
    if (kind === "run there") this.desk = this.otherDesk;
    const { plan } = await this.plans(this.desk.sheets.nameAt(0), []);
    if (kind === "run there" && plan !== null) this.agreesToMake(plan.job);
    this.desk = desk;
  }

  /** What is ordered during a command that meets with this. */
  private meanwhile({ kind }: Trouble): Meanwhile | undefined {
    const place = kind === "run there" ? this.otherDesk : this.desk;
    if (kind in secondRuns) {
      const manifest = place.sheets.manifest(place.sheets.nameAt(0));
      const args = ["run", manifest, "--yes", ...secondRuns[kind as SecondRun], "--json"];
      return { place, args };
    }
    return kind in orders ? { place, args: orders[kind as keyof typeof orders] } : undefined;
  }

  /** Nothing is paid, and what is called intact is so. The service still has everything, so that a repair succeeds. */
  private async verifies(flags: readonly string[]): Promise<void> {
    const before = this.paidFor();
    const end = await this.command(["verify", ...flags, "--json"]);
    const said = saidBy(["verify", ...flags], end);
    expect(this.paidFor(), said).toEqual(before);
    const told = documentOf<Verified>(end);
    if (this.desk.stateWasLost || told === null || !flags.includes("--read-data")) return;
    const broken = this.desk.files.broken();
    if (end.code === 0) expect(broken, said).toEqual([]);
    // What is paid for again in place of a lost file, and was not answered, has no task to download from.
    if (this.commands.unanswered.size > 0) return;
    if (this.made().some((task) => !this.commands.keepsFiles(task))) return;
    // A file that was adopted has no task to download it from.
    if (this.desk.hasAdopted && this.desk.hasHarmed) return;
    if (told.later?.startsWith("the day's requests")) expect(end.code, said).toBe(5);
    else if (flags.includes("--repair")) expect(end.code, said).toBe(0);
    // A run that got a bucket does not copy what was archived before: verify --repair does.
    else if (broken.length === 0) expect(end.code, said).toBe(isCopied(told) ? 0 : 5);
  }

  private async savesPlan(name: string): Promise<void> {
    const end = await this.command(["plan", this.desk.sheets.manifest(name), "-o", "saved.json", "--json"]);
    const plan = documentOf<Planned>(end);
    if (plan !== null && end.code === 0)
      this.desk.saved = { plan, rows: structuredClone(this.desk.sheets.rows(name)) };
  }

  private async runsPlan(): Promise<void> {
    if (this.desk.saved === null) return;
    const { plan, rows } = this.desk.saved;
    this.agreed.to({ ...plan, job: this.called(plan.job) }, rows);
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
    if (how.trouble?.kind === "redo meanwhile")
      for (const name of this.desk.jobs()) this.agreed.toMore(this.called(name), 1);
    for (const desk of this.desks) desk.newIntents();
    const trouble = how.trouble ?? noTrouble;
    const end = await this.command([...args, "--json"], { trouble, meanwhile: this.meanwhile(trouble) });
    const news = this.made().slice(before);
    const told = documentOf<Told>(end);
    // A rebuild may add one for each job and folder.
    this.desk.runsMax = Math.max(this.desk.runsMax, (told?.run ?? 0) + 3);
    const there = trouble.kind === "run there" && end.order ? documentOf<Told>(end.order) : null;
    if (there !== null) this.otherDesk.runsMax = Math.max(this.otherDesk.runsMax, there.run + 3);
    const job = how.job ?? told?.job;
    const said = saidBy(args, end) + (end.order ? saidBy([trouble.kind], end.order) : "");
    if (job === undefined) {
      expect(news, said).toEqual([]);
      return { end, spent: 0 };
    }
    if (end.code !== 2) this.agreed.toMore(this.called(job), how.again ?? 0);
    if (how.again) this.agreesToMake(job);
    const intents = this.desks.flatMap((desk) => desk.newIntents().map((intent) => ({ desk, ...intent })));
    for (const task of news) {
      const at = intents.findIndex(({ prompt }) => prompt === askedOf(task));
      const [intent] = at < 0 ? [] : intents.splice(at, 1);
      if (intent === undefined) throw new Error(`${task.prompt} is not in the receipts: ${said}`);
      this.takesIn(task, intent, said);
    }
    expect(this.agreed.breach(this.made()), said).toBeNull();
    return { end, spent: creditsOf(news) };
  }

  private takesIn(task: MadeTask, { desk, job }: { desk: Desk; job: string }, said: string): void {
    const called = this.called(job, desk);
    this.agreed.made(called);
    expect(this.paidInBoth(task, { desk, called }), said).toBe(false);
    expect(this.paidAsOther(task, { desk, called }), said).toBe(false);
    const { user, address } = this.commands;
    this.payers.push({ desk, user, address, called });
  }

  private command(args: readonly string[], how: Parameters<Commands["run"]>[2] = {}) {
    return this.commands.run(this.desk, args, how);
  }

  /** Whether the other folder has it, and nobody had said to make it in this one too. */
  private paidInBoth(task: MadeTask, { desk: payer, called: job }: { desk: Desk; called: string }): boolean {
    const isKnown =
      !this.sharedStateWasLost &&
      !this.sharedStateIsOlder &&
      this.desks.every(({ stateWasLost, lastDatabase }) => !stateWasLost && lastDatabase === null);
    if (!isKnown || this.madeHereToo.has(job)) return false;
    const made = this.made();
    const there = this.payers.flatMap(({ desk, user, address, called }, at) => {
      const isUser = user === this.commands.user && address === this.commands.address;
      const isOurs = desk !== payer && isUser && !this.madeHereToo.has(called);
      return isOurs && !this.commands.unanswered.has(at) && isRecent(made[at]) ? [made[at]?.prompt] : [];
    });
    return task.prompt.startsWith("picture") && isCharged(task) && there.includes(task.prompt);
  }

  /**
   * Whether another job, another user, or this one at another address, has it in this folder, whatever the catalogue was,
   * and nobody had said to make it again.
   */
  private paidAsOther(task: MadeTask, { desk: payer, called: job }: { desk: Desk; called: string }): boolean {
    if (payer.stateWasLost || this.madeHereToo.has(job)) return false;
    const made = this.made();
    const others = this.payers.flatMap(({ desk, user, address, called }, at) => {
      const isOther = user !== this.commands.user || address !== this.commands.address || called !== job;
      const counts = desk === payer && isOther && !this.madeHereToo.has(called);
      return counts && !this.commands.unanswered.has(at) && isPaid(made[at]) ? [made[at]?.prompt] : [];
    });
    return task.prompt.startsWith("picture") && isCharged(task) && others.includes(task.prompt);
  }

  private agreesToMake(job: string): void {
    this.madeHereToo.add(this.called(job));
  }

  private get otherDesk(): Desk {
    return this.desks[this.desk === this.desks[0] ? 1 : 0];
  }

  /** Two folders may have jobs of the same name, and so may two users or addresses of one folder. */
  private called(job: string, desk = this.desk): string {
    return [this.desks.indexOf(desk), this.commands.user, this.commands.address, job].join(" ");
  }

  private bucketOf(desk: Desk): string {
    return `${bucket}/${basename(this.commands.root)}/${this.desks.indexOf(desk)}`;
  }

  private made(): MadeTask[] {
    return this.commands.made();
  }

  /** The ids of all tasks: what has become of one may change meanwhile. */
  private paidFor(): string[] {
    return this.made().map(({ id }) => id);
  }
}

/** What a command that pays prints as JSON, as far as it matters here. */
interface Told {
  run: number;
  job: string;
}

function isPaid(task: MadeTask | undefined): boolean {
  return task !== undefined && isCharged(task);
}

/** What another folder has paid for counts for a month. */
function isRecent(task: MadeTask | undefined): boolean {
  return task !== undefined && skippingClock.now() - task.at < days(30);
}

interface Verified {
  later: string | null;
  folders: { findings: { kind: string }[] }[];
}

function isCopied({ folders }: Verified): boolean {
  return folders.every(({ findings }) => findings.every(({ kind }) => kind !== "uncopied"));
}
