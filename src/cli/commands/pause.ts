import { EarlyExit } from "../../core/exit.js";
import { type Carried, carriedOutHere, giveOrder, type WantedOrder } from "../../job/orders/give.js";
import type { Machine } from "../../machine.js";
import type { WorkspaceFlags } from "../../options/shared.js";
import { shownPath } from "../../report/problem-text.js";
import { sandboxFlag } from "../../text/shell.js";
import { terminalLines, terminalText } from "../../text/terminal.js";
import { localTime } from "../../text/times.js";
import { runMeant, runsToChoose } from "../../workspace/find-run.js";
import { mustHaveRuns } from "../../workspace/history.js";
import { lockOwnerOf } from "../../workspace/lock.js";
import { withStore } from "../../workspace/state.js";
import type { Workspace } from "../../workspace/workspace.js";
import { print } from "../output/print.js";
import { answerTo } from "../output/question.js";
import { fromHere, workspaceOf, workspaceToChange } from "../settings/workspace.js";
import type { Call } from "./call.js";

/** Orders a run to pause or to cancel. Throws EarlyExit if several could be meant and no terminal can be asked. */
async function orderRun(
  what: "pause" | "cancel",
  which: number | undefined,
  { flags, machine }: Pick<Call<WorkspaceFlags>, "flags" | "machine">,
): Promise<void> {
  const workspace = workspaceToChange(flags, machine);
  const interrupt = machine.interrupt();
  mustHaveRuns(workspace);
  const number = which ?? (await chosenRun(what, workspace, { machine, interrupt })) ?? undefined;
  const options = {
    workspace,
    clock: machine.clock,
    signal: interrupt,
    onSlow: onSlow(flags, machine),
  };
  const wanted: WantedOrder = async (store, lockOwner) => {
    // It has only begun: its run is the one that is meant.
    if (number === undefined && lockOwner?.run === null) return null;
    return { run: await runMeant(store, number, lockOwner), order: { do: what } };
  };
  showCarried(await giveOrder(options, wanted, () => carriedOutHere(options, wanted)), flags, machine);
}

/** The unfinished run that is meant; asks if there are several. Null if a run is in progress or there is none. */
async function chosenRun(
  what: "pause" | "cancel",
  workspace: Workspace,
  { machine, interrupt }: { machine: Machine; interrupt: AbortSignal },
): Promise<number | null> {
  const { clock, cwd, stdin, stderr } = machine;
  const runs = await withStore(workspace, clock, async (store) =>
    runsToChoose(store, await lockOwnerOf(workspace)),
  );
  const [first, second] = runs;
  if (!second) return first?.id ?? null;
  const lines = runs.map(({ id, jobName, manifest, state, startedAt, options: { sandbox } }) => {
    const name = `run ${id} of ${jobName} (${shownPath(manifest, cwd)})`;
    const command = `bulkgen ${what} ${id}${sandboxFlag({ sandbox })}`;
    return terminalText(`${name}, ${state}, started ${localTime(startedAt)}: \`${command}\``);
  });
  const listed = [`no run is in progress, and ${runs.length} could be meant:`, ...lines].join("\n  ");
  if (!stdin.isTTY) throw new EarlyExit("usage", `${listed}\nNothing was changed.`);
  stderr.write(`${listed}\n`);
  const numbers = runs.map(({ id }) => String(id));
  const question = `Which run? [${numbers.join("/")}]`;
  const answer = await answerTo(question, { machine, interrupt, done: "changed" });
  if (answer !== null && numbers.includes(answer)) return Number(answer);
  throw new EarlyExit("usage", "no run was chosen; nothing was changed");
}

/** Says on stderr that the process with the workspace takes its time. */
export function onSlow(
  { quiet }: Pick<WorkspaceFlags, "quiet">,
  { stderr }: Machine,
): (line: string) => void {
  return (line) => {
    if (!quiet) stderr.write(`bulkgen: ${line}\n`);
  };
}

/** Prints the result of an order. */
export function showCarried(
  { run, order, kind, message, by }: Carried,
  flags: Pick<WorkspaceFlags, "json" | "workspace" | "sandbox">,
  machine: Machine,
): void {
  const done = kind === "done";
  const shownMessage = fromHere(message, workspaceOf(flags, machine), flags.sandbox ?? false, machine);
  const document = { run: run.id, order: order.do, done, process: by?.pid ?? null, message: shownMessage };
  print(flags, machine, "order", document, () => terminalLines(shownMessage));
}

type PauseCall = Call<WorkspaceFlags, { run?: number }>;

export async function pause(call: PauseCall): Promise<undefined> {
  await orderRun("pause", call.args.run, call);
}

export async function cancel(call: PauseCall): Promise<undefined> {
  await orderRun("cancel", call.args.run, call);
}
