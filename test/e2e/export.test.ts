import { appendFileSync, cpSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { describe, expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";
import { startService } from "./service.js";
import { cheapModel, sheet } from "./sheet.js";
import { unzip } from "./unzip.js";

const slow = { timeout: 120_000 };

type Cells = Record<string, string>;

/** The lines of a CSV export by column. */
function csv(text: string): Cells[] {
  return parse(text, { bom: true, columns: true, comment: "#", comment_no_infix: true }) as Cells[];
}

/** A sheet with columns of the team's own, one row that fails, and one that is wrong. */
async function finished(): Promise<Place> {
  const place = newPlace();
  const rows = [
    `Teapot,"=HYPERLINK(""x"")",t1,${cheapModel},a pot,7`,
    `Cup,,t2,${cheapModel},[[moderation]] a cup,`,
    `"Jug, large",ü,t3,no-such-model,a jug,`,
    `Lid,,t4,${cheapModel},-- a lid,`,
  ];
  place.write("team.csv", ["Product,Note,id,model,prompt,Shelf", ...rows].join("\n"));
  const end = await run(place, ["run", "team.csv", "--sandbox", "--yes", "--skip-invalid"]);
  expect(end.code, end.stderr).toBe(5);
  return place;
}

async function exported(place: Place, ...args: string[]): Promise<string> {
  const end = await run(place, ["export", "--sandbox", ...args]);
  expect(end.code, end.stderr).toBe(0);
  return end.stdout;
}

describe.concurrent("bulkgen export", () => {
  test(
    "gives the team's own sheet back: its order, its columns, and what became of each row",
    slow,
    async () => {
      const place = await finished();
      const lines = csv(await exported(place));
      expect(Object.keys(lines[0] ?? {})).toEqual([
        "Product",
        "Note",
        "id",
        "model",
        "prompt",
        "Shelf",
        "item",
        "file",
        "picked",
        "approval",
        "state",
        "reason",
        "credits",
        "task_id",
        "external_task_id",
        "evidence",
      ]);
      expect(lines.map(({ Product, file, state, credits }) => [Product, file, state, credits])).toEqual([
        ["Teapot", "t1.png", "archived", "1"],
        ["Cup", "", "failed", "0"],
        ["Jug, large", "", "not made", ""],
        ["Lid", "t4.png", "archived", "1"],
      ]);
      expect(lines[0]).toMatchObject({ Note: `'=HYPERLINK("x")`, Shelf: "7" });
      expect(lines[0]?.["task_id"]).toMatch(/^[0-9a-f-]{36}$/);
      expect(lines[1]?.["reason"]).toMatch(/moderation|policy/i);
      expect(lines[2]?.["reason"]).toContain('unknown model "no-such-model"');
      const json = JSON.parse(await exported(place, "--format", "json"));
      expect(json[0]).toMatchObject({ Note: '=HYPERLINK("x")', credits: 1, reason: null });
      expect((await exported(place, "--format", "jsonl")).trimEnd().split("\n")).toHaveLength(4);
    },
  );

  test("writes a workbook that holds the same, where the name says so", slow, async () => {
    const place = await finished();
    const end = await run(place, ["export", "--sandbox", "--to", "team.xlsx"]);
    expect(end).toMatchObject({ code: 0, stdout: "", stderr: "team.xlsx: 4 rows, 16 columns\n" });
    const parts = unzip(join(place.folder, "team.xlsx"));
    const text = [...parts].map(([, content]) => content.toString()).join("");
    expect(text).toContain("Jug, large");
    expect(text).toContain("=HYPERLINK(");
    expect(text).not.toMatch(/<f[ >]/);
  });

  test("keeps the separator and the headers as they were; --columns chooses among them", slow, async () => {
    const place = newPlace();
    place.write(
      "de.csv",
      `Herbst;;;;;\nID;Model;Prompt;Preis in €;Notiz;Notiz\na;${cheapModel};eine Tasse, rot;7;alt;neu\n`,
    );
    const end = await run(place, ["run", "de.csv", "--sandbox", "--yes"]);
    expect(end.code, end.stderr).toBe(0);
    const [header, line] = (await exported(place)).replace("\uFEFF", "").split("\r\n");
    expect(header).toMatch(/^ID;Model;Prompt;Preis in €;Notiz;Notiz;item;file;/);
    expect(line).toMatch(/^a;.*;eine Tasse, rot;7;alt;neu;a;a\.png;;;archived;/);
    const few = await exported(place, "--columns", "id, Preis in €, file, credits");
    expect(few.replace("\uFEFF", "")).toBe("ID;Preis in €;file;credits\r\na;7;a.png;1\r\n");
    const json = JSON.parse(await exported(place, "--format", "json", "--columns", "prompt,file"));
    expect(json).toEqual([{ prompt: "eine Tasse, rot", file: "a.png" }]);
    const typo = await run(place, ["export", "--sandbox", "--columns", "promt"]);
    expect(typo).toMatchObject({ code: 2, stderr: expect.stringContaining("Did you mean prompt?") });
    // Without the manifest the export has the columns by their known names.
    rmSync(join(place.folder, "de.csv"));
    expect(await exported(place, "--columns", "id,file")).toContain("id,file");
  });

  test(
    "two columns of one name are refused, whatever the format; ours has a prefix beside the sheet's",
    slow,
    async () => {
      const place = newPlace();
      place.write("own.csv", `id,model,prompt,width,image_1\na,${cheapModel},x,wide,old.png`);
      await run(place, ["run", "own.csv", "--sandbox", "--yes"]);
      const own = await exported(place, "--format", "json", "--columns", "width,bulkgen_width");
      expect(JSON.parse(own)).toEqual([{ width: "wide", bulkgen_width: expect.any(Number) }]);
      for (const [words, said] of [
        [["--columns", "id=a,file=a"], '"id=a" and "file=a" would both be the column "a".'],
        [["--columns", "file,file"], '"file" and "file" would both be the column "file".'],
        [
          ["--per-row", "--columns", "image_1,file=image"],
          '"image_1" and "file=image" would both be the column "image_1". Give one of them another name, such as file=NAME. Nothing was written.',
        ],
      ] as const)
        for (const format of ["csv", "xlsx", "json", "jsonl"]) {
          const end = await run(place, ["export", "--sandbox", "--to", `x.${format}`, ...words]);
          expect(end).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(said) });
          expect(place.files()).not.toContain(`here/x.${format}`);
        }
    },
  );

  test(
    "--columns takes a row's id where the sheet has none, and no column that nothing has",
    slow,
    async () => {
      const place = newPlace();
      const job = {
        id: "{{ sku }}",
        defaults: { model: cheapModel, prompt: "a {{ sku }}", params: { aspect_ratio: "16:9" } },
        rows: [{ sku: "cup" }, { sku: "jar" }],
      };
      place.write("job.json", JSON.stringify(job));
      await run(place, ["run", "job.json", "--sandbox", "--yes"]);
      await run(place, ["redo", "jar", "--sandbox", "--yes"]);
      const lines = csv(await exported(place, "--columns", "id,file,params.aspect_ratio=shape"));
      expect(Object.keys(lines[0] ?? {})).toEqual(["id", "file", "shape"]);
      expect(lines.map((line) => Object.values(line))).toEqual([
        ["cup", "cup.png", "16:9"],
        ["jar", "jar.png", "16:9"],
        ["jar", "jar-v2.png", "16:9"],
      ]);
      expect(Object.keys(csv(await exported(place, "--per-row", "--columns", "id,file"))[0] ?? {})).toEqual([
        "id",
        "file_1",
        "file_2",
      ]);
      for (const [columns, said] of [
        [
          "params.aspectratio",
          'the sheet has no column "params.aspectratio". Did you mean params.aspect_ratio?',
        ],
        ["params.xyz=a", 'the sheet has no column "params.xyz". It has: params.aspect_ratio.'],
        ["file=", 'expected a column, or COLUMN=NAME to call it by another name, got "file=".'],
        ["=a", 'expected a column, or COLUMN=NAME to call it by another name, got "=a".'],
      ] as const) {
        const end = await run(place, ["export", "--sandbox", "--columns", columns]);
        expect(end).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(said) });
      }
    },
  );

  test("a workbook comes back as a workbook, with its numbers, percentages and dates", slow, async () => {
    const place = newPlace();
    const { default: writeWorkbook } = await import("write-excel-file/node");
    const date = { value: new Date(Date.UTC(2026, 2, 4)), type: Date, format: "yyyy-mm-dd" };
    const discount = { value: 0.155, type: Number, format: "0.0%" };
    const rows = [
      ["ID", "Model", "Prompt", "Preis", "Tag", "Rabatt"],
      ["a", cheapModel, "a mug", 7.5, date, discount],
    ];
    place.write("s.xlsx", await writeWorkbook(rows).toBuffer());
    expect((await run(place, ["run", "s.xlsx", "--sandbox", "--yes"])).code).toBe(0);
    await exported(place, "--to", "back.xlsx");
    const { default: readExcelFile } = await import("read-excel-file/node");
    const [{ data }] = (await readExcelFile(readFileSync(join(place.folder, "back.xlsx")))) as never as [
      { data: unknown[][] },
    ];
    expect(data[0]?.slice(0, 6)).toEqual(rows[0]);
    expect(data[1]?.slice(0, 7)).toEqual(["a", cheapModel, "a mug", 7.5, date.value, 0.155, "a"]);
    expect(unzip(join(place.folder, "back.xlsx")).get("xl/styles.xml")?.toString()).toContain('"0.0%"');
  });

  test("an exported sheet runs again as it is, pays nothing, and is filled in again", slow, async () => {
    const place = await finished();
    await exported(place, "--to", "team.csv.new.csv");
    place.write("team.csv", readFileSync(join(place.folder, "team.csv.new.csv")));
    const plan = await run(place, ["plan", "team.csv", "--sandbox", "--json"]);
    const { items, money, notes } = JSON.parse(plan.stdout);
    expect(items.map((item: { state: string }) => item.state)).toEqual(["archived", "failed", "archived"]);
    expect(money.needed).toBe(0);
    expect(notes.filter((note: string) => /task_id|"file"/.test(note))).toEqual([]);
    await run(place, ["run", "team.csv", "--sandbox", "--yes", "--skip-invalid"]);
    expect(Object.keys(csv(await exported(place))[0] ?? {})).toHaveLength(16);
  });

  test("--failed gives a manifest of what failed and why, and that runs as it is", slow, async () => {
    const place = newPlace();
    const job = {
      defaults: { model: cheapModel, params: { aspect_ratio: "16:9" } },
      rows: [
        { id: "a", prompt: "fine" },
        { id: "b", prompt: "[[moderation]]", set: "x", repeat: 2 },
      ],
    };
    place.write("job.json", JSON.stringify(job));
    expect((await run(place, ["run", "job.json", "--sandbox", "--yes"])).code).toBe(5);
    const lines = csv(
      await exported(place, "--failed", "--to", "retry.csv").then(() => place.read("retry.csv")),
    );
    expect(lines).toMatchObject([
      { id: "b", set: "x", model: cheapModel, prompt: "[[moderation]]", "params.aspect_ratio": "16:9" },
      { id: "b-2" },
    ]);
    expect(lines[0]?.["reason"]).toMatch(/moderation|policy/i);
    place.write("retry.csv", place.read("retry.csv").replace("[[moderation]]", "retried"));
    const retried = await run(place, ["run", "retry.csv", "--sandbox", "--yes"]);
    expect(retried.stdout).toContain("archived  1 of 2 items");
    for (const format of ["json", "jsonl"])
      expect(await run(place, ["export", "--sandbox", "--failed", "--to", `r.${format}`])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(
          `only csv and xlsx can name the job that the rows belong to, got ${format}`,
        ),
      });
    const none = await run(place, ["export", "--sandbox", "--failed", "--filter", "id=a"]);
    expect(none).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no failed item of run 2 is selected"),
    });
  });

  test("--zip packs the picked files with their index and the sheet", slow, async () => {
    const place = newPlace();
    place.write("s.csv", `${sheet(3)}\nx,${cheapModel},other`);
    await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    const end = await run(place, ["export", "--sandbox", "--zip", "picked.zip", "--filter", "id=a*"]);
    expect(end).toMatchObject({ code: 0, stderr: "picked.zip: 3 files, index.jsonl, sheet.csv\n" });
    const files = unzip(join(place.folder, "picked.zip"));
    expect([...files.keys()]).toEqual(["a01.png", "a02.png", "a03.png", "index.jsonl", "sheet.csv"]);
    const original = readFileSync(join(place.folder, "sandbox-outputs/s/a02.png"));
    expect(files.get("a02.png")?.equals(original)).toBe(true);
    const index = files
      .get("index.jsonl")
      ?.toString()
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).item);
    expect(index).toEqual(["a01", "a02", "a03"]);
    expect(csv(files.get("sheet.csv")?.toString() ?? "")).toHaveLength(3);

    const plain = ["export", "--sandbox", "--zip", "client.zip", "--filter", "id=a01", "--files-only"];
    expect(await run(place, plain)).toMatchObject({ code: 0, stderr: "client.zip: 1 file\n" });
    expect([...unzip(join(place.folder, "client.zip")).keys()]).toEqual(["a01.png"]);
    expect((await run(place, ["export", "--sandbox", "--files-only"])).code).toBe(2);
    rmSync(join(place.folder, "sandbox-outputs/s/a02.png"));
    const broken = await run(place, ["export", "--sandbox", "--zip", "again.zip"]);
    expect(broken.code).toBe(5);
    expect(broken.stderr).toContain("1 file is missing or changed: a02.png. Nothing was packed.");
    expect(place.files().filter((file) => file.includes("again"))).toEqual([]);
  });

  test("--zip names the command that mends missing and changed files", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(2));
    await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    rmSync(join(place.folder, "sandbox-outputs/s/a01.png"));
    appendFileSync(join(place.folder, "sandbox-outputs/s/a02.png"), "more");
    const zip = () => run(place, ["export", "--sandbox", "--zip", "all.zip"]);
    const broken = await zip();
    expect(broken).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("2 files are missing or changed"),
    });
    const [, ...command] = /`(bulkgen .*?)`/.exec(broken.stderr)?.[1]?.split(" ") ?? [];
    expect((await run(place, command)).code).toBe(0);
    expect(await zip()).toMatchObject({ code: 0, stderr: "all.zip: 2 files, index.jsonl, sheet.csv\n" });
  });

  test("shows a variant after its item, and an older run as its sheet was", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(2));
    await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    await run(place, ["redo", "a01", "--sandbox", "--yes"]);
    expect(csv(await exported(place)).map(({ item }) => item)).toEqual(["a01", "a01-v2", "a02"]);
    place.write("s.csv", sheet(3));
    await run(place, ["run", "s.csv", "--sandbox", "--yes", "--first", "1"]);
    expect(csv(await exported(place)).map(({ id, state }) => [id, state])).toEqual([
      ["a01", "archived"],
      ["a01", "archived"],
      ["a02", "archived"],
      ["a03", "not made"],
    ]);
    expect(csv(await exported(place, "1")).map(({ id }) => id)).toEqual(["a01", "a01", "a02"]);
  });

  test("refuses what it should not write, with a reason, and writes nothing", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(1));
    const says = async (...args: string[]) => {
      const end = await run(place, ["export", "--sandbox", ...args]);
      expect(end.code).toBe(2);
      if (args.includes("--json")) expect(JSON.parse(end.stdout)).toMatchObject({ exit: 2, reason: "usage" });
      else expect(end.stdout).toBe("");
      return end.stderr;
    };
    expect(await says()).toContain("no runs in");
    await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    expect(await says("7")).toContain(
      "no run 7 in this workspace; `bulkgen status --all --sandbox` lists them",
    );
    expect((await run(place, ["status", "7", "--sandbox"])).stderr).toContain(
      "`bulkgen status --all --sandbox` lists the runs.",
    );
    expect(await says("--to", "s.csv", "--force")).toContain("is the manifest of run 1");
    expect(await says("--to", "x.csv", "--json")).toContain("--json contradicts the name of --to x.csv.");
    expect(await says("--to", "x.docx")).toContain(
      "expected a name that ends in .csv, .xlsx, .json or .jsonl",
    );
    expect(await says("--to", "no/such/folder.csv")).toMatch(/^bulkgen: there is no folder \S+no\/such\n$/);
    await exported(place, "--to", "x.csv");
    expect(await says("--to", "x.csv")).toContain("x.csv exists. Choose another file, or add --force");
    expect(await says("--zip", "x.zip", "--to", "x.csv")).toContain("x.csv exists");
    for (const flag of ["--to", "--zip"]) expect(await says(flag, "-")).toContain("expected a file name");
    expect(place.files()).not.toContain("-");
    expect(place.files()).not.toContain("here/x.zip");
    await exported(place, "--to", "x.csv", "--force");
    expect(place.read("s.csv")).toBe(sheet(1));
    const none = await run(place, ["export", "--sandbox", "--failed"]);
    expect(none).toMatchObject({ code: 0, stdout: "", stderr: "bulkgen: no item of run 1 has failed\n" });
  });
});

test("a sheet that does not fit into a workbook is refused by name, and a ZIP of files alone is not undone by it", async () => {
  const place = newPlace();
  place.write("set.csv", `id,model,prompt,note\na,${cheapModel},x,${"n".repeat(40_000)}`);
  await run(place, ["run", "set.csv", "--sandbox", "--yes"]);
  const xlsx = ["export", "--sandbox", "--to", "out.xlsx"];
  for (const [words, left] of [
    [xlsx, []],
    [[...xlsx, "--zip", "files.zip", "--files-only"], ["files.zip"]],
  ] as const) {
    const end = await run(place, words);
    expect(end).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("; use csv. out.xlsx was not written."),
    });
    const written = ["out.xlsx", "out.xlsx.part", "files.zip", "files.zip.part"];
    expect(written.filter((name) => existsSync(join(place.folder, name)))).toEqual(left);
  }
  const zip = await run(place, ["export", "--sandbox", "--zip", "all.zip", "--format", "xlsx"]);
  expect(zip).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("; use csv. all.zip was not written."),
  });
});

test("what was paid for, what bulkgen knows and what a job is made from is never replaced, not even with --force", async () => {
  const place = newPlace();
  place.write("rows.csv", "id,prompt,look\na,@texts/a.txt,x\nb,,y");
  place.write("texts/a.txt", "a cup");
  place.write("texts/x.md", "in {{ look }}");
  const job = `rows: rows.csv\ndefaults: { model: ${cheapModel}, prompt: "@texts/{{ look }}.md" }\n`;
  place.write("job.yaml", job);
  place.write("texts/y.md", "a bowl");
  place.write("rows.json", "[]");
  const made = await run(place, ["run", "job.yaml", "--sandbox", "--yes", "--sidecars"]);
  expect(made.code, made.stderr).toBe(0);
  await run(place, ["gallery", "--sandbox"]);
  const archive = "sandbox-outputs/job";
  const before = new Map(place.files().map((name) => [name, readFileSync(join(place.root, name))]));
  const kept = [
    [`${archive}/a.png`, "belongs to the archive of"],
    [`${archive}/a.json`, "belongs to the archive of"],
    [`${archive}/index.jsonl`, "belongs to the archive of"],
    [".bulkgen/sandbox/state.db", "where bulkgen keeps what it knows about your runs"],
    [".bulkgen/new.csv", "where bulkgen keeps what it knows about your runs"],
    ["job.yaml", "is the manifest of run 1"],
    ["rows.csv", "is a file that job.yaml reads"],
    ["texts/a.txt", "is a file that job.yaml is made from"],
    ["texts/x.md", "is a file that job.yaml reads"],
  ] as const;
  for (const [file, why] of kept)
    for (const flag of ["--to", "--zip"]) {
      const end = await run(place, ["export", "--sandbox", "--format", "csv", flag, file, "--force"]);
      expect(end).toMatchObject({ code: 2, stdout: "" });
      expect(end.stderr).toContain(`${file} `);
      expect(end.stderr).toContain(why);
      expect(end.stderr).toContain("Choose another file. Nothing was written.");
    }
  // The archive of real runs is not the rehearsal's, and yet it is kept.
  for (const words of [
    ["models", "--sandbox", "--save", `${archive}/index.jsonl`],
    ["models", "--sandbox", "--save", "rows.csv"],
    ["plan", "job.yaml", "--sandbox", "-o", `${archive}/a.json`],
    ["gallery", "--sandbox", "--to", ".bulkgen/page.html"],
  ]) {
    const end = await run(place, words);
    expect([words, end.code]).toEqual([words, 2]);
    expect(end.stderr).toContain("Nothing was written.");
  }
  for (const [name, bytes] of before)
    if (!/\.(db|db-wal|db-shm)$/.test(name))
      expect(readFileSync(join(place.root, name)).equals(bytes), name).toBe(true);
  // A person's own file beside the archive's is theirs.
  for (const words of [[], ["--force"]])
    await exported(place, "--to", `${archive}/sheet.csv`, "--quiet", ...words);
});

test("a picture that a row starts from is never replaced", async () => {
  const place = newPlace();
  cpSync("jobs/pipelines/old-archive", place.folder, { recursive: true });
  const made = await run(place, ["run", "old-archive.yaml", "--sandbox", "--yes"]);
  expect(made.code, made.stderr).toBe(0);
  const scan = "scans/1962/launch.jpg";
  const end = await run(place, ["export", "--sandbox", "--zip", scan, "--force"]);
  expect(end).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${scan} is a file that old-archive.yaml is made from.`),
  });
});

test("an export says how many credits it does not list, because files were replaced, removed or rejected", async () => {
  const service = await startService();
  const place = newPlace();
  const rows = ["a,plain-image,a cup", "b,plain-image,a jar", "c,plain-image,a pot"];
  const write = (...lines: string[]) => place.write("set.csv", ["id,model,prompt", ...lines, ""].join("\n"));
  const exported = async (line: string) => {
    const end = await run(place, ["export", ...line.split(" "), "--force"]);
    expect(end.code, end.stderr).toBe(0);
    return end.stderr;
  };
  write(...rows);
  await run(place, ["run", "set.csv", "--yes"], service);
  expect(await exported("--to out.csv")).not.toContain("not listed");
  write(rows[0] ?? "", "b,plain-image,a blue jar");
  await run(place, ["run", "set.csv", "--yes"], service);
  const note = (credits: number) =>
    `${credits} credits for replaced, removed or rejected files are not listed\n`;
  expect(await exported("--to out.csv")).toContain(note(4));
  expect(await exported("--zip out.zip")).toContain(note(4));
  await run(place, ["redo", "a", "--yes"], service);
  await run(place, ["reject", "a-v2"]);
  // The sheet lists a rejected file, the final set does not.
  expect(await exported("--to out.csv")).toContain(note(4));
  expect(await exported("--final --to out.csv")).toContain(note(6));
  // Where no credits are listed, none are missed, nor among selected rows.
  for (const line of [
    "--zip out.zip --files-only",
    "--to out.csv --columns id,file",
    "--to out.csv --filter id=a",
  ])
    expect(await exported(line)).not.toContain("not listed");
});
