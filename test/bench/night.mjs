// Compiles the bench of a night and runs it: the whole program and the service of a models file, in virtual time.
import { runCompiled } from "./compiled.mjs";

runCompiled("night");
