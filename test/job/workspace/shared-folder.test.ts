import { expect, test } from "vitest";
import { sharedFolderOf } from "../../../src/job/workspace/workspace.js";

test.each([
  [{ XDG_STATE_HOME: "/state", HOME: "/home/ana" }, "/state/bulkgen"],
  [{ HOME: "/home/ana" }, "/home/ana/.local/state/bulkgen"],
  [{ XDG_STATE_HOME: "", HOME: "/home/ana" }, "/home/ana/.local/state/bulkgen"],
  [{ XDG_STATE_HOME: "state", HOME: "/home/ana" }, "/home/ana/.local/state/bulkgen"],
])("P9: with %j the quota is shared in %s, whatever the current folder is", (environment, folder) => {
  expect(sharedFolderOf(environment)).toBe(folder);
});
