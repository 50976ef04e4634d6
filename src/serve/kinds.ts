import { comfyuiKind } from "../providers/comfyui/kind.js";
import { commandKind } from "../providers/command/kind.js";
import type { ProviderKind } from "../providers/kind.js";

/** Every kind of provider that a models file may name. */
export const kinds: readonly ProviderKind[] = [comfyuiKind, commandKind];
