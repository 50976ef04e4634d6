import { extname, resolve } from "node:path";
import { type Command, Option } from "commander";
import { EarlyExit } from "../../core/exit.js";
import type { Export } from "../../job/archive/export.js";
import type { SheetFormat } from "../../report/sheet-formats.js";
import { type SelectionFlags, selectionOf, withSelection } from "../flags/selection.js";
import { type SharedFlags, withWorkspace } from "../flags/shared.js";
import { oneOf, positive } from "../flags/values.js";

interface ExportFlags extends SharedFlags, SelectionFlags {
  format?: SheetFormat;
  to?: string;
  zip?: string;
  failed?: boolean;
  force?: boolean;
}

export function defineExport(program: Command): void {
  withSelection(withWorkspace(program.command("export")))
    .description("give the sheet of the newest or the named run back, filled in; pack files; asks nobody")
    .argument("[run]", "number of the run", positive)
    .option(
      "--format <format>",
      "csv, xlsx, json or jsonl (default: by the file's name, else csv)",
      oneOf("csv", "xlsx", "json", "jsonl"),
    )
    .option("--to <file>", "write it there (default: stdout)")
    .option("--failed", "only what failed, with the reason, as a manifest that can be run")
    .addOption(
      new Option("--zip <file>", "pack the archived files, their index and the sheet").conflicts("failed"),
    )
    .option("--force", "replace a file that exists")
    .action(exportSheet);
}

async function exportSheet(which: number | undefined, flags: ExportFlags): Promise<void> {
  const [{ exportRun }, { workspaceOf }, { encodeSheet, SheetTooLarge }, { systemClock }] = await Promise.all(
    [
      import("../../job/archive/export.js"),
      import("../output/session.js"),
      import("../../report/sheet-formats.js"),
      import("../../system.js"),
    ],
  );
  const format = formatOf(flags);
  const made = await exportRun({
    workspace: workspaceOf(flags),
    run: which,
    selection: selectionOf(flags),
    failed: flags.failed ?? false,
    clock: systemClock,
  });
  if (flags.failed) checkLocalInputs(made, flags);
  const content = await encodeSheet(made.sheet, format).catch((error: unknown) => {
    if (error instanceof SheetTooLarge)
      throw new EarlyExit("usage", `${error.message}. Nothing was written.`);
    throw error;
  });
  if (flags.zip !== undefined) await packed(made, { format, content }, flags.zip, flags);
  if (flags.to !== undefined) await written(made, content, flags.to, flags);
  else if (flags.zip === undefined) toStdout(content, format);
}

/** `--json` is how every command prints for programs. */
function formatOf({ format, json, to }: ExportFlags): SheetFormat {
  if (format !== undefined) return format;
  if (json) return "json";
  const extension = extname(to ?? "")
    .slice(1)
    .toLowerCase();
  if (to === undefined || extension === "") return "csv";
  const known = (["csv", "xlsx", "json", "jsonl"] as const).find((name) => name === extension);
  if (known) return known;
  throw new EarlyExit(
    "usage",
    `--to ${to}: expected a name that ends in .csv, .xlsx, .json or .jsonl, got .${extension}; --format says it too`,
  );
}

function toStdout(content: Uint8Array, format: SheetFormat): void {
  if (format === "xlsx" && process.stdout.isTTY) {
    throw new EarlyExit("usage", "a workbook is no text for a terminal: add --to FILE.xlsx");
  }
  process.stdout.write(content);
}

/** What a person may have written is not replaced unawares, and the run's own manifest never. */
async function checkTarget(file: string, { run }: Export, { force }: ExportFlags): Promise<string> {
  const { existsSync, realpathSync } = await import("node:fs");
  const path = resolve(file);
  if (!existsSync(path)) return path;
  if (existsSync(run.manifest) && realpathSync(path) === realpathSync(run.manifest)) {
    throw new EarlyExit(
      "usage",
      `${file} is the manifest of run ${run.id}: name another file. Nothing was written.`,
    );
  }
  if (!force) {
    throw new EarlyExit("usage", `${file} exists: name another file, or add --force. Nothing was written.`);
  }
  return path;
}

async function written(made: Export, content: Uint8Array, file: string, flags: ExportFlags): Promise<void> {
  const path = await checkTarget(file, made, flags);
  const { rename, rm, writeFile } = await import("node:fs/promises");
  try {
    await writeFile(`${path}.part`, content, { flush: true });
    await rename(`${path}.part`, path);
  } catch (error) {
    await rm(`${path}.part`, { force: true });
    throw error;
  }
  const { columns, lines } = made.sheet;
  tell(flags, `${file}: ${lines.length} rows, ${columns.length} columns`);
}

async function packed(
  made: Export,
  sheet: { format: SheetFormat; content: Uint8Array },
  file: string,
  flags: ExportFlags,
): Promise<void> {
  const [{ pack }, { interruption }, { systemClock }] = await Promise.all([
    import("../../job/archive/pack.js"),
    import("../output/signals.js"),
    import("../../system.js"),
  ]);
  const zip = await checkTarget(file, made, flags);
  const { runs, files } = made;
  const { format, content } = sheet;
  const signal = interruption();
  await pack({ zip, runs, files, sheet: { name: `sheet.${format}`, content }, clock: systemClock, signal });
  tell(
    flags,
    `${file}: ${files.length === 1 ? "1 file" : `${files.length} files`}, index.jsonl, sheet.${format}`,
  );
}

/** Paths in a manifest are seen from its own folder. */
function checkLocalInputs({ localInputs, run }: Export, { to }: ExportFlags): void {
  const [local] = localInputs;
  if (local === undefined || to === undefined) return;
  const folder = resolve(run.manifest, "..");
  if (resolve(to, "..") === folder) return;
  throw new EarlyExit(
    "usage",
    `rows name local files (${local}), seen from the manifest's folder: write the new one there too, in ${folder}. Nothing was written.`,
  );
}

function tell({ quiet }: ExportFlags, line: string): void {
  if (!quiet) process.stderr.write(`${line}\n`);
}
