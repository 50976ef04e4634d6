import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { s3Server } from "../bucket/s3-server.js";
import { newPlace, type Place, run, started } from "./command.js";
import { type ScriptedService, startService } from "./service.js";

const sheet = "id,model,prompt,product name\ncup,plain-image,a cup,Blue cup\njar,plain-image,a jar,\n";

async function place(files: Record<string, string> = {}): Promise<[Place, ScriptedService]> {
  const service = await startService({ balance: 100 });
  const made = newPlace();
  for (const [name, text] of Object.entries({ "set.csv": sheet, ...files })) made.write(name, text);
  return [made, service];
}

/** The lines of a file that commands have written, in no order. */
function lines({ folder }: Place, name: string): string[] {
  const path = join(folder, name);
  return existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => line.trim())
        .toSorted()
    : [];
}

const oneLine = (text: string) => text.replace(/\s+/g, " ");
const logged = 'echo "$BULKGEN_ITEM" >> files.txt';

test("a command runs once for each archived file, and one when everything is archived", async () => {
  const [at, service] = await place();
  const command = [
    'test "$(wc -c < "$BULKGEN_FILE")" -gt 0',
    'echo "$BULKGEN_NAME $BULKGEN_STEM $BULKGEN_ROW $BULKGEN_ITEM $BULKGEN_MODEL_KEY $BULKGEN_PROMPT_TEXT $BULKGEN_COLUMN_PRODUCT_NAME" >> files.txt',
    'echo "$BULKGEN_JSON" >> facts.txt',
  ].join(" && ");
  const set = 'echo "$BULKGEN_FILES $BULKGEN_JOB_NAME $BULKGEN_FOLDER" >> sets.txt; env > environment.txt';
  const words = ["run", "set.csv", "--yes", "--after-file", command, "--after-set", set];
  const first = await run(at, words, service);
  expect(first.code, first.stderr).toBe(0);
  expect(lines(at, "files.txt")).toEqual(
    ["cup.png cup 2 cup plain-image a cup Blue cup", "jar.png jar 3 jar plain-image a jar "]
      .map((line) => line.trim())
      .toSorted(),
  );
  expect(lines(at, "sets.txt")).toEqual([`2 set ${join(at.folder, "outputs/set")}`]);
  const facts = lines(at, "facts.txt").map((line) => JSON.parse(line));
  expect(facts.find(({ item }) => item === "cup")).toMatchObject({
    file: join(at.folder, "outputs/set/cup.png"),
    name: "cup.png",
    job: "set",
    row: 2,
    model: "plain-image",
    columns: { "product name": "Blue cup" },
  });
  expect(readFileSync(join(at.folder, "environment.txt"), "utf8")).not.toContain("BULKGEN_API_KEY");
  expect(oneLine(first.stdout)).toContain(
    "after the command after a file ran for 2 files; the command after the set ran",
  );

  const again = await run(at, words, service);
  expect(again.code, again.stderr).toBe(0);
  expect([lines(at, "files.txt").length, lines(at, "sets.txt").length]).toEqual([2, 1]);
  // One more row is one more file, and another set.
  at.write("set.csv", `${sheet}pot,plain-image,a pot,\n`);
  expect((await run(at, words, service)).code).toBe(0);
  expect([lines(at, "files.txt").length, lines(at, "sets.txt").length]).toEqual([3, 2]);
  expect(service.made).toHaveLength(3);
});

test("a failure is tried again, shown, and a reason to run the command again but never to buy again", async () => {
  const [at, service] = await place();
  const command = `echo "$BULKGEN_ITEM" >> tries.txt; test "$BULKGEN_ITEM" = cup || test -e ready || { echo no tool >&2; exit 3; }`;
  const set = "echo all >> sets.txt";
  const words = ["run", "set.csv", "--yes", "--after-file", command, "--after-set", set];
  const failed = await run(at, words, service);
  expect(failed.code, failed.stderr).toBe(5);
  expect(lines(at, "tries.txt")).toEqual(["cup", "jar", "jar", "jar"]);
  const said = oneLine(failed.stdout);
  expect(said).toContain("archived 2 of 2 items");
  expect(said).toContain("the command failed for 1 archived file");
  expect(said).toContain("1 × ended with 3: no tool (jar)");
  expect(said).toContain(
    "Next: `bulkgen resume 1` runs the commands again that have not done their work, and buys nothing",
  );
  expect(lines(at, "sets.txt")).toEqual([]);
  const status = await run(at, ["status"]);
  expect(oneLine(status.stdout)).toContain("1 × ended with 3: no tool (jar)");
  const document = JSON.parse((await run(at, ["status", "--json"])).stdout);
  expect(document).toMatchObject({
    exitName: "failed",
    resume: "bulkgen resume 1",
    after: { failed: 1, left: 0, set: null, reasons: [{ rowId: "jar", reason: "ended with 3: no tool" }] },
  });

  at.write("ready", "");
  const resumed = await run(at, ["resume"], service);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(lines(at, "tries.txt")).toEqual(["cup", "jar", "jar", "jar", "jar"]);
  expect(lines(at, "sets.txt")).toEqual(["all"]);
  expect(service.made).toHaveLength(2);
  expect((await run(at, ["resume"], service)).stderr).toContain("nothing to resume");
});

test("a run of the same sheet does what has failed, and resume takes another command", async () => {
  const [at, service] = await place();
  expect((await run(at, ["run", "set.csv", "--yes", "--after-file", "exit 3"], service)).code).toBe(5);
  expect((await run(at, ["resume", "--after-file", logged], service)).code).toBe(0);
  expect(lines(at, "files.txt")).toEqual(["cup", "jar"]);
  const sets = ["run", "set.csv", "--yes", "--after-set"];
  const failed = await run(at, [...sets, "echo bad; exit 4"], service);
  expect(failed.code).toBe(5);
  expect(oneLine(failed.stdout)).toContain("after the set the command failed: ended with 4: bad");
  expect((await run(at, [...sets, "echo ok >> sets.txt"], service)).code).toBe(0);
  expect(lines(at, "sets.txt")).toEqual(["ok"]);
  expect(service.made).toHaveLength(2);
});

test("the set is not complete while an item has failed, or only some rows are made", async () => {
  const [at, service] = await place();
  const words = ["--yes", "--after-file", logged, "--after-set", "echo all >> sets.txt"];
  const part = await run(at, ["run", "set.csv", "--first", "1", ...words], service);
  expect(part.code, part.stderr).toBe(0);
  const no = { status: 400, json: { error: { code: "VALIDATION_ERROR", message: "not with us" } } };
  service.script(({ what, body }) => (what === "POST generate" && body.includes("a jar") ? no : "serve"));
  expect((await run(at, ["run", "set.csv", ...words], service)).code).toBe(5);
  expect([lines(at, "files.txt"), lines(at, "sets.txt")]).toEqual([["cup"], []]);
  service.script(() => "serve");
  expect((await run(at, ["retry", "--yes"], service)).code).toBe(0);
  expect([lines(at, "files.txt"), lines(at, "sets.txt")]).toEqual([["cup", "jar"], ["all"]]);
});

test("a command that hangs is ended with what it started, and is not tried again in this run", async () => {
  const [at, service] = await place({ "set.csv": "id,model,prompt\ncup,plain-image,a cup\n" });
  const hang = "sleep 300 & echo $! >> pids.txt; wait";
  const words = ["run", "set.csv", "--yes", "--after-file", hang, "--after-timeout", "1s"];
  const ended = await run(at, words, service);
  expect(ended.code, ended.stderr).toBe(5);
  expect(oneLine(ended.stdout)).toContain("did not end within 1s and was stopped (cup)");
  const [pid, ...others] = lines(at, "pids.txt").map(Number);
  expect(others).toEqual([]);
  expect(isRunning(Number(pid))).toBe(false);
});

/** A process that has ended may wait for its parent to notice. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

test("Ctrl-C ends the command, and resume runs it again", async () => {
  const [at, service] = await place({ "set.csv": "id,model,prompt\ncup,plain-image,a cup\n" });
  const command = "echo $$ >> pids.txt; test -e ready || { echo begun >&2; sleep 300; }";
  const words = ["run", "set.csv", "--yes", "--after-file", command];
  const running = started(at, words, service);
  for (;;) {
    if (lines(at, "pids.txt").length > 0) break;
    await new Promise((done) => setImmediate(done));
  }
  running.interrupt();
  const ended = await running.ended;
  expect(ended.code, ended.stderr).toBe(130);
  expect(isRunning(Number(lines(at, "pids.txt")[0]))).toBe(false);
  at.write("ready", "");
  const resumed = await run(at, ["resume", "--yes"], service);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(lines(at, "pids.txt")).toHaveLength(2);
  expect(service.made).toHaveLength(1);
});

test("of megabytes that a command prints, only the last line is kept", async () => {
  const [at, service] = await place({ "set.csv": "id,model,prompt\ncup,plain-image,a cup\n" });
  const command =
    "yes 0123456789012345678901234567890123456789 | head -c 20000000; echo; echo the end; exit 1";
  const ended = await run(at, ["run", "set.csv", "--yes", "--json", "--after-file", command], service);
  expect(JSON.parse(ended.stdout).after).toEqual({
    done: 0,
    failed: 1,
    left: 0,
    reasons: [{ rowId: "cup", reason: "ended with 1: the end" }],
    set: null,
    setDone: false,
    setWaits: null,
  });
  expect(ended.stderr.length).toBeLessThan(2_000);
});

test("a file that its command changes is told by verify, and one that it takes away is fetched again", async () => {
  const [at, service] = await place();
  const command = 'if [ "$BULKGEN_ITEM" = cup ]; then echo x >> "$BULKGEN_FILE"; else rm "$BULKGEN_FILE"; fi';
  const ended = await run(at, ["run", "set.csv", "--yes", "--after-file", command], service);
  expect(ended.code, ended.stderr).toBe(0);
  const verified = await run(at, ["verify"]);
  expect(verified.code).not.toBe(0);
  expect(verified.stdout).toContain("cup.png");
  expect(verified.stdout).not.toContain("jar.png");
  expect(service.made).toHaveLength(2);
});

test("texts of rows reach a command in variables only, and a row larger than an environment is cut", async () => {
  const evil = "$(touch owned) `touch owned`; touch owned";
  const rows = `id,model,prompt,LD PRELOAD,long\ncup,plain-image,${evil},"'; touch owned; '",${"ö".repeat(300_000)}\n`;
  const [at, service] = await place({ "set.csv": rows });
  const command =
    'echo "$BULKGEN_PROMPT_TEXT" >> prompts.txt; echo "$BULKGEN_COLUMN_LD_PRELOAD" >> prompts.txt';
  const ended = await run(at, ["run", "set.csv", "--yes", "--after-file", command], service);
  expect(ended.code, ended.stderr).toBe(0);
  expect(lines(at, "prompts.txt")).toEqual([evil, "'; touch owned; '"].toSorted());
  expect(existsSync(join(at.folder, "owned"))).toBe(false);
});

test("a program that is not there is tried for ten files in a row, and not for a thousand", async () => {
  const rows = Array.from({ length: 14 }, (_, number) => `r${number},plain-image,row ${number}`);
  const [at, service] = await place({ "set.csv": `id,model,prompt\n${rows.join("\n")}\n` });
  const words = ["run", "set.csv", "--yes", "--json", "--after-file", "echo x >> tries.txt; no-such-program"];
  const ended = await run(at, words, service);
  const { failed, left } = JSON.parse(ended.stdout).after;
  expect([ended.code, failed + left]).toEqual([5, 14]);
  // Two run at once, so an eleventh may have begun. Without a program, another try changes nothing.
  expect(lines(at, "tries.txt").length).toBe(failed);
  expect(failed).toBeLessThanOrEqual(11);
});

const theirs = `
name: theirs
rows: [{ id: cup, model: plain-image, prompt: a cup }]
after: { file: echo owned >> owned.txt, set: echo all >> owned.txt, timeout: 2m }
`;

test("the commands of a job file are run only once this user has agreed to exactly these", async () => {
  const [at, service] = await place({ "theirs.yaml": theirs });
  const planned = await run(at, ["plan", "theirs.yaml"], service);
  expect(planned.code, planned.stderr).toBe(0);
  expect(planned.stdout).toContain(
    "- a command is run after each archived file, for at most 2m: echo owned >> owned.txt",
  );
  expect(planned.stdout).toContain(
    "- a command is run once everything is archived, for at most 2m: echo all",
  );
  const refusal =
    "`bulkgen run` does not begin before you have agreed to these commands of the job file on this machine: `bulkgen trust theirs.yaml` shows and asks";
  expect(oneLine(planned.stdout)).toContain(refusal);
  for (const words of [["--yes"], ["--yes", "--sandbox", "--model", "aurora-image-mini"]]) {
    const refused = await run(at, ["run", "theirs.yaml", ...words], service);
    expect(refused.code).toBe(2);
    const file = join(at.folder, "theirs.yaml");
    expect(refused.stderr).toContain(`  after-file: echo owned >> owned.txt  (${file}:4:16)\n`);
    expect(refused.stderr).toContain(`  after-set: echo all >> owned.txt  (${file}:4:46)\n`);
    expect(refused.stderr).toContain(
      "This command does not begin before you agree. Nothing was sent. Run `bulkgen trust theirs.yaml` to look and agree.",
    );
  }
  expect([service.made, lines(at, "owned.txt")]).toEqual([[], []]);
  // The user's own are run in place of theirs; an empty one runs nothing.
  const own = ["--after-file", "", "--after-set", "echo own >> own.txt"];
  const mine = await run(at, ["run", "theirs.yaml", "--yes", ...own], service);
  expect(mine.code, mine.stderr).toBe(0);
  expect([lines(at, "own.txt"), lines(at, "owned.txt")]).toEqual([["own"], []]);

  expect((await run(at, ["trust", "theirs.yaml", "--yes"])).stdout).toContain("agreed to 2 values");
  expect((await run(at, ["plan", "theirs.yaml"], service)).stdout).not.toContain("bulkgen trust");
  const agreed = await run(at, ["run", "theirs.yaml", "--yes"], service);
  expect(agreed.code, agreed.stderr).toBe(0);
  expect(lines(at, "owned.txt")).toEqual(["all", "owned"]);
  at.write("theirs.yaml", theirs.replace("echo all", "echo more"));
  const changed = await run(at, ["run", "theirs.yaml", "--yes"], service);
  expect([changed.code, changed.stderr]).toEqual([2, expect.stringContaining("after-set: echo more")]);
  expect(changed.stderr).not.toContain("after-file");
  expect(service.made).toHaveLength(1);
});

test("a command of several lines is shown as such: what follows a comment is run too", async () => {
  const written = "|\n    true # and nothing else\n    touch owned; false\n";
  const after = `\n  file: ${written}  set: ${written}`;
  const [at, service] = await place({
    "theirs.yaml": theirs.replace(
      "{ file: echo owned >> owned.txt, set: echo all >> owned.txt, timeout: 2m }",
      after,
    ),
  });
  const shown = "true # and nothing else ↵ touch owned; false";
  const trusted = (await run(at, ["trust", "theirs.yaml", "--yes"])).stdout;
  const file = join(at.folder, "theirs.yaml");
  expect(trusted).toContain(`after-file: ${shown}  (${file}:5:9)\n`);
  expect(trusted).toContain(`after-set: ${shown}  (${file}:8:8)\n`);
  expect((await run(at, ["run", "theirs.yaml", "--yes"], service)).code).toBe(5);
  const status = oneLine((await run(at, ["status"])).stdout);
  expect(status).toContain(`--after-file '${shown}' --after-set '${shown}'`);
});

test("a column that the command after a file names is used, whoever gives the command", async () => {
  const csv = "id,model,prompt,sku,other\ncup,plain-image,a cup,17,x\n";
  const job = `
rows: [{ id: cup, model: plain-image, prompt: a cup, sku: 17, other: x }]
after: { file: 'echo "$BULKGEN_COLUMN_SKU"' }
`;
  const [at, service] = await place({ "set.csv": csv, "set.yaml": job });
  const named = ["--after-file", 'echo "$BULKGEN_COLUMN_SKU"'];
  const longer = ["--after-file", 'echo "$BULKGEN_COLUMN_SKU_2"'];
  const notes = async (...words: string[]) => oneLine((await run(at, ["plan", ...words], service)).stdout);
  const unused = 'column "other" is not used';
  expect(await notes("set.csv", ...named)).toContain(unused);
  expect(await notes("set.yaml")).toContain(unused);
  expect(await notes("set.csv", ...longer)).toContain('columns "sku", "other" are not used');
});

test("a run that came with a folder runs no command that nobody has agreed to here", async () => {
  const [at, service] = await place();
  expect((await run(at, ["run", "set.csv", "--yes", "--after-file", "exit 3"], service)).code).toBe(5);
  rmSync(join(at.root, "state", "bulkgen", "trust.json"));
  const refused = await run(at, ["resume", "--yes"], service);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining("after-file: exit 3  (run 1 in "),
  ]);
});

test("what is wrong with the commands of a job file is a problem of the file", async () => {
  const rows = "rows: [{ id: a, model: plain-image, prompt: b }]\n";
  const [at, service] = await place({ "bad.yaml": `${rows}after: { file: 3, timeout: soon, sets: x }\n` });
  const { code, stdout } = await run(at, ["plan", "bad.yaml"], service);
  expect(code).toBe(2);
  expect(stdout).toContain("after.timeout");
  expect(stdout).toContain("sets");
  const env = { ...service.env, ...(await s3Server()) };
  const words = ["run", "set.csv", "--yes", "--after-file", "true", "--archive", "s3://inputs/set"];
  const only = await run(at, [...words, "--archive-only"], { env });
  expect([only.code, only.stderr]).toEqual([2, expect.stringContaining("--archive-only")]);
});
