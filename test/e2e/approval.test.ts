import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { type Ended, eventually, newPlace, type Place, run } from "./command.js";
import { type Scripted, type ScriptedService, startService } from "./service.js";

/** Two rows of a picture that has to be approved, and of a second one that is made of it. */
const job = `
name: set
rows:
  - { id: cup, prompt: a cup }
  - { id: jar, prompt: a jar }
defaults: { model: plain-image }
steps:
  - { name: draft, approve: true }
  - { name: final, image_url: "@draft" }
`;

async function made(): Promise<[Place, ScriptedService]> {
  const service = await startService({ balance: 100 });
  const place = newPlace();
  place.write("set.yaml", job);
  return [place, service];
}

/** What each paid request asked for, with the task whose output it took. */
const paid = ({ made: tasks }: ScriptedService) =>
  tasks.map(({ prompt, body }) => {
    const input = String(body["image_url"] ?? "");
    const parent = tasks.findIndex(({ task }) => input.includes(task));
    return parent === -1 ? prompt : `${prompt} of ${parent}`;
  });

test("what takes an unapproved output is not made; the run goes on with everything else and ends with 10", async () => {
  const [place, service] = await made();
  const plan = await run(place, ["plan", "set.yaml"], service);
  expect(plan.stdout).toContain("- 2 items will wait for your approval (`bulkgen approve`)");
  const first = await run(place, ["run", "set.yaml", "--yes", "--json"], service);
  expect(first, first.stderr).toMatchObject({ code: 10 });
  const summary = JSON.parse(first.stdout);
  expect(summary).toMatchObject({
    counts: { archived: 2, blocked: 2 },
    awaiting: ["cup-draft", "jar-draft"],
  });
  expect(summary.blocked[0].reason).toBe("waits for cup-draft, which you have not approved");
  expect(summary.nextStep).toContain("`bulkgen approve ITEM…` or `bulkgen reject ITEM… --again`");
  const resumed = await run(place, ["resume"], service);
  expect(resumed, resumed.stderr).toMatchObject({ code: 10 });
  expect(resumed.stdout).toContain(
    "2 items wait for items which you have not approved (cup-final, jar-final)",
  );
  expect(resumed.stdout).toContain("look at the files of cup-draft, jar-draft\n");
  expect(paid(service)).toEqual(["a cup", "a jar"]);
});

test("a run that waits for approval alone is not called interrupted, and a row's id names the items of its steps", async () => {
  const [place, service] = await made();
  await run(place, ["run", "set.yaml", "--yes"], service);
  expect((await run(place, ["status"])).stdout).toMatch(/^run +1 of set \(set\.yaml\): waits for approval$/m);
  expect((await run(place, ["status", "--all"])).stdout).toMatch(/ waits for approval +\d{4}-/);
  for (const line of [
    ["approve", "cup"],
    ["reject", "cup"],
    ["redo", "cup", "--yes"],
  ]) {
    const refused = await run(place, line, service);
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('; did you mean "cup-draft" or "cup-final"?'),
    });
  }
  expect((await run(place, ["approve", "cup-drfat"])).stderr).toContain('; did you mean "cup-draft"?');
});

test("approve works offline, and resume makes what waited, with nothing paid twice", async () => {
  const [place, service] = await made();
  await run(place, ["run", "set.yaml", "--yes"], service);
  const approved = await run(place, ["approve", "cup-draft"]);
  expect(approved, approved.stderr).toMatchObject({
    code: 0,
    stdout: "cup-draft is approved, and 1 item that waited can be made: `bulkgen resume 1`\n",
  });
  const again = await run(place, ["approve", "cup-draft"]);
  expect(again.stdout).toBe("cup-draft is approved\n");
  expect((await run(place, ["resume"], service)).code).toBe(10);
  expect((await run(place, ["approve", "--all"])).stdout).toContain("jar-draft is approved, and 1 item");
  expect((await run(place, ["resume"], service)).code).toBe(0);
  expect((await run(place, ["run", "set.yaml", "--yes"], service)).code).toBe(0);
  expect(paid(service)).toEqual(["a cup", "a jar", "a cup of 0", "a jar of 1"]);
  const none = await run(place, ["approve", "--all"]);
  expect(none, none.stderr).toMatchObject({ code: 0 });
  expect(none.stderr).toContain("no item waits for approval");
});

/** Runs the job; `act` is done once the cup is archived, and until then no poll of the jar is answered. */
async function whileAtWork(place: Place, service: ScriptedService, act: () => Promise<void>): Promise<Ended> {
  let acted: Promise<void> | null = null;
  service.script(async ({ what, path }): Promise<Scripted> => {
    const jar = service.made.find(({ prompt }) => prompt === "a jar");
    if (what !== "GET task" || jar === undefined || !path.endsWith(jar.task)) return "serve";
    acted ??= isArchived(place, "cup-draft").then(act);
    await acted.catch(() => undefined);
    return "serve";
  });
  const end = await run(place, ["run", "set.yaml", "--yes"], service);
  expect(acted, end.stderr).not.toBeNull();
  await acted;
  return end;
}

function isArchived(place: Place, id: string): Promise<true> {
  return eventually(() => {
    const db = openSqlite(join(place.folder, ".bulkgen", "state.db"), { readonly: true });
    try {
      const state = db.prepare("SELECT state FROM items WHERE row_id = ?").pluck().get(id);
      return state === "archived" ? true : null;
    } finally {
      db.close();
    }
  });
}

test("approve reaches the process at work, which makes what waited in the same run", async () => {
  const [place, service] = await made();
  const end = await whileAtWork(place, service, async () => {
    const approved = await run(place, ["approve", "cup-draft"]);
    expect(approved, approved.stderr).toMatchObject({
      code: 0,
      stdout:
        "cup-draft is approved, and 1 item that waited can be made; run 1, in progress, continues with it\n",
    });
    await isArchived(place, "cup-final");
  });
  expect(end, end.stderr).toMatchObject({ code: 10 });
  expect(paid(service)).toEqual(["a cup", "a jar", "a cup of 0"]);
});

test("reject --again reaches the process at work, which makes the variant, and what takes it once it is approved", async () => {
  const [place, service] = await made();
  const end = await whileAtWork(place, service, async () => {
    const again = await run(place, ["reject", "cup-draft", "--again", "--yes"], service);
    expect(again, again.stderr).toMatchObject({ code: 0 });
    await isArchived(place, "cup-draft-v2");
    expect(paid(service)).toEqual(["a cup", "a jar", "a cup"]);
    expect((await run(place, ["approve", "cup-draft-v2"])).code).toBe(0);
    await isArchived(place, "cup-final");
  });
  expect(end, end.stderr).toMatchObject({ code: 10 });
  expect(paid(service)).toEqual(["a cup", "a jar", "a cup", "a cup of 2"]);
});

test("reject leaves what waited unmade, which is no reason to end with 10; approving later makes it", async () => {
  const [place, service] = await made();
  await run(place, ["run", "set.yaml", "--yes"], service);
  await run(place, ["approve", "cup-draft"]);
  const rejected = await run(place, ["reject", "jar-draft"]);
  expect(rejected).toMatchObject({ code: 0, stdout: "jar-draft is rejected\n" });
  const resumed = await run(place, ["resume", "--json"], service);
  expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(resumed.stdout).blocked).toMatchObject([
    { rowId: "jar-final", reason: "waits for jar-draft, which was rejected" },
  ]);
  expect((await run(place, ["run", "set.yaml", "--yes"], service)).code).toBe(0);
  expect(paid(service)).toHaveLength(3);
  await run(place, ["approve", "jar-draft"]);
  expect((await run(place, ["resume"], service)).code).toBe(0);
  expect(paid(service).at(-1)).toBe("a jar of 1");
});

test("reject --again makes a priced variant, which takes the rejected one's place once it is approved", async () => {
  const [place, service] = await made();
  await run(place, ["run", "set.yaml", "--yes"], service);
  await run(place, ["approve", "cup-draft"]);
  const declined = await run(place, ["reject", "jar-draft", "--again"], service);
  expect(declined.code).toBe(2);
  expect(declined.stderr).toContain("1 item to be made again, 2 credits");
  expect((await run(place, ["status", "--json"])).stdout).toContain(
    "waits for jar-draft, which you have not approved",
  );
  const again = await run(place, ["reject", "jar-draft", "--again", "--yes", "--json"], service);
  expect(again, again.stderr).toMatchObject({ code: 10 });
  expect(JSON.parse(again.stdout)).toMatchObject({
    awaiting: ["jar-draft-v2"],
    blocked: [{ rowId: "jar-final", reason: "waits for jar-draft-v2, which you have not approved" }],
  });
  await run(place, ["approve", "jar-draft-v2"]);
  expect((await run(place, ["resume"], service)).code).toBe(0);
  // The variant and the approved row's second picture are submitted in either order.
  const all = paid(service);
  expect(all.slice(0, 4).toSorted()).toEqual(["a cup", "a cup of 0", "a jar", "a jar"]);
  expect(all.at(-1)).toBe(`a jar of ${all.lastIndexOf("a jar")}`);
  // The sheet's row has what was made of its variant: nothing of it is new.
  const plan = await run(place, ["plan", "set.yaml"], service);
  expect(plan.stdout).toContain("4 archived");
});

test("what is made after a variant has replaced a rejected item takes the variant's output", async () => {
  const [place, service] = await made();
  await run(place, ["run", "set.yaml", "--yes"], service);
  await run(place, ["approve", "--all"]);
  expect((await run(place, ["resume"], service)).code).toBe(0);
  await run(place, ["reject", "cup-draft", "--again", "--yes"], service);
  await run(place, ["approve", "cup-draft-v2"]);
  const variant = paid(service).length - 1;
  expect((await run(place, ["redo", "jar-draft", "--yes"], service)).code).toBe(10);
  expect((await run(place, ["status"])).stdout).toMatch(/^run +3 of set \(set\.yaml\): waits for approval$/m);
  expect((await run(place, ["redo", "cup-final", "--yes"], service)).code).toBe(0);
  expect(paid(service).at(-1)).toBe(`a cup of ${variant}`);
  place.write("set.yaml", `${job.trimEnd()}\n  - { name: extra, image_url: "@draft" }\n`);
  const extended = await run(place, ["run", "set.yaml", "--yes"], service);
  expect(extended, extended.stderr).toMatchObject({ code: 0 });
  expect(paid(service).slice(-2).toSorted()).toEqual([`a cup of ${variant}`, "a jar of 1"]);
});

test("approve names every run that has items which waited, and resume finds them", async () => {
  const [place, service] = await made();
  await run(place, ["run", "set.yaml", "--yes"], service);
  await run(place, ["approve", "--all"]);
  expect((await run(place, ["resume"], service)).code).toBe(0);
  await run(place, ["reject", "cup-draft"]);
  expect((await run(place, ["redo", "cup-final", "--yes"], service)).code).toBe(10);
  expect((await run(place, ["reject", "cup-draft", "--again", "--yes"], service)).code).toBe(10);
  const approved = await run(place, ["approve", "cup-draft-v2"]);
  expect(approved.stdout).toBe(
    "cup-draft-v2 is approved, and 1 item that waited can be made: `bulkgen resume 2`\n",
  );
  expect((await run(place, ["resume"], service)).code).toBe(0);
  expect(paid(service).at(-1)).toBe(`a cup of ${paid(service).length - 2}`);
  expect((await run(place, ["resume"])).stderr).toContain("nothing to resume");
});

test("a review file decides about many items, as an office saves it", async () => {
  const [place, service] = await made();
  await run(place, ["run", "set.yaml", "--yes"], service);
  place.write(
    "review.csv",
    "\uFEFFid;decision;note\r\ncup-draft;Pick;\r\njar-draft;reject;too dark\r\nx;;\r\n",
  );
  expect((await run(place, ["approve", "--from", "review.csv"])).stdout).toContain("cup-draft is approved");
  expect((await run(place, ["reject", "--from", "review.csv"])).stdout).toBe("jar-draft is rejected\n");
  const none = await run(place, ["reject", "--again", "--yes", "--from", "review.csv"], service);
  expect(none.stderr).toContain(
    "review.csv has no decision that this command takes (redo), only pick, reject",
  );
  place.write("review.csv", "id,decision\ncup-draft,maybe\n");
  const wrong = await run(place, ["approve", "--from", "review.csv"]);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain('row 2: expected approve, pick, reject, redo as decision, got "maybe"');
});

test("only archived items that wait can be decided about", async () => {
  const [place, service] = await made();
  await run(place, ["run", "set.yaml", "--yes"], service);
  const blocked = await run(place, ["approve", "cup-final"]);
  expect(blocked).toMatchObject({ code: 2 });
  expect(blocked.stderr).toContain("cup-final needs no approval: its step has no `approve: true`");
  const nothing = await run(place, ["approve"]);
  expect(nothing.stderr).toContain("name the items to approve, add --all or --from FILE");
  const both = await run(place, ["approve", "--all", "--from", "x.csv"]);
  expect(both.stderr).toContain("expected items, --all or --from FILE, got more than one of them");
  place.write("set.yaml", job.replace(", approve: true", ""));
  expect((await run(place, ["run", "set.yaml", "--yes"], service)).code).toBe(0);
  expect(paid(service)).toHaveLength(4);
  expect(existsSync(join(place.folder, "outputs/set/cup-final.png"))).toBe(true);
});

test("a variant that was made before its step asked for approval can be approved once it does", async () => {
  const [place, service] = await made();
  const command = (...args: string[]) => run(place, args, service);
  place.write("set.yaml", job.replace(", approve: true", "").replace(/ {2}- \{ name: final.*\n/, ""));
  expect((await command("run", "set.yaml", "--yes")).code).toBe(0);
  expect((await command("redo", "cup-draft", "--yes")).code).toBe(0);
  place.write("set.yaml", job);
  expect((await command("run", "set.yaml", "--yes")).code).toBe(10);
  const approved = await command("approve", "cup-draft-v2");
  expect(approved, approved.stderr).toMatchObject({
    code: expect.toSatisfy((code) => [0, 10].includes(code)),
  });
  expect((await command("resume")).code).toBe(10);
  expect(paid(service)).toEqual(["a cup", "a jar", "a cup", "a cup of 2"]);
});
