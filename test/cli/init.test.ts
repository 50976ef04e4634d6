import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { filesWith, newPlace, type Place, run, started, startOnTerminal } from "../e2e/command.js";
import { testKey } from "../e2e/leaked-key.js";
import { answering, json, me } from "./service.js";

let at: Place;
beforeEach(() => {
  at = newPlace();
});

/** A service with models that the sandbox does not know. */
const ownModels = () =>
  answering(({ url }, response) => json(response, 200, url?.includes("/models") ? modelList : me));

const aModel = (model_key: string, category: string, credits_cost: number, input_type = "text") => ({
  model_key,
  model_name: model_key,
  category,
  credits_cost,
  input_type,
});
const models = [
  aModel("second-picture", "image", 4),
  aModel("cheap-picture", "image", 2),
  aModel("cheapest-edit", "image", 0.5, "image"),
  aModel("cheap-voice", "audio", 1),
  aModel("dear-voice", "audio", 9),
];
const modelList = { models, categories: {}, total: models.length };

const read = (name: string) => readFileSync(join(at.folder, name), "utf8");

describe("init without a terminal", () => {
  test("makes a workspace whose first job runs in the sandbox, and says what to type", async () => {
    const { code, stdout, stderr } = await run(at, ["init", "my set"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(
      /^made {3}\.bulkgen\/\nmade {3}\.env .*\nmade {3}jobs\/first\.csv\nadded {2}\.env /,
    );
    expect(stdout).toContain("\n  cd 'my set'\n  bulkgen run jobs/first.csv --sandbox ");
    expect(statSync(join(at.folder, "my set", ".env")).mode & 0o777).toBe(0o600);
    expect(read("my set/.gitignore")).toBe(".env\n.bulkgen/\noutputs/\nsandbox-outputs/\n");
    const cwd = join(at.folder, "my set");
    const first = await run(at, ["run", "jobs/first.csv", "--sandbox", "--yes"], { cwd });
    expect(first.code, first.stderr).toBe(0);
    expect(
      readdirSync(join(cwd, "sandbox-outputs", "first")).filter((name) => /png|wav|mp3/.test(name)),
    ).toHaveLength(3);
  });

  test("tries address and key of its flags, shows the account, and writes a sheet of its models", async () => {
    const service = await ownModels();
    try {
      writeFileSync(join(at.folder, "key"), `${testKey}\n`);
      const made = await run(at, ["init", "--base-url", service.url, "--api-key-file", "key"]);
      expect(made, made.stderr).toMatchObject({ code: 0, stderr: "" });
      expect(made.stdout).toMatch(/^credits +250\.5 left/m);
      expect(made.stdout).toMatch(/^ {2}bulkgen run jobs\/first\.csv +make it, for about 7 credits$/m);
      expect(read("jobs/first.csv").match(/^first-\d,[\w-]+/gm)).toEqual([
        "first-1,cheap-voice",
        "first-2,cheap-picture",
        "first-3,second-picture",
      ]);
      const planned = await run(at, ["plan", "jobs/first.csv"]);
      expect(planned, planned.stdout + planned.stderr).toMatchObject({ code: 0 });
    } finally {
      await service.close();
    }
  });

  test("makes nothing with a key that the service refuses, or an address that nothing answers at", async () => {
    const refused = { error: { code: "UNAUTHORIZED", message: "Invalid API key" } };
    const service = await answering((_, response) => json(response, 401, refused));
    writeFileSync(join(at.folder, "key"), testKey);
    const withUrl = (url: string) => run(at, ["init", "set", "--base-url", url, "--api-key-file", "key"]);
    const wrongKey = await withUrl(service.url);
    const noTls = await withUrl(service.url.replace("http:", "https:"));
    await service.close();
    expect(wrongKey).toMatchObject({ code: 3, stderr: expect.stringContaining("refused the API key") });
    expect(noTls).toMatchObject({ code: 4, stderr: expect.stringContaining("does not speak HTTPS") });
    const nothing = await withUrl(service.url);
    expect(nothing).toMatchObject({ code: 4, stderr: expect.stringContaining("cannot be reached") });
    expect(existsSync(join(at.folder, "set"))).toBe(false);
  });

  test("takes a key with a blank at its end from the environment", async () => {
    const service = await ownModels();
    const env = { BULKGEN_BASE_URL: service.url, BULKGEN_API_KEY: `${testKey} ` };
    const shown = await run(at, ["account"], { env });
    await service.close();
    expect(shown, shown.stderr).toMatchObject({ code: 0, stderr: "" });
    expect(service.keys).toEqual([`Bearer ${testKey}`]);
  });

  test("writes address and key of its flags to .env, where every command finds them", async () => {
    const service = await ownModels();
    try {
      writeFileSync(join(at.folder, "key"), `${testKey}\n`);
      const flags = ["--base-url", `${service.url}/`, "--api-key-file", "key"];
      const made = await run(at, ["init", "set", ...flags]);
      expect(made).toMatchObject({ code: 0, stderr: "" });
      expect(made.stdout).toContain("bulkgen doctor");
      expect(made.stdout).not.toContain(testKey);
      expect(read("set/.env")).toContain(`\nBULKGEN_BASE_URL=${service.url}\n`);
      expect(filesWith(at.root, testKey)).toEqual(["here/key", "here/set/.env"]);
      expect(await run(at, ["account"], { cwd: join(at.folder, "set") })).toMatchObject({
        code: 0,
        stderr: "",
      });
      expect(new Set(service.keys)).toEqual(new Set([`Bearer ${testKey}`]));
    } finally {
      await service.close();
    }
  });

  test("names a folder that begins with a dash so that cd takes it", async () => {
    expect((await run(at, ["init", "--sandbox", "--", "-x"])).stdout).toContain("\n  cd ./-x\n");
  });

  test("overwrites nothing, and adds only the lines that .gitignore lacks", async () => {
    mkdirSync(join(at.folder, "jobs"));
    writeFileSync(join(at.folder, ".env"), "MINE=1\n");
    writeFileSync(join(at.folder, "jobs", "first.csv"), "mine\n");
    writeFileSync(join(at.folder, ".gitignore"), "node_modules\n/outputs\n.env");
    const { code, stdout } = await run(at, ["init", "--base-url", "https://service.example"]);
    expect(code).toBe(0);
    expect([read(".env"), read("jobs/first.csv")]).toEqual(["MINE=1\n", "mine\n"]);
    expect(read(".gitignore")).toBe("node_modules\n/outputs\n.env\n.bulkgen/\nsandbox-outputs/\n");
    expect(stdout).toContain("kept   .env (it existed)\nkept   jobs/first.csv");
    expect(stdout).toContain("note   address and key were not written");
    const again = await run(at, ["init"]);
    expect(again.stdout).not.toMatch(/^(made|added)/m);
    expect(read(".gitignore").match(/\.bulkgen/g)).toHaveLength(1);
  });

  test.each([
    ["a wrong key", ["--api-key-file", "key"], 3, "has the wrong form"],
    ["a missing key file", ["--api-key-file", "nothing"], 2, "--api-key-file: there is no file "],
    [
      "the path of the API in the address",
      ["--base-url", "https://service.example/api/v1/"],
      2,
      "base URL: leave off /api/v1: https://service.example",
    ],
    ["a wrong address", ["--base-url", "service"], 2, "expected an address such as"],
    ["the key as the address", ["--base-url", testKey], 2, "--base-url has an API key in it"],
    ["the key as the file", ["--api-key-file", testKey], 2, "got what looks like an API key"],
    [
      "the sandbox and an address",
      ["--sandbox", "--base-url", "https://a.example"],
      2,
      "cannot be used with",
    ],
  ])("makes nothing with %s", async (_, flags, code, message) => {
    writeFileSync(join(at.folder, "key"), `${testKey}x`);
    const ended = await run(at, ["init", "set", ...flags]);
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toContain(testKey);
    expect(existsSync(join(at.folder, "set"))).toBe(false);
  });

  test("takes away what it made when something fails on the way", async () => {
    mkdirSync(join(at.folder, "set"));
    writeFileSync(join(at.folder, "set", "jobs"), "a file where the folder should be");
    const { code, stdout, stderr } = await run(at, ["init", "set"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^bulkgen: \S+jobs exists already, as a file; expected a folder\n$/);
    expect(readdirSync(join(at.folder, "set"))).toEqual(["jobs"]);
  });
});

describe("init on a terminal", () => {
  test("asks for the service, hides the key, and writes both", async () => {
    const terminal = newPlace();
    const service = await ownModels();
    const asking = startOnTerminal(terminal, 100, ["init", "set"]);
    await asking.prints(/Which service is this workspace for/);
    asking.type("\u001b[B\r");
    await asking.prints(/The service's address/);
    asking.type("service\r");
    await asking.prints(/expected an address such as/);
    asking.type(`\u0015${service.url}/\r`);
    await asking.prints(/The API key/);
    asking.type(`${testKey}\r`);
    const { code, stdout } = await asking.ended;
    await service.close();
    expect(code, stdout).toBe(0);
    expect(stdout).not.toContain(testKey);
    const settings = terminal.read("set/.env");
    expect(settings).toContain(`\nBULKGEN_BASE_URL=${service.url}\n`);
    expect(settings).toContain(`\nBULKGEN_API_KEY=${testKey}\n`);
  });

  test("asks nothing more for the sandbox, and nothing at all with the flag", async () => {
    const terminal = newPlace();
    const asking = started(terminal, ["init", "one"], { keyboard: true, columns: 100 });
    await asking.prints(/Which service is this workspace for/);
    asking.type("\r");
    expect((await asking.ended).code).toBe(0);
    expect(terminal.read("one/.env")).toContain("\n# BULKGEN_API_KEY=\n");
    const silent = await run(terminal, ["init", "two", "--sandbox"], { keyboard: true, columns: 100 });
    expect(silent.code).toBe(0);
    expect(silent.stdout + silent.stderr).not.toContain("Which service");
  });

  test.each([
    ["at the first question", []],
    ["at the key", ["\u001b[B\r", "https://service.example\r"]],
  ])("Ctrl-C %s ends with 130 and leaves nothing", async (_, typed) => {
    const terminal = newPlace();
    const asking = startOnTerminal(terminal, 100, ["init", "set"]);
    const questions = [/Which service is this workspace/, /The service's address/, /The API key/];
    for (const [index, answer] of typed.entries()) {
      await asking.prints(questions[index] ?? /never/);
      asking.type(answer);
    }
    await asking.prints(questions[typed.length] ?? /never/);
    asking.type("\u0003");
    const { code, stdout } = await asking.ended;
    expect(code, stdout).toBe(130);
    expect(stdout).toContain("interrupted. Nothing was created.");
    expect(existsSync(join(terminal.folder, "set"))).toBe(false);
  });
});
