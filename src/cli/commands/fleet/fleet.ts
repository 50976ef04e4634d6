import { fleetOf } from "../../../job/run/fleet-worker.js";
import { fleetJson, fleetText } from "../../../report/fleet.js";
import type { WorkspaceFlags } from "../../flags/shared.js";
import { print } from "../../output/print.js";
import { workspaceOf } from "../../settings/workspace.js";
import type { Call } from "../call.js";

/** `bulkgen fleet`. */
export async function fleet({ flags, machine }: Call<WorkspaceFlags>): Promise<undefined> {
  const found = await fleetOf(workspaceOf(flags, machine), machine.clock);
  print(flags, machine, "fleet", fleetJson(found), () => fleetText(found));
}
