import { expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";
import { failedTask, type ScriptedService, startService } from "./service.js";

async function made(rows: readonly string[], script?: Parameters<typeof startService>[0]) {
  const service = await startService({ balance: 100, ...script });
  const place: Place = newPlace();
  place.write("set.csv", ["id,model,prompt,image_url", ...rows].join("\n"));
  return { place, service };
}

const paid = ({ made: tasks }: ScriptedService) => tasks.map(({ prompt }) => prompt);

test("with --canary one item of each kind is archived before the others are paid", async () => {
  const rows = ["a,plain-image,a,", "b,plain-image,b,", "c,plain-image,c,"];
  const { place, service } = await made(rows);
  const { code, stderr } = await run(place, ["run", "set.csv", "--canary", "--yes"], service);
  expect(code, stderr).toBe(0);
  expect(paid(service)).toEqual(["a", "b", "c"]);
  const asked = service.asked.map(({ what }) => what);
  const before = asked.slice(0, asked.indexOf("GET file"));
  expect(before.filter((what) => what === "POST generate")).toHaveLength(1);
  // What is archived already needs no canary.
  place.write(
    "set.csv",
    ["id,model,prompt", "a,plain-image,a", "d,plain-image,d", "e,plain-image,e"].join("\n"),
  );
  expect((await run(place, ["run", "set.csv", "--canary", "--yes"], service)).code).toBe(0);
  expect(paid(service).slice(3).toSorted()).toEqual(["d", "e"]);
});

test("when a canary fails, the others are not paid; resume tries the next one", async () => {
  const rows = ["a,plain-image,a,", "b,plain-image,b,", "c,plain-image,c,"];
  const { place, service } = await made(rows);
  service.script(({ what }) => {
    const [first] = service.made;
    return what === "GET task" && service.made.length === 1 && first ? { json: failedTask(first) } : "serve";
  });
  const first = await run(
    place,
    ["run", "set.csv", "--canary", "--retries", "0", "--yes", "--json"],
    service,
  );
  expect(first, first.stderr).toMatchObject({ code: 5 });
  const summary = JSON.parse(first.stdout);
  expect(summary.counts).toMatchObject({ failed: 1, blocked: 2 });
  expect(summary.blocked[0].reason).toContain("waits for a, which failed");
  expect(paid(service)).toEqual(["a"]);
  const resumed = await run(place, ["resume"], service);
  expect(resumed, resumed.stderr).toMatchObject({ code: 5 });
  expect(paid(service)).toEqual(["a", "b", "c"]);
});

test("a run that was cancelled while items waited for their canary can be run again with one", async () => {
  const { place, service } = await made(["a,plain-image,a,", "b,plain-image,b,", "c,plain-image,c,"]);
  service.script(({ what }) => {
    const [first] = service.made;
    return what === "GET task" && service.made.length === 1 && first ? { json: failedTask(first) } : "serve";
  });
  const args = ["run", "set.csv", "--canary", "--retries", "0", "--yes"];
  expect((await run(place, args, service)).code).toBe(5);
  expect((await run(place, ["cancel"], service)).code).toBe(0);
  const again = await run(place, args, service);
  expect(again, again.stderr).toMatchObject({ code: 5 });
  expect(paid(service)).toEqual(["a", "b", "c"]);
});

test("a later run without --canary lets all items go", async () => {
  const { place, service } = await made(["a,plain-image,a,", "b,plain-image,b,", "c,plain-image,c,@b"]);
  service.script(({ what }) => (what === "POST generate" ? { status: 400, json: rejection } : "serve"));
  expect((await run(place, ["run", "set.csv", "--canary", "--yes"], service)).code).toBe(5);
  service.script(() => "serve");
  expect((await run(place, ["run", "set.csv", "--yes"], service)).code).toBe(5);
  expect(paid(service)).toEqual(["b", "c"]);
});

const rejection = { error: { code: "INVALID_PARAMS", message: "no" } };

test("canaries of chains wait for nothing that waits for them", async () => {
  const { place, service } = await made([
    "x,plain-image,x,@w",
    "y,plain-image,y,@x",
    "w,plain-image,w,",
    "v,plain-image,v,",
    "z,plain-image,z,@v",
  ]);
  const { code, stderr: stdout } = await run(place, ["run", "set.csv", "--canary", "--yes"], service);
  expect(code, stdout).toBe(0);
  expect(paid(service)[0]).toBe("w");
  expect(paid(service)).toHaveLength(5);
});

test("a canary that has to be approved holds the others back until it is", async () => {
  const { place, service } = await made([]);
  const rows = "rows: [{ id: a, prompt: a }, { id: b, prompt: b }]";
  place.write("set.yaml", `name: set\napprove: true\ndefaults: { model: plain-image }\n${rows}\n`);
  expect((await run(place, ["run", "set.yaml", "--canary", "--yes"], service)).code).toBe(10);
  expect(paid(service)).toEqual(["a"]);
  expect((await run(place, ["resume"], service)).code).toBe(10);
  expect(paid(service)).toEqual(["a"]);
  expect((await run(place, ["approve", "a"])).stdout).toContain("1 item that waited can be made");
  expect((await run(place, ["resume"], service)).code).toBe(10);
  expect(paid(service)).toEqual(["a", "b"]);
});
