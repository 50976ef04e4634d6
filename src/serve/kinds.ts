import { comfyuiKind } from "../providers/comfyui/kind.js";
import { commandKind } from "../providers/command/kind.js";
import { httpKinds } from "../providers/http/kinds.js";
import type { ProviderKind } from "../providers/kind.js";
import { templateKind } from "../providers/template/kind.js";

/** Every kind of provider that a models file may name. */
export const kinds: readonly ProviderKind[] = [...httpKinds, comfyuiKind, commandKind, templateKind];
