import type { IndexLine } from "../../src/archive/index-file.js";

/** The index line of a picture. */
export function indexLine(file: string, change: Partial<IndexLine> = {}): IndexLine {
  return {
    item: "a",
    key: `k1:${file}`,
    task: "t",
    external_task: null,
    model: "m",
    prompt: null,
    params: {},
    inputs: {},
    credits: null,
    created: null,
    completed: null,
    output: 1,
    file,
    bytes: 1,
    sha256: "00",
    mime: "image/png",
    check: "decoded",
    saved: "2026-01-01T00:00:00Z",
    bulkgen: "0",
    ...change,
  };
}
