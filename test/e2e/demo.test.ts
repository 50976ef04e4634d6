import { readFileSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { expectArchived, indexOf } from "./archive.js";
import { newPlace, run } from "./command.js";

const manifest = new URL("../../jobs/demo.csv", import.meta.url);

test("P2: the demo makes every picture as ordered; run again, it pays nothing", async () => {
  const place = newPlace();
  place.write("jobs/demo.csv", readFileSync(manifest));
  const demo = ["run", "jobs/demo.csv", "--sandbox", "--yes", "--json"];

  const first = await run(place, demo, { fullSize: true });
  expect(first, first.stderr).toMatchObject({ code: 0, signal: null });
  const made = JSON.parse(first.stdout) as Summary;
  const folder = join(place.folder, "sandbox-outputs", "demo");
  const index = indexOf(folder);
  expectArchived(folder, [...new Set(index.map((line) => line.item))]);
  expect(made).toMatchObject({ files: index.length, failures: [], held: [] });
  const pictures = index.filter((line) => line.mime.startsWith("image/"));
  expect(pictures.length).toBeGreaterThanOrEqual(24);
  for (const { file, params } of pictures) {
    // Decoded to the last row: a header alone would open as well.
    const { info } = await sharp(join(folder, file)).raw().toBuffer({ resolveWithObject: true });
    const [width = 1, height = 1] = (params["aspect_ratio"] ?? "1:1").split(":").map(Number);
    if (params["aspect_ratio"] !== undefined)
      expect(info.width / info.height, file).toBeCloseTo(width / height, 1);
  }
  const again = await run(place, demo);
  expect(again, again.stderr).toMatchObject({ code: 0, signal: null });
  const nothing = JSON.parse(again.stdout) as Summary;
  // The plan's two, and one for the balance in the summary.
  expect(nothing.requests).toBeLessThanOrEqual(3);
  expect(nothing.credits).toMatchObject({ spent: 0, pending: 0 });
  expect(tasksMade(join(place.folder, ".bulkgen", "sandbox", "service.db"))).toBe(made.counts.archived);
  expectArchived(folder, [...new Set(index.map((line) => line.item))]);

  const gallery = await run(place, ["gallery", "--sandbox"]);
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  expect(readme).toContain(`$ npx bulkgen gallery --sandbox\n${gallery.stdout}`);
});

/** What the sandbox has on record. No process may be using its file. */
function tasksMade(file: string): unknown {
  const db = openSqlite(file, { readonly: true });
  try {
    return db.prepare("SELECT count(*) FROM tasks").pluck().get();
  } finally {
    db.close();
  }
}

interface Summary {
  counts: { archived: number };
  files: number;
  requests: number;
  credits: { spent: number; left: number };
}
