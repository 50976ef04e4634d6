import { hostname } from "node:os";
import type { ExitName } from "../../core/exit.js";
import type { Reason, ReasonKind } from "../../core/reason.js";
import type { Notification } from "../../documents/schedules.js";
import type { RunSummary } from "../../job/run/closing.js";
import type { Machine } from "../../machine.js";
import type { Origin } from "../../notify/facts.js";
import type { Target } from "../../notify/target.js";
import type { CarryFlags } from "../../options/shared.js";
import { reasonText } from "../../report/progress.js";
import { scheduledIn } from "../../schedule/scheduled-run.js";
import type { Workspace } from "../../workspace/workspace.js";

/** Sends the notifications of a run to every `--notify` and `--notify-command`. Never throws. */
export interface Notifier {
  /** The run that the notifications are about. */
  begin(run: { id: number; jobName: string }): void;
  /** Why the run waits; null while it does not. A long wait is reported, once for each kind of reason. */
  waits(reason: Reason | null): void;
  /** `message` says why a run that could not start has no facts, and `next` is the command to type then. */
  ended(exit: ExitName, facts: RunSummary | null, message: string, next?: string | null): Promise<void>;
}

/** Null without targets. Throws EarlyExit for a target that cannot be read. */
export async function openNotifier(
  flags: Pick<CarryFlags, "notify" | "notifyCommand" | "smtpUrl" | "smtpFrom" | "sandbox">,
  machine: Machine,
  workspace: Workspace,
): Promise<Notifier | null> {
  if (flags.notify === undefined && flags.notifyCommand === undefined) return null;
  const { targetsOf } = await import("../../notify/target.js");
  const targets = targetsOf(flags, machine.env);
  const scheduled = scheduledIn(machine.env);
  const origin = originOf(workspace, flags.sandbox ?? false, scheduled);
  const { endNotification, newsNotification } = await import("../../notify/facts.js");
  let run: { id: number; jobName: string } | null = null;
  const reported = new Set<ReasonKind>();
  let waiting: Promise<void> = Promise.resolve();
  return {
    begin(begun) {
      run = begun;
    },
    waits(reason) {
      const now = machine.clock.now();
      if (reason === null || reported.has(reason.kind) || !isWorthSaying(reason, now)) return;
      reported.add(reason.kind);
      const name = run === null ? "the run" : `${run.jobName}, run ${run.id}`;
      const message = `${name} waits: ${reasonText(reason, now)}`;
      const facts = newsNotification("trouble", message, { origin, run });
      const next = waysOut[reason.kind] ?? "nothing; the run continues by itself";
      waiting = waiting.then(() => send(targets, { ...facts, next }, machine));
    },
    async ended(exit, facts, message, next = null) {
      await waiting;
      // A mistake in a command is for the person who typed it; a scheduled run has nobody else to tell.
      if (run === null && exit === "usage" && scheduled.schedule === null) return;
      await send(targets, endNotification(exit, facts, { message, next, origin }), machine);
    },
  };
}

/** What a person can do about it. */
const waysOut: Readonly<Partial<Record<ReasonKind, string>>> = {
  disk: "make room or restore access; the run continues by itself",
  receipts: "make room or restore access; the run continues by itself",
  credits: "top up; the run continues by itself",
};

/** A wait that nobody ends, or that is at least this long (ms), is worth a notification. */
const longMs = 30 * 60_000;

function isWorthSaying(reason: Reason, now: number): boolean {
  if (reason.kind === "stopping") return false;
  return waysOut[reason.kind] !== undefined || (reason.until ?? now) - now >= longMs;
}

/** Where the notifications of a workspace come from. */
export function originOf(
  { root }: Workspace,
  sandbox: boolean,
  scheduled: Pick<Origin, "schedule" | "due">,
): Origin {
  return { host: hostname(), workspace: root, sandbox, ...scheduled };
}

async function send(
  targets: readonly Target[],
  facts: Notification,
  { env, cwd, clock, stderr }: Machine,
): Promise<void> {
  const { deliver } = await import("../../notify/deliver.js");
  await deliver(targets, facts, {
    environment: env,
    cwd,
    clock,
    warn: (line) => stderr.write(`bulkgen: ${line}\n`),
  });
}
