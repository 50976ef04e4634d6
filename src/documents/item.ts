import { z } from "zod";
import { failureKinds } from "../core/failure.js";
import {
  approval,
  count,
  credits,
  itemKey,
  itemState,
  job,
  rowId,
  rowNumber,
  runNumber,
  text,
} from "./values.js";

/** An item, as one of many: for the page and the library, which read page by page. */
export const item = z.strictObject({
  id: z.int().describe("the item's number in its workspace"),
  run: runNumber.nullable().describe("the run that has it; null if no run does any more"),
  job,
  key: itemKey,
  rowId,
  rowNumber,
  model: text("the model's key"),
  category: text("the model's category, such as image"),
  prompt: z.string().nullable(),
  state: itemState,
  failureKind: z.enum(failureKinds).nullable().describe("what kind of failure it was; null unless it failed"),
  note: text("why it stands so, for people").nullable(),
  approval,
  price: credits("what it is expected to cost, or was charged"),
  files: count("its files in the archive"),
  mime: text("the media type of the first of them").nullable(),
  picked: z.boolean().describe("a person has picked it"),
});
/** An item of a workspace. Credits are numbers. */
export type ItemDocument = z.output<typeof item>;
