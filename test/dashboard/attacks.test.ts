import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { FilePage, RefusedAnswer, Standing, ZipReady } from "../../src/documents/page.js";
import { openSqlite } from "../../src/sqlite.js";
import { main, newPlace, startProcess } from "../e2e/command.js";
import { unzip } from "../e2e/unzip.js";
import { greeting } from "../mcp/greeting.js";
import { type OpenDashboard, openDashboard } from "./place.js";

/** What comes from a folder of somebody else, or asks for too much, is refused, and the page goes on. */

async function made(): Promise<OpenDashboard> {
  const dashboard = await openDashboard();
  dashboard.place.write("set.csv", "id,model,prompt\ncup,plain-image,a cup\n");
  await dashboard.act({ do: "start", choices: { file: "set.csv" }, price: 10 });
  return dashboard;
}

const goesOn = async ({ get }: OpenDashboard) => expect(await get<Standing>("/api/standing")).toBeDefined();

test("a file that is asked for a hundred thousand times is packed once", async () => {
  const page = await made();
  const files = Array.from({ length: 100_000 }, () => ({ item: 1, number: 1 }));
  const { src } = await page.post<ZipReady>("/api/zip", { files });
  const packed = await unzip(Buffer.from(await (await page.ask(src)).arrayBuffer()));
  expect([...packed.keys()]).toHaveLength(1);
  const large = JSON.stringify({ files: [], more: "x".repeat(17 * 2 ** 20) });
  expect(await page.refusal("/api/zip", { method: "POST", body: large })).toEqual([
    422,
    "This request is too large.",
  ]);
  await goesOn(page);
});

test("many checks at once take turns, and too many are refused", async () => {
  const page = await made();
  const body = JSON.stringify({ file: "set.csv" });
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => page.ask("/api/check", { method: "POST", body })),
  );
  const refused = answers.filter(({ status }) => status === 422);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(60);
  expect(answers.every(({ status }) => status === 200 || status === 422)).toBe(true);
  for (const each of refused)
    expect(((await each.json()) as RefusedAnswer).error.message).toContain("too many checks at once");
  await goesOn(page);
});

test("links in place of sheets and outputs are neither read, written nor served", async () => {
  const page = await made();
  const { place } = page;
  writeFileSync(join(place.root, "home", "secret.csv"), "id,model,prompt\ns3cret,plain-image,x\n");
  symlinkSync(join(place.root, "home", "secret.csv"), join(place.folder, "linked.csv"));
  symlinkSync(join(place.root, "home"), join(place.folder, "sheets"));
  const sheets = JSON.stringify(await page.get("/api/sheets"));
  expect(sheets).not.toMatch(/linked|secret/);
  for (const path of ["/api/sheet?file=linked.csv", "/api/sheet/rows?file=sheets/secret.csv"])
    expect(await page.refusal(path)).toEqual([
      422,
      expect.stringContaining("expected a sheet of the workspace"),
    ]);
  const drop = { method: "POST", body: "id\nx\n" };
  expect((await page.refusal("/api/sheets?name=secret.csv&replace=yes", drop))[0]).toBe(422);
  expect(readFileSync(join(place.root, "home", "secret.csv"), "utf8")).toContain("s3cret");
  const { files } = await page.get<FilePage>("/api/files");
  const output = join(place.folder, "outputs", "set", "cup.png");
  rmSync(output);
  symlinkSync(join(place.root, "home", "secret.csv"), output);
  for (const small of ["", "?small"]) {
    const answer = await page.ask(`${files[0]?.src}${small}`);
    expect(answer.status).not.toBe(200);
    expect(await answer.text()).not.toContain("s3cret");
  }
  await goesOn(page);
});

test("what the folder sets has no effect until the user has agreed, and the page says which command agrees", async () => {
  const page = await made();
  page.place.write("bulkgen.config.yaml", "notify: https://theirs.example/hook\n");
  const body = JSON.stringify({ file: "set.csv" });
  expect(await page.refusal("/api/check", { method: "POST", body })).toEqual([
    422,
    expect.stringContaining("bulkgen trust"),
  ]);
  page.place.write("set.csv", "id,model,prompt\nnew,plain-image,a jar\n");
  const act = await page.act({ do: "start", choices: { file: "set.csv" }, price: 10 });
  expect([act.exit, act.message]).toEqual([
    2,
    expect.stringContaining("notify: https://theirs.example/hook"),
  ]);
  expect(page.service.count("POST generate")).toBe(1);
  await goesOn(page);
});

test("a state that somebody else has changed is refused while the page runs, and served again when it is mended", async () => {
  const page = await made();
  const db = openSqlite(join(page.place.folder, ".bulkgen", "state.db"));
  db.exec("UPDATE outputs SET file = '../../../home/secret.csv'");
  const { status } = await page.ask("/api/files");
  const text = JSON.stringify(await (await page.ask("/api/files")).json());
  if (status === 200) {
    const { files } = JSON.parse(text) as FilePage;
    expect((await page.ask(files[0]?.src ?? "")).status).not.toBe(200);
  }
  db.exec("UPDATE outputs SET file = 'cup.png'");
  db.close();
  await goesOn(page);
  expect((await page.ask("/api/files")).status).toBe(200);
});

test("the server of an agent answers a line that is too long, and goes on", async () => {
  const place = newPlace();
  const serving = startProcess(
    process.execPath,
    [main, "mcp"],
    { cwd: place.folder, env: place.env },
    "pipe",
  );
  const send = (message: object) => serving.type(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  serving.type(`${"x".repeat(12 * 2 ** 20)}\n`);
  await serving.prints(/a message has at most 8 MB/);
  send({ id: 1, method: "initialize", params: greeting });
  await serving.prints(/"id":1/);
  serving.signal("SIGTERM");
  expect((await serving.ended).code).toBe(0);
});
