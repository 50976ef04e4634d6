import { statSync } from "node:fs";
import { expect, test } from "vitest";
import { fileTrouble, namingFile } from "../../src/cli/settings/file-trouble.js";

test("a full disk is reported with the file that has no space, which the error of a write does not name", async () => {
  const message = "ENOSPC: no space left on device, write";
  const full = Object.assign(new Error(message), { code: "ENOSPC", syscall: "write" });
  const error = await namingFile("/media/usb/e.csv", () => Promise.reject(full)).catch((thrown) => thrown);
  expect(fileTrouble(error)).toBe("there is no space left for /media/usb/e.csv");
});

test("a name that is too long is reported in words", () => {
  const file = `/tmp/${"long".repeat(100)}`;
  let thrown: unknown;
  try {
    statSync(file);
  } catch (error) {
    thrown = error;
  }
  expect(fileTrouble(thrown)).toBe(`the name ${file} is too long`);
});
