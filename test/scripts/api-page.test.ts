import { expect, test } from "vitest";
import { z } from "zod";
import { shapeText, typesOfLibrary } from "../../scripts/api-page.mjs";

const { shown, parts } = await typesOfLibrary();
const codes = new Map([...shown, ...parts].map(({ name, code }) => [name, code]));

test("a schema is shown as a type, with what it says of each field", () => {
  const schema = z.looseObject({
    price: z.number().describe("in credits").nullable(),
    states: z.array(z.enum(["ready", "failed"])),
    rest: z.union([z.strictObject({ a: z.literal(1) }), z.string()]).optional(),
    pair: z.tuple([z.string(), z.int()]),
    bySize: z.partialRecord(z.enum(["small", "large"]), z.boolean()),
    times: z.number().default(2).describe("how often"),
    other: z.unknown(),
  });
  expect(shapeText(z.toJSONSchema(schema, { io: "input" }))).toBe(`{
  /** in credits */
  price: number | null;
  states: ("ready" | "failed")[];
  rest?: {
    a: 1;
  } | string;
  pair: [string, number];
  bySize: Partial<Record<"small" | "large", boolean>>;
  /** how often; default: 2 */
  times?: number;
  other: unknown;
}`);
});

test("a type has the members that it takes from types nobody can import, and the values that it allows", () => {
  expect(codes.get("ManifestRow")).toContain("  number: number;\n");
  expect(codes.get("ManifestRow")).not.toContain("Pick<");
  expect(codes.get("PlanSettings")).toContain('onInsufficient?: "refuse" | "fit" | "stop" | "wait";');
  expect(codes.get("ItemState")).toContain('"held"');
});

test("every type of ours that the page names is on it", () => {
  const known = new Set(codes.keys());
  const others = [...codes].flatMap(([name, code]) => {
    const bare = code.replace(/\/\*\*[\s\S]*?\*\/|"[^"]*"/g, "");
    const named = [...bare.matchAll(/(?<=[:<|&(=] ?)[A-Z]\w+/g)].map(([word]) => word);
    return named.filter((word) => !known.has(word)).map((word) => `${name}: ${word}`);
  });
  const builtIn = /: (Error|ErrorOptions|Readonly|Record|Partial|Required|Pick|Promise|Date|AbortSignal)$/;
  expect(others.filter((each) => !builtIn.test(each))).toEqual([]);
});
