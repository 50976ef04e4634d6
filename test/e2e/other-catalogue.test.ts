import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { models, type Scripted, startService } from "./service.js";

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
