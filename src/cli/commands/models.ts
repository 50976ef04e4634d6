import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { terminalStyle } from "../../text/table.js";
import { type SharedFlags, withService } from "../flags/shared.js";

export function defineModels(program: Command): void {
  withService(program.command("models"))
    .description("list the service's models, their inputs, parameters and prices")
    .option("--save <file>", "write them to a file as JSON, for bulkgen sandbox --models to play")
    .action(models);
}

async function models(flags: SharedFlags & { save?: string }): Promise<void> {
  const [{ withAccount }, { modelsTable }] = await Promise.all([
    import("../settings/connect.js"),
    import("../../report/account.js"),
  ]);
  const list = await withAccount(flags, (open) => open.models());
  if (flags.save !== undefined) {
    await writeFile(flags.save, `${JSON.stringify(list, null, 2)}\n`);
    process.stderr.write(`saved ${list.models.length} models to ${flags.save}\n`);
    if (!flags.json) return;
  }
  process.stdout.write(
    flags.json
      ? `${JSON.stringify(list)}\n`
      : `${modelsTable(list.models, terminalStyle(process.stdout, process.env))}\n`,
  );
}
