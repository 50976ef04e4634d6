import type { Command } from "commander";
import { lookFor } from "../report/look.js";
import { type SharedFlags, withService } from "./flags.js";

export function defineModels(program: Command): void {
  withService(program.command("models"))
    .description("list the service's models, their inputs, parameters and prices")
    .action(models);
}

async function models(flags: SharedFlags): Promise<void> {
  const [{ withAccount }, { modelsTable }] = await Promise.all([
    import("./with-account.js"),
    import("../report/models-table.js"),
  ]);
  const list = await withAccount(flags, (open) => open.models());
  process.stdout.write(
    flags.json
      ? `${JSON.stringify(list)}\n`
      : `${modelsTable(list.models, lookFor(process.stdout, process.env))}\n`,
  );
}
