import { cpSync, existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { newPlace, run } from "./command.js";
import { type Scripted, startService } from "./service.js";

/** What people read when something of a sheet is left out, not selected or not understood. */
const oneLine = (text: string) => text.replace(/\s+/g, " ");

test("of a row of which some combinations are left out, the combinations are counted", async () => {
  const service = await startService();
  const place = newPlace();
  const styles = Array.from({ length: 3 }, (_, at) => `"s${at}"`).join(", ");
  place.write(
    "job.json",
    `{"defaults": {"model": "plain-image"}, "prompt": "{{ thing }} in {{ style }}", "matrix": {"style": [${styles}], "params.aspect_ratio": ["1:1", "7:7"]}, "rows": [{"thing": "a cup"}, {"thing": "a jar"}]}`,
  );
  const planned = await run(place, ["plan", "job.json", "--skip-invalid"], service);
  expect(oneLine(planned.stdout)).toContain("6 combinations of 2 invalid rows left out");
  const made = await run(place, ["run", "job.json", "--skip-invalid", "--yes"], service);
  expect(oneLine(made.stdout)).toContain("6 combinations of 2 invalid rows, listed in");
  expect(service.made).toHaveLength(6);
});

test("the list of invalid rows goes once every row is valid", async () => {
  const service = await startService();
  const place = newPlace();
  const list = join(place.folder, "outputs", "set", "problems.csv");
  place.write("set.csv", "id,model,prompt\na,plain-image,a cup\nb,plain-imag,a jar\n");
  expect((await run(place, ["run", "set.csv", "--skip-invalid", "--yes"], service)).code).toBe(0);
  expect(existsSync(list)).toBe(true);
  place.write("set.csv", "id,model,prompt\na,plain-image,a cup\nb,plain-image,a jar\n");
  expect((await run(place, ["run", "set.csv", "--yes"], service)).code).toBe(0);
  expect(existsSync(list)).toBe(false);
});

test("a selection of the picked items that leaves none says so of the picked ones", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", "id,model,prompt\na,plain-image,a cup\nb,plain-image,a jar\n");
  expect((await run(place, ["run", "set.csv", "--yes"], service)).code).toBe(0);
  expect((await run(place, ["pick", "a"], service)).code).toBe(0);
  expect(await run(place, ["export", "--picked", "--filter", "id=b"], service)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("no picked item of run 1 is selected by --filter id=b"),
  });
});

test("a text file with a prompt on each line is a sheet of prompts; one with a header is a sheet", async () => {
  const service = await startService();
  const place = newPlace();
  place.write(
    "prompts.txt",
    "# for the autumn set\na red fox, in the snow\r\n\r\na cup; a jar\na hat: green\n",
  );
  const end = await run(place, ["run", "prompts.txt", "--model", "plain-image", "--yes"], service);
  expect(end, end.stderr).toMatchObject({ code: 0 });
  expect(end.stderr).toContain("each line of the file is taken as a prompt");
  expect(service.made.map(({ prompt }) => prompt)).toEqual([
    "a red fox, in the snow",
    "a cup; a jar",
    "a hat: green",
  ]);
  place.write("sheet.txt", "id;prompt\na;a plate\n");
  expect((await run(place, ["run", "sheet.txt", "--model", "plain-image", "--yes"], service)).code).toBe(0);
  expect(service.made.at(-1)?.prompt).toBe("a plate");
});

test.each([
  ["one prompt", "A cup, on oak\n", ["A cup, on oak"]],
  ["brackets", "[wide] a cup\n[tall] a cup\n", ["[wide] a cup", "[tall] a cup"]],
  ["braces", "{a} cup\n", ["{a} cup"]],
  ["a colon", "Prompt: a cup\nprompt: a jar\n", ["Prompt: a cup", "prompt: a jar"]],
  ["dashes", "- a cup\n- a jar\n", ["- a cup", "- a jar"]],
  ["a sheet", "prompt\na cup\n", ["a cup"]],
  ["JSON", '[{"prompt": "a cup"}]\n', ["a cup"]],
  ["YAML of two keys", "repeat: 2\nprompt: a cup\n", ["a cup", "a cup"]],
  ["YAML", "prompt: a {{ thing }}\nmatrix: { thing: [cup] }\n", ["a cup"]],
])("a text file with %s is read as what it is", async (_, text, prompts) => {
  const service = await startService();
  const place = newPlace();
  place.write("prompts.txt", text);
  const made = await run(place, ["run", "prompts.txt", "--model", "plain-image", "--yes"], service);
  expect(made, made.stderr).toMatchObject({ code: 0 });
  expect(service.made.map(({ prompt }) => prompt)).toEqual(prompts);
});

test.each([
  ["tab.yaml", "rows:\n\t- prompt: a cup\n", "a tab at the beginning of a line; YAML indents with spaces"],
  ["open.csv", "id,model,prompt\na,plain-image,a {{Ω} cup\n", "{% raw %}…{% endraw %} around text in which"],
])("%s: what is wrong is said in the user's words", async (name, text, words) => {
  const service = await startService();
  const place = newPlace();
  place.write(name, text);
  const { code, stdout, stderr } = await run(place, ["plan", name, "--model", "plain-image"], service);
  expect(code).toBe(2);
  expect(oneLine(stdout + stderr)).toContain(words);
});

test("R6: a run whose account data can be used no more is recorded as ended, with the reason, and resumes", async () => {
  const service = await startService();
  const place = newPlace();
  const path = join(place.root, "state", "bulkgen", "accounts.db");
  place.write("set.csv", "id,model,prompt\na,plain-image,a cup\nb,plain-image,a jar\nc,plain-image,a hat\n");
  service.script(({ what }): Scripted => {
    if (what === "POST generate" && service.made.length === 1) {
      const db = openSqlite(path);
      // Without a change, the run would go on with the pages that it has in memory.
      db.exec("CREATE TABLE change (id)");
      db.pragma("wal_checkpoint(TRUNCATE)");
      db.close();
      cpSync(path, `${path}.good`);
      writeFileSync(path, "no database ".repeat(2_000));
    }
    return "serve";
  });
  const ended = await run(place, ["run", "set.csv", "--yes", "--lanes", "1"], service);
  expect(ended).toMatchObject({ code: 8, stderr: expect.stringContaining("the run stopped (") });
  for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true });
  renameSync(`${path}.good`, path);
  service.script(() => "serve");
  const { stdout } = await run(place, ["status", "--json"], service);
  expect(JSON.parse(stdout)).toMatchObject({
    state: "interrupted",
    crashed: false,
    exitName: "unfinished",
    stops: [expect.stringMatching(/^the run stopped \(.*accounts\.db/)],
  });
  const resumed = await run(place, ["resume", "--yes"], service);
  expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
  expect(service.made).toHaveLength(3);
});
