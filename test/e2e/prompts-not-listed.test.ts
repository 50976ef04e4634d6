import { expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";

const rows = (prompt: string) => `
name: shop
rows:
  - { id: a, prompt: a cup, how: sharp }
  - { id: b, prompt: a jar, how: ${prompt} }
steps:
  - { name: edit, model: aurora-image-mini }
  - { name: large, model: atelier-upscale, image_url: "@edit", prompt: "{{ how }}" }
`;

async function made(): Promise<Place> {
  const place = newPlace();
  place.write("shop.yaml", rows("soft"));
  const end = await run(place, ["run", "shop.yaml", "--sandbox", "--yes"]);
  expect(end.code, end.stderr).toBe(0);
  return place;
}

test("a retake with another prompt says before it is bought that its model does not list prompts", async () => {
  const place = await made();
  const redo = (item: string) => run(place, ["redo", item, "--prompt", "soft", "--sandbox", "--yes"]);
  const large = await redo("b-large");
  const note =
    "b-large-v2: model atelier-upscale does not list prompt as an input; it is sent anyway, and may make the same file again";
  expect(large.stderr).toContain(note);
  expect(large.stderr.indexOf(note)).toBeLessThan(large.stderr.indexOf("0:00"));
  expect((await redo("b-edit")).stderr).not.toContain("does not list");
});

test("a plan says where a changed prompt alone makes a new item of a model that does not list prompts", async () => {
  const place = await made();
  const plan = () => run(place, ["plan", "shop.yaml", "--sandbox"]);
  expect((await plan()).stdout).not.toContain("does not list");
  place.write("shop.yaml", rows("softer"));
  const changed = await plan();
  expect(changed.stdout).toContain(
    "model atelier-upscale does not list prompt as an input; it is sent anyway, and its change alone makes a new item (row 2)",
  );
  // What is made of a new picture is new in any case.
  place.write("shop.yaml", rows("soft").replace("a jar", "a blue jar").replace("{{ how }}", "{{ prompt }}"));
  const other = await plan();
  expect(other.stdout).toContain("(row 1)");
  expect(other.stdout).not.toContain("(row 2)");
});
