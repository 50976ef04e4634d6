import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { openLanes, takeLock } from "../../src/store/lock.js";

let file: string;

beforeEach(() => {
  file = join(mkdtempSync(join(tmpdir(), "bulkgen-lock-")), "run.lock");
});

test("P18: a lock is held once, and free again when it is released", () => {
  const lock = takeLock(file);
  expect(lock).not.toBeNull();
  expect(takeLock(file)).toBeNull();
  lock?.release();
  lock?.release();
  const again = takeLock(file);
  expect(again).not.toBeNull();
  again?.release();
});

test("P18: a lock outlives the garbage collection of its handle", async () => {
  const script = `
    const { takeLock } = await import(${JSON.stringify(new URL("../../dist/store/lock.js", import.meta.url).href)});
    takeLock(${JSON.stringify(file)});
    for (let turn = 0; turn < 20; turn++) {
      globalThis.gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
    process.stdout.write("collected");
    await new Promise((resolve) => process.stdin.on("end", resolve).resume());`;
  const flags = ["--expose-gc", "--input-type=module", "-e", script];
  const child = spawn(process.execPath, flags, { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  expect(takeLock(file)).toBeNull();
  child.stdin.end();
  await once(child, "exit");
});

test("P18: kill -9 frees the lock of the process", async () => {
  const script = `
    const { takeLock } = await import(${JSON.stringify(new URL("../../dist/store/lock.js", import.meta.url).href)});
    process.stdout.write(takeLock(${JSON.stringify(file)}) ? "held" : "busy");
    await new Promise((resolve) => process.stdin.on("end", resolve).resume());`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [said] = await once(child.stdout, "data");
  expect(String(said)).toBe("held");
  expect(takeLock(file)).toBeNull();
  child.kill("SIGKILL");
  await once(child, "exit");
  const lock = takeLock(file);
  expect(lock).not.toBeNull();
  lock?.release();
});

test("P18: a file that may only be read locks nothing for others, so it is refused", async () => {
  takeLock(file)?.release();
  chmodSync(dirname(file), 0o777);
  chmodSync(file, 0o444);
  const script = `
    const { openLanes, takeLock } = await import(${JSON.stringify(new URL("../../dist/store/lock.js", import.meta.url).href)});
    // Another user may not be allowed to read the program where it lies, so all of it is loaded before.
    takeLock(${JSON.stringify(`${file}.other`)})?.release();
    // To the system's administrator nothing is read-only.
    if (process.getuid?.() === 0) {
      process.setgroups([]);
      process.setgid(65534);
      process.setuid(65534);
    }
    const gateFile = ${JSON.stringify(file)};
    const lanes = openLanes({ folder: gateFile + ".lanes", count: 1, gateFile });
    for (const take of [() => takeLock(gateFile), () => lanes.take()]) {
      try {
        take();
        console.log("held");
      } catch (error) {
        console.log(error.message);
      }
    }`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
    cwd: "/",
  });
  const said: string[] = [];
  child.stdout?.on("data", (bytes) => said.push(String(bytes)));
  await once(child, "close");
  const refusal = `EACCES: permission denied, access '${file}'`;
  expect(said.join("").trim().split("\n")).toEqual([refusal, refusal]);
});

test("P3: an account has a fixed number of lanes, over all processes", () => {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-lanes-"));
  const open = () => openLanes({ folder, count: 2, gateFile: join(folder, "key.lock") });
  const [one, other] = [open(), open()];
  const first = one.take();
  expect(first).not.toBeNull();
  const second = other.take();
  expect(second).not.toBeNull();
  expect([one.take(), other.take()]).toEqual([null, null]);
  first?.release();
  const third = other.take();
  expect(third).not.toBeNull();
  for (const lane of [second, third]) lane?.release();
});

test("P5: the key's counters are read only while no lane is taken, here or elsewhere, and hold the lanes back", () => {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-lanes-"));
  const gateFile = join(folder, "key.lock");
  const one = openLanes({ folder: join(folder, "one"), count: 2, gateFile });
  const other = openLanes({ folder: join(folder, "other"), count: 2, gateFile });
  const [first, second] = [one.take(), other.take()];
  expect([first, second]).not.toContain(null);
  expect([one.bracket(), other.bracket()]).toEqual([null, null]);
  first?.release();
  expect(one.bracket()).toBeNull();
  second?.release();
  const bracket = one.bracket();
  expect(bracket).not.toBeNull();
  expect([one.take(), other.take(), other.bracket()]).toEqual([null, null, null]);
  bracket?.release();
  const third = other.take();
  expect(third).not.toBeNull();
  third?.release();
});
