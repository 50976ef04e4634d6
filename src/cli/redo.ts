import type { Command } from "commander";
import { type ItemOrderFlags, wantOfItems, withItemOrder } from "./item-order.js";
import { type SelectionFlags, selectionOf, withSelection } from "./selection-flags.js";

export function defineRedo(program: Command): void {
  withItemOrder(withSelection(program.command("redo")))
    .description("make new variants of items, priced first; the old files stay")
    .argument(
      "[items...]",
      "row ids, paths of files, or task ids; without them, what is selected of the newest run",
    )
    .action(redo);
}

async function redo(items: string[], flags: ItemOrderFlags & SelectionFlags): Promise<void> {
  const { redoItems } = await import("../job/redo.js");
  await wantOfItems(redoItems(items, selectionOf(flags)), "made anew", flags);
}
