import { statSync } from "node:fs";
import { expect, test } from "vitest";
import { fileTrouble, namingFile } from "../../src/cli/settings/file-trouble.js";

test("a full disk is reported with the file that has no space, which the error of a write does not name", async () => {
  const message = "ENOSPC: no space left on device, write";
  const full = Object.assign(new Error(message), { code: "ENOSPC", syscall: "write" });
  const error = await namingFile("/media/usb/e.csv", () => Promise.reject(full)).catch((thrown) => thrown);
  expect(fileTrouble(error)).toBe("there is no space left for /media/usb/e.csv");
});

test("a limit of this user's files is reported with the command that shows it", async () => {
  const words = (code: string) =>
    fileTrouble(Object.assign(new Error(`${code}: write`), { code, syscall: "write", path: "/media/e.zip" }));
  expect(words("EFBIG")).toBe(
    "/media/e.zip would be larger than a file may be here (`ulimit -f` shows this user's limit; the disk may have one too)",
  );
  expect(words("EDQUOT")).toBe("this user's quota on the disk leaves no space for /media/e.zip");
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
