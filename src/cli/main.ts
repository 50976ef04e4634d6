#!/usr/bin/env node
import { runOnSystem } from "../system.js";
import { runCommand } from "./program.js";

await runOnSystem(runCommand);
