import type { FlagsOf } from "./definition.js";
import { workspaceFlags } from "./shared.js";

const { json: _json, ...flags } = workspaceFlags;

/** Standard output belongs to the protocol. */
export const mcpFlags = flags;
export type McpFlags = FlagsOf<typeof mcpFlags>;
