import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { galleryData } from "../report/gallery-data.js";
import { newPlace, type Place, run } from "./command.js";
import { sheet } from "./sheet.js";
import { unzip } from "./unzip.js";

const slow = { timeout: 120_000 };

async function made(): Promise<Place> {
  const place = newPlace();
  place.write("s.csv", sheet(4));
  const end = await run(place, ["run", "s.csv", "--sandbox", "--yes", "--gallery"]);
  expect(end.code, end.stderr).toBe(0);
  expect(end.stderr).toContain("gallery: sandbox-outputs/s/gallery.html");
  return place;
}

const call = (place: Place, ...args: string[]) => run(place, [...args, "--sandbox"]);

/** The names by which the page calls the items in `review.csv`, by row id. */
function names(place: Place): Record<string, string> {
  const page = readFileSync(join(place.folder, "sandbox-outputs/s/gallery.html"), "utf8");
  return Object.fromEntries(galleryData(page).cards.map(({ rowId, name }) => [rowId, name]));
}

test("a run with --gallery ends with the page of its files, whose names commands find", slow, async () => {
  const place = await made();
  const { a01, a02, a03, a04 } = names(place);
  place.write(
    "review.csv",
    `id,decision,row,path\r\n${a01},pick,a01,a01.png\r\n${a02},pick,a02,a02.png\r\n${a03},reject,a03,a03.png\r\n${a04},redo,a04,a04.png\r\n`,
  );
  const picked = await call(place, "pick", "--from", "review.csv");
  expect(picked, picked.stderr).toMatchObject({ code: 0, stdout: "a01 is picked\na02 is picked\n" });
  const packed = await call(place, "export", "--zip", "client.zip", "--files-only", "--from", "review.csv");
  expect(packed, packed.stderr).toMatchObject({ code: 0 });
  expect([...unzip(join(place.folder, "client.zip")).keys()]).toEqual(["a01.png", "a02.png"]);
  const rows = await call(place, "export", "--from", "review.csv", "--columns", "item");
  expect(rows.stdout.replaceAll("\r", "")).toBe("\uFEFFitem\na01\na02\n");
  const again = await call(place, "redo", "--from", "review.csv", "--yes");
  expect(again, again.stderr).toMatchObject({ code: 0 });
  await call(place, "gallery");
  expect(Object.keys(names(place))).toEqual(["a01", "a02", "a03", "a04", "a04-v2"]);
  // Nobody asked for approval: there is nothing to approve. Whatever is archived can be rejected.
  const refused = await call(place, "approve", "--from", "review.csv");
  expect(refused).toMatchObject({ code: 2 });
  expect(refused.stderr).toContain("waits for approval: their steps have no `approve: true`");
  expect((await call(place, "reject", "--from", "review.csv")).stdout).toBe("a03 is rejected\n");
});

test("columns of a review file that no command reads are named", slow, async () => {
  const place = await made();
  place.write(
    "review.csv",
    "id,decision,note,Prompt,row,path\na01,pick,too dark,a cup,a01,a01.png\na02,redo,,,a02,\n",
  );
  const note =
    "bulkgen: the columns note, prompt of review.csv are not used: only id and decision are read.\n";
  expect((await call(place, "pick", "--from", "review.csv")).stderr).toBe(note);
  expect((await call(place, "export", "--from", "review.csv", "--columns", "item")).stderr).toBe(note);
  expect((await call(place, "redo", "--from", "review.csv", "--yes")).stderr).toContain(note);
  place.write("review.csv", "id,decision,note\na01,reject,too dark\n");
  expect((await call(place, "reject", "--from", "review.csv")).stderr).toBe(
    "bulkgen: the column note of review.csv is not used: only id and decision are read.\n",
  );
  // As a gallery saves it.
  place.write("review.csv", "id,decision,row,path\na02,reject,a02,a02.png\n");
  expect((await call(place, "reject", "--from", "review.csv")).stderr).toBe("");
});

test("what a review file gets wrong is named with its row, and nothing is changed", slow, async () => {
  const place = await made();
  place.write("review.csv", "id,decision\na01,pick\nnobody,pick\n\u202eevil,redo\n");
  for (const command of [["pick"], ["export"]]) {
    const refused = await call(place, ...command, "--from", "review.csv");
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toContain('review.csv, row 3: no item "nobody"');
  }
  const redo = await call(place, "redo", "--from", "review.csv", "--yes");
  expect(redo).toMatchObject({ code: 2 });
  expect(redo.stderr).toContain("review.csv, row 4: no item");
  expect((await call(place, "pick")).stdout).toContain("nothing is picked");
  place.write("review.csv", "id,decision\na01,keep\n");
  for (const command of ["pick", "redo", "export"]) {
    const refused = await call(place, command, "--from", "review.csv");
    expect(refused.stderr).toContain('row 2: expected approve, pick, reject, redo as decision, got "keep"');
  }
  for (const command of ["pick", "redo"]) {
    const both = await call(place, command, "a01", "--from", "review.csv");
    expect(both.stderr).toContain("expected items or --from FILE, got both");
  }
  place.write("review.csv", "id,decision\na01,reject\n");
  const missing = await call(place, "pick", "--from", "revew.csv");
  expect(missing).toMatchObject({ code: 2, stdout: "" });
  expect(missing.stderr).toMatch(
    /revew\.csv cannot be used:\n {2}the review file does not exist; did you mean review\.csv\?\nNothing was changed\.$/m,
  );
  const none = await call(place, "redo", "--from", "review.csv", "--yes");
  expect(none.stderr).toMatch(/review\.csv has no decision that this command takes \(redo\), only reject$/m);
});
