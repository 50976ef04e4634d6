/**
 * sharp as the command loads it. Node searches whatever is imported of CommonJS for its exports first, and sharp imports
 * several such packages: in a thread, that takes longer than loading them. `require` does not search.
 */
import { createRequire } from "node:module";

export default createRequire(import.meta.url)("sharp");
