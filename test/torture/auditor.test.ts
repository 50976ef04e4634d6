import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace } from "../e2e/command.js";
import type { Archive } from "./archive.js";
import { sha256 } from "./archive.js";
import { Auditor, type Closing, type Told } from "./auditor.js";
import { judge } from "./judge.js";
import type { TaskOnRecord } from "./ledger.js";
import { cheapModel, Runner } from "./runner.js";
import { Service } from "./service.js";

test("a real run that went well is found in order, until something is wrong with it", async () => {
  const place = newPlace();
  const folder = join(place.folder, "outputs", "set");
  const service = await Service.start(place);
  const runner = new Runner(place, { folder: place.folder, service, items: 4, lanes: 2 });
  const verdict = async () => {
    const auditor = new Auditor({ rows: runner.rows, cap: null });
    return (await judge(service, runner, auditor, [])).violations;
  };
  expect(await runner.run().ended).toMatchObject({ code: 0 });
  expect(await verdict()).toEqual([]);

  const index = readFileSync(join(folder, "index.jsonl"), "utf8");
  const picture = readFileSync(join(folder, "a01.png"));
  const flipped = Buffer.from(picture);
  flipped[100] = (flipped[100] ?? 0) ^ 1;
  writeFileSync(join(folder, "a01.png"), flipped);
  expect(await verdict()).toEqual([
    "P13: a01.png is not the file that the index tells of",
    expect.stringMatching(/^P4: a01 was paid for .* has no file/),
    "P13: a01.png is not what the service made",
  ]);

  rmSync(join(folder, "a01.png"));
  expect(await verdict()).toEqual([
    "P13: the index tells of a01.png, which is not there",
    expect.stringMatching(/^P4: a01 was paid for .* has no file/),
  ]);
  writeFileSync(join(folder, "a01.png"), picture);

  writeFileSync(join(folder, "a01-2.png"), picture);
  expect(await verdict()).toEqual([
    expect.stringMatching(/^P13: two files have the content/),
    "P13: a01-2.png is in no index",
  ]);
  rmSync(join(folder, "a01-2.png"));

  appendFileSync(join(folder, "index.jsonl"), `${index.split("\n")[0]}\n`);
  expect(await verdict()).toEqual([
    expect.stringMatching(/^P13: a0\d.png has two lines in the index/),
    expect.stringMatching(/^P13: .*, output 1, has two lines in the index/),
  ]);
  writeFileSync(join(folder, "index.jsonl"), index.replace(/.*"item":"a03".*\n/, ""));
  expect(await verdict()).toEqual([
    "P13: a03.png is in no index",
    "P4: a03 are not archived and in no trouble; 0 are said to be planned",
    expect.stringMatching(/^P3: task .* was lost, and no kill explains it/),
  ]);
  writeFileSync(join(folder, "index.jsonl"), index);

  writeFileSync(join(folder, ".bulkgen-0-1.part"), "half");
  expect(await verdict()).toEqual(["P13: .bulkgen-0-1.part was left behind"]);
  rmSync(join(folder, ".bulkgen-0-1.part"));

  const second = { model: cheapModel, prompt: "a picture of a02" };
  await fetch(`${service.url}/api/v1/generate`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${service.env["BULKGEN_API_KEY"]}`,
      "content-type": "application/json",
    },
    body: JSON.stringify(second),
  });
  expect(await verdict()).toContainEqual(expect.stringMatching(/^P2: a02 was paid again/));
});

describe("the auditor", () => {
  const picture = Buffer.from("what the service made");
  const task: TaskOnRecord = {
    id: "t1",
    prompt: "one",
    credits: 1,
    createdAt: 1_000,
    endsAt: 1_050,
    outcome: "completed",
  };
  const line = { item: "a1", task: "t1", output: 1, file: "a1.png" };
  const file = { bytes: picture.length, sha256: sha256(picture) };
  const full: Archive = {
    files: new Map([["a1.png", file]]),
    lines: [{ ...line, ...file }],
    temporaries: [],
  };
  const empty: Archive = { files: new Map(), lines: [], temporaries: [] };
  const told = (state?: string): Told => ({
    trouble: new Map(state === undefined ? [] : [["a1", state]]),
    planned: 0,
  });
  const open = (cap: number | null = null) => new Auditor({ rows: new Map([["one", "a1"]]), cap });
  const closing: Closing = {
    tasks: [task],
    archive: full,
    told: told(),
    outputs: new Map([["t1", [picture]]]),
    cuts: [],
  };

  test("P2: allows a second task only after the first has failed", () => {
    const failed = { ...task, outcome: "failed" } as const;
    const second = { ...task, id: "t2", createdAt: 2_000 };
    expect(open().look([failed, second], empty)).toEqual([]);
    expect(open().look([failed, { ...second, createdAt: 1_010 }], empty)).toHaveLength(1);
    expect(open().look([{ ...task, outcome: null }, second], empty)).toHaveLength(1);
    expect(open().look([task, second], empty)).toEqual([
      "P2: a1 was paid again (task t2) while task t1 had not failed",
    ]);
  });

  test("P7: counts what has not failed against the cap", () => {
    expect(open(1).look([task, { ...task, prompt: "another sheet's" }], empty)).toEqual([]);
    expect(open(0.5).look([task], empty)).toEqual(["P7: 1 credits were spent, and the cap is 0.5"]);
  });

  test("P13: remembers the files that it has seen", () => {
    const auditor = open();
    expect(auditor.look([task], full)).toEqual([]);
    expect(auditor.look([task], empty)).toEqual(["P13: a1.png is gone from the archive"]);
    const other = { bytes: 3, sha256: "other" };
    const changed: Archive = {
      ...full,
      files: new Map([["a1.png", other]]),
      lines: [{ ...line, ...other }],
    };
    expect(auditor.look([task], changed)).toEqual(["P13: a1.png is another file now"]);
  });

  test("P4: forgives a missing output only if the user is told that it is in doubt", () => {
    const missing = { ...closing, archive: empty, cuts: null };
    expect(open().close(closing)).toEqual([]);
    for (const state of ["held", "unknown", "overdue"])
      expect(open().close({ ...missing, told: told(state) })).toEqual([]);
    for (const state of ["failed", undefined])
      expect(open().close({ ...missing, told: told(state) })).toContainEqual(
        expect.stringContaining("P4: a1 was paid for"),
      );
  });

  test("P3: forgives as many lost tasks as a kill may cut off, at its time", () => {
    const lost = { ...closing, archive: empty, told: told("held") };
    const cut = { from: 900, to: 1_100, lanes: 1 };
    expect(open().close({ ...lost, cuts: [cut] })).toEqual([]);
    expect(open().close({ ...lost, cuts: [{ ...cut, lanes: 0 }] })).toHaveLength(1);
    expect(open().close({ ...lost, cuts: [{ ...cut, to: 950 }] })).toEqual([
      "P3: task t1 was lost, and no kill explains it",
    ]);
  });
});
