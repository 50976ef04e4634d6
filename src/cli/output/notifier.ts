import { hostname } from "node:os";
import type { ExitName } from "../../core/exit.js";
import type { RunSummary } from "../../job/run/closing.js";
import type { Workspace } from "../../job/workspace/workspace.js";
import type { Machine } from "../../machine.js";
import type { Notification, Origin } from "../../notify/facts.js";
import type { Target } from "../../notify/target.js";
import { scheduledIn } from "../../schedule/scheduled-run.js";
import type { CarryFlags } from "../flags/shared.js";

/** Sends the notifications of a run to every `--notify` and `--notify-command`. Never throws. */
export interface Notifier {
  /** The run that the notifications are about. */
  begin(run: { id: number; jobName: string }): void;
  /** The disk or the bucket refuses files, so the run waits; null while it takes them. Only the first wait is reported. */
  waitsForDisk(reason: string | null): void;
  /** `message` says why a run that could not start has no facts. */
  ended(exit: ExitName, facts: RunSummary | null, message: string): Promise<void>;
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
  const origin = originOf(workspace, flags.sandbox ?? false, scheduledIn(machine.env));
  const { endNotification, newsNotification } = await import("../../notify/facts.js");
  let run: { id: number; jobName: string } | null = null;
  let waiting: Promise<void> | null = null;
  return {
    begin(begun) {
      run = begun;
    },
    waitsForDisk(reason) {
      if (reason === null || waiting !== null) return;
      const name = run === null ? "the run" : `${run.jobName}, run ${run.id}`;
      const message = `${name} cannot save files, waits and buys nothing: ${reason}`;
      const facts = newsNotification("trouble", message, { origin, run });
      const next = "make room or restore access; the run continues by itself";
      waiting = send(targets, { ...facts, next }, machine);
    },
    async ended(exit, facts, message) {
      await waiting;
      await send(targets, endNotification(exit, facts, { message, origin }), machine);
    },
  };
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
