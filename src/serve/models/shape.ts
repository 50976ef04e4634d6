import { z } from "zod";
import { inputTypes } from "../../api/inputs.js";
import { categories } from "../../api/records.js";

/** What a models file may say of every provider and every model; each kind adds its own fields. */

const durationUnits: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** `90s`, `3m` or `1h`; in ms. */
const duration = z
  .string()
  .regex(/^\d{1,6}(\.\d+)?(ms|s|m|h)$/, "expected a time such as 90s, 3m or 1h")
  .transform((text) => {
    const [, number = "0", unit = "s"] = /^([\d.]+)(\w+)$/.exec(text) ?? [];
    return Number(number) * (durationUnits[unit] ?? 1);
  });

const address = z
  .string()
  .refine(
    (text) => URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol),
    "expected an address such as https://api.example.com",
  )
  .transform((text) => text.replace(/\/+$/, ""));

const secretHeader = /authorization|api-?key|token|secret|^x-key$/i;

const headers = z.record(z.string(), z.string()).superRefine((given, context) => {
  for (const [name, value] of Object.entries(given)) {
    if (!secretHeader.test(name) || value.includes("{{ key }}") || value.includes("{{key}}")) continue;
    const message = "expected {{ key }} instead of a key: name the variable with the key in key_env";
    context.addIssue({ code: "custom", path: [name], message });
  }
});

export const providerFields = {
  base_url: z.union([address.transform((one) => [one]), z.array(address).min(1)]).optional(),
  key_env: z
    .string()
    .regex(
      /^[A-Za-z_][A-Za-z0-9_]*$/,
      "expected the name of an environment variable, such as OPENAI_API_KEY; the key itself is never written here",
    )
    .optional(),
  key_file: z.string().min(1).optional(),
  headers: headers.optional(),
  concurrency: z.int().min(1).max(100_000).optional(),
  rpm: z.int().min(1).optional(),
  timeout: duration.optional(),
  waiting: z.int().min(0).optional(),
};

const credits = z.number().min(0).max(1e6);
const scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String);

const parameterTypes = ["select", "text", "number", "seed"] as const;

const parameter = z.union([
  z
    .array(scalar)
    .min(1)
    .transform((options) => ({ type: "select" as const, options, default: undefined, label: undefined })),
  z
    .enum(parameterTypes)
    .exclude(["select"])
    .transform((type) => ({ type, options: [] as string[], default: undefined, label: undefined })),
  z
    .strictObject({
      type: z.enum(parameterTypes).optional(),
      label: z.string().optional(),
      options: z.array(scalar).optional(),
      default: scalar.optional(),
    })
    .transform(({ type, options = [], ...rest }) => ({
      type: type ?? (options.length > 0 ? ("select" as const) : ("text" as const)),
      options,
      default: rest.default,
      label: rest.label,
    })),
]);

export const modelFields = {
  key: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, "expected a name of letters, digits, dots and dashes"),
  name: z.string().min(1).max(200).optional(),
  category: z.enum(categories),
  input: z.enum(inputTypes).default("text"),
  credits: z
    .union([
      credits.transform((base) => ({ base, by: {} as Record<string, Record<string, number>> })),
      z.strictObject({
        base: credits,
        by: z.record(z.string(), z.record(z.string(), credits)).default({}),
      }),
    ])
    .default({ base: 0, by: {} }),
  params: z.record(z.string().regex(/^[A-Za-z][A-Za-z0-9_]*$/), parameter).default({}),
};

/** The file without its providers and models, which their kinds check. */
export const fileFields = {
  credit: z
    .strictObject({ value: z.number().positive(), currency: z.string().regex(/^[A-Z]{3}$/) })
    .optional(),
  inputs: z.strictObject({ allow: z.array(z.string().min(1)).default([]) }).optional(),
  providers: z.record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/), z.unknown()).default({}),
  models: z.array(z.unknown()).min(1),
};

export type ModelFields = z.output<z.ZodObject<typeof modelFields>>;
export type ProviderFields = z.output<z.ZodObject<typeof providerFields>>;
