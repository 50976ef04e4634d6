import { type Carried, carriedOutHere, giveOrder, type WantedOrder } from "../../job/orders/give.js";
import { runMeant } from "../../job/workspace/find-run.js";
import type { Machine } from "../../machine.js";
import type { WorkspaceFlags } from "../flags/shared.js";
import { print } from "../output/print.js";
import { settledWorkspace } from "../settings/workspace.js";
import type { Call } from "./call.js";

/** Orders a run to pause or to cancel. */
export async function orderRun(
  what: "pause" | "cancel",
  which: number | undefined,
  { flags, machine }: Pick<Call<WorkspaceFlags>, "flags" | "machine">,
): Promise<void> {
  const options = {
    workspace: settledWorkspace(flags, machine),
    clock: machine.clock,
    signal: machine.interrupt(),
    onSlow: onSlow(flags, machine),
  };
  const wanted: WantedOrder = async (store, lockOwner) => ({
    run: await runMeant(store, which, lockOwner),
    order: { do: what },
  });
  showCarried(await giveOrder(options, wanted, () => carriedOutHere(options, wanted)), flags, machine);
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
  flags: Pick<WorkspaceFlags, "json">,
  machine: Machine,
): void {
  const done = kind === "done";
  const document = { run: run.id, order: order.do, done, process: by?.pid ?? null, message };
  print(flags, machine, document, () => message);
}

type PauseCall = Call<WorkspaceFlags, { run?: number }>;

export async function pause(call: PauseCall): Promise<undefined> {
  await orderRun("pause", call.args.run, call);
}

export async function cancel(call: PauseCall): Promise<undefined> {
  await orderRun("cancel", call.args.run, call);
}
