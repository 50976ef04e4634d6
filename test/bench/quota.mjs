// Compiles the bench of requests and runs it: the program's own decisions in virtual time, against usual polling.
import { runCompiled } from "./compiled.mjs";

runCompiled("quota");
