// Compiles bulkgen and the bench of truncated files, and runs it.
import { runCompiled } from "./compiled.mjs";

runCompiled("truncations");
