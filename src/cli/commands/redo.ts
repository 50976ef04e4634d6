import type { ExitName } from "../../core/exit.js";
import { redoItems } from "../../job/orders/redo.js";
import type { RedoFlags } from "../flags/orders.js";
import { selectionOf } from "../flags/selection.js";
import type { Call } from "./call.js";
import { orderItems } from "./orders/item-order.js";

export async function redo({
  flags,
  args,
  machine,
}: Call<RedoFlags, { items: string[] }>): Promise<ExitName> {
  const wish = redoItems(args.items, selectionOf(flags), machine.cwd);
  return orderItems(wish, "made again", flags, machine);
}
