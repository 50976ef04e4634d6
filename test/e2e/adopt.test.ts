import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { indexOf } from "./archive.js";
import { newPlace, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { startService } from "./service.js";
import { cheapModel, sheet } from "./sheet.js";

test("files that were made elsewhere are taken for the rows that are called like them, and not paid", {
  timeout: 120_000,
}, async () => {
  const { env } = await startSandbox();
  const elsewhere = newPlace();
  elsewhere.write("old.csv", sheet(2));
  await run(elsewhere, ["run", "old.csv", "--yes"], { env });
  const place = newPlace();
  const stock = join(place.folder, "stock");
  cpSync(join(elsewhere.folder, "outputs", "old"), stock, { recursive: true });
  rmSync(join(stock, "index.jsonl"));
  mkdirSync(join(stock, "cups"));
  renameSync(join(stock, "a02.png"), join(stock, "cups", "BLUE.png"));
  writeFileSync(join(stock, "broken.png"), "<html>not found</html>");
  writeFileSync(join(stock, "stranger.png"), readFileSync(join(stock, "a01.png")));
  // Neither hidden files, such as bulkgen's own, nor those of a rehearsal are anybody's pictures.
  for (const folder of [".bulkgen", "sandbox-outputs"])
    cpSync(join(stock, "stranger.png"), join(stock, folder, "c.png"), { recursive: true });
  const rows = [`a01,~,a red cup,`, `b,~,a blue cup,cups/blue`, `broken,~,a green cup,`, `c,~,a new cup,`];
  place.write("new.csv", ["id,model,prompt,output", ...rows].join("\n").replaceAll("~", cheapModel));

  const dry = await run(place, ["adopt", "stock", "new.csv", "--dry-run"], { env });
  expect(dry.code, dry.stderr).toBe(0);
  expect(dry.stdout).toContain("new: 3 files would be taken into the archive");
  expect((await run(place, ["export"], { env })).code).toBe(2);

  const end = await run(place, ["adopt", "stock", "new.csv"], { env });
  expect(end.code, end.stderr).toBe(5);
  expect(end.stdout).toContain("new: 2 files taken into the archive at no cost");
  expect(end.stdout).toContain("- b: stock/cups/BLUE.png as cups/blue.png");
  expect(end.stdout).toMatch(/- broken: stock\/broken\.png: .*/);
  expect(end.stdout).toContain("1 file without a row of that name:\n- stock/stranger.png");
  expect(end.stdout).toContain("2 items left to make");
  const archive = join(place.folder, "outputs", "new");
  expect(
    readFileSync(join(archive, "cups/blue.png")).equals(readFileSync(join(stock, "cups/BLUE.png"))),
  ).toBe(true);
  expect(indexOf(archive).map(({ item, task }) => [item, task])).toEqual([
    ["a01", ""],
    ["b", ""],
  ]);

  const again = await run(place, ["adopt", "stock", "new.csv"], { env });
  expect(again.stdout).toContain(
    "2 files left alone: their rows are archived, submitted or skipped\n- stock/a01.png\n- stock/cups/BLUE.png",
  );
  expect(again.stdout).toContain("1 file without a row of that name:\n- stock/stranger.png");

  const paid = await run(place, ["run", "new.csv", "--yes", "--json"], { env });
  expect(JSON.parse(paid.stdout)).toMatchObject({ credits: { spent: 2 }, counts: { archived: 4 } });
  const lines = JSON.parse((await run(place, ["export", "--format", "json"], { env })).stdout);
  expect(lines[0]).toMatchObject({
    file: "a01.png",
    state: "archived",
    reason: "made elsewhere",
    task_id: null,
  });
  const verified = await run(place, ["verify", "--read-data"], { env });
  expect(verified.code, verified.stdout + verified.stderr).toBe(0);

  const blue = readFileSync(join(archive, "cups/blue.png"));
  const flipped = Buffer.from(blue);
  flipped[100] = (flipped[100] ?? 0) ^ 1;
  writeFileSync(join(archive, "cups/blue.png"), flipped);
  const damaged = await run(place, ["verify", "--read-data", "--repair"], { env });
  expect(damaged.code, damaged.stderr).toBe(5);
  expect(damaged.stdout).toMatch(/damaged +1, changed since it was archived\n.*blue\.png/);
  expect(damaged.stdout).toMatch(
    /repaired +0 files.*\nnext +what is left cannot be downloaded: .*--missing pay/,
  );
  writeFileSync(join(archive, "cups/blue.png"), blue);

  rmSync(join(archive, "a01.png"));
  const repaired = await run(place, ["verify", "--repair"], { env });
  expect(repaired.stderr).not.toContain("Error");
  const missing = await run(place, ["run", "new.csv", "--yes", "--json", "--missing", "fetch"], { env });
  expect(JSON.parse(missing.stdout).credits.spent).toBe(0);
  const anew = await run(place, ["run", "new.csv", "--yes", "--json", "--missing", "pay"], { env });
  expect(JSON.parse(anew.stdout).credits.spent, anew.stderr).toBe(1);

  const nowhere = await run(place, ["adopt", "no-such-folder", "new.csv"], { env });
  expect(nowhere).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("expected a folder with media files"),
  });
});

test("a file is taken for a row whose run was cancelled before it was submitted, and not for one that was submitted", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(3, "plain-image"));
  const command = (...args: string[]) => run(place, args, service);
  expect((await command("run", "set.csv", "--yes", "--max-credits", "2")).code).toBe(6);
  expect((await command("cancel")).code).toBe(0);
  cpSync(join(place.folder, "outputs/set/a01.png"), join(place.folder, "stock/a02.png"));
  cpSync(join(place.folder, "outputs/set/a01.png"), join(place.folder, "stock/a01.png"));
  const end = await command("adopt", "stock", "set.csv");
  expect(end, end.stderr).toMatchObject({ code: 0 });
  expect(end.stdout).toContain("set: 1 file taken into the archive at no cost\n- a02:");
  expect(end.stdout).toContain(
    "1 file left alone: their rows are archived, submitted or skipped\n- stock/a01.png",
  );
  expect(end.stdout).toContain("1 item left to make");
  service.script(({ what }) => (what === "POST generate" ? "cut" : "serve"));
  await command("run", "set.csv", "--yes");
  cpSync(join(place.folder, "outputs/set/a01.png"), join(place.folder, "stock/a03.png"));
  const late = await command("adopt", "stock", "set.csv");
  expect(late.stdout).toContain("3 files left alone: their rows are archived, submitted or skipped");
  expect(late.stdout).toContain("0 items left to make");
  expect(service.made.map(({ prompt }) => prompt)).toEqual(["a picture of a01"]);
});
