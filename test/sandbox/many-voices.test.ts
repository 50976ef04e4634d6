import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { packageFile } from "../../src/package-file.js";

/** Two threads of the sandbox speak in turn, in a process of their own: it is the process that must survive. */
const speaking = `
  import { Worker } from "node:worker_threads";
  const voices = ["clara", "ruben", "angus"];
  let left = 100;
  for (let index = 0; index < 2; index++) {
    const thread = new Worker(${JSON.stringify(packageFile("dist/sandbox/studio/worker.js"))}, { execArgv: ["--no-warnings"] });
    const next = () => {
      if (left-- <= 0) return thread.terminate();
      const prompt = "line number " + left + " is read aloud for the test";
      const input = { prompt, voice: voices[left % 3] };
      return thread.postMessage({ maker: "speak", model: "voice-clear", input, media: {}, seed: "", extension: "wav" });
    };
    thread.on("message", ({ bytes }) => {
      process.stdout.write(bytes?.length > 44 ? "." : "!");
      next();
    });
    next();
  }
`;

test("a hundred voices are made one after the other, and the process lives", () => {
  const flags = ["--no-warnings", "--input-type=module", "-e", speaking];
  const { signal, stdout } = spawnSync(process.execPath, flags, { encoding: "utf8" });
  expect([signal, stdout]).toEqual([null, ".".repeat(100)]);
});
