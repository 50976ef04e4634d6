import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { testKey } from "./leaked-key.js";
import { me, models, type Scripted, startService } from "./service.js";

const style = { key: "style", label: "Style", type: "text", options: [], default: "" };
const [plain] = models.models;

/** What the service lists: a model that takes a style, and one that may. */
const listed = (isStyled: boolean) => ({
  ...models,
  models: [
    { ...plain, parameters: isStyled ? [...(plain?.parameters ?? []), style] : plain?.parameters },
    { ...plain, model_key: "styled-image", parameters: [style] },
  ],
  total: 2,
});

test("P2: a param that a model takes now leaves what was paid for as it is, in plan, run and resume", async () => {
  const service = await startService();
  const place = newPlace();
  let isStyled = false;
  service.script(({ what }): Scripted => (what === "GET models" ? { json: listed(isStyled) } : "serve"));
  place.write("set.csv", "id,model,prompt\na,plain-image,x\nb,plain-image,y\nc,styled-image,z\n");
  const command = (...args: string[]) => run(place, args, service);
  const begin = ["run", "set.csv", "--yes", "--param", "style=oil"];
  expect((await command(...begin, "--max-credits", "4")).code).toBe(6);
  expect(service.made.map(({ body }) => body["params"])).toEqual([undefined, undefined]);
  isStyled = true;
  const planned = await command("plan", "set.csv", "--param", "style=oil");
  expect(planned.stdout).toContain('model plain-image takes "style" now');
  const rest = await command(...begin);
  expect(rest, rest.stderr).toMatchObject({ code: 0 });
  expect(service.made.map(({ prompt, body }) => [prompt, body["params"]])).toEqual([
    ["x", undefined],
    ["y", undefined],
    ["z", { style: "oil" }],
  ]);
  expect((await command(...begin)).code).toBe(0);
  expect(service.made).toHaveLength(3);
  expect(place.files().filter((name) => name.includes("_superseded"))).toEqual([]);
  // A row that is new is made as the service takes it now.
  place.write(
    "set.csv",
    "id,model,prompt\na,plain-image,x\nb,plain-image,y\nc,styled-image,z\nd,plain-image,new\n",
  );
  expect((await command(...begin)).code).toBe(0);
  expect(service.made.slice(3).map(({ prompt, body }) => [prompt, body["params"]])).toEqual([
    ["new", { style: "oil" }],
  ]);
});

/** Two rows and a third of another model are paid for; then the catalogue changes in a way that the rows do not show. */
async function madeBefore(changed: "grown" | "shrunk" | "respelled") {
  const service = await startService();
  const place = newPlace();
  let isChanged = false;
  const bensKey = `${testKey.slice(0, -3)}ben`;
  const ben = { id: "22222222-2222-4222-8222-222222222222", email: "ben@example.com", name: "Ben" };
  const before = { grown: listed(false), shrunk: listed(true), respelled: listed(true) }[changed];
  const respelled = { ...style, key: "Style" };
  const now = {
    grown: listed(true),
    shrunk: listed(false),
    respelled: {
      ...models,
      models: [
        { ...plain, parameters: [...(plain?.parameters ?? []), respelled] },
        { ...plain, model_key: "styled-image", parameters: [respelled] },
      ],
    },
  }[changed];
  service.script(({ what, headers }): Scripted => {
    if (what === "GET models") return { json: isChanged ? now : before };
    const isBen = what === "GET me" && headers.authorization === `Bearer ${bensKey}`;
    return isBen ? { json: { ...me({ balance: 100 }), user: ben } } : "serve";
  });
  const rows = "id,model,prompt\na,plain-image,x\nb,plain-image,y\nc,styled-image,z\n";
  place.write("set.csv", rows);
  const command = (...args: string[]) => run(place, args, service);
  const begin = (sheet: string, ...more: string[]) =>
    command("run", sheet, "--yes", "--param", "style=oil", ...more);
  const first = await begin("set.csv");
  expect(first, first.stderr).toMatchObject({ code: 0 });
  expect(service.made).toHaveLength(3);
  isChanged = true;
  const asBen = { ...service.env, BULKGEN_API_KEY: bensKey };
  return { service, place, rows, begin, asBen };
}

describe.concurrent.each(["grown", "shrunk", "respelled"] as const)(
  "P2: rows that were paid for before the catalogue has %s",
  (changed) => {
    test("are not bought again by a copy of the sheet", async () => {
      const { service, place, rows, begin } = await madeBefore(changed);
      place.write("copy.csv", rows);
      const end = await begin("copy.csv");
      expect(end).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/3 of 3 items were made before for job set/),
      });
      expect(service.made).toHaveLength(3);
      expect((await begin("copy.csv", "--job", "copy")).code).toBe(0);
      expect(service.made).toHaveLength(6);
    });

    test("are continued by the sheet under another name", async () => {
      const { service, place, begin } = await madeBefore(changed);
      renameSync(join(place.folder, "set.csv"), join(place.folder, "autumn.csv"));
      const end = await begin("autumn.csv");
      expect(end, end.stderr).toMatchObject({ code: 0 });
      expect(end.stderr).toContain("continuing that job");
      expect(service.made).toHaveLength(3);
    });

    test("are not bought again with another user's key", async () => {
      const { service, place, asBen } = await madeBefore(changed);
      const end = await run(place, ["run", "set.csv", "--yes", "--param", "style=oil"], { env: asBen });
      expect(end).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/was made as user 1111\S+ .*3 of 3 items/),
      });
      expect(service.made).toHaveLength(3);
    });

    test("are not bought again in another folder", async () => {
      const { service, place, rows, begin } = await madeBefore(changed);
      place.write("other/set.csv", rows);
      const end = await begin("other/set.csv", "--workspace", "other");
      expect(end).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/3 of 3 items were paid for in the workspace/),
      });
      expect(service.made).toHaveLength(3);
    });
  },
);

test("P2: identical rows that were made under two catalogues keep what was made, in any order", async () => {
  const service = await startService();
  const place = newPlace();
  let isStyled = false;
  service.script(({ what }): Scripted => (what === "GET models" ? { json: listed(isStyled) } : "serve"));
  const rows = ["a,plain-image,x", "b,plain-image,x"];
  const write = (...lines: string[]) =>
    place.write("set.csv", `id,model,prompt\n${lines.join("\n")}\nc,styled-image,z\n`);
  const begin = ["run", "set.csv", "--yes", "--param", "style=oil"];
  write(...rows);
  expect((await run(place, [...begin, "--max-credits", "2"], service)).code).toBe(6);
  isStyled = true;
  expect((await run(place, begin, service)).code).toBe(0);
  expect(service.made).toHaveLength(3);
  for (const styled of [false, true, false])
    for (const lines of [rows.toReversed(), rows]) {
      isStyled = styled;
      write(...lines);
      const end = await run(place, begin, service);
      expect(end, end.stderr).toMatchObject({ code: 0 });
      expect(service.made.map(({ prompt }) => prompt).toSorted()).toEqual(["x", "x", "z"]);
      expect(
        place
          .files()
          .filter((name) => /\/outputs\/set\/\w+\.png$/.test(name))
          .toSorted(),
      ).toEqual(["a", "b", "c"].map((id) => `here/outputs/set/${id}.png`));
    }
});

test.each(["grown", "shrunk"] as const)(
  "P2: a run that is continued after the catalogue has %s buys nothing that was made elsewhere meanwhile",
  async (changed) => {
    const service = await startService();
    const place = newPlace();
    let isStyled = changed === "shrunk";
    service.script(({ what }): Scripted => (what === "GET models" ? { json: listed(isStyled) } : "serve"));
    const rows = "id,model,prompt\na,plain-image,x\nb,plain-image,y\nc,styled-image,z\n";
    const style = ["--param", "style=oil"];
    const command = (...words: string[]) => run(place, words, service);
    place.write("set.csv", rows);
    expect((await command("run", "set.csv", "--yes", ...style, "--max-credits", "2")).code).toBe(6);
    isStyled = changed === "grown";
    // In a folder of its own, or as a job of its own in the same workspace.
    place.write("other/set.csv", rows);
    place.write("rest.csv", rows);
    const there = await command(
      "run",
      "other/set.csv",
      "--yes",
      ...style,
      "--workspace",
      "other",
      "--job",
      "set",
    );
    expect(there, there.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(4);
    const refused = await command("resume", "--max-credits", "6");
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /b and 1 more were paid for meanwhile in the workspace \S+other, and run 1 would pay/,
      ),
    });
    expect((await command("run", "rest.csv", "--yes", ...style, "--job", "rest")).code).toBe(0);
    rmSync(join(place.folder, "other"), { recursive: true });
    expect((await command("resume", "--max-credits", "6")).code).toBe(2);
    expect(service.made).toHaveLength(7);
  },
);

test.each(["grown", "shrunk"] as const)(
  "P2: a run that is continued after the catalogue has %s buys nothing that another job here has made meanwhile",
  async (changed) => {
    const service = await startService();
    const place = newPlace();
    let isStyled = changed === "shrunk";
    service.script(({ what }): Scripted => (what === "GET models" ? { json: listed(isStyled) } : "serve"));
    const command = (...words: string[]) => run(place, words, service);
    // The first row takes the param in either catalogue.
    const sheet = (first: string) =>
      `id,model,prompt\n${first},styled-image,${first}\na,plain-image,x\nb,plain-image,y\n`;
    const style = ["--yes", "--param", "style=oil"];
    place.write("set.csv", sheet("c"));
    expect((await command("run", "set.csv", ...style, "--max-credits", "2")).code).toBe(6);
    isStyled = changed === "grown";
    place.write("rest.csv", sheet("d"));
    const rest = await command("run", "rest.csv", ...style, "--job", "rest");
    expect(rest, rest.stderr).toMatchObject({ code: 0 });
    const { length } = service.made;
    const refused = await command("resume", "--max-credits", "6");
    expect(refused, refused.stdout).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("a and 1 more were paid for meanwhile"),
    });
    expect(service.made).toHaveLength(length);
  },
);

describe.concurrent.each(["grown", "shrunk"] as const)("P2: after the catalogue has %s", (changed) => {
  /** Rows of a sheet are made with a default that plain-image takes only before, or only after. */
  async function begun(rows: string, ...words: string[]) {
    const service = await startService();
    const place = newPlace();
    let isStyled = changed === "shrunk";
    service.script(({ what }): Scripted => (what === "GET models" ? { json: listed(isStyled) } : "serve"));
    const command = (...given: string[]) => run(place, given, service);
    const begin = (...more: string[]) =>
      command("run", "set.csv", "--yes", "--param", "style=oil", ...words, ...more);
    const more = rows.includes("repeat") ? ",," : "";
    place.write("set.csv", `${rows}c,styled-image,z${more}\n`);
    const first = await begin();
    expect(first, first.stderr).toMatchObject({ code: 0 });
    return {
      service,
      place,
      command,
      begin,
      change() {
        isStyled = changed === "grown";
      },
    };
  }

  test.each([
    ["without an id", "a,plain-image,x,,\n,plain-image,y,@a,\n", 3],
    ["that repeats", "a,plain-image,x,,\nb,plain-image,y,@a,2\n", 4],
    ["with another id now", "a,plain-image,x,,\nb,plain-image,y,@a,\n", 3],
  ])("a row %s that uses another row's output is not made again", async (_, rows, made) => {
    const header = "id,model,prompt,image_url,repeat\n";
    const { service, place, begin, change } = await begun(header + rows);
    expect(service.made).toHaveLength(made);
    change();
    place.write("set.csv", `${header}${rows.replace("\nb,", "\nbee,")}c,styled-image,z,,\n`);
    const end = await begin();
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(made);
  });

  test("identical rows that share an item share it still", async () => {
    const rows = "id,model,prompt\na,plain-image,x\nb,plain-image,x\n";
    const { service, begin, change } = await begun(rows, "--duplicates", "merge");
    expect(service.made).toHaveLength(2);
    change();
    expect((await begin()).code).toBe(0);
    expect(service.made).toHaveLength(2);
  });

  test("what a rebuilt history has is not made again", async () => {
    const { service, place, begin, command, change } = await begun("id,model,prompt\na,plain-image,x\n");
    rmSync(join(place.folder, ".bulkgen", "state.db"));
    const rebuilt = await command("doctor", "--rebuild", "--yes");
    expect(rebuilt, rebuilt.stderr).toMatchObject({ code: 0 });
    change();
    expect((await begin()).code).toBe(0);
    expect(service.made).toHaveLength(2);
  });

  test("what was adopted is not made", async () => {
    const { service, place, command, begin, change } = await begun("id,model,prompt\na,plain-image,x\n");
    cpSync(join(place.folder, "outputs", "set", "a.png"), join(place.folder, "stock", "n.png"));
    place.write("new.csv", "id,model,prompt\nn,plain-image,nn\nd,styled-image,z\n");
    const adopted = await command("adopt", "stock", "new.csv", "--param", "style=oil");
    expect(adopted, adopted.stderr).toMatchObject({ code: 0 });
    change();
    const end = await command("run", "new.csv", "--yes", "--param", "style=oil");
    expect(end).toMatchObject({ code: 2, stderr: expect.stringMatching(/: d was made before for job set/) });
    const more = await command("run", "new.csv", "--yes", "--param", "style=oil", "--filter", "id=n");
    expect(more.code, more.stderr).toBe(0);
    expect((await begin()).code).toBe(0);
    expect(service.made).toHaveLength(2);
  });
});
