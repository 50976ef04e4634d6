import { fleetOf, rebuildQueue } from "../../../job/run/fleet-worker.js";
import type { WorkspaceFlags } from "../../../options/shared.js";
import { fleetJson, fleetText } from "../../../report/fleet.js";
import { print } from "../../output/print.js";
import { workspaceOf } from "../../settings/workspace.js";
import type { Call } from "../call.js";

/** `bulkgen fleet`. */
export async function fleet({ flags, machine }: Call<WorkspaceFlags>): Promise<undefined> {
  const found = await fleetOf(workspaceOf(flags, machine), machine.clock);
  print(flags, machine, "fleet", fleetJson(found), () => fleetText(found));
}

/** `bulkgen fleet rebuild`. */
export async function rebuildFleet({ flags, machine }: Call<WorkspaceFlags>): Promise<undefined> {
  const workspace = workspaceOf(flags, machine);
  await rebuildQueue(workspace, machine.clock);
  print(flags, machine, "fleet-rebuild", { queue: "rebuilt" as const }, () =>
    [
      "The queue of downloads was dropped and made anew.",
      "A run in progress puts the downloads that it waits for into it again, and its workers go on with them.",
    ].join("\n"),
  );
}
