import type { Command } from "commander";
import { defineOrder } from "./orders/order.js";

export function definePause(program: Command): void {
  defineOrder(program, "pause", "have a run end in good order, to be gone on with later; tasks go on");
}

export function defineCancel(program: Command): void {
  defineOrder(program, "cancel", "submit nothing more for a run; what was submitted is still collected");
}
