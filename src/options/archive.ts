import { type FlagsOf, option, toggle } from "./definition.js";
import { manifestFlags, selectionFlags } from "./manifest.js";
import { reviewFlag } from "./orders.js";
import { outFlag } from "./run.js";
import { carryFlags, type SharedFlags, serviceFlags, workspaceFlags } from "./shared.js";
import { age, anyText, day, FlagError, oneOf, parameter, pathName, percentage } from "./values.js";

/** Flags of the commands around the archive. */

/** The formats of an export, which are also the extensions of its file. */
export const sheetFormats = ["csv", "xlsx", "json", "jsonl"] as const;
export type SheetFormat = (typeof sheetFormats)[number];

export const exportFlags = {
  format: option(
    "<format>",
    "csv, xlsx, json or jsonl (default: from the file name, else csv)",
    oneOf(...sheetFormats),
  ),
  to: option("<file>", "write to this file (default: stdout)", pathName, { isPath: true }),
  failed: toggle("only the failed rows, with the reason, as a manifest that can be run (csv or xlsx)", {
    conflicts: ["zip"],
  }),
  picked: toggle("only the picked items", { conflicts: ["failed"], inFiles: "never" }),
  final: toggle("the set to hand over: of each item the picked take, else the approved one, else the first", {
    conflicts: ["failed", "picked"],
    inFiles: "never",
  }),
  from: reviewFlag("only the items picked in", ["failed", "picked", "final"]),
  columns: option(
    "<a,b,c>",
    "only these columns, in this order; a=b calls column a by the name b",
    columnNames,
    { conflicts: ["failed"], inFiles: "never" },
  ),
  perRow: toggle("one line for each row, with its files side by side: file_1, file_2 …", {
    conflicts: ["failed"],
    inFiles: "never",
  }),
  zip: option("<file>", "pack the archived files, their index and the sheet", pathName, { isPath: true }),
  filesOnly: toggle("with --zip: only the files, without index and sheet", { needs: "zip" }),
  sidecars: option("<txt>", "with --zip: a text file with its prompt beside each file", oneOf("txt"), {
    needs: "zip",
    inFiles: "never",
  }),
  withGallery: toggle("with --zip: a page that shows the files", { needs: "zip", inFiles: "never" }),
  force: toggle("replace an existing file"),
  ...workspaceFlags,
  ...selectionFlags,
};
export type ExportFlags = FlagsOf<typeof exportFlags>;

function columnNames(text: string): string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.every((name) => name !== "")) return names;
  throw new FlagError(`expected names with commas between them, got ${JSON.stringify(text)}`);
}

export const pickFlags = {
  undo: toggle("remove the pick", { conflicts: ["also"], inFiles: "never" }),
  also: toggle("keep the other picks of the same row", { inFiles: "never" }),
  from: reviewFlag("the items picked in"),
  ...workspaceFlags,
};
export type PickFlags = FlagsOf<typeof pickFlags>;

export const galleryFlags = {
  picked: toggle("only the picked items, written to picked.html", { inFiles: "never" }),
  final: toggle("only the set to hand over (see export --final), written to final.html", {
    conflicts: ["picked"],
    inFiles: "never",
  }),
  prices: toggle("show the credits of each file"),
  to: option(
    "<path>",
    "write the page to this folder, or to this .html file (default: the job's folder)",
    pathName,
    {
      inFiles: "never",
      isPath: true,
    },
  ),
  ...workspaceFlags,
};
export type GalleryFlags = FlagsOf<typeof galleryFlags>;

export const verifyFlags = {
  readData: toggle("read and hash every byte", { conflicts: ["subset"] }),
  subset: option("<share>", "read and hash a random share of the files, such as 10%", percentage),
  repair: toggle("fetch missing and damaged files again (no credits) and repair the index", {
    // The setting `repair` is about manifests.
    inFiles: "never",
  }),
  clean: toggle("list leftovers of broken downloads; with --yes, remove them"),
  yes: toggle("remove what --clean lists", { inFiles: "never" }),
  ...serviceFlags,
};
export type VerifyFlags = FlagsOf<typeof verifyFlags> & SharedFlags;

export const pruneFlags = {
  olderThan: option("<age>", "files that were saved longer ago than this, such as 90d", age, {
    required: true,
    inFiles: "never",
  }),
  keepPicked: toggle("keep the files of picked items", { inFiles: "never" }),
  dryRun: toggle("only show what would be removed", { inFiles: "never" }),
  yes: toggle("do not ask (required without a terminal)", { inFiles: "never" }),
  ...workspaceFlags,
};
export type PruneFlags = Omit<FlagsOf<typeof pruneFlags>, "olderThan"> & { olderThan: number };

export const findFlags = {
  model: option("<key>", "made by this model", anyText, { inFiles: "never" }),
  param: option("<key=value>", "made with this parameter; repeatable", parameter, { inFiles: "never" }),
  since: option("<date>", "saved on this day (YYYY-MM-DD, local time) or later", day, { inFiles: "never" }),
  until: option("<date>", "saved before this day", day, { inFiles: "never" }),
  ...workspaceFlags,
};
export type FindFlags = FlagsOf<typeof findFlags>;

export const adoptFlags = {
  dryRun: toggle("only show what would be adopted"),
  out: outFlag,
  ...serviceFlags,
  ...manifestFlags,
  ...carryFlags,
};
export type AdoptFlags = FlagsOf<typeof adoptFlags> & SharedFlags;
