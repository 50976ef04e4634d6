import type { Clock } from "../clock.js";
import { credits, sumOf, toNumber } from "../core/money.js";
import type { LiveRun, Standing } from "../documents/page.js";
import { reasonText } from "../report/progress.js";
import type { QuotaReader } from "../store/accounts/quota-reader.js";
import {
  type BrowsedRun,
  type Browser,
  type ChangeWatch,
  openBrowser,
  UnmadeDatabase,
  watchChanges,
} from "../store/browse/browser.js";
import { DatabaseTrouble } from "../store/open.js";
import type { DatabaseAddress } from "../store/postgres/address.js";
import type { SharedBrowser } from "../store/postgres/ports.js";
import type { NewsReader } from "../store/workspace/news.js";
import { fileLockOwner, type LockOwner } from "../workspace/lock.js";
import { type Opened, openNews, openQuota } from "../workspace/state.js";
import type { Workspace } from "../workspace/workspace.js";
import type { Commands } from "./commands.js";
import { Refused } from "./refused.js";

export interface WatchOptions {
  workspace: Workspace;
  /** Of the workspace; it need not exist. */
  schedulesFile: string;
  sandbox: boolean;
  version: string;
  commands: Pick<Commands, "list">;
  clock: Clock;
}

/** A state that other processes work on, in files or on a server. */
interface WatchedState {
  /** Rejects with Refused, with why there is nothing to see, or with DatabaseTrouble. */
  browser(): Promise<Browser>;
  /** Differs from the answer before if something was committed since. */
  version(): Promise<string>;
  owner(): Promise<LockOwner | null>;
  close(): Promise<void>;
}

interface LiveReaders {
  news: Opened<NewsReader>;
  quota: Opened<QuotaReader> | null;
}

/** Watches a workspace that other processes work in. */
export class WorkspaceWatch {
  private readonly state: WatchedState;
  private readonly schedules: ChangeWatch;
  private live: { run: number; opened: Promise<LiveReaders> } | null = null;

  constructor(private readonly options: WatchOptions) {
    const { workspace, schedulesFile, clock } = options;
    const { database, root } = workspace;
    this.schedules = watchChanges(schedulesFile);
    this.state =
      database === null ? new WatchedFiles(workspace, clock) : new WatchedServer(database, root, clock);
  }

  owner(): Promise<LockOwner | null> {
    return this.state.owner();
  }

  /** Rejects with Refused, with why there is nothing to see, or with DatabaseTrouble. */
  browser(): Promise<Browser> {
    return this.state.browser();
  }

  async standing(): Promise<Standing> {
    const { workspace, sandbox, version, commands, clock } = this.options;
    const whole = {
      workspace: workspace.root,
      sandbox,
      version,
      database: workspace.database?.shown ?? null,
      now: clock.now(),
      change: "",
      commands: commands.list(),
    };
    try {
      const owner = await this.owner();
      whole.change = `${await this.state.version()} ${owner?.pid ?? ""} ${owner?.run ?? ""} ${this.schedules.version()}`;
      const browser = await this.browser();
      return {
        ...whole,
        running: await this.running(browser, owner),
        waiting: await browser.waitingCounts(),
        problem: null,
        isNew: false,
      };
    } catch (error) {
      if (!(error instanceof Refused || error instanceof DatabaseTrouble)) throw error;
      const none = { held: 0, failed: 0, approval: 0 };
      const problem =
        error instanceof DatabaseTrouble ? `${error.message}. To continue, ${error.todo}.` : error.message;
      const isNew = error instanceof Refused && error.kind === "missing";
      return { ...whole, running: null, waiting: none, problem, isNew };
    }
  }

  private async running(browser: Browser, owner: LockOwner | null): Promise<LiveRun | null> {
    const run = owner === null || owner.run === null ? null : await browser.run(owner.run);
    if (owner === null || run === null) {
      await this.forgetLive();
      return null;
    }
    if (this.live?.run === run.run) return this.liveRun(run, owner, await this.live.opened);
    const closed = this.forgetLive();
    const opened = this.openLive(run);
    this.live = { run: run.run, opened };
    // What could not be opened, such as while a server took no connections, is opened by the next who asks.
    opened.catch(() => {
      if (this.live?.opened === opened) this.live = null;
    });
    await closed;
    return this.liveRun(run, owner, await opened);
  }

  private async openLive(run: BrowsedRun): Promise<LiveReaders> {
    const { workspace, clock } = this.options;
    return { news: await openNews(workspace, run.run, clock), quota: await this.quotaOf(run) };
  }

  private async liveRun(run: BrowsedRun, owner: LockOwner, { news, quota }: LiveReaders): Promise<LiveRun> {
    const now = this.options.clock.now();
    // Both are asked at once: another request may close them while one waits for an answer.
    const [read = null, { newestFile }] = await Promise.all([quota?.read(now, run.options), news.read()]);
    const window = (of: "minute" | "day") => ({
      limit: read?.[of].limit ?? null,
      used: read?.[of].used ?? 0,
    });
    return {
      run: run.run,
      job: run.job,
      pid: owner.pid,
      host: owner.host,
      since: Math.max(owner.since, Date.parse(run.startedAt)),
      counts: run.counts,
      spent: toNumber(sumOf(Object.values(run.credits).map(credits))),
      cap: run.cap,
      forecastMs: owner.forecastMs ?? run.forecast?.ms ?? null,
      quota: { minute: window("minute"), day: window("day"), blockedUntil: read?.blockedUntil ?? null },
      newestFile,
      reason: owner.reason ? { ...owner.reason, text: reasonText(owner.reason, now) } : null,
    };
  }

  /** The quota of a run's account; null if it cannot be read: a page without the quota is better than no page. */
  quotaOf(run: Pick<BrowsedRun, "origin" | "accountId">): Promise<Opened<QuotaReader> | null> {
    const { workspace, clock } = this.options;
    return openQuota(workspace, run, clock).catch(() => null);
  }

  private async forgetLive(): Promise<void> {
    const opened = this.live?.opened;
    this.live = null;
    const readers = await opened?.catch(() => null);
    await readers?.news.close();
    await readers?.quota?.close();
  }

  async close(): Promise<void> {
    await this.forgetLive();
    this.schedules.close();
    await this.state.close();
  }
}

/** Opens the database file when there is one, and again when another file has taken its place. */
class WatchedFiles implements WatchedState {
  private readonly changes;
  private opened: { file: string; browser: ReturnType<typeof openBrowser> } | null = null;

  constructor(
    private readonly workspace: Workspace,
    private readonly clock: Clock,
  ) {
    this.changes = watchChanges(workspace.stateFile);
  }

  async browser(): Promise<Browser> {
    const { workspace, clock } = this;
    const file = this.changes.file();
    if (this.opened?.file !== file) this.forget();
    if (this.opened !== null) return this.opened.browser;
    if (file === null) throw new Refused(`nothing has been run in ${workspace.root} yet`, "missing");
    try {
      this.opened = { file, browser: openBrowser(workspace, clock) };
    } catch (error) {
      throw new Refused((error as Error).message, error instanceof UnmadeDatabase ? "missing" : "broken");
    }
    return this.opened.browser;
  }

  async version(): Promise<string> {
    return this.changes.version();
  }

  async owner(): Promise<LockOwner | null> {
    return fileLockOwner(this.workspace.lockFile);
  }

  private forget(): void {
    void this.opened?.browser.close();
    this.opened = null;
  }

  async close(): Promise<void> {
    this.forget();
    this.changes.close();
  }
}

/** Connects to the database when it is first asked, and again after the connection is lost. */
class WatchedServer implements WatchedState {
  private opening: Promise<SharedBrowser> | null = null;

  constructor(
    private readonly address: DatabaseAddress,
    private readonly root: string,
    private readonly clock: Clock,
  ) {}

  browser(): Promise<SharedBrowser> {
    this.opening ??= this.open().catch((error: unknown) => {
      this.opening = null;
      throw error;
    });
    return this.opening;
  }

  private async open(): Promise<SharedBrowser> {
    const { address, root, clock } = this;
    const { openSharedBrowser } = await import("../store/postgres/ports.js");
    return openSharedBrowser({ address, root, clock });
  }

  async version(): Promise<string> {
    return (await this.browser()).version();
  }

  async owner(): Promise<LockOwner | null> {
    return (await this.browser()).lockHolder();
  }

  async close(): Promise<void> {
    const opened = await this.opening?.catch(() => null);
    await opened?.close();
  }
}
