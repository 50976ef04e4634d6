import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import PQueue from "p-queue";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { isPruned } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { backoffMs, readTriesMax } from "../../core/again.js";
import type { Log } from "../../core/ports/send.js";
import type { AfterLeft, ArchivedOutput, Item, Run, SavedFile } from "../../core/ports/store.js";
import { runShell, type ShellResult } from "../../shell.js";
import { type AfterWork, openAfterRecord } from "../../store/after.js";
import type { Store } from "../../store/workspace/workspace.js";
import { duration } from "../../text/amounts.js";
import type { Environment } from "../../text/environment.js";
import { shortText } from "../../text/terminal.js";
import type { Workspace } from "../../workspace/workspace.js";
import { environmentOfFile, environmentOfSet, type FileFacts } from "./environment.js";
import { commandsOf } from "./settings.js";

/**
 * Runs the user's commands after files and after the set, beside the run: no request and no poll waits for them, and what
 * becomes of them changes no item. Each file is told of as it is archived. At its end the run goes through all its files
 * once more: what an earlier run left, what a crash cut short, and what did not fit into the queue.
 */
export interface After {
  /** A file was archived. */
  saved(item: Item, number: number, file: SavedFile): void;
  /** Waits for all commands. With `isComplete`, everything that the sheet asks for is archived. */
  finish(isComplete: () => Promise<boolean>): Promise<AfterOutcome>;
  /** Ends the commands that are still running, and lets go of the record. */
  close(): Promise<void>;
}

export interface AfterOutcome extends AfterLeft {
  /** Files whose command has done its work in this execution. */
  done: number;
  /** The command after the set has done its work in this execution. */
  setDone: boolean;
}

export interface AfterOptions {
  run: Run;
  store: Pick<Store, "archived">;
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

  async finish(isComplete: () => Promise<boolean>): Promise<AfterOutcome> {
    await this.queue.onIdle();
    const set = await this.rest();
    if (this.crash !== undefined) throw this.crash;
    const { setDone, reason } = await this.afterSet(set, isComplete);
    const { done, failed, reasons, left } = this;
    return { done, failed, reasons, left, set: reason, setDone };
  }

  /** Goes through all files of the run. Returns how many there are, and a name for exactly these. */
  private async rest(): Promise<{ files: number; name: string }> {
    const { run, store } = this.options;
    const hash = createHash("sha256");
    let files = 0;
    for await (const page of store.archived(run.jobId)) {
      for (const { item, number, outFolder, jobName, ...file } of page) {
        if (item.runId !== run.id || isPruned(file.check) || file.bucket != null) continue;
        files++;
        hash.update(`${item.key}\n${number}\n${file.sha256}\n${file.file}\n${item.approval ?? ""}\n`);
        const path = join(jobFolder({ outFolder, jobName }), file.file);
        const facts = { item, number, path, file: file.file, sha256: file.sha256, mime: file.mime };
        if (this.commands.file !== "") this.add(facts);
      }
      await this.queue.onIdle();
      if (this.commands.file !== "" && this.isOver) this.left += await this.leftOf(page);
      if (this.signal.aborted) break;
    }
    return { files, name: hash.digest("hex") };
  }

  /** How many of these files no command was run for. A file that is not there is told by others. */
  private async leftOf(page: readonly ArchivedOutput[]): Promise<number> {
    let left = 0;
    for (const output of page) {
      const { item, outFolder, jobName, file, check, bucket } = output;
      const work = this.workOf(output);
      const isOthers = item.runId !== this.options.run.id || isPruned(check) || bucket != null;
      if (isOthers || this.begun.has(work.of) || this.record.has(work)) continue;
      if ((await nodeDisk.size(join(jobFolder({ outFolder, jobName }), file))) !== null) left++;
    }
    return left;
  }

  private async afterSet(
    { files, name }: { files: number; name: string },
    isComplete: () => Promise<boolean>,
  ): Promise<{ setDone: boolean; reason: string | null }> {
    const { run, clock, log } = this.options;
    const work = { command: this.commands.set, of: `set\n${run.jobName}\n${name}` };
    const waits = this.failed + this.left > 0 || this.signal.aborted || files === 0;
    const none = { setDone: false, reason: null };
    if (work.command === "" || waits || this.record.has(work) || !(await isComplete())) return none;
    const reason = await this.tried(work.command, environmentOfSet(run, files));
    if (reason === null) {
      this.record.add(work, clock.now());
      return { setDone: true, reason };
    }
    if (this.signal.aborted) return { setDone: false, reason: "was ended by the interrupt" };
    log.warn({}, `the command after the set ${reason}`);
    return { setDone: false, reason };
  }

  async close(): Promise<void> {
    this.ended.abort();
    await this.queue.onIdle();
    this.record.close();
  }
}
