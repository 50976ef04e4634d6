import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import PQueue from "p-queue";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import type { Clock } from "../../clock.js";
import { backoffMs, readTriesMax } from "../../core/again.js";
import type { Log } from "../../core/ports/send.js";
import type { AfterLeft, Item, Run, SavedFile } from "../../core/ports/store.js";
import { runShell, type ShellResult } from "../../shell.js";
import { type AfterWork, openAfterRecord } from "../../store/after.js";
import type { Store } from "../../store/workspace/workspace.js";
import { count, duration } from "../../text/amounts.js";
import type { Environment } from "../../text/environment.js";
import { someOf } from "../../text/reasons.js";
import { shellWord } from "../../text/shell.js";
import { shortText } from "../../text/terminal.js";
import { decisionsOn, finalOf } from "../../workspace/takes/final-set.js";
import type { Workspace } from "../../workspace/workspace.js";
import { environmentOfFile, environmentOfSet, type FileFacts } from "./environment.js";
import { type SetItem, setItems } from "./set-items.js";
import { commandsOf } from "./settings.js";

/**
 * Runs the user's commands after files and after the set, beside the run: no request and no poll waits for them, and what
 * becomes of them changes no item. Each file is passed on as it is archived. At its end the run goes through all files of its
 * rows once more: what an earlier run left, what a crash cut short, what another command was run for, and what did not fit
 * into the queue.
 */
export interface After {
  /** A file was archived. */
  saved(item: Item, number: number, file: SavedFile): void;
  /** Resolves when every command that was begun or waits has ended: they may have taken files away. */
  idle(): Promise<void>;
  /** Waits for all commands. */
  finish(ending: Ending): Promise<AfterOutcome>;
  /** Ends the commands that are still running, and lets go of the record. */
  close(): Promise<void>;
}

/** How the run ends, asked once the commands after files have ended. */
export interface Ending {
  /** Everything that the run was to make is archived, and nobody is asked about it any more. */
  isWell(): Promise<boolean>;
  /** The numbers of the job's files that are nowhere, by the keys of their items. */
  missing(): Promise<ReadonlyMap<string, readonly number[]>>;
}

export interface AfterOutcome extends AfterLeft {
  /** Files whose command has done its work in this execution. */
  done: number;
  /** The command after the set has done its work in this execution. */
  setDone: boolean;
  /** What the job still lacks, so that the command after the set was not run although the run ended well; null if nothing. */
  setWaits: string | null;
}

export interface AfterOptions {
  run: Run;
  store: Store;
  workspace: Pick<Workspace, "root" | "stateFile">;
  environment: Environment;
  clock: Clock;
  log: Log;
  interrupt: AbortSignal;
}

const commandsAtOnce = 2;
/** Files that wait in memory for their turn; the others are found at the end. */
const waitingMax = 1_000;
/** After so many failures in a row nothing more is tried: the program is missing, or the command is wrong. */
const failuresMax = 10;
/** Failures whose reasons are kept. */
const reasonsMax = 20;
const reasonCharactersMax = 300;
/** Exit codes of the shell for a program that is not there, or is none: another try changes nothing. */
const hopeless = [126, 127];

/** Null if the run has no commands. */
export function openAfter(options: AfterOptions): After | null {
  const { file, set } = commandsOf(options.run.options);
  return file === "" && set === "" ? null : new Commands(options);
}

class Commands implements After {
  private readonly queue = new PQueue({ concurrency: commandsAtOnce });
  private readonly commands: ReturnType<typeof commandsOf>;
  private readonly record: ReturnType<typeof openAfterRecord>;
  private readonly ended = new AbortController();
  private readonly signal: AbortSignal;
  /** What waits, runs or has failed in this execution, so that the end does not begin it again. */
  private readonly begun = new Set<string>();
  private readonly reasons: AfterOutcome["reasons"] = [];
  private inARow = 0;
  private done = 0;
  private failed = 0;
  private left = 0;
  private crash: unknown;

  constructor(private readonly options: AfterOptions) {
    this.commands = commandsOf(options.run.options);
    this.record = openAfterRecord(join(dirname(options.workspace.stateFile), "after.db"));
    this.signal = AbortSignal.any([options.interrupt, this.ended.signal]);
  }

  saved(item: Item, number: number, file: SavedFile): void {
    if (this.commands.file === "" || file.bucket != null || this.queue.size >= waitingMax) return;
    this.add({ item, number, ...file, path: join(jobFolder(this.options.run), file.file) });
  }

  private add(file: FileFacts): void {
    const work = this.workOf(file);
    if (this.isOver || this.begun.has(work.of) || this.record.has(work)) return;
    this.begun.add(work.of);
    void this.queue
      .add(() => this.afterFile(file, work))
      .catch((error: unknown) => {
        this.crash ??= error;
      });
  }

  private workOf({ item, number, sha256 }: Pick<FileFacts, "item" | "number" | "sha256">): AfterWork {
    return { command: this.commands.file, of: `${item.key}\n${number}\n${sha256}` };
  }

  private get isOver(): boolean {
    return this.signal.aborted || this.inARow >= failuresMax;
  }

  private async afterFile(file: FileFacts, work: AfterWork): Promise<void> {
    const { run, clock, log } = this.options;
    // What was moved since, or taken away, and what is not begun any more: the run sees to it at its end.
    if (this.isOver || (await nodeDisk.size(file.path)) === null) {
      this.begun.delete(work.of);
      return;
    }
    const reason = await this.tried(work.command, environmentOfFile(file, run));
    if (reason === null) {
      this.inARow = 0;
      this.done++;
      this.record.add(work, clock.now());
      this.begun.delete(work.of);
    } else if (this.signal.aborted) this.begun.delete(work.of);
    else {
      this.inARow++;
      this.failed++;
      log.warn({ item: file.item.rowId, file: file.file }, `the command after the file ${reason}`);
      if (this.reasons.length < reasonsMax) this.reasons.push({ rowId: file.item.rowId, reason });
      if (this.inARow === failuresMax)
        log.warn({}, `the command after a file failed ${failuresMax} times in a row and is not run any more`);
    }
  }

  /** Why the command did not do its work, or null. */
  private async tried(command: string, facts: Record<string, string>): Promise<string | null> {
    const { clock } = this.options;
    for (let tries = 1; ; tries++) {
      const { isLate, trouble, printed, code } = await this.called(command, facts);
      if (trouble === null) return null;
      const over = isLate || hopeless.includes(code ?? 0) || tries === readTriesMax;
      if (over || this.signal.aborted) {
        const what = isLate
          ? `did not end within ${duration(this.commands.timeoutMs)} and was stopped`
          : trouble;
        const [last = ""] = printed
          .trimEnd()
          .split(/[\r\n]+/)
          .slice(-1);
        return shortText(last === "" ? what : `${what}: ${last}`, reasonCharactersMax);
      }
      await clock.sleep(backoffMs(tries), this.signal);
    }
  }

  private async called(
    command: string,
    facts: Record<string, string>,
  ): Promise<ShellResult & { isLate: boolean }> {
    const { clock, environment, workspace } = this.options;
    const over = new AbortController();
    const late = new AbortController();
    void clock.sleep(this.commands.timeoutMs, over.signal).then(() => {
      if (!over.signal.aborted) late.abort();
    });
    const result = await runShell({
      command,
      cwd: workspace.root,
      environment,
      facts,
      signal: AbortSignal.any([late.signal, this.signal]),
      reads: "both",
    });
    over.abort();
    return { ...result, isLate: late.signal.aborted };
  }

  async idle(): Promise<void> {
    await this.queue.onIdle();
  }

  async finish(ending: Ending): Promise<AfterOutcome> {
    await this.idle();
    if (this.commands.file !== "") await this.rest();
    if (this.crash !== undefined) throw this.crash;
    const set = await this.afterSet(ending);
    const { done, failed, reasons, left } = this;
    return { done, failed, reasons, left, set: null, setDone: false, setWaits: null, ...set };
  }

  /** Goes through all files of the run's rows, with those of their other takes. */
  private async rest(): Promise<void> {
    const { run, store } = this.options;
    for await (const page of setItems(store, run)) {
      const files = page
        .filter(({ takes }) => takes.some(({ item }) => item.runId === run.id))
        .flatMap((asked) => this.filesOf(asked));
      for (const file of files) this.add(file);
      await this.idle();
      if (this.isOver) for (const file of files) if (await this.isLeft(file)) this.left++;
      if (this.signal.aborted) return;
    }
  }

  /** The files of an item and its retakes that were saved on the disk. */
  private filesOf({ takes }: SetItem): FileFacts[] {
    const { jobName } = this.options.run;
    return takes.flatMap(({ item, files }) =>
      files
        .filter(({ bucket }) => bucket == null)
        .map(({ outFolder, ...file }) => ({
          ...file,
          item,
          path: join(jobFolder({ outFolder, jobName }), file.file),
        })),
    );
  }

  /** Whether no command was run for a file. A file that is missing is reported elsewhere. */
  private async isLeft(file: FileFacts): Promise<boolean> {
    const work = this.workOf(file);
    if (this.begun.has(work.of) || this.record.has(work)) return false;
    return (await nodeDisk.size(file.path)) !== null;
  }

  private async afterSet(ending: Ending): Promise<Partial<AfterOutcome>> {
    const { run, clock, log } = this.options;
    const work = { command: this.commands.set, of: `${run.jobName}\n${run.edition}` };
    const waits = this.failed + this.left > 0 || this.signal.aborted;
    if (work.command === "" || waits || !(await ending.isWell())) return {};
    const { files, state, lacks, missing } = await this.set(ending);
    if (files === 0 || this.record.lastState(work) === state) return {};
    if (lacks !== null)
      return { setWaits: `${lacks}. When nothing is missing, ${runOfSheet(run)} runs the command` };
    if (missing > 0) return { missing };
    const reason = await this.tried(work.command, environmentOfSet(run, files));
    if (reason === null) {
      this.record.doneFor(work, state, clock.now());
      return { setDone: true };
    }
    if (this.signal.aborted) return { set: "was ended by the interrupt" };
    log.warn({}, `the command after the set ${reason}`);
    return { set: reason };
  }

  /** The set as it is now: all takes of what the sheet asks for. */
  private async set(ending: Ending): Promise<SetNow> {
    const { run, store } = this.options;
    const decisions = await decisionsOn(store, run.jobId);
    const missing = await ending.missing();
    const hash = createHash("sha256");
    const without: string[] = [];
    const now = { files: 0, missing: 0, undone: 0 };
    for await (const page of setItems(store, run))
      for (const asked of page) {
        if ("without" in finalOf(asked.takes, decisions)) without.push(asked.rowId);
        for (const { item, files } of asked.takes)
          for (const { number, sha256, file } of files) {
            const { id, key, approval } = item;
            hash.update(JSON.stringify([key, number, sha256, file, approval, decisions.picks.has(id)]));
            now.files++;
            // What a person has rejected is not handed over.
            if (approval !== "rejected" && missing.get(key)?.includes(number)) now.missing++;
          }
        if (this.commands.file !== "")
          for (const file of this.filesOf(asked)) if (await this.isLeft(file)) now.undone++;
      }
    const lacks = [
      ...(without.length === 0
        ? []
        : [`${someOf(without)} ${without.length === 1 ? "is" : "are"} not archived, or not approved`]),
      ...(now.undone === 0
        ? []
        : [`the command after a file has not done its work for ${count(now.undone, "file")}`]),
    ];
    return { ...now, state: hash.digest("hex"), lacks: lacks.length === 0 ? null : lacks.join("; ") };
  }

  async close(): Promise<void> {
    this.ended.abort();
    await this.queue.onIdle();
    this.record.close();
  }
}

/** How the run's sheet is run again. */
function runOfSheet({ manifest, edition, options }: Run): string {
  if (manifest === "-") return "a run of the sheet";
  const ofEdition = edition === "" ? "" : ` --edition ${shellWord(edition)}`;
  return `\`bulkgen run ${shellWord(manifest)}${ofEdition}${options.sandbox ? " --sandbox" : ""}\``;
}

interface SetNow {
  files: number;
  /** Of them, those that are missing on the disk. */
  missing: number;
  /** A name for exactly these files, and what people have decided about them. */
  state: string;
  /** What the sheet asks for and is not there, in words; null if nothing. */
  lacks: string | null;
}
