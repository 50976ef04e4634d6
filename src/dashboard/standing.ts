import type { Clock } from "../clock.js";
import { toNumber } from "../core/money.js";
import type { RunOptions } from "../core/next/options.js";
import { fileLockOwner, type LockOwner } from "../job/workspace/lock.js";
import { openHere } from "../job/workspace/state.js";
import type { Workspace } from "../job/workspace/workspace.js";
import { type QuotaReader, quotaOn } from "../store/accounts/quota-reader.js";
import { type BrowsedRun, type Browser, openBrowser, watchChanges } from "../store/browse/browser.js";
import { type NewsReader, newsOn } from "../store/workspace/news.js";
import type { Commands } from "./commands.js";
import { Refused } from "./refused.js";
import type { LiveRun, Standing } from "./shapes.js";

export interface WatchOptions {
  workspace: Workspace;
  sandbox: boolean;
  version: string;
  commands: Pick<Commands, "list">;
  clock: Clock;
}

type Here<Reader> = Reader & { close(): void };

/**
 * Looks at a workspace that other processes work in: its database is opened when there is one, and again when it has become
 * another one.
 */
export class WorkspaceWatch {
  private readonly changes;
  private opened: { file: string; browser: Browser } | null = null;
  private live: { run: number; news: Here<NewsReader>; quota: Here<QuotaReader> | null } | null = null;

  constructor(private readonly options: WatchOptions) {
    this.changes = watchChanges(options.workspace.stateFile);
  }

  /** Differs from the one before if anything has changed, or a process has come or gone. */
  change(): string {
    const owner = this.owner();
    return `${this.changes.version()} ${owner?.pid ?? ""} ${owner?.run ?? ""}`;
  }

  owner(): LockOwner | null {
    return fileLockOwner(this.options.workspace.lockFile);
  }

  /** Throws Refused, with why there is nothing to see. */
  browser(): Browser {
    const file = this.changes.file();
    if (this.opened !== null && this.opened.file !== file) this.forget();
    if (this.opened !== null) return this.opened.browser;
    if (file === null)
      throw new Refused(`nothing has been run in ${this.options.workspace.root} yet`, "missing");
    const { stateFile, root } = this.options.workspace;
    try {
      this.opened = { file, browser: openBrowser({ stateFile, root }) };
    } catch (error) {
      throw new Refused((error as Error).message, "broken");
    }
    return this.opened.browser;
  }

  async standing(): Promise<Standing> {
    const { workspace, sandbox, version, commands, clock } = this.options;
    const whole = {
      workspace: workspace.root,
      sandbox,
      version,
      now: clock.now(),
      change: this.change(),
      commands: commands.list(),
    };
    try {
      const browser = this.browser();
      return {
        ...whole,
        running: await this.running(browser),
        waiting: {
          held: browser.waitingCount("held"),
          failed: browser.waitingCount("failed"),
          approval: browser.waitingCount("approval"),
        },
        problem: null,
      };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const none = { held: 0, failed: 0, approval: 0 };
      return { ...whole, running: null, waiting: none, problem: error.message };
    }
  }

  private async running(browser: Browser): Promise<LiveRun | null> {
    const owner = this.owner();
    const run = owner === null || owner.run === null ? null : browser.run(owner.run);
    if (owner === null || run === null) {
      this.forgetLive();
      return null;
    }
    if (this.live?.run !== run.id) {
      this.forgetLive();
      this.live = {
        run: run.id,
        news: openHere(this.options.workspace.stateFile, this.options.clock, (database) =>
          newsOn(database, run.id),
        ),
        quota: this.quotaOf(run),
      };
    }
    return this.liveRun(run, owner, this.live);
  }

  private async liveRun(
    run: BrowsedRun,
    owner: LockOwner,
    { news, quota }: NonNullable<WorkspaceWatch["live"]>,
  ): Promise<LiveRun> {
    const { maxCredits, forecast } = JSON.parse(run.options) as RunOptions;
    const now = this.options.clock.now();
    // Both are asked at once: another request may close them while one waits for an answer.
    const [read = null, { newestFile }] = await Promise.all([quota?.read(now), news.read()]);
    const window = (of: "minute" | "day") => ({
      limit: read?.[of].limit ?? null,
      used: read?.[of].used ?? 0,
    });
    return {
      run: run.id,
      job: run.job,
      pid: owner.pid,
      host: owner.host,
      since: Math.max(owner.since, run.startedAt),
      counts: run.counts,
      spent: toNumber(run.charged) + toNumber(run.pending),
      cap: maxCredits === null ? null : toNumber(maxCredits),
      expectedEnd: forecast ? run.startedAt + forecast.ms : null,
      quota: { minute: window("minute"), day: window("day"), blockedUntil: read?.blockedUntil ?? null },
      newestFile,
    };
  }

  /** The quota of a run's account; null where it cannot be read: a page without it is better than none. */
  quotaOf({ origin, accountId }: Pick<BrowsedRun, "origin" | "accountId">): Here<QuotaReader> | null {
    try {
      const { workspace, clock } = this.options;
      return openHere(workspace.accountsFile, clock, (database) => quotaOn(database, origin, accountId));
    } catch {
      return null;
    }
  }

  private forgetLive(): void {
    this.live?.news.close();
    this.live?.quota?.close();
    this.live = null;
  }

  private forget(): void {
    this.forgetLive();
    this.opened?.browser.close();
    this.opened = null;
  }

  close(): void {
    this.forget();
    this.changes.close();
  }
}
