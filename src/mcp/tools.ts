import { z } from "zod";
import { type FlagChoices, sheetFlags, text, word } from "../launch.js";
import { manifestExtensions } from "../manifest/formats/extensions.js";
import { runFlags } from "../options/run.js";

/**
 * What an agent may do. Each tool is a bulkgen command, so that there is one way to do it. A call that spends says how
 * much it may spend at most, and nothing asks for consent in between.
 */
export interface Tool {
  name: string;
  title: string;
  describe: string;
  /** Strict: an agent that makes a field up, such as `rows`, would pay for more than it meant. */
  input: z.ZodObject;
  /** Changes nothing. */
  looks?: true;
  /** May take hours: it is answered while it goes on. */
  takesLong?: true;
  /** A field of the document that an agent does not get: it is as long as the sheet, and would fill an agent's context. */
  leavesOut?: string;
  /** Its lists are answered whole, however long. */
  whole?: true;
  /** Its lists begin with the oldest entry. */
  newestLast?: true;
  /** The words of the command; paths of manifests have been checked. Values are `--flag=value`: none is taken for a flag. */
  words(input: Readonly<Record<string, unknown>>): string[];
}

const runNumber = z.int().positive().describe("number of the run; the newest one if absent");
const items = z
  .array(word)
  .min(1)
  .max(1_000)
  .describe("row ids, paths of files, or task ids; RUN:ROW-ID for an item of a given run");
const cap = (what: string) => z.number().nonnegative().describe(`the most credits that ${what} may cost`);

const sheet = {
  manifest: word.describe(
    `path of a sheet or job file in the workspace (${manifestExtensions.join(", ")}, or .txt with a prompt a line), or a folder or pattern of files as rows, such as photos/**/*.jpg`,
  ),
  model: text.optional().describe(runFlags.model.describe),
  prompt: text
    .optional()
    .describe("prompt or template of rows without one, such as 'a {{product}} on a table'"),
  params: z
    .record(z.string().max(200), z.union([text, z.number(), z.boolean()]))
    .optional()
    .describe("params of rows that do not set them"),
  first: z.int().positive().optional().describe("only this many rows, from the first"),
  skip_invalid: z.boolean().optional().describe(runFlags.skipInvalid.describe),
  skip_headings: z.boolean().optional().describe(runFlags.skipHeadings.describe),
  edition: text.optional().describe(runFlags.edition.describe),
};

function sheetWords(given: Readonly<Record<string, unknown>>): string[] {
  const {
    manifest,
    first,
    skip_invalid: skipInvalid = false,
    skip_headings: skipHeadings = false,
    ...choices
  } = given as unknown as SheetInput;
  return [
    manifest,
    ...(first === undefined ? [] : [`--first=${first}`]),
    ...sheetFlags({ ...choices, skipInvalid, skipHeadings }),
  ];
}

type SheetInput = FlagChoices & {
  manifest: string;
  first?: number;
  skip_invalid?: boolean;
  skip_headings?: boolean;
};

const runWords = ({ run }: Readonly<Record<string, unknown>>) => (run === undefined ? [] : [String(run)]);
const itemWords = (given: Readonly<Record<string, unknown>>) => given["items"] as string[];

export const tools: readonly Tool[] = [
  {
    name: "models",
    title: "List models",
    describe: "Lists the service's models with their price in credits, input types and parameters.",
    input: z.strictObject({}),
    looks: true,
    whole: true,
    words: () => ["models"],
  },
  {
    name: "account",
    title: "Show the account",
    describe: "Shows the balance in credits, the plan and its request limits.",
    input: z.strictObject({}),
    looks: true,
    words: () => ["account"],
  },
  {
    name: "plan",
    title: "Plan a sheet",
    describe:
      "Checks a sheet against the models and the account, and says what a run would cost, how long it would take, and what is wrong with it. Spends nothing.",
    input: z.strictObject({ ...sheet, max_credits: cap("the run").optional() }),
    looks: true,
    leavesOut: "items",
    words: (given) => [
      "plan",
      ...sheetWords(given),
      ...(given["max_credits"] === undefined ? [] : [`--max-credits=${given["max_credits"]}`]),
    ],
  },
  {
    name: "run",
    title: "Run a sheet",
    describe:
      "Makes what a sheet asks for and archives the files; spends credits. Plan first. No more than max_credits is spent: what does not fit stays planned, and the run ends with exit 6. Items that were made before are not paid for again. A long run is answered while it is still running: follow it with status.",
    input: z.strictObject({
      ...sheet,
      max_credits: cap("the run"),
      canary: z.boolean().optional().describe(runFlags.canary.describe),
    }),
    takesLong: true,
    words: (given) => [
      "run",
      ...sheetWords(given),
      ...(given["canary"] === true ? ["--canary"] : []),
      `--max-price=${given["max_credits"]}`,
      `--max-credits=${given["max_credits"]}`,
    ],
  },
  {
    name: "resume",
    title: "Resume a run",
    describe:
      "Continues an unfinished run: collects what was submitted, and submits the rest. Spends at most max_credits in the whole run, including what it has already spent.",
    input: z.strictObject({ run: runNumber.optional(), max_credits: cap("the whole run") }),
    takesLong: true,
    words: (given) => ["resume", ...runWords(given), "--yes", `--max-credits=${given["max_credits"]}`],
  },
  {
    name: "status",
    title: "Show a run",
    describe:
      "Shows the status of a run: items by state, credits, why it ended, and what to do next. Works offline.",
    input: z.strictObject({ run: runNumber.optional() }),
    looks: true,
    words: (given) => ["status", ...runWords(given)],
  },
  {
    name: "runs",
    title: "List runs",
    describe: "Lists every run of the workspace. Works offline.",
    input: z.strictObject({}),
    looks: true,
    newestLast: true,
    words: () => ["status", "--all"],
  },
  {
    name: "find",
    title: "Find files",
    describe: "Finds archived files by words of their prompt, row id or file name. Works offline.",
    input: z.strictObject({ text: word }),
    looks: true,
    words: (given) => ["find", String(given["text"])],
  },
  {
    name: "final_set",
    title: "List the set to hand over",
    describe:
      "Lists the final file of each item of a run's sheet: the picked take, else the approved one, else the first; never a rejected one. Items without a final file have none, and say why. Works offline.",
    input: z.strictObject({ run: runNumber.optional() }),
    looks: true,
    words: (given) => ["export", ...runWords(given), "--final"],
  },
  {
    name: "resolve",
    title: "Decide about held items",
    describe:
      "Decides about items that are held because it is not certain whether their request was charged. `adopt` takes the task that the service's records show; `refetch` asks for outputs again; `accept` keeps outputs that failed their check as they came, marked as not proven; `skip` drops the item. `resubmit` may pay a second time, so it needs max_price. All but `skip` continue the run, which also submits its other items, including those that wait for outputs of others: this is refused unless max_price covers them.",
    input: z.strictObject({
      items,
      action: z.enum(["adopt", "refetch", "accept", "skip", "resubmit"]),
      task: word.optional().describe("for adopt: the task id"),
      max_price: cap("it")
        .optional()
        .describe(
          "the most credits that it may cost, with the other items that continuing the run submits; 0 if absent",
        ),
    }),
    takesLong: true,
    words: (given) => ["resolve", ...itemWords(given), ...resolveWords(given)],
  },
  {
    name: "pause",
    title: "Pause a run",
    describe: "Pauses a run in progress. Its tasks keep running at the service; resume collects them.",
    input: z.strictObject({ run: runNumber.optional() }),
    words: (given) => ["pause", ...runWords(given)],
  },
  {
    name: "cancel",
    title: "Cancel a run",
    describe: "Drops what a run has not submitted yet. What was submitted is still collected.",
    input: z.strictObject({ run: runNumber.optional() }),
    words: (given) => ["cancel", ...runWords(given)],
  },
];

/** Throws what is missing. */
function resolveWords({ action, task, max_price }: Readonly<Record<string, unknown>>): string[] {
  // The run goes on afterwards and submits its other items, which need consent too: without a price, none is bought.
  const price = max_price ?? 0;
  switch (action) {
    case "adopt":
      if (task === undefined)
        throw new Error("adopt needs `task`: the id of the task that the service's records show");
      return [`--adopt=${task}`, `--max-price=${price}`];
    case "resubmit":
      if (max_price === undefined)
        throw new Error(
          "resubmit may pay a second time: give `max_price`, the most credits that it may cost",
        );
      return ["--resubmit", `--max-price=${price}`];
    default:
      return action === "skip" ? ["--skip"] : [`--${action}`, `--max-price=${price}`];
  }
}
