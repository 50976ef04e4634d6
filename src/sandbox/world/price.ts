import type { SandboxModel } from "../catalogue/catalogue.js";
import { toMicro } from "../state/credits.js";
import type { Switches } from "../state/switches.js";

/** What one generation is charged, in millionths of a credit: the listed cost, unless the switches say otherwise. */
export function priceMicro({ price }: Switches, model: SandboxModel, outputs: number): number {
  const listed = Object.hasOwn(price.models, model.key) ? price.models[model.key] : undefined;
  const credits = listed ?? model.credits * price.factor;
  return toMicro(credits) * (price.perOutput ? outputs : 1);
}
