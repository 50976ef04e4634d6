import { expect, test } from "vitest";
import { newPlace, started } from "./command.js";

const models = `
models:
  - { key: banner, provider: { kind: template }, category: image, credits: 1, template: banner.svg }
`;

test("`bulkgen serve` prints the link of its page, which opens it as long as the command runs", async () => {
  const at = newPlace();
  at.write(
    "banner.svg",
    `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>{{ prompt }}</text></svg>`,
  );
  at.write("models.yaml", models);
  const command = started(at, ["serve"], { serves: true });
  const [, link = ""] = await command.prints(
    / {2}page: (http:\/\/127\.0\.0\.1:\d+\/dashboard\?token=[0-9a-f]{64})\n/,
  );
  const opened = await fetch(link, { redirect: "manual" });
  expect(opened.status).toBe(303);
  const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
  const standing = await fetch(new URL("/dashboard/api/standing", link), { headers: { cookie } });
  expect(await standing.json()).toMatchObject({ models: [{ key: "banner" }], keys: [{ name: "first" }] });
  command.interrupt();
  expect((await command.ended).code).toBe(0);
  await expect(fetch(link)).rejects.toThrow();
});

test("`bulkgen serve` says which jobs have failed, and not all of very many", async () => {
  const at = newPlace();
  at.write(
    "models.yaml",
    `models: [{ key: draw, provider: { kind: command }, category: image, credits: 1, command: [sh, -c, exit 3, --, "{{ prompt }}"] }]`,
  );
  await started(at, ["trust", "--models", "models.yaml", "--yes"]).ended;
  const command = started(at, ["serve", "--json"], { serves: true });
  const [line] = await command.prints(/^\{.*\}\n/);
  const { url, key } = JSON.parse(line);
  for (let number = 0; number < 25; number++)
    await fetch(`${url}/api/v1/generate`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "draw", prompt: `${number}` }),
    });
  const told =
    /bulkgen: a job of draw for first failed \(task [0-9a-f-]{36}\): the program failed with exit code 3\n/g;
  await command.prints(/20 jobs failed within a minute/);
  command.interrupt();
  const { stderr } = await command.ended;
  expect(stderr.match(told)).toHaveLength(20);
});

test("a name that a key may not have is refused by `serve keys create`, too", async () => {
  const at = newPlace();
  at.write("models.yaml", models);
  const create = (name: string) => started(at, ["serve", "keys", "create", name]).ended;
  expect(await create("anna")).toMatchObject({ code: 0 });
  for (const [name, message] of [
    ["anna", 'there is a key "anna" already; choose another name'],
    [" ", "name: expected a value, got an empty text"],
    ["a\u202eb", "a key's name may have no invisible characters"],
  ] as const)
    expect(await create(name)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
});
