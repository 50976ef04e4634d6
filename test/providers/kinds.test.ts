import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { comfyuiKind } from "../../src/providers/comfyui/kind.js";
import { commandKind } from "../../src/providers/command/kind.js";
import { templateKind } from "../../src/providers/template/kind.js";
import { settingsOf } from "./job.js";

/** What a models file says wrong, as `bind.prompt: message`. */
function wrong(shape: z.ZodRawShape, value: unknown): string[] {
  const { error } = z.strictObject(shape).safeParse(value);
  return (error?.issues ?? []).map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test.each([
  [
    comfyuiKind.model,
    { workflow: "flows/house.json", bind: { prompt: "6.text", seed: ["3.seed", "57:8.noise_seed"] } },
  ],
  [commandKind.model, { command: ["realesrgan", "-i", "{{ image }}", "-o", "{{ out }}.png"] }],
  [commandKind.model, { command: ["draw"], stdin: "{{ prompt }}" }],
  [templateKind.model, { template: "banners/sale.html" }],
  [templateKind.model, { template: "banners/sale.svg", width: 1200, height: 628 }],
  [templateKind.provider, { browser: "/usr/bin/chromium", sandbox: false }],
  [comfyuiKind.provider, {}],
  [commandKind.provider, {}],
])("a models file may say %#", (shape, value) => {
  expect(wrong(shape, value)).toEqual([]);
});

test.each<[z.ZodRawShape, unknown, string[]]>([
  [
    comfyuiKind.model,
    {},
    [
      "workflow: expected the file of a workflow, as ComfyUI saves it with Workflow → Export (API)",
      "bind: expected which input of the workflow takes what, such as { prompt: 6.text, seed: 3.seed }",
    ],
  ],
  [
    comfyuiKind.model,
    { workflow: "a.json", bind: { prompt: 6, seed: "3", steps: [], cfg: "3.cfg" } },
    [
      "bind.prompt: expected a node and its input, such as 6.text, or a list of them",
      "bind.seed: expected a node and its input, such as 6.text",
      "bind.steps: expected a node and its input, such as 6.text",
    ],
  ],
  [
    commandKind.model,
    { command: "draw --help" },
    ['command: expected a list of words, such as [draw, --, "{{ prompt }}"]'],
  ],
  [commandKind.model, { command: ["draw", 4] }, ["command.1: expected text: write numbers in quotes"]],
  [commandKind.model, { command: [] }, ["command: expected a program and its words"]],
  [
    templateKind.model,
    { width: 0.5, height: 9_000 },
    [
      "template: expected a file .html or .svg",
      "width: expected a whole number of px from 1 to 8192",
      "height: expected a whole number of px from 1 to 8192",
    ],
  ],
  [templateKind.provider, { sandbox: "no" }, ["sandbox: expected true or false"]],
])("a models file is told what is wrong: %#", (shape, value, expected) => {
  expect(wrong(shape, value)).toEqual(expected);
});

type Written = { provider: { kind: string } } & Record<string, unknown>;

test("the examples of docs/local-models.md are what a models file may say", () => {
  const text = readFileSync(new URL("../../docs/local-models.md", import.meta.url), "utf8");
  const kinds = new Map([comfyuiKind, commandKind, templateKind].map((kind) => [kind.name, kind]));
  const models = [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].flatMap(([, yaml = ""]) => {
    const { models = [] } = parse(yaml) as { models?: Written[] };
    return models;
  });
  expect(models.length).toBeGreaterThan(3);
  const common = ["key", "name", "provider", "category", "input", "credits", "params"];
  for (const { provider, ...model } of models) {
    const kind = kinds.get(provider.kind);
    const own = Object.fromEntries(Object.entries(model).filter(([name]) => !common.includes(name)));
    expect(wrong(kind?.model ?? {}, own)).toEqual([]);
    const ofProvider = Object.fromEntries(
      Object.entries(provider).filter(([name]) => name in (kind?.provider ?? {})),
    );
    expect(wrong(kind?.provider ?? {}, ofProvider)).toEqual([]);
    const words = model["command"] as string[] | undefined;
    if (words !== undefined)
      expect(
        commandKind.check?.(
          { key: "", name: "", category: "image", input: model["input"] as "text", details: own as never },
          ".",
          Object.keys((model["params"] as object | undefined) ?? {}),
          settingsOf(commandKind),
        ),
      ).toEqual([]);
  }
});
