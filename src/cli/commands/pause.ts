import type { WorkspaceFlags } from "../flags/shared.js";
import type { Call } from "./call.js";
import { orderRun } from "./orders/run-order.js";

type PauseCall = Call<WorkspaceFlags, { run?: number }>;

export async function pause(call: PauseCall): Promise<undefined> {
  await orderRun("pause", call.args.run, call);
}

export async function cancel(call: PauseCall): Promise<undefined> {
  await orderRun("cancel", call.args.run, call);
}
