#!/usr/bin/env node
import { packageFile } from "../package-file.js";
import { runOnSystem } from "../system.js";
import { runCommand } from "./program.js";

await runOnSystem(runCommand, packageFile("dist/bin/bulkgen.js"));
