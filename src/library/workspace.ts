import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { nodeDisk } from "../archive/disk/node-disk.js";
import { type IndexLine, indexName, JobIndex } from "../archive/index-file.js";
import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import type { FileDocument } from "../documents/file.js";
import type { ItemDocument } from "../documents/item.js";
import type { ReportDocument, RunDocument, StatusDocument } from "../documents/run.js";
import type { Host } from "../machine.js";
import { runsReportJson } from "../report/runs-report.js";
import { statusJson } from "../report/status.js";
import type { Browser, WantedItems } from "../store/browse/browser.js";
import type { FinalSet } from "../upkeep/archive/final-files.js";
import { finalSetOf } from "../upkeep/archive/sheet-rows.js";
import { fileDocument, runDocument } from "../workspace/browsed.js";
import { newestRun } from "../workspace/find-run.js";
import { noRunsText, refuseLost } from "../workspace/history.js";
import { lockOwnerOf } from "../workspace/lock.js";
import { type Opened, openPages, withStore } from "../workspace/state.js";
import { historyOf, statusOf } from "../workspace/status.js";
import { findWorkspace, type Workspace, workspaceExists } from "../workspace/workspace.js";
import { rethrowAsPrinted } from "./printed-errors.js";
import { checkReading, checkWorkspaceSettings } from "./settings.js";

/**
 * Reads a workspace, even while other processes work in it. It changes nothing and takes no lock. Throws RangeError for
 * an argument that has no meaning.
 */
export interface WorkspaceReader {
  /** The workspace's folder. */
  readonly folder: string;
  /** The newest first; at most 50, or `limit`; with `before`, only runs with a lower number. */
  runs(page?: { before?: number; limit?: number }): Promise<RunDocument[]>;
  /** Null if there is no run with that number. */
  run(id: number): Promise<RunDocument | null>;
  /**
   * A run's items in the order of the sheet; at most 100, or `limit`. `total` is how many match. A later run of the job
   * takes over the items that its sheet asks for, so an earlier run may have none left.
   */
  items(
    run: number,
    wanted?: Partial<Pick<WantedItems, "text" | "from" | "limit">> & { state?: ItemDocument["state"] },
  ): Promise<{ items: ItemDocument[]; total: number }>;
  /** Archived files, the newest first; at most 100, or `limit`; with `run`, those of the items that the run has now. */
  outputs(wanted?: { run?: number; text?: string; limit?: number }): Promise<FileDocument[]>;
  /** The set to hand over of a run's sheet, by default of the newest run. Null if there is no run with that number. */
  finalSet(run?: number): Promise<FinalSet | null>;
  /** The status of a run, by default the newest, with its items in trouble. Null if there is no run with that number. */
  status(run?: number): Promise<StatusDocument | null>;
  /** The runs that ended after `since` or are unfinished, with their sums. `notBegun` is empty: schedules are not read. */
  report(since: Date): Promise<ReportDocument>;
  close(): Promise<void>;
}

export interface WorkspaceOptions {
  /** Read the workspace's rehearsals. */
  sandbox?: boolean;
  /** `postgres://USER@HOST/DATABASE`, if the workspace's state is in a PostgreSQL database; needs the package pg. */
  databaseUrl?: string;
}

/**
 * Rejects with EarlyExit if there are no runs yet, or if the history is lost, and with RangeError for a setting that has
 * no meaning.
 */
export async function openReader(
  on: Host,
  folder: string,
  options: WorkspaceOptions,
): Promise<WorkspaceReader> {
  checkWorkspaceSettings(folder, options);
  const { sandbox = false, databaseUrl } = options;
  const workspace = findWorkspace({
    cwd: on.cwd,
    env: on.env,
    named: folder,
    sandbox,
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  });
  refuseLost(workspace);
  if (!workspaceExists(workspace)) throw new EarlyExit("usage", noRunsText(workspace));
  const browser = await openPages(workspace, on.clock).catch((error: unknown) =>
    rethrowAsPrinted(error, on.cwd),
  );
  return new BrowserReader(on.clock, workspace, sandbox, browser);
}

const runsMax = 50;
const rowsMax = 100;

class BrowserReader implements WorkspaceReader {
  readonly folder: string;
  /** Hidden from a program that prints the reader: the address of a database may have a password. */
  readonly #workspace: Workspace;

  constructor(
    private readonly clock: Clock,
    workspace: Workspace,
    private readonly sandbox: boolean,
    private readonly browser: Opened<Browser>,
  ) {
    this.folder = workspace.root;
    this.#workspace = workspace;
  }

  async runs(page: Parameters<WorkspaceReader["runs"]>[0] = {}): Promise<RunDocument[]> {
    checkReading(page, null);
    const { before, limit = runsMax } = page;
    const [runs, alive] = await Promise.all([this.browser.runs(before ?? null, limit), this.alive()]);
    return runs.map((each) => runDocument(each, alive));
  }

  async run(id: number): Promise<RunDocument | null> {
    checkReading({ run: id }, "run");
    const run = await this.browser.run(id);
    return run && runDocument(run, await this.alive());
  }

  private async alive(): Promise<number | null> {
    return (await lockOwnerOf(this.#workspace))?.run ?? null;
  }

  async items(
    runId: number,
    wanted: Parameters<WorkspaceReader["items"]>[1] = {},
  ): Promise<{ items: ItemDocument[]; total: number }> {
    checkReading({ ...wanted, run: runId }, "run");
    const { state, text = "", from = 0, limit = rowsMax } = wanted;
    return this.browser.items({ runId, state: state ?? null, text, from, limit });
  }

  async outputs(wanted: Parameters<WorkspaceReader["outputs"]>[0] = {}): Promise<FileDocument[]> {
    checkReading(wanted, null);
    const { run, text = "", limit = rowsMax } = wanted;
    const files = await this.browser.files({ run: run ?? null, text, before: null, limit });
    return files.map(fileDocument);
  }

  async finalSet(run?: number): Promise<FinalSet | null> {
    checkReading({ run }, null);
    const { clock } = this;
    if (run !== undefined && (await this.browser.run(run)) === null) return null;
    return withStore(this.#workspace, clock, async (store) => finalSetOf(store, await newestRun(run)(store)));
  }

  async status(run?: number): Promise<StatusDocument | null> {
    checkReading({ run }, null);
    const facts = await statusOf(this.#workspace, run ?? "newest", this.clock);
    return facts && statusJson(facts);
  }

  async report(since: Date): Promise<ReportDocument> {
    checkReading({ since }, "since");
    const runs = await historyOf(this.#workspace, this.clock, since.getTime());
    return {
      workspace: this.folder,
      sandbox: this.sandbox,
      ...runsReportJson({ since: since.getTime(), runs, notBegun: [] }),
    };
  }

  close(): Promise<void> {
    return this.browser.close();
  }
}

/** The files of a job's folder, as its index tells them, with the latest line of each output. Throws EarlyExit. */
export async function readIndexOf({ cwd }: Host, folder: string): Promise<IndexLine[]> {
  const path = resolve(cwd, folder);
  if (!existsSync(join(path, indexName)))
    throw new EarlyExit(
      "usage",
      `${path} has no ${indexName}: expected the folder of a job, such as outputs/JOB`,
    );
  return (await JobIndex.open(nodeDisk, path)).all();
}
