import type { ProviderKind } from "../providers/kind.js";

/** Every kind of provider that a models file may name. */
export const kinds: readonly ProviderKind[] = [];
