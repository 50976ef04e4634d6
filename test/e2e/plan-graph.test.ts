import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";

const job = `
rows: [{ id: cup }]
steps:
  - { name: picture, model: aurora-image-mini, prompt: a cup }
  - { name: clip, model: reel-image, image_url: "@picture" }
`;

const drawn = [
  "picture  1 item · 1 credit · aurora-image-mini → clip",
  "└─ clip  1 item · 15 credits · reel-image",
].join("\n");

test("plan --graph draws the steps below the plan; the word after it is its value only if it is one", async () => {
  const place = newPlace();
  place.write("job.yaml", job);
  const first = await run(place, ["plan", "--graph", "job.yaml", "--sandbox"]);
  expect(first, first.stderr).toMatchObject({ code: 0 });
  expect(first.stdout).toContain("16 needed");
  expect(first.stdout.trimEnd().endsWith(drawn)).toBe(true);
  const diagram = await run(place, ["plan", "--graph", "mermaid", "job.yaml", "--sandbox"]);
  expect(diagram.stdout.split("\n")[0]).toBe("flowchart LR");
  const document = await run(place, ["plan", "job.yaml", "--graph", "--json", "--sandbox"]);
  expect(JSON.parse(document.stdout).graph.steps).toMatchObject([
    { name: "picture", items: 1, credits: 1, states: { new: 1 }, next: ["clip"] },
    { name: "clip", items: 1, credits: 15, next: [] },
  ]);
  const wrong = await run(place, ["plan", "job.yaml", "--graph=svg", "--sandbox"]);
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    expect.stringContaining("--graph: expected one of text, mermaid"),
  ]);
});

test("plan --graph of a manifest with problems prints these; of the good rows only with --skip-invalid", async () => {
  const place = newPlace();
  place.write("job.yaml", `${job}  - { name: more, model: reel-imagine, image_url: "@picture" }\n`);
  for (const how of [[], ["mermaid"]]) {
    const wrong = await run(place, ["plan", "job.yaml", "--sandbox", "--graph", ...how]);
    expect(wrong.code).toBe(2);
    expect(wrong.stdout).toContain('unknown model "reel-imagine"');
    expect(wrong.stdout).not.toMatch(/flowchart|└─/);
  }
  const rest = await run(place, ["plan", "job.yaml", "--sandbox", "--graph", "--skip-invalid"]);
  expect(rest.stdout).toContain(drawn.split("\n")[0]);
});

test("plan --graph mermaid says on stderr what blocks the run", async () => {
  const place = newPlace();
  place.write(
    "set.csv",
    `model,prompt\n${Array.from({ length: 200 }, (_, n) => `aurora-image,cup ${n}`).join("\n")}\n`,
  );
  const diagram = await run(place, ["plan", "set.csv", "--sandbox", "--graph", "mermaid"]);
  expect(diagram.code).toBe(7);
  expect(diagram.stdout).toBe('flowchart LR\n  s1["aurora-image<br>200 items<br>800 credits"]\n');
  expect(diagram.stderr).toContain("800");
});
