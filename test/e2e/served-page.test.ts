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
