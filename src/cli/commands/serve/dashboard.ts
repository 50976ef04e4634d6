import { serveDashboard } from "../../../dashboard/serve.js";
import { launchIn } from "../../../launch.js";
import type { DashboardFlags } from "../../../options/serve.js";
import { print } from "../../output/print.js";
import { schedulesFile } from "../../settings/brought.js";
import { withDatabase, workspaceToChange, workspaceToServe } from "../../settings/workspace.js";
import type { Call } from "../call.js";

/** Serves the page of a workspace until it is interrupted. Runs that were started from the page continue. */
export async function dashboard({ flags, machine }: Call<DashboardFlags>): Promise<undefined> {
  const { clock, random, env, program } = machine;
  const sandbox = flags.sandbox ?? false;
  const workspace = workspaceToServe(flags, machine);
  // Rehearsals have a state of their own, but not their own schedules.
  const real = workspaceToChange({ ...flags, sandbox: false }, machine);
  const signal = machine.interrupt();
  const served = await serveDashboard({
    workspace,
    sandbox,
    token: `${random.uuid()}${random.uuid()}`.replaceAll("-", ""),
    clock,
    launch: launchIn(workspace.root, program, withDatabase(flags, env)),
    schedulesFile: schedulesFile(real),
    environment: env,
    port: flags.port,
    signal,
  });
  const { link } = served;
  const { database } = workspace;
  print(flags, machine, "dashboard", { link, workspace: workspace.root }, () =>
    [
      `Dashboard of ${workspace.root}${sandbox ? " (sandbox)" : ""}${database === null ? "" : `, whose state is in ${database.shown}`}:`,
      `  ${link}`,
      "Open the link in a browser on this machine. Ctrl-C ends the dashboard; runs that it has started go on.",
    ].join("\n"),
  );
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  await served.close();
}
