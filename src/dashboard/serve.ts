import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { EarlyExit } from "../core/exit.js";
import type { Launch } from "../launch.js";
import { ownVersion, packageFile } from "../package-file.js";
import { type DashboardAppOptions, dashboardApp } from "./app.js";
import { Commands } from "./commands.js";
import { FleetWatch } from "./fleet-watch.js";
import { PageFiles } from "./page-files.js";
import { WorkspaceWatch } from "./workspace-watch.js";

export interface ServeOptions extends Omit<DashboardAppOptions, "watch" | "fleet" | "commands" | "page"> {
  sandbox: boolean;
  launch: Launch;
  port: number;
}

export interface RunningDashboard {
  /** The link that lets its reader in. */
  link: string;
  close(): Promise<void>;
}

/** Serves the dashboard of a workspace on loopback. Throws EarlyExit when the port is taken. */
export async function serveDashboard(options: ServeOptions): Promise<RunningDashboard> {
  const { workspace, sandbox, launch, clock, port, token, schedulesFile } = options;
  const commands = new Commands(launch, { sandbox, now: () => clock.now() });
  const version = ownVersion();
  const watch = new WorkspaceWatch({ workspace, schedulesFile, sandbox, version, commands, clock });
  const fleet = new FleetWatch(workspace, clock);
  const page = new PageFiles(packageFile("dist/page/dashboard"));
  const app = dashboardApp({ ...options, commands, watch, fleet, page });
  const server = serve({ fetch: app.fetch, port, hostname: "127.0.0.1" });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      void watch.close();
      reject(new EarlyExit("usage", `--port: expected a free port, got ${port}: ${error.message}`));
    });
    server.once("listening", () => resolve());
  });
  return {
    link: `http://127.0.0.1:${(server.address() as AddressInfo).port}/#token=${token}`,
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        if ("closeAllConnections" in server) server.closeAllConnections();
      });
      await watch.close();
      await fleet.close();
    },
  };
}
