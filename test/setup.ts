import fc from "fast-check";
import { afterAll } from "vitest";
import { leaveFile } from "./after-file.js";
import "./processes.js";

// What a change broke must not hang on the day's luck: properties try the same cases each time, and others on request.
fc.configureGlobal({ seed: Number(process.env["SEED"] ?? 20_261_121) });

afterAll(leaveFile);
