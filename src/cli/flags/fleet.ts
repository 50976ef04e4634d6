import { type FlagsOf, option } from "./definition.js";
import { workspaceFlags } from "./shared.js";
import { anyText } from "./values.js";

/** Flags of migrate. */

const placeText = "PostgreSQL address, or the state.db of a workspace";
export const migrateFlags = {
  from: option("<place>", `where the state is: ${placeText} (default: --database-url)`, anyText, {
    inFiles: "never",
  }),
  to: option("<place>", `where it will be: ${placeText} (default: --database-url)`, anyText, {
    inFiles: "never",
  }),
  ...workspaceFlags,
};
export type MigrateFlags = FlagsOf<typeof migrateFlags>;
