import { z } from "zod";
import { type ItemState, itemStates } from "../core/item.js";
import { text, word } from "../launch.js";
import type { Act, CellChange, RefusedAnswer, StartChoices } from "./shapes.js";

/** A request that cannot be done, with why, for the person at the page. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly kind: RefusedAnswer["error"]["kind"] = "refused",
  ) {
    super(message);
  }
}

const runNumber = z.int().positive();
const price = z.number().nonnegative();
const items = z.array(word).min(1).max(1_000);

const startChoices = z.object({
  file: word,
  job: word.optional(),
  sheet: text.optional(),
  model: text.optional(),
  prompt: text.optional(),
  params: z.record(z.string().max(200), text).optional(),
  maxCredits: z.number().nonnegative().optional(),
  edition: text.optional(),
  fresh: z.boolean().optional(),
  skipInvalid: z.boolean().optional(),
  skipHeadings: z.boolean().optional(),
  canary: z.boolean().optional(),
  repair: z.boolean().optional(),
});

const act = z.union([
  z.object({ do: z.literal("start"), choices: startChoices, price }),
  z.object({
    do: z.literal("schedule"),
    choices: startChoices,
    name: word,
    cron: z.string().max(200),
    zone: z.string().max(100),
  }),
  z.object({ do: z.enum(["unschedule", "pause schedule", "resume schedule"]), name: word }),
  z.object({ do: z.enum(["redo", "resubmit", "reject again", "refetch", "accept"]), items, price }),
  z.object({ do: z.enum(["approve", "reject", "skip", "pick", "unpick"]), items }),
  z.object({ do: z.literal("adopt"), items, task: word, price }),
  z.object({ do: z.enum(["retry", "resume"]), run: runNumber, price }),
  z.object({ do: z.enum(["pause", "cancel"]), run: runNumber }),
]);

const cellChanges = z
  .array(z.object({ row: z.int().positive(), column: z.string().min(1).max(1_000), value: text }))
  .min(1)
  .max(100_000);

const zipped = z.union([
  z.object({ run: runNumber }),
  z.object({
    files: z
      .array(z.object({ item: z.int(), number: z.int() }))
      .min(1)
      .max(100_000),
  }),
]);
export type Zipped = z.infer<typeof zipped>;

const page = z.object({
  before: z.coerce.number().int().optional(),
  from: z.coerce.number().int().nonnegative().default(0),
  limit: z.coerce.number().int().positive().max(500).default(100),
  run: z.coerce.number().int().optional(),
  text: z.string().max(1_000).default(""),
  state: z.enum(itemStates as [ItemState, ...ItemState[]]).optional(),
  file: z.string().max(4_000).default(""),
  sheet: z.string().max(1_000).optional(),
  name: z.string().max(1_000).default(""),
  replace: z.literal("yes").optional(),
  version: z.string().max(200).default(""),
  what: z.enum(["held", "failed", "approval"]).optional(),
});

/** The schemas of the page's requests. */
export const requests = {
  act: act as z.ZodType<Act>,
  startChoices: startChoices as z.ZodType<StartChoices>,
  cellChanges: cellChanges as z.ZodType<CellChange[]>,
  zipped,
  page,
};
