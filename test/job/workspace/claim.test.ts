import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { claim, formerRoot, workspacesFolder } from "../../../src/job/workspace/workspace.js";

test.each(["", "null", "[]", '{"root": 7}', '{"root": "/else'])(
  "P18: a claim that holds %j is none, and is replaced",
  (text) => {
    const root = mkdtempSync(join(tmpdir(), "bulkgen-claim-"));
    const sharedFolder = join(root, "shared");
    mkdirSync(workspacesFolder(sharedFolder), { recursive: true });
    writeFileSync(join(workspacesFolder(sharedFolder), "w1.json"), text);
    expect(formerRoot("w1", root, sharedFolder)).toBeNull();
    claim("w1", { root: join(root, "jobs"), markerFolder: join(root, "jobs", ".bulkgen"), sharedFolder });
    expect(formerRoot("w1", root, sharedFolder)).toBe(join(root, "jobs"));
  },
);
