import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statfsSync } from "node:fs";
import { resolve } from "node:path";
import { type Credits, credits } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { PollProfile } from "../../core/pace/pressure.js";
import type { Log } from "../../core/ports/send.js";
import type { Filesystem } from "../../job/place/filesystem.js";
import { placeWorkspace } from "../../job/place/place.js";
import type { JobOptions } from "../../job/run/run-job.js";
import type { SpendingOptions } from "../../job/run/spending-caps.js";
import { findWorkspace, type Workspace } from "../../job/workspace/workspace.js";
import { systemClock, systemRandom } from "../../system.js";
import type { ManifestFlags } from "../flags/manifest.js";
import { type SettleFlags, settleOptions } from "../flags/settle.js";
import type { SharedFlags } from "../flags/shared.js";
import type { Share } from "../flags/values.js";
import { connect } from "../settings/connect.js";
import { type Display, openDisplay } from "./display.js";
import { type Events, openEvents } from "./events.js";
import { openLog } from "./log.js";
import { interruption } from "./signals.js";

/** Flags of every command that carries a run on. */
export interface CarryFlags extends SharedFlags {
  maxCreditsPerDay?: number;
  unreachableWait: number;
  ifLocked: "fail" | "wait" | "skip";
  events?: boolean;
  notify?: string[];
  notifyCommand?: string;
  smtpUrl?: string;
  smtpFrom?: string;
}

/** Flags of what may be spent. */
export interface CapFlags {
  maxCredits?: number;
  maxCreditsPerModel?: Record<string, number>;
  keepCredits?: number;
  maxCreditsPerDay?: number;
}

/** Flags of `run`. */
export interface RunFlags extends CarryFlags, ManifestFlags, SettleFlags, CapFlags {
  out?: string;
  yes?: boolean;
  maxFailures?: Share;
  retries: number;
  onInsufficient: RunOptions["onInsufficient"];
  onDailyLimit: RunOptions["onDailyLimit"];
  until?: string;
  maxDuration?: number;
  overdueWait: number;
  lanes?: number;
  downloads: number;
  rpm?: number;
  rpd?: number;
  share?: number;
  poll?: PollProfile;
  skipInvalid?: boolean;
  sidecars?: boolean;
}

/** The workspace that the flags name. */
export function workspaceOf(flags: SharedFlags & { out?: string }, manifest?: string): Workspace {
  return findWorkspace({
    cwd: process.cwd(),
    sandbox: flags.sandbox ?? false,
    env: process.env,
    ...(flags.workspace === undefined ? {} : { named: flags.workspace }),
    ...(flags.out === undefined ? {} : { out: flags.out }),
    ...(manifest === undefined ? {} : { manifest: resolve(manifest) }),
  });
}

/** The same for a command that changes it: its state lies where a database can be trusted. Throws EarlyExit. */
export function settledWorkspace(
  flags: SharedFlags & { out?: string },
  manifest?: string,
  { make = false } = {},
): Workspace {
  return placeWorkspace({
    find: () => workspaceOf(flags, manifest),
    make,
    ground: groundHere(),
    clock: systemClock,
    random: systemRandom,
    tell: (line) => process.stderr.write(`bulkgen: ${line}\n`),
  });
}

export interface Prepared {
  options: JobOptions;
  display: Display;
  log: Log;
  events: Events | null;
}

/** What `run` and `resume` have in common: where, with whom, how they show what they do. */
export async function jobOptions(flags: CarryFlags, workspace: Workspace): Promise<Prepared> {
  const log = await openLog(flags.logLevel);
  const display = openDisplay(flags.quiet ?? false);
  const interrupt = interruption(() =>
    display.say("interrupted: answers in flight are awaited, nothing new is sent; again to end at once"),
  );
  const write = (line: string) => process.stdout.write(line);
  const events = flags.events ? openEvents(workspace.stateFile, systemClock, write) : null;
  const options: JobOptions = {
    workspace,
    connect: (manifest) => connect(flags, workspace, { manifest }),
    clock: systemClock,
    log,
    interrupt,
    unreachableMs: flags.unreachableWait,
    ...dailyOf(flags),
    onBegin: (run) => events?.begin(run),
    onProgress(progress) {
      display.progress(progress);
      events?.progress(progress);
    },
    onWait(what, until) {
      display.waiting(what, until);
      events?.waiting(what, until);
    },
    ifLocked: flags.ifLocked,
    onLocked: (message) => display.status(message),
  };
  return { options, display, log, events };
}

function modelCaps(caps: Readonly<Record<string, number>>): Record<string, Credits> {
  return Object.fromEntries(Object.entries(caps).map(([model, amount]) => [model, credits(amount)]));
}

/** What may be spent, as the flags say. */
export function spendingOptions(flags: CapFlags): SpendingOptions {
  return {
    maxCredits: flags.maxCredits === undefined ? null : credits(flags.maxCredits),
    ...(flags.maxCreditsPerModel === undefined ? {} : { modelCaps: modelCaps(flags.maxCreditsPerModel) }),
    ...(flags.keepCredits === undefined ? {} : { keepCredits: credits(flags.keepCredits) }),
    ...dailyOf(flags),
  };
}

function dailyOf({ maxCreditsPerDay }: Pick<CapFlags, "maxCreditsPerDay">): { dailyCredits?: Credits } {
  return maxCreditsPerDay === undefined ? {} : { dailyCredits: credits(maxCreditsPerDay) };
}

/** The options that are kept with the run, so that a resume goes on with them. */
export function runOptions(flags: RunFlags): RunOptions {
  return {
    ...spendingOptions(flags),
    maxFailures: flags.maxFailures ?? null,
    retries: flags.retries,
    downloads: flags.downloads,
    onInsufficient: flags.onInsufficient,
    onDailyLimit: flags.onDailyLimit,
    until: flags.until ?? null,
    maxDurationMs: flags.maxDuration ?? null,
    overdueWaitMs: flags.overdueWait,
    ...settleOptions(flags),
    sandbox: flags.sandbox ?? false,
    ...(flags.sidecars === undefined ? {} : { sidecars: flags.sidecars }),
    ...(flags.lanes === undefined ? {} : { lanes: flags.lanes }),
    ...(flags.rpm === undefined ? {} : { rpm: flags.rpm }),
    ...(flags.rpd === undefined ? {} : { rpd: flags.rpd }),
    ...(flags.share === undefined ? {} : { share: flags.share }),
    ...(flags.poll === undefined ? {} : { poll: flags.poll }),
  };
}

/** What this system tells of its file systems: Linux in a file, macOS by a command. */
export function groundHere(): Filesystem {
  return { mounts: mountTable(), fileSystemNumber };
}

function mountTable(): string | null {
  const path = "/proc/self/mounts";
  if (existsSync(path)) return readFileSync(path, "utf8");
  if (process.platform !== "darwin") return null;
  const { status, stdout } = spawnSync("/sbin/mount", { encoding: "utf8" });
  return status === 0 ? stdout : null;
}

function fileSystemNumber(folder: string): number | null {
  try {
    return statfsSync(folder).type;
  } catch {
    return null;
  }
}
