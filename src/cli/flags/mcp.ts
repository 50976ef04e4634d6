import type { FlagsOf } from "./definition.js";
import { workspaceFlags } from "./shared.js";

export const mcpFlags = { ...workspaceFlags };
export type McpFlags = FlagsOf<typeof mcpFlags>;
