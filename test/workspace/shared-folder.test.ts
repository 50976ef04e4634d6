import { expect, test } from "vitest";
import { sharedFolderOf } from "../../src/workspace/workspace.js";

test.each([
  [{ XDG_STATE_HOME: "/state", HOME: "/people/ana" }, "/state/bulkgen"],
  [{ HOME: "/people/ana" }, "/people/ana/.local/state/bulkgen"],
  [{ XDG_STATE_HOME: "", HOME: "/people/ana" }, "/people/ana/.local/state/bulkgen"],
  [{ XDG_STATE_HOME: "state", HOME: "/people/ana" }, "/people/ana/.local/state/bulkgen"],
])("P9: with %j the quota is shared in %s, whatever the current folder is", (environment, folder) => {
  expect(sharedFolderOf(environment)).toBe(folder);
});
