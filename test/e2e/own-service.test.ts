import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, expect, test } from "vitest";
import { agreedFolders } from "../../src/trust/trust.js";
import { certificate, privateKey } from "../certificate.js";
import { newPlace, type Place, run, spawned, started } from "./command.js";
import { writeTemplateModel } from "./template-model.js";

/** The service of a workspace's models file: which process has it, and what is left of it. */
let at: Place;
const sharedFolder = () => join(at.root, "state", "bulkgen");
const state = () => join(at.folder, ".bulkgen", "service", "state.db");

beforeEach(() => {
  at = newPlace();
  writeTemplateModel(at);
  at.write("bulkgen.config.yaml", "models: models.yaml\n");
  at.write("set.csv", "id,prompt,model\na,a cup,pic\n");
});

test("what commands agree to at the same time in several folders is all recorded", async () => {
  const trust = pathToFileURL(join(process.cwd(), "dist", "trust", "trust.js")).href;
  const script = `const { agree } = await import(${JSON.stringify(trust)});
    const [shared, folder] = process.argv.slice(1);
    for (let n = 0; n < 25; n++) agree(shared, folder, [{ setting: "notify", value: String(n) }], 0);`;
  const folders = ["a", "b", "c", "d"].map((name) => join(at.root, name));
  const ended = folders.map(async (folder) => {
    mkdirSync(folder);
    const child = spawn(process.execPath, ["--input-type=module", "-e", script, sharedFolder(), folder]);
    return once(child, "close");
  });
  expect((await Promise.all(ended)).map(([code]) => code)).toEqual([0, 0, 0, 0]);
  expect(agreedFolders(sharedFolder()).map(({ folder, agreements }) => [folder, agreements.length])).toEqual(
    expect.arrayContaining(folders.map((folder) => [folder, 25])),
  );
});

test("a service whose address cannot be noted ends with its command, and is free for the next one", async () => {
  expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(0);
  const services = join(sharedFolder(), "services");
  rmSync(services, { recursive: true });
  writeFileSync(services, "");
  const refused = await spawned(at, ["models"]);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(services)]);
  rmSync(services);
  at.write("more.csv", "id,prompt,model\nb,a boat,pic\n");
  expect((await run(at, ["run", "more.csv", "--yes"])).code).toBe(0);
});

test("a run waits for a command that only reads, whose service would end in the middle of the run", async () => {
  expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(0);
  const other = started(at, ["serve"], { serves: true });
  await other.prints(/ {2}page: /);
  const [name = ""] = readdirSync(join(sharedFolder(), "services"));
  const noted = join(sharedFolder(), "services", name);
  writeFileSync(noted, JSON.stringify({ ...JSON.parse(readFileSync(noted, "utf8")), isBrief: true }));
  at.write("more.csv", "id,prompt,model\nb,a boat,pic\n");
  const running = started(at, ["run", "more.csv", "--yes"], {});
  await running.prints(/waiting for another command that uses the models of this workspace/);
  const reading = started(at, ["models"], {});
  await reading.prints(/waiting for another command/);
  reading.interrupt();
  expect((await reading.ended).code).toBe(130);
  other.interrupt();
  expect((await other.ended).code).toBe(0);
  expect((await running.ended).code).toBe(0);
});

test("the address that a killed process left is not believed, and commands that read leave no trace of theirs", async () => {
  expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(0);
  expect(readFileSync(join(sharedFolder(), "trust.json"), "utf8")).not.toContain("127.0.0.1");
  const services = join(sharedFolder(), "services");
  const other = started(at, ["serve"], { serves: true });
  await other.prints(/ {2}page: /);
  const [name = ""] = readdirSync(services);
  const left = readFileSync(join(services, name));
  other.interrupt();
  expect((await other.ended).code).toBe(0);
  expect(readdirSync(services)).toEqual([]);
  writeFileSync(join(services, name), left);
  at.write("cert.pem", certificate);
  at.write("key.pem", privateKey);
  // It says to nobody where it is.
  const open = ["--host", "0.0.0.0", "--behind-proxy", "https://models.example.com"];
  const serving = started(at, ["serve", ...open, "--tls-cert", "cert.pem", "--tls-key", "key.pem"], {
    serves: true,
  });
  await serving.prints(/ {2}page: /);
  expect(readdirSync(services)).toEqual([]);
  serving.interrupt();
  expect((await serving.ended).code).toBe(0);
});

test("a lock of agreements that is damaged is named, and so is a folder in its place", async () => {
  const lock = join(sharedFolder(), "trust.lock");
  mkdirSync(sharedFolder(), { recursive: true });
  writeFileSync(lock, "junk".repeat(500));
  for (const said of [/trust\.lock is damaged/, /trust\.lock is damaged/]) {
    const { code, stderr } = await run(at, ["serve", "keys", "create", "anna"]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(said)]);
    expect(stderr).not.toContain("state.db");
    rmSync(lock, { recursive: true });
    mkdirSync(lock);
  }
  rmSync(lock, { recursive: true });
  expect((await run(at, ["serve", "keys", "create", "anna"])).code).toBe(0);
});

test("keys and jobs of a state that came with the folder are neither shown nor changed before the user agrees", async () => {
  const env = { XDG_STATE_HOME: join(at.root, "elsewhere") };
  expect((await run(at, ["serve", "keys", "create", "mallory"], { env })).code).toBe(0);
  for (const args of [
    ["keys", "list"],
    ["keys", "create", "anna"],
    ["keys", "edit", "mallory", "--credits", "1"],
    ["keys", "revoke", "mallory"],
    ["jobs"],
  ]) {
    const { code, stderr } = await run(at, ["serve", ...args]);
    expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining("`bulkgen trust`")]);
  }
  expect((await run(at, ["trust", "--yes"])).code).toBe(0);
  expect((await run(at, ["serve", "keys", "list"])).stdout).toContain("mallory");
});

test("a state that is gone is missed", async () => {
  const [first] = [await run(at, ["run", "set.csv", "--yes"])];
  expect(first.stderr).not.toContain("is gone");
  writeFileSync(state(), "");
  for (const end of ["-wal", "-shm"]) rmSync(state() + end, { force: true });
  const { code, stderr } = await run(at, ["models"]);
  expect([code, stderr]).toEqual([0, expect.stringContaining("the one that was here before is gone")]);
  expect((await run(at, ["models"])).stderr).toBe("");
  rmSync(state());
  mkdirSync(state());
  const folder = await run(at, ["models"]);
  expect([folder.code, folder.stderr]).toEqual([2, expect.stringContaining("it is a folder")]);
  const doctor = await run(at, ["doctor"]);
  expect(doctor.stdout).toMatch(/problem .*it is a folder/s);
  expect(doctor.stdout).toContain("1 problem");
});

test("keys of a workspace that has moved have different names", async () => {
  expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(0);
  const moved = join(at.root, "there");
  renameSync(at.folder, moved);
  mkdirSync(at.folder);
  const there = { cwd: moved };
  expect((await run(at, ["trust", "--yes"], there)).code).toBe(0);
  expect((await run(at, ["models"], there)).code).toBe(0);
  const { stdout } = await run(at, ["serve", "keys", "list", "--json"], there);
  expect(JSON.parse(stdout)).toMatchObject([{ name: "this workspace" }, { name: "this workspace 2" }]);
});
