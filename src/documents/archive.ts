import { z } from "zod";
import { mediaFields } from "../api/inputs.js";
import { fileRecord } from "./file.js";
import {
  bytes,
  count,
  counts,
  credits,
  flag,
  itemKey,
  job,
  outputNumber,
  params,
  rowId,
  rowNumber,
  runNumber,
  sha256,
  text,
  time,
} from "./values.js";

const check = text("how far the content was checked when it was saved");
const inputs = z.record(z.string(), z.string()).describe("its inputs as the manifest names them");
const absolute = text("the file; absolute, or its address in the bucket that has it");

export const found = z
  .array(
    z.strictObject({
      ...fileRecord,
      file: absolute,
      run: runNumber.describe("the run that paid for it, or that adopted it"),
      rowNumber,
      params,
      inputs: z
        .partialRecord(z.enum(mediaFields), z.string())
        .describe("its inputs as the manifest names them"),
      taskId: text("the task's id at the service; made up for a file that was adopted"),
      externalTaskId: text("the task's id at the provider behind the service").nullable(),
      credits: credits("what its task was charged; null if unknown").nullable(),
      check,
    }),
  )
  .describe("newest first");

const prunedFiles = { files: count("files"), bytes: bytes("their size") };

export const pruned = z.strictObject({
  before: time("files that were saved before this"),
  removed: z.boolean().describe("they were removed; false with --dry-run"),
  ...prunedFiles,
  groups: z.array(
    z.strictObject({
      job,
      edition: text("empty for the first edition"),
      folder: text("absolute path of the folder that has them"),
      ...prunedFiles,
      superseded: count("of these files, those of earlier versions of their rows"),
      picked: count("of these files, those of picked items"),
    }),
  ),
  quarantine: z.strictObject(prunedFiles).describe("downloads that failed their check"),
  kept: z
    .strictObject({
      picked: count("files of picked items, with --keep-picked"),
      unfinished: count("files of jobs that have something left to do"),
      needed: count("files that failed items, or items of unfinished jobs, take as input"),
      undecided: count("files that wait for approval"),
      changed: count("files that somebody has changed since they were archived"),
      elsewhere: count("files behind a symbolic link, or in a folder of no run"),
      bucket: count("files that only a bucket has"),
    })
    .describe("files that are old enough and stay"),
});

export const verified = z.strictObject({
  sound: flag("every file is intact"),
  folders: z.array(
    z.strictObject({
      path: text("a job's folder; absolute"),
      files: count("files that should be there"),
      read: count("of them, those that were read whole"),
      bytesRead: bytes("what was read"),
      findings: z.array(
        z.strictObject({
          kind: z.enum(["missing", "damaged", "unindexed", "uncopied", "unproven", "unknown", "leftover"]),
          file: text("relative to the folder"),
          reason: text("why, for people").nullable(),
          bytes: bytes("the size of a file that is in no record").nullable(),
        }),
      ),
    }),
  ),
  repaired: count("files that were repaired; null without --repair").nullable(),
  later: text("why some files could not be downloaded yet; null if there are none").nullable(),
  removed: count("leftovers that were removed; null without --clean --yes").nullable(),
});

const from = text("the file in the given folder; relative to it");

export const adoption = z.strictObject({
  dryRun: flag("nothing was changed"),
  job,
  taken: z.array(z.strictObject({ rowId, from, file: absolute.nullable() })),
  refused: z
    .array(z.strictObject({ rowId, from, reason: text("why, for people") }))
    .describe("files that are not what their row asks for"),
  kept: z.array(z.string()).describe("files whose rows are archived, submitted or skipped"),
  unmatched: z.array(z.string()).describe("files whose name matches no row, or more than one"),
  left: count("items still to be made"),
});

export const gallery = z.strictObject({
  page: text("the page; absolute"),
  job,
  files: count("files on the page"),
  lostPicks: z
    .string()
    .nullable()
    .describe("which picks a page of the picked files lacks, and why; null if it lacks none"),
  missing: z
    .array(z.strictObject({ row: rowNumber, rowId, reason: text("why, for people") }))
    .describe("the rows that a page of the final set lacks; none on other pages"),
  mixed: z
    .string()
    .nullable()
    .describe(
      "which files of the final set were made of another take than it has, and what to do, for people; null if none was",
    ),
});

export const pick = z.array(
  z.strictObject({
    rowId,
    before: flag("it had the mark before"),
    insteadOf: z.array(z.string()).describe("row ids of other items of its row, which are no longer picked"),
    note: text("what was made of another take of its row, and how it is made of this one").nullable(),
  }),
);

/** What has become of a picked item: its row asks for something else now, the row is gone, or its files were pruned. */
export const lostPickReasons = ["replaced", "gone", "pruned"] as const;

export const picks = z.array(
  z.strictObject({
    rowId,
    job,
    edition: text("empty for the first edition"),
    model: z.string(),
    prompt: z.string().nullable(),
    files: z.array(z.string()).describe("absolute, or addresses in a bucket; none while its files are lost"),
    lost: z
      .enum(lostPickReasons)
      .nullable()
      .describe(
        "its row has a new version of it or is gone, or its files were pruned: an export of the picked ones lacks it",
      ),
  }),
);

/** The sheet back: its own columns, as text, and those of bulkgen. */
export const sheet = z
  .array(z.record(z.string(), z.union([z.string(), z.number(), z.null()])))
  .describe(
    "one entry for each row: the columns of the manifest as written, and those that docs/manifests.md lists",
  );

export const rebuilt = z.strictObject({
  database: text("the new database; absolute"),
  found: count("items that were restored"),
  counts,
  owing: z.array(runNumber).describe("runs that have something to collect"),
  receipts: z.strictObject({
    lines: count("lines that were read"),
    unreadable: z.array(z.int()).describe("numbers of lines that could not be read"),
  }),
  archive: z.strictObject({
    indexes: count("index files that were read"),
    missing: z.array(z.string()).describe("files that are missing or changed"),
  }),
  decisions: z
    .strictObject({ picks: z.int(), approvals: z.int() })
    .describe("items that are picked, and those that are approved or rejected, as the receipts have it"),
  orphans: z.array(z.string()).describe("paid tasks whose items are unknown"),
  readable: count("items of the old database; null if it could not be read").nullable(),
  kept: text("where the old database is; null if there was none").nullable(),
});

export const separated = z.strictObject({
  workspace: text("the workspace, which is independent now; absolute"),
  copyOf: text("the workspace that it was a copy of; absolute"),
});

/** Written for other programs that read an archive: names as the service writes them. */
export const indexLine = z.strictObject({
  item: rowId,
  key: itemKey,
  edition: text("the job's edition; absent for the first one").optional(),
  step: text("the step of the job that made it; absent without steps").optional(),
  task: text("the task's id at the service"),
  external_task: text("the task's id at the provider behind the service").nullable(),
  model: z.string(),
  prompt: z.string().nullable(),
  params,
  inputs,
  made_from: z
    .record(z.string(), z.string())
    .describe("row ids of the items whose outputs it was made from, by input; absent if it uses none")
    .optional(),
  credits: credits("what its task was charged; null if unknown").nullable(),
  created: text("when the task was created, as the service wrote it: ISO 8601").nullable(),
  completed: text("when it was done, as the service wrote it: ISO 8601").nullable(),
  output: outputNumber,
  file: text("relative to the job's folder, with / between segments"),
  bucket: text("with --archive-only: the bucket that has it instead, as BUCKET/JOB/FILE").optional(),
  bytes: bytes("its size"),
  sha256,
  mime: text("its media type"),
  width: z
    .int()
    .describe("of a picture or a film as it is shown, in pixels; absent where unknown")
    .optional(),
  height: z.int().describe("see `width`").optional(),
  duration: z.number().describe("of a film or a sound, in seconds; absent where unknown").optional(),
  check,
  saved: time("when it was saved"),
  bulkgen: text("the version of bulkgen that saved it"),
});
