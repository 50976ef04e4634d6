import { z } from "zod";
import { mediaFields } from "../api/inputs.js";
import { itemStates } from "../core/item.js";
import { bindings } from "../core/pace/forecast.js";
import {
  bytes,
  count,
  credits,
  flag,
  itemKey,
  itemState,
  job,
  milliseconds,
  params,
  rowId,
  rowNumber,
  text,
  time,
} from "./values.js";

export const forecast = z
  .strictObject({
    requests: count("API requests that it will take"),
    ms: milliseconds("how long it will take"),
    binds: z
      .enum(bindings)
      .describe(
        "what limits the speed: the requests of a minute or a day, the credits, the generations, or how many of them are done at once",
      ),
    larger: z
      .strictObject({ plan: text("the plan's name"), ms: milliseconds("how long it would take with it") })
      .nullable()
      .describe("the next larger plan, if it would be faster"),
    guessed: z
      .strictObject({
        models: z.array(z.string()),
        areAll: flag("no model of the run has a history"),
        sandbox: flag("the generations are those of the sandbox, which take seconds"),
      })
      .exactOptional()
      .describe("models without history, where the time depends on how long they take"),
  })
  .describe("from the durations of earlier generations and the limits of the account's plan");

const state = z.enum(["new", ...itemStates]);
const states = z.partialRecord(state, count("items that stand so"));
const mediaText = (what: string) => z.partialRecord(z.enum(mediaFields), z.string()).describe(what);

const plannedItem = z.strictObject({
  key: itemKey,
  edition: text("the edition that it belongs to; empty for the first"),
  occurrence: z.int().positive().describe("tells identical rows apart, from 1"),
  variant: z.int().positive().describe("1, or the number of the variant that a redo made"),
  position: count("its place in the sheet, from 0"),
  priority: z.number().describe("the higher, the earlier it is submitted"),
  rowNumber,
  rowId,
  name: text("the wanted name of its file, without the extension"),
  model: text("the model's key"),
  category: text("the model's category, such as image"),
  prompt: z.string().nullable(),
  params,
  inputs: mediaText("its inputs as written: addresses, paths, or references to other items"),
  parents: z
    .array(
      z.strictObject({
        field: z.enum(mediaFields),
        key: text("the key of the item whose output it uses"),
        output: z.int().positive().describe("the number of the output, from 1"),
      }),
    )
    .optional()
    .describe("the items whose outputs it uses; absent if there are none"),
  files: mediaText("the hashes of its local inputs, as `sha256:…`").optional(),
  approve: z.literal(true).optional().describe("a person has to approve its files"),
  cells: z
    .array(z.tuple([z.string(), z.string()]))
    .describe("the cells of its row as written: column and text"),
  state: state.describe("`new`, or the state of the item that is on record"),
  due: flag("this run would submit and pay it"),
  order: count("its place in the order of submission, from 0"),
  fits: flag("balance and caps cover it and all before it"),
  price: credits("what it is expected to cost: the highest charge seen, else the service's list price"),
});

const problem = z.strictObject({
  place: z.strictObject({
    file: text("the file as it was named"),
    row: z.int().positive().nullable().describe("row as a spreadsheet counts; null: the whole file"),
    line: z.int().positive().optional().describe("line in a JSON or YAML file"),
    lineColumn: z.int().positive().optional().describe("column in that line"),
    column: text("the column's name, or the field's path").optional(),
    id: text("the row's id, where it has one").optional(),
    combination: text("the values of this item, where a row makes several").optional(),
  }),
  message: text("one line, without the place"),
  expected: z.string(),
  got: z.string(),
  nearest: text("the nearest valid value").optional(),
  repair: text("the value before a spreadsheet changed it; --repair uses it").optional(),
  aside: z
    .enum(["heading", "total"])
    .optional()
    .describe("what the row looks like, if not like one to make; --skip-headings leaves it out"),
});

const finding = z.strictObject({
  kind: z.enum([
    "no_subscription",
    "past_due",
    "insufficient_credits",
    "unreported_balance",
    "canceled",
    "unknown_subscription",
    "over_cap",
    "over_model_cap",
    "ends",
    "period_ends",
    "disk_space",
    "day_limit",
    "identical_rows",
    "unused_param_column",
    "missing_files",
    "early_settling",
    "deadline",
    "made_before",
    "partly_made_before",
    "archived_before",
    "paid_before",
    "others_run",
    "foreign_use",
  ]),
  message: text("one line for people"),
  choice: z
    .strictObject({
      found: text("what was found, without the ways on"),
      continues: text(
        "the job that `--job` continues; null if none of this workspace has the items",
      ).nullable(),
      again: text("the job with which `--job` makes and pays for all of them again"),
    })
    .optional()
    .describe("which job the run can be given with --job"),
});

const step = z.strictObject({
  name: text("different for each step of the plan"),
  step: text("the step's name in the job file; null for items without a step").nullable(),
  model: z.string(),
  category: z.string(),
  items: count("items of the step"),
  due: count("of them, those to be submitted"),
  credits: credits("what these are expected to cost"),
  states,
  next: z.array(z.string()).describe("names of the steps that use its outputs"),
});

export const plan = z.strictObject({
  job,
  isPart: flag("only some rows of the job are in the manifest: its other items stay as they are"),
  file: text("the manifest; absolute, or `stdin`"),
  origin: text("the service's address"),
  user: text("the user's id at the service"),
  edition: text("the edition that would be made; empty for the first"),
  items: z.array(plannedItem).describe("in the manifest's order; rows with problems have none"),
  problems: z.array(problem).describe("what is wrong with rows; it must be fixed first"),
  blockers: z.array(finding).describe("what stops a run before its first request"),
  warnings: z.array(finding).describe("what may cause trouble, but does not stop a run"),
  notes: z.array(z.string()).describe("remarks"),
  publish: z
    .strictObject({
      to: text("a bucket or an address"),
      expiresMs: milliseconds("how long its addresses are good").nullable(),
    })
    .nullable()
    .describe("where the job file publishes local inputs"),
  after: z
    .strictObject({
      file: text("after each archived file").nullable(),
      set: text("once everything is archived").nullable(),
      timeoutMs: milliseconds("how long one of them may take; null for the default").nullable(),
    })
    .nullable()
    .describe(
      "the commands that the job file wants to be run; nothing of them is run before you agree to it",
    ),
  selection: z
    .strictObject({
      text: text("as flags"),
      rows: count("rows that are selected"),
      of: count("rows of the manifest"),
    })
    .nullable()
    .describe("null if every row is selected"),
  ordered: z
    .strictObject({ items: count("how many"), credits: credits("what they are expected to cost") })
    .describe("variants of the rows that a person has ordered, and that are made too"),
  unselected: count("items on record whose rows are not selected"),
  missing: z.array(z.strictObject({ rowId, key: itemKey })).describe("archived items whose files are gone"),
  states,
  models: z
    .array(
      z.strictObject({
        model: z.string(),
        category: z.string(),
        items: count("items of the model"),
        due: count("of them, those to be submitted"),
        price: credits("what one is expected to cost at most"),
        credits: credits("what those to be submitted are expected to cost"),
        base: credits("the price in the service's list, with its params; the highest if they differ"),
        charged: z
          .strictObject({ least: credits("the least"), most: credits("the most") })
          .nullable()
          .describe("what was charged earlier for the params of these items; null if nothing was"),
      }),
    )
    .describe("the cost by model"),
  money: z.strictObject({
    needed: credits("what all items to be submitted, and the ordered variants, are expected to cost"),
    within: credits("the part of it that the caps allow"),
    inDoubt: credits(
      "what requests without an answer may add: each is sent again if it proves not to have been charged",
    ),
    balance: credits("the balance, from GET me; null if the service does not say").nullable(),
    after: credits("the balance after that; negative when it does not suffice").nullable(),
    maxCredits: credits("the cap of the run").nullable(),
    spent: credits("what counts against the cap already, of a run that is continued"),
  }),
  requests: z.strictObject({
    forecast,
    atLeast: count("API requests that it takes at least"),
    plan: text("the account's plan, from GET me; null without a subscription").nullable(),
    perMinute: count("requests that the plan allows a minute; null: any number").nullable(),
    perDay: count("requests that the plan allows a day; null: any number").nullable(),
    lanes: count("submits in flight at once, at most: as --lanes says, or by plan"),
    finishAt: time("when the run would end; null if there is nothing to do").nullable(),
  }),
  fit: z
    .strictObject({
      items: count("items that balance and caps cover"),
      credits: credits("what these cost"),
      rowNumber: rowNumber.nullable(),
      rowId: rowId.nullable(),
    })
    .describe("how far the credits reach; the row is the last that is covered"),
  files: z
    .strictObject({
      files: count("files that the run would make"),
      bytes: bytes("their expected size"),
      unknown: z.array(z.string()).describe("models without history, which are not in the bytes"),
    })
    .describe("from the sizes of earlier files"),
  graph: z
    .strictObject({ steps: z.array(step) })
    .optional()
    .describe("the steps of the manifest; only with --graph"),
  changed: z
    .array(
      z.strictObject({
        rowNumber,
        rowId,
        key: itemKey,
        oldKey: text("the key of the item that the row asked for before"),
        fields: z.array(
          z.strictObject({
            field: z.string(),
            from: z.string().nullable(),
            to: z.string().nullable(),
            file: text("the local file whose content changed, where the cell did not").optional(),
          }),
        ),
      }),
    )
    .describe("rows that had other content when the job was planned last"),
  vanished: z
    .array(
      z.strictObject({
        key: itemKey,
        rowId,
        state: itemState,
        replacedBy: text("the key of the item that its row asks for now").nullable(),
        hasRow: flag("a row of its id is still there"),
      }),
    )
    .describe("items of the job that no row asks for any more"),
  renamed: z
    .array(z.strictObject({ rowNumber, rowId, from: text("the old name"), to: text("the new name") }))
    .describe("archived items whose files are renamed, at no cost"),
  restored: z
    .array(z.strictObject({ rowNumber, rowId, key: itemKey }))
    .describe("archived items that have a row again; they cost nothing"),
});
