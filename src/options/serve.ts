import { type FlagsOf, option } from "./definition.js";
import { workspaceFlags } from "./shared.js";
import { portNumber } from "./values.js";

/** Flags of the commands that serve a workspace: its page, and its tools for agents. */

export const dashboardFlags = {
  port: option("<n>", "port of the page on 127.0.0.1", portNumber, {
    default: 0,
    defaultText: "any free port",
  }),
  ...workspaceFlags,
};
export type DashboardFlags = FlagsOf<typeof dashboardFlags>;

// Standard output belongs to the protocol.
const { json: _json, ...withoutJson } = workspaceFlags;
export const mcpFlags = withoutJson;
export type McpFlags = FlagsOf<typeof mcpFlags>;
