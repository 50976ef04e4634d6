import { type FlagsOf, option } from "./definition.js";
import { workspaceFlags } from "./shared.js";
import { portNumber } from "./values.js";

export const dashboardFlags = {
  port: option("<n>", "port of the page on 127.0.0.1", portNumber, {
    default: 0,
    defaultText: "any free port",
  }),
  ...workspaceFlags,
};
export type DashboardFlags = FlagsOf<typeof dashboardFlags>;
