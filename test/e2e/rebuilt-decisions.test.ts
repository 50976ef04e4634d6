import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { startService } from "./service.js";

const job = `
name: set
rows:
  - { id: cup, prompt: a cup }
  - { id: jar, prompt: a jar }
  - { id: pot, prompt: a pot }
defaults: { model: plain-image }
steps:
  - { name: draft, approve: true }
  - { name: final, image_url: "@draft" }
`;

async function made() {
  const service = await startService();
  const place = newPlace();
  place.write("set.yaml", job);
  const command = (...args: string[]) => run(place, args, service);
  expect((await command("run", "set.yaml", "--yes")).code).toBe(10);
  expect((await command("reject", "cup-draft", "--again", "--yes")).code).toBe(10);
  expect(service.made).toHaveLength(4);
  /** The database is lost. */
  const rebuild = async () => {
    rmSync(join(place.folder, ".bulkgen/state.db"));
    const end = await command("doctor", "--rebuild", "--yes");
    expect(end, end.stderr).toMatchObject({ code: 0 });
    return end.stdout;
  };
  return { service, place, command, rebuild };
}

test("P4: what people decided survives a lost database: approvals, rejections and picks", async () => {
  const { service, command, rebuild } = await made();
  for (const words of [
    ["approve", "cup-draft-v2"],
    ["reject", "jar-draft"],
    ["pick", "jar-draft"],
    ["pick", "pot-draft"],
    ["pick", "pot-draft", "--undo"],
  ]) {
    const end = await command(...words);
    expect([0, 10], end.stderr).toContain(end.code);
  }
  expect(await rebuild()).toMatch(/^decisions +1 pick, 3 approvals and rejections$/m);
  const listed = JSON.parse((await command("pick", "--json")).stdout);
  expect(JSON.stringify(listed)).toContain("jar-draft");
  expect(JSON.stringify(listed)).not.toContain("pot-draft");
  const end = await command("run", "set.yaml", "--yes");
  expect(end, end.stderr).toMatchObject({ code: 10 });
  // The approved variant takes the place of the rejected one; nothing is made of what was rejected or waits.
  expect(service.made.map(({ prompt }) => prompt)).toEqual(["a cup", "a jar", "a pot", "a cup", "a cup"]);
  expect(String(service.made[4]?.body["image_url"])).toContain(service.made[3]?.task);
});

test("P4: what was not decided before the database was lost can be decided after it", async () => {
  const { service, command, rebuild } = await made();
  expect(await rebuild()).toMatch(/not restored .*picks and approvals that the receipts do not have/);
  const approved = await command("approve", "cup-draft-v2", "pot-draft");
  expect([0, 8, 10], approved.stderr).toContain(approved.code);
  expect((await command("run", "set.yaml", "--yes")).code).toBe(10);
  expect(service.made.map(({ prompt }) => prompt).toSorted()).toEqual(
    ["a cup", "a cup", "a cup", "a jar", "a pot", "a pot"].toSorted(),
  );
});
