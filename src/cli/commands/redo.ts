import type { Command } from "commander";
import { type SelectionFlags, selectionOf, withSelection } from "../flags/selection.js";
import { type ItemOrderFlags, wantOfItems, withItemOrder } from "./orders/item-order.js";

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
  const { redoItems } = await import("../../job/orders/redo.js");
  await wantOfItems(redoItems(items, selectionOf(flags)), "made anew", flags);
}
