import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { statusJson } from "../../src/report/status.js";
import { systemClock } from "../../src/system.js";
import { statusOf } from "../../src/workspace/status.js";
import { findWorkspace, workspaceExists } from "../../src/workspace/workspace.js";
import { type Ended, main, type Place, type Running, startProcess } from "../e2e/process.js";
import { type Archive, readArchive } from "./archive.js";
import type { Told } from "./auditor.js";
import { type Point, pointVariable } from "./points.js";
import type { Service } from "./service.js";

export const cheapModel = "aurora-image-mini";

/**
 * When a lost answer is looked for. Real services are given minutes; this one is never later than the faults make it,
 * and on a busy machine that is still far below.
 */
const settleSeconds = "4,7";

/** What `bulkgen status --json` shows. */
export interface Status {
  counts: Record<"planned" | "submitting" | "unknown" | "processing" | "ready" | "held" | "archived", number>;
  crashed: boolean;
  trouble: { rowId: string; state: string }[];
}

export interface RunnerOptions {
  /** The folder of the workspace. */
  folder: string;
  service: Pick<Service, "env">;
  items: number;
  lanes: number;
  cap?: number | null;
  /** Lost answers at which submitting waits. */
  unsettledMax?: number;
  /** Told apart from the prompts of every other workspace by this. */
  subject?: string;
  /** In place of the workspace's own. */
  out?: string;
  /** On top of the place's own. */
  env?: Record<string, string>;
  /** Of `bulkgen run`. */
  flags?: readonly string[];
  /** The longest that a command may live (ms), in place of the usual limit; 0 for any time. */
  lifeMs?: number;
  /** A programme that starts the commands, such as nsenter, and its words. */
  by?: readonly string[];
}

/** A workspace with a sheet of small pictures, and the command that runs in it. */
export class Runner {
  readonly rows: ReadonlyMap<string, string>;
  private readonly outFolder: string;

  constructor(
    private readonly place: Place,
    readonly options: RunnerOptions,
  ) {
    const { folder, items, subject = "a picture", out } = options;
    const ids = Array.from({ length: items }, (_, index) => `a${String(index + 1).padStart(2, "0")}`);
    this.rows = new Map(ids.map((id) => [`${subject} of ${id}`, id]));
    this.outFolder = out ?? join(folder, "outputs");
    mkdirSync(folder, { recursive: true });
    const lines = [...this.rows].map(([prompt, id]) => `${id},${cheapModel},${prompt}`);
    writeFileSync(join(folder, "set.csv"), ["id,model,prompt", ...lines, ""].join("\n"));
  }

  /** `bulkgen run`, which starts a run or continues the one that is there. */
  run(point?: PointAt): Running {
    const { lanes, cap = null, out, unsettledMax = 5, flags: more = [] } = this.options;
    const flags = [
      ...more,
      ...(cap === null ? [] : ["--max-credits", cap]),
      ...(out === undefined ? [] : ["--out", out]),
    ];
    const settling = ["--settle-seconds", settleSeconds, "--max-unsettled", unsettledMax];
    return this.command(
      ["run", "set.csv", "--yes", "--events", "--lanes", lanes, ...settling, ...flags],
      point,
    );
  }

  /** A worker of the fleet, which lives for as long as the round. */
  worker(...flags: string[]): Running {
    return this.startNode([main, "worker", ...flags], { ...this.circumstances({}), lifeMs: 0 });
  }

  resume(point?: PointAt): Running {
    return this.command(["resume", "--events"], point);
  }

  /** Null while there is no run. */
  async status(): Promise<Status | null> {
    const databaseUrl = this.options.env?.["BULKGEN_DATABASE_URL"];
    const workspace = findWorkspace({
      ...this.circumstances({}),
      sandbox: false,
      ...(databaseUrl === undefined ? {} : { databaseUrl }),
    });
    const status = workspaceExists(workspace) ? await statusOf(workspace, "newest", systemClock) : null;
    return status && (statusJson(status) as unknown as Status);
  }

  archive(): Archive {
    return readArchive(join(this.outFolder, "set"));
  }

  /** The same command under another programme, such as strace; `node` are words for Node itself. */
  under(
    programme: readonly [string, ...string[]],
    words: readonly string[],
    node: readonly string[] = [],
  ): Running {
    const [file, ...rest] = programme;
    return startProcess(file, [...rest, process.execPath, ...node, main, ...words], this.circumstances({}));
  }

  private command(words: readonly (string | number)[], point?: PointAt): Running {
    const preload = pathToFileURL(join(import.meta.dirname, "failpoints.js")).href;
    const flags = point === undefined ? [] : ["--import", preload];
    const env = point === undefined ? {} : { [pointVariable]: `${point.point}:${point.nth}` };
    return this.startNode([...flags, main, ...words.map(String)], this.circumstances(env));
  }

  private startNode(words: readonly string[], circumstances: Parameters<typeof startProcess>[2]): Running {
    const [file, ...rest] = [...(this.options.by ?? []), process.execPath, ...words];
    return startProcess(file as string, rest, circumstances);
  }

  private circumstances(env: Record<string, string>) {
    const { folder, service, env: own, lifeMs } = this.options;
    const limit = lifeMs === undefined ? {} : { lifeMs };
    return { cwd: folder, env: { ...this.place.env, ...own, ...service.env, ...env }, ...limit };
  }
}

export interface PointAt {
  point: Point;
  /** Which time it is fatal, from 1. */
  nth: number;
}

/** What is left to do by itself. */
export function openItems(status: Status): number {
  const { planned, submitting, processing, ready } = status.counts;
  return planned + submitting + processing + ready;
}

export function toldBy(status: Status | null): Told {
  const trouble = status?.trouble ?? [];
  return {
    trouble: new Map(trouble.map(({ rowId, state }) => [rowId, state])),
    planned: status?.counts.planned ?? 0,
  };
}

/** How a command that was left alone may end: all archived, failed items, capped, unfinished, held. */
const goodEnds = [0, 5, 6, 8, 10];

/** What is wrong with how a command ended by itself. */
export function badEnd(what: string, { code, signal, stderr }: Ended): string[] {
  const warning = /^\(node:\d+\).*Warning.*$/m.exec(stderr)?.[0];
  if (warning !== undefined) return [`${what} showed its user a warning of Node: ${warning}`];
  if (code !== null && goodEnds.includes(code)) return [];
  return [`${what} ended ${signal ?? code}: ${stderr.trim().split("\n").slice(-3).join(" | ")}`];
}
