import { z } from "zod";
import {
  approval,
  bytes,
  itemKey,
  job,
  outputNumber,
  rowId,
  runNumber,
  sha256,
  text,
  time,
} from "./values.js";

/** What every document says of an archived file. */
export const fileRecord = {
  job,
  rowId,
  model: text("the model's key"),
  prompt: z.string().nullable(),
  output: outputNumber,
  bytes: bytes("its size"),
  sha256,
  mime: text("its media type"),
  savedAt: time("when it was saved"),
};

/** An archived file, as one of many: for the page and the library, which read page by page. */
export const file = z.strictObject({
  ...fileRecord,
  itemId: z.int().describe("the number of its item in the workspace"),
  key: itemKey,
  run: runNumber.describe("the run whose folder has it"),
  file: text("in `folder`, with / between segments"),
  folder: text("the job's folder; absolute"),
  bucket: text("the bucket that has it instead, as BUCKET/JOB/FILE; null if the folder has it").nullable(),
  approval,
  picked: z.boolean().describe("a person has picked it"),
});
/** An archived file of a workspace. Times are ISO 8601 in UTC. */
export type FileDocument = z.output<typeof file>;
