import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { jobFolder } from "../archive/disk/names.js";
import { nodeDisk } from "../archive/disk/node-disk.js";
import { type IndexLine, indexName, JobIndex } from "../archive/index-file.js";
import type { Clock } from "../clock.js";
import { EarlyExit, type ExitName } from "../core/exit.js";
import { toNumber } from "../core/money.js";
import type { ReportDocument, StatusDocument } from "../documents/run.js";
import type { Host } from "../machine.js";
import { runsReportJson } from "../report/runs-report.js";
import { statusJson } from "../report/status.js";
import type { BrowsedFile, BrowsedItem, BrowsedRun, Browser, WantedItems } from "../store/browse/pages.js";
import { iso } from "../text/times.js";
import { noRunsText, refuseLost } from "../workspace/history.js";
import { type Opened, openPages } from "../workspace/state.js";
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
  runs(page?: { before?: number; limit?: number }): Promise<WorkspaceRun[]>;
  /** Null if there is no run with that number. */
  run(id: number): Promise<WorkspaceRun | null>;
  /**
   * A run's items in the order of the sheet; at most 100, or `limit`. `total` is how many match. A later run of the job
   * takes over the items that its sheet asks for, so an earlier run may have none left.
   */
  items(
    run: number,
    wanted?: Partial<Pick<WantedItems, "text" | "from" | "limit">> & { state?: WorkspaceItem["state"] },
  ): Promise<{ items: WorkspaceItem[]; total: number }>;
  /** Archived files, the newest first; at most 100, or `limit`; with `run`, those of the items that the run has now. */
  outputs(wanted?: { run?: number; text?: string; limit?: number }): Promise<WorkspaceOutput[]>;
  /** The status of a run, by default the newest, with its items in trouble. Null if there is no run with that number. */
  status(run?: number): Promise<StatusDocument | null>;
  /** The runs that ended after `since` or are unfinished, with their sums. `notBegun` is empty: schedules are not read. */
  report(since: Date): Promise<ReportDocument>;
  close(): Promise<void>;
}

export interface WorkspaceRun
  extends Pick<BrowsedRun, "id" | "job" | "state" | "manifest" | "origin" | "edition" | "requests"> {
  /** The items that the run has now, by state: a later run of the job takes over those that its sheet asks for. */
  counts: BrowsedRun["counts"];
  /** Where its files are. */
  folder: string;
  /** ISO 8601. */
  startedAt: string;
  /** Null until it has ended. */
  endedAt: string | null;
  /** How it ended, by the name of its exit code; null until then. */
  exit: ExitName | null;
  /** Charged for tasks that completed, in credits. */
  charged: number;
  /** In flight, at the service, unknown or held: charged, or possibly charged, in credits. */
  pending: number;
  /** At most this was charged for requests whose items were submitted again or skipped, in credits. */
  lost: number;
}

export interface WorkspaceItem extends Omit<BrowsedItem, "price" | "picked"> {
  /** In credits. */
  price: number;
  picked: boolean;
}

export interface WorkspaceOutput
  extends Pick<
    BrowsedFile,
    | "itemId"
    | "number"
    | "key"
    | "job"
    | "rowId"
    | "model"
    | "prompt"
    | "file"
    | "bucket"
    | "bytes"
    | "sha256"
    | "mime"
  > {
  /** The job's folder. `file` is in it, unless a bucket has the file instead. */
  folder: string;
  /** ISO 8601. */
  savedAt: string;
  picked: boolean;
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

  async runs(page: Parameters<WorkspaceReader["runs"]>[0] = {}): Promise<WorkspaceRun[]> {
    checkReading(page, null);
    const { before, limit = runsMax } = page;
    return (await this.browser.runs(before ?? null, limit)).map(shownRun);
  }

  async run(id: number): Promise<WorkspaceRun | null> {
    checkReading({ run: id }, "run");
    const run = await this.browser.run(id);
    return run && shownRun(run);
  }

  async items(
    runId: number,
    wanted: Parameters<WorkspaceReader["items"]>[1] = {},
  ): Promise<{ items: WorkspaceItem[]; total: number }> {
    checkReading({ ...wanted, run: runId }, "run");
    const { state, text = "", from = 0, limit = rowsMax } = wanted;
    const { items, total } = await this.browser.items({ runId, state: state ?? null, text, from, limit });
    return { items: items.map(shownItem), total };
  }

  async outputs(wanted: Parameters<WorkspaceReader["outputs"]>[0] = {}) {
    checkReading(wanted, null);
    const { run, text = "", limit = rowsMax } = wanted;
    const files = await this.browser.files({ run: run ?? null, text, before: null, limit });
    return files.map(shownOutput);
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

function shownRun(run: BrowsedRun): WorkspaceRun {
  const { id, job, state, manifest, origin, edition, requests, counts, exit } = run;
  return {
    id,
    job,
    state,
    manifest,
    origin,
    edition,
    requests,
    counts,
    exit,
    folder: jobFolder({ outFolder: run.outFolder, jobName: job }),
    startedAt: iso(run.startedAt),
    endedAt: run.endedAt === null ? null : iso(run.endedAt),
    charged: toNumber(run.charged),
    pending: toNumber(run.pending),
    lost: toNumber(run.lost),
  };
}

function shownItem({ price, picked, ...item }: BrowsedItem): WorkspaceItem {
  return { ...item, price: toNumber(price), picked: picked !== 0 };
}

function shownOutput(output: BrowsedFile): WorkspaceOutput {
  const { itemId, number, key, job, rowId, model, prompt, file, bucket, bytes, sha256, mime } = output;
  return {
    itemId,
    number,
    key,
    job,
    rowId,
    model,
    prompt,
    file,
    bucket,
    bytes,
    sha256,
    mime,
    folder: jobFolder({ outFolder: output.outFolder, jobName: job }),
    savedAt: iso(output.savedAt),
    picked: output.picked !== 0,
  };
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
