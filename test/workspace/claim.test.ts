import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { claim, claimedBy, workspacesFolder } from "../../src/workspace/identity.js";

test.each(["", "null", "[]", '{"root": 7}', '{"root": "/else'])(
  "P18: a claim that holds %j is none, and is replaced",
  (text) => {
    const root = mkdtempSync(join(tmpdir(), "bulkgen-claim-"));
    const sharedFolder = join(root, "shared");
    mkdirSync(workspacesFolder(sharedFolder), { recursive: true });
    writeFileSync(join(workspacesFolder(sharedFolder), "w1.json"), text);
    const place = (folder: string) => ({
      root: folder,
      markerFolder: join(folder, ".bulkgen"),
      sharedFolder,
    });
    expect(claimedBy("w1", place(root))).toBeNull();
    const jobs = place(join(root, "jobs"));
    mkdirSync(jobs.markerFolder, { recursive: true });
    writeFileSync(join(jobs.markerFolder, "workspace.json"), '{"id": "w1", "state": null}');
    claim("w1", jobs);
    expect(claimedBy("w1", place(root))).toBe(jobs.root);
  },
);
