import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import sharp from "sharp";
import { expect, test } from "vitest";
import { indexOf } from "./archive.js";
import { newPlace, run } from "./command.js";

const studio = fileURLToPath(new URL("../../examples/studio", import.meta.url));

test("the models of `npm run demo:serve` make a banner in each size and language, at its price", async () => {
  const at = newPlace();
  cpSync(studio, at.folder, { recursive: true });
  const flags = ["--models", "models.yaml", "--filter", "model=tea-banner"];
  const agreed = await run(at, ["trust", "--models", "models.yaml", "--yes"]);
  expect(agreed.stdout).toContain("command of model voice: espeak-ng");
  const made = await run(at, ["run", "jobs/demo.csv", ...flags, "--yes", "--json"]);
  expect(made, made.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(made.stdout).credits.spent).toBe(8);
  const folder = join(at.folder, "outputs", "demo");
  const files = indexOf(folder);
  expect(files.map(({ file }) => file).toSorted()).toEqual(
    ["de", "en"].flatMap((language) => ["square", "story", "wide"].map((name) => `${language}/${name}.png`)),
  );
  for (const { file, params } of files) {
    const { width, height } = await sharp(join(folder, file)).metadata();
    expect(`${width}x${height}`, file).toBe(params["size"]);
  }
});
