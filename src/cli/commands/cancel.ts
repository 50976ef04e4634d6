import type { Command } from "commander";
import { defineOrder } from "./orders/order.js";

export function defineCancel(program: Command): void {
  defineOrder(program, "cancel", "submit nothing more for a run; what was submitted is still collected");
}
