import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { s3Server } from "../bucket/s3-server.js";
import { newPlace, type Place, run } from "./command.js";
import { me, startService } from "./service.js";

const head = "id,model,prompt\n";
const rows = {
  cup: "cup,plain-image,a cup\n",
  jar: "jar,plain-image,a jar\n",
  pot: "pot,plain-image,a pot\n",
};
const sheet = head + rows.cup + rows.jar;
const oneLine = (text: string) => text.replace(/\s+/g, " ");

/** The lines that commands have written to log.txt since the last call. */
function news(at: Place): string[] {
  const path = join(at.folder, "log.txt");
  const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
  rmSync(path, { force: true });
  return lines.toSorted();
}

const eachFile = 'echo "$BULKGEN_ITEM" >> log.txt';
const theSet = 'echo "set of $BULKGEN_FILES" >> log.txt';

/** A workspace with a sheet, and a way to give commands in it. */
async function place(text: string, name = "set.csv") {
  const service = await startService({ balance: 100 });
  const at = newPlace();
  at.write(name, text);
  return { at, service, give: (...words: string[]) => run(at, words, service) };
}

test("the command after the set runs again for each change of the set, also one that leads back to an earlier state", async () => {
  const { at, service, give } = await place(sheet + rows.pot);
  const goes = async () => {
    const { code, stderr } = await give("run", "set.csv", "--yes", "--after-set", theSet);
    expect(code, stderr).toBe(0);
    return news(at);
  };
  expect(await goes()).toEqual(["set of 3"]);
  at.write("set.csv", sheet);
  expect(await goes()).toEqual(["set of 2"]);
  expect(await goes()).toEqual([]);
  at.write("set.csv", sheet + rows.pot);
  expect(await goes()).toEqual(["set of 3"]);

  expect((await give("redo", "cup", "--yes")).code).toBe(0);
  expect(news(at)).toEqual(["set of 4"]);
  expect(await goes()).toEqual([]);
  for (const words of [
    ["pick", "cup-v2"],
    ["pick", "cup"],
    ["pick", "cup-v2"],
    ["pick", "cup-v2", "--undo"],
  ]) {
    expect((await give(...words)).code).toBe(0);
    expect(news(at)).toEqual([]);
    expect(await goes()).toEqual(["set of 4"]);
    expect(await goes()).toEqual([]);
  }
  expect(service.made).toHaveLength(4);
});

test("the command after the set waits for an approval, and runs again when a retake is approved", async () => {
  const job = `
approve: true
rows: [{ id: cup, model: plain-image, prompt: a cup }]
`;
  const { at, give } = await place(job, "set.yaml");
  const words = ["run", "set.yaml", "--yes", "--after-set", theSet];
  expect((await give(...words)).code).toBe(10);
  expect(news(at)).toEqual([]);
  expect((await give("approve", "cup")).code).toBe(0);
  expect((await give(...words)).code).toBe(0);
  expect(news(at)).toEqual(["set of 1"]);
  expect((await give("redo", "cup", "--yes")).code).toBe(10);
  expect(news(at)).toEqual([]);
  expect((await give("approve", "cup-v2")).code).toBe(0);
  expect((await give(...words)).code).toBe(0);
  expect(news(at)).toEqual(["set of 2"]);
  // Without an approved take the row has nothing to hand over.
  expect((await give("reject", "cup", "cup-v2")).code).toBe(0);
  const rejected = await give(...words);
  expect(rejected.code).toBe(0);
  expect(oneLine(rejected.stdout)).toContain("the command was not run: cup is not archived, or not approved");
  expect(news(at)).toEqual([]);
});

test("after a redo the set is judged by what the sheet asks for", async () => {
  const { at, service, give } = await place(sheet);
  const no = { status: 400, json: { error: { code: "VALIDATION_ERROR", message: "not with us" } } };
  service.script(({ what, body }) => (what === "POST generate" && body.includes("a jar") ? no : "serve"));
  expect((await give("run", "set.csv", "--yes", "--after-set", theSet)).code).toBe(5);
  const redone = await give("redo", "cup", "--yes");
  expect(redone.code, redone.stderr).toBe(0);
  expect(news(at)).toEqual([]);
  expect(oneLine(redone.stdout)).toContain(
    "after the set the command was not run: jar is not archived, or not approved. When nothing is missing, `bulkgen run ",
  );
  service.script(() => "serve");
  expect((await give("retry", "1", "--yes")).code).toBe(0);
  expect(news(at)).toEqual(["set of 3"]);
});

test("rows that the credits did not cover belong to the set, also after a redo", async () => {
  const { at, service, give } = await place(sheet);
  service.script(({ what }) => (what === "GET me" ? { json: me({ balance: 3 }) } : "serve"));
  const fit = ["--after-set", theSet, "--on-insufficient", "fit"];
  expect((await give("run", "set.csv", "--yes", ...fit)).code).toBe(7);
  service.script(() => "serve");
  const redone = await give("redo", "cup", "--yes", "--accept-foreign-use");
  expect(redone.code, redone.stderr).toBe(0);
  expect(oneLine(redone.stdout)).toContain(
    "after the set the command was not run: jar is not archived, or not approved",
  );
  expect(news(at)).toEqual([]);
  expect((await give("run", "set.csv", "--yes", "--accept-foreign-use", ...fit)).code).toBe(0);
  expect(news(at)).toEqual(["set of 3"]);
});

test("a set with a missing file is not handed over until the file is fetched", async () => {
  const { at, service, give } = await place(sheet);
  expect((await give("run", "set.csv", "--yes")).code).toBe(0);
  rmSync(join(at.folder, "outputs/set/cup.png"));
  const words = ["run", "set.csv", "--yes", "--after-set", theSet];
  const missing = await give(...words);
  expect(missing.code, missing.stderr).toBe(5);
  expect(news(at)).toEqual([]);
  const said = oneLine(missing.stdout);
  expect(said).toContain("after the set the command was not run: 1 file of the set is missing on the disk");
  expect(said).toContain(
    "Next: `bulkgen verify --repair` downloads missing files again while the service has them, at no cost; then `bulkgen resume 2` runs the command after the set",
  );
  expect(JSON.parse((await give("status", "--json")).stdout).after).toMatchObject({ missing: 1, set: null });
  expect(oneLine((await give("status")).stdout)).toContain("1 file of the set is missing on the disk");
  const fetched = await give(...words, "--missing", "fetch");
  expect(fetched.code, fetched.stderr).toBe(0);
  expect(news(at)).toEqual(["set of 2"]);

  // A run of the sheet makes no retakes, and so fetches none.
  expect((await give("run", "set.csv", "--yes")).code).toBe(0);
  expect((await give("redo", "cup", "--yes")).code).toBe(0);
  rmSync(join(at.folder, "outputs/set/cup-v2.png"));
  expect((await give(...words)).code).toBe(5);
  expect((await give("resume")).code).toBe(5);
  expect(news(at)).toEqual([]);
  expect((await give("verify", "--repair")).code).toBe(0);
  expect((await give("resume")).code).toBe(0);
  expect(news(at)).toEqual(["set of 3"]);
  expect(service.made).toHaveLength(3);
});

test("every file that its command takes away is fetched again, once", async () => {
  const { at, service, give } = await place(sheet + rows.pot);
  const takes = `${eachFile}; rm "$BULKGEN_FILE"`;
  const ended = await give("run", "set.csv", "--yes", "--after-file", takes, "--after-set", theSet);
  expect(ended.code, ended.stderr).toBe(0);
  expect(news(at)).toEqual(["cup", "jar", "pot", "set of 3"]);
  for (const name of ["cup", "jar", "pot"])
    expect(existsSync(join(at.folder, `outputs/set/${name}.png`))).toBe(true);
  expect(service.made).toHaveLength(3);
});

test("a changed command is run for all takes of the rows, and for no row that the run leaves out", async () => {
  const { at, service, give } = await place(sheet);
  expect((await give("run", "set.csv", "--yes", "--after-file", eachFile)).code).toBe(0);
  expect(news(at)).toEqual(["cup", "jar"]);
  expect((await give("redo", "cup", "--yes")).code).toBe(0);
  expect(news(at)).toEqual(["cup-v2"]);
  const changed = ["run", "set.csv", "--yes", "--after-file", `: ; ${eachFile}`];
  expect((await give(...changed, "--filter", "id=jar")).code).toBe(0);
  expect(news(at)).toEqual(["jar"]);
  expect((await give(...changed)).code).toBe(0);
  expect(news(at)).toEqual(["cup", "cup-v2"]);
  // A run without the command, and a retake of it, keep no later run from it.
  expect((await give("run", "set.csv", "--yes", "--after-file", "")).code).toBe(0);
  expect((await give("redo", "jar", "--yes")).code).toBe(0);
  expect(news(at)).toEqual([]);
  expect((await give(...changed)).code).toBe(0);
  expect(news(at)).toEqual(["jar-v2"]);
  expect(service.made).toHaveLength(4);
});

test("the set waits for the work on every file of the sheet, also after a redo", async () => {
  const { at, give } = await place(sheet);
  const fails = `test "$BULKGEN_ITEM" != jar || test -e ready || exit 126; ${eachFile}`;
  const words = ["run", "set.csv", "--yes", "--after-file", fails, "--after-set", theSet];
  expect((await give(...words)).code).toBe(5);
  expect(news(at)).toEqual(["cup"]);
  const redone = await give("redo", "cup", "--yes");
  expect(redone.code, redone.stderr).toBe(0);
  expect(oneLine(redone.stdout)).toContain("the command after a file has not done its work for 1 file");
  expect(news(at)).toEqual(["cup-v2"]);
  at.write("ready", "");
  expect((await give(...words)).code).toBe(0);
  expect(news(at)).toEqual(["jar", "set of 3"]);
});

test("files that a bucket alone keeps are a set too", async () => {
  const { at, service } = await place(sheet);
  const env = { ...service.env, ...(await s3Server()) };
  const words = ["--yes", "--after-set", theSet, "--archive", "s3://inputs/set", "--archive-only"];
  const ended = await run(at, ["run", "set.csv", ...words], { env });
  expect(ended.code, ended.stderr).toBe(0);
  expect(news(at)).toEqual(["set of 2"]);
});
