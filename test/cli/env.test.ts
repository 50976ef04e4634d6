import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { filesWith, newPlace, type Place, run, started } from "../e2e/command.js";
import { testKey } from "../e2e/leaked-key.js";
import { answering, json, me } from "./service.js";

let at: Place;
let service: Awaited<ReturnType<typeof answering>>;

beforeEach(async () => {
  at = newPlace();
  service = await answering((_, response) => json(response, 200, me));
});
afterEach(() => service.close());

function settings(text: string, mode = 0o600): string {
  const path = join(at.folder, ".env");
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

test("address and key come from the .env of the workspace, wherever in it the command is called", async () => {
  settings(`# the studio's account\nBULKGEN_BASE_URL=${service.url}\nBULKGEN_API_KEY="${testKey}"\n`);
  mkdirSync(join(at.folder, ".bulkgen"));
  const below = join(at.folder, "jobs", "autumn");
  mkdirSync(below, { recursive: true });
  const ended = await run(at, ["account", "--json"], { cwd: below });
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(ended.stdout).user.email).toBe("ada@example.com");
  expect(service.keys).toEqual([`Bearer ${testKey}`]);
});

test("a file that begins with a byte order mark and has Windows lines is read the same", async () => {
  settings(`\ufeffBULKGEN_BASE_URL=${service.url}\r\nBULKGEN_API_KEY=${testKey}\r\n`);
  expect(await run(at, ["account"])).toMatchObject({ code: 0, stderr: "" });
  expect(service.keys).toEqual([`Bearer ${testKey}`]);
});

test("the environment wins over the file, and a flag over both", async () => {
  settings(`BULKGEN_BASE_URL=https://nowhere.invalid\nBULKGEN_API_KEY=svc_${"f".repeat(32)}\n`);
  const own = `svc_${"e".repeat(32)}`;
  writeFileSync(join(at.folder, "key"), `${testKey}\n`);
  const env = { BULKGEN_BASE_URL: service.url, BULKGEN_API_KEY: own };
  const addressAlone = { BULKGEN_BASE_URL: service.url };
  expect((await run(at, ["account"], { env })).code).toBe(0);
  expect((await run(at, ["account"], { env: addressAlone })).code).toBe(0);
  expect((await run(at, ["account", "--api-key-file", "key"], { env })).code).toBe(0);
  const inFile = `svc_${"f".repeat(32)}`;
  expect(service.keys).toEqual([own, inFile, testKey].map((key) => `Bearer ${key}`));
});

test("P21: a key from the file appears in no output and in no other file, not even when it is wrong", async () => {
  settings(`BULKGEN_BASE_URL=${service.url}\nBULKGEN_API_KEY=${testKey}\n`);
  const good = await run(at, ["account", "--log-level", "debug"]);
  settings(`BULKGEN_BASE_URL=${service.url}\nBULKGEN_API_KEY=${testKey}x\n`);
  const bad = await run(at, ["account", "--log-level", "debug"]);
  expect([good.code, bad.code]).toEqual([0, 3]);
  expect(bad.stderr).toContain("/.env has the wrong form: expected svc_ and 32 letters or digits, got 37");
  for (const { stdout, stderr } of [good, bad]) expect(stdout + stderr).not.toContain(testKey);
  expect(filesWith(at.root, testKey)).toEqual(["here/.env"]);
});

test("a file that others may read gets one line of warning", async () => {
  const path = settings(`BULKGEN_BASE_URL=${service.url}\nBULKGEN_API_KEY=${testKey}\n`, 0o644);
  const { code, stderr } = await run(at, ["account"]);
  expect(code).toBe(0);
  expect(stderr).toBe(`bulkgen: other users can read ${path} (mode 0644). Run \`chmod 600 ${path}\`.\n`);
});

test("the command that closes such a file can be pasted when its path has a space", async () => {
  const folder = join(at.folder, "my shop");
  mkdirSync(folder);
  writeFileSync(join(folder, ".env"), `BULKGEN_BASE_URL=${service.url}\nBULKGEN_API_KEY=${testKey}\n`);
  chmodSync(join(folder, ".env"), 0o644);
  const command = `chmod 600 '${join(folder, ".env")}'`;
  expect((await run(at, ["account", "--workspace", folder])).stderr).toContain(`Run \`${command}\`.`);
  expect((await run(at, ["doctor", "--workspace", folder])).stdout).toContain(command);
});

test("a file that cannot be read is one clear message", async () => {
  mkdirSync(join(at.folder, ".env"));
  const { code, stdout, stderr } = await run(at, ["account"]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toBe(
    `bulkgen: the settings file ${join(at.folder, ".env")} cannot be read (EISDIR). Make it readable, or set BULKGEN_BASE_URL and BULKGEN_API_KEY yourself.\n`,
  );
});

test("what is missing is named, with the places where it can be set", async () => {
  settings(`BULKGEN_BASE_URL=${service.url}\n`);
  const { code, stderr } = await run(at, ["account"]);
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /^bulkgen: missing: an API key .*\. Set it, in \S+\/\.env or in the environment\. Or add --models FILE for models of your own, or --sandbox/,
  );
  expect(service.keys).toEqual([]);
});

test("P21: a line without = is named, and its value is not printed", async () => {
  const path = settings(`# studio\nBULKGEN_BASE_URL=${service.url}\nexport BULKGEN_API_KEY: ${testKey}\n`);
  expect(await run(at, ["account"])).toMatchObject({
    code: 2,
    stderr: `bulkgen: ${path}, line 3: expected BULKGEN_API_KEY=VALUE, got no = after BULKGEN_API_KEY\n`,
  });
  const env = { BULKGEN_API_KEY: testKey };
  expect((await run(at, ["account", "--trust-address"], { env })).code).toBe(0);
});

test("where there is no file yet, the command that asks for what is missing is named", async () => {
  const { code, stderr } = await run(at, ["account"]);
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /^bulkgen: missing: .* and an API key .*\. `bulkgen init` asks for them and writes \S+\/\.env; /,
  );
});

test("other variables in the file change nothing in this process", async () => {
  settings(
    `NO_COLOR=1\nXDG_STATE_HOME=${join(at.folder, "elsewhere")}\nBULKGEN_BASE_URL=${service.url}\nBULKGEN_API_KEY=${testKey}\n`,
  );
  expect((await run(at, ["account"])).code).toBe(0);
  expect(filesWith(at.root, "").some((name) => name.startsWith("here/elsewhere"))).toBe(false);
});

describe("a key of one's own and an address that the folder names", () => {
  const own = { BULKGEN_API_KEY: testKey };

  test.each([
    ["account", ["account"]],
    ["models", ["models"]],
    ["plan", ["plan", "set.csv"]],
    ["run", ["run", "set.csv", "--yes", "--quiet"]],
    ["resume", ["resume"]],
    ["doctor", ["doctor"]],
  ])("P26: %s sends nothing there before the user has agreed", async (name, args) => {
    const path = settings(`BULKGEN_BASE_URL=${service.url}/\n`);
    at.write("set.csv", "id,model,prompt\na,none,b\n");
    const { code, stdout, stderr } = await run(at, args, { env: own });
    expect(code).toBe(2);
    expect(service.keys).toEqual([]);
    expect(stdout + stderr).not.toContain(testKey);
    if (name === "resume") return;
    expect(stdout + stderr).toContain(service.url);
    expect(stdout + stderr).toContain(path);
    expect(stdout + stderr).toContain("bulkgen trust");
  });

  test("P26: is not sent there either if the folder's .env is a link to the user's own", async () => {
    const mine = join(at.root, "mine.env");
    writeFileSync(mine, `BULKGEN_API_KEY=${testKey}\n`, { mode: 0o600 });
    symlinkSync(mine, join(at.folder, ".env"));
    at.write("bulkgen.config.yaml", `base-url: ${service.url}\n`);
    const refused = await run(at, ["account"]);
    expect([refused.code, service.keys]).toEqual([2, []]);
    expect(refused.stderr).toContain("bulkgen trust");
    // Address and key of the user's own file belong together.
    at.write("bulkgen.config.yaml", "{}\n");
    writeFileSync(mine, `BULKGEN_BASE_URL=${service.url}\nBULKGEN_API_KEY=${testKey}\n`);
    expect((await run(at, ["account"])).code).toBe(0);
    rmSync(mine);
  });

  test.each([["--trust-address"], ["trust"], ["terminal"]])(
    "P26: get through once %s has agreed",
    async (how) => {
      settings(`BULKGEN_BASE_URL=${service.url}\n`);
      if (how === "trust")
        expect((await run(at, ["trust", "--yes"], { env: own })).stdout).toContain(
          `base-url: ${service.url}`,
        );
      else if (how === "terminal") {
        const asked = started(at, ["account"], { env: own, keyboard: true });
        await asked.prints(/Agree to it\? \[y\/N\]/);
        expect(service.keys).toEqual([]);
        asked.type("y\n");
        expect((await asked.ended).code).toBe(0);
      } else expect((await run(at, ["account", "--trust-address"], { env: own })).code).toBe(0);
      expect(await run(at, ["account"], { env: own })).toMatchObject({ code: 0, stderr: "" });
    },
  );

  test("P26: a key file of one's own is protected too; doctor reports the address as a problem", async () => {
    settings(`BULKGEN_BASE_URL=${service.url}\n`, 0o644);
    writeFileSync(join(at.folder, "key"), testKey);
    const filed = await run(at, ["account", "--api-key-file", "key"]);
    expect(filed.code).toBe(2);
    const doctor = await run(at, ["doctor"], { env: own });
    expect(doctor.stderr).toBe("");
    expect(doctor.stdout).toContain(`base-url: ${service.url}`);
    expect(doctor.stdout.match(/other users can read/g)).toHaveLength(1);
    expect(service.keys).toEqual([]);
  });

  test("P26: a key that was used at one address is not sent to another, whoever set that, before the user agrees", async () => {
    const other = await answering((_, response) => json(response, 200, me));
    const env = { ...own, BULKGEN_BASE_URL: service.url };
    expect((await run(at, ["account"], { env })).code).toBe(0);
    for (const words of [["account"], ["account", "--base-url", other.url], ["doctor"]]) {
      const base = words.includes("--base-url") ? service.url : other.url;
      const { code, stdout, stderr } = await run(at, words, { env: { ...env, BULKGEN_BASE_URL: base } });
      expect(code).toBe(2);
      expect(stdout + stderr).toContain(`has been used at ${service.url} until now`);
    }
    settings(`BULKGEN_BASE_URL=${other.url}\nBULKGEN_API_KEY=${testKey}\n`);
    expect((await run(at, ["account"])).code).toBe(2);
    expect(other.keys).toEqual([]);
    const agreed = ["account", "--base-url", `${other.url}/v9`, "--trust-address"];
    expect((await run(at, agreed, { env: own })).code).toBe(0);
    expect((await run(at, ["account"])).code).toBe(0);
    await other.close();
  });

  test("an address that never answered was mistyped, and the next one needs no question", async () => {
    const mistyped = { ...own, BULKGEN_BASE_URL: "http://127.0.0.1:9" };
    expect((await run(at, ["account"], { env: mistyped })).code).toBe(4);
    expect((await run(at, ["account"], { env: { ...own, BULKGEN_BASE_URL: service.url } })).code).toBe(0);
  });

  test("are no matter when one's own address wins, or when the key comes from the folder too", async () => {
    settings(`BULKGEN_BASE_URL=https://nowhere.invalid\n`);
    const both = { ...own, BULKGEN_BASE_URL: service.url };
    expect(await run(at, ["account"], { env: both })).toMatchObject({ code: 0, stderr: "" });
    settings(`BULKGEN_BASE_URL=${service.url}\nBULKGEN_API_KEY=${testKey}\n`);
    expect(await run(at, ["account"])).toMatchObject({ code: 0, stderr: "" });
  });
});
