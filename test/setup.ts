import { afterAll } from "vitest";
import { leaveFile } from "./after-file.js";

afterAll(leaveFile);
