// Compiles the bench of chains and runs it: the whole program in virtual time, over the sandbox's world.
import { runCompiled } from "./compiled.mjs";

runCompiled("chains");
