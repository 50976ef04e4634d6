import { once } from "node:events";
import { chmodSync, cpSync, existsSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type FilesParts, JobFiles } from "../../src/serve/works/job-files.js";
import { Journal } from "../../src/serve/works/journal.js";
import { SqliteState } from "../../src/service/state/sqlite-state.js";
import { openSqlite } from "../../src/sqlite.js";
import { pixel } from "../upstreams/comfyui.js";
import { newPlace, type Place, run, started } from "./command.js";
import { eventually } from "./process.js";
import { writeTemplateModel } from "./template-model.js";

/** A folder that came from somebody else with a models file, where this user's own key of a provider is in the environment. */
let at: Place;
/** What arrived at an address that the folder names: who was asked, and with which key. */
let asked: string[];
let url: string;
const key = "sk-users-own-0123456789";
const env = { STUDIO_KEY: key };

beforeEach(async () => {
  at = newPlace();
  asked = [];
  const server = createServer(async (request, response) => {
    await text(request);
    asked.push(`${request.method} ${request.url} ${request.headers["authorization"] ?? "no key"}`);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ data: [{ b64_json: pixel.toString("base64") }] }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  at.write("bulkgen.config.yaml", "models: models.yaml\n");
  at.write("set.csv", "id,prompt,model\na,a cup,pic\n");
});

const bearer = `headers: { authorization: "Bearer {{ key }}" }`;
const model = (more: string) => `models:
  - key: pic
    provider: vendor
    category: image
    credits: 1
    outputs: data[].b64_json
${more}`;

/** Nothing of what the folder says happens before the user agrees, whichever command opens its models. */
async function expectAsked(said: string): Promise<void> {
  for (const args of [
    ["plan", "set.csv"],
    ["run", "set.csv", "--yes"],
    ["models"],
    ["account"],
    ["serve", "check"],
    ["serve"],
  ]) {
    const { code, stderr } = await run(at, args, { env });
    expect([args.join(" "), code, stderr]).toEqual([args.join(" "), 2, expect.stringContaining(said)]);
    expect(stderr).toContain("bulkgen trust");
  }
  const doctor = await run(at, ["doctor"], { env });
  expect(doctor.stdout + doctor.stderr).toContain(said);
  expect(asked).toEqual([]);
}

describe("what a models file does outward is asked about, wherever it says it:", () => {
  test("addresses in a description of its own, also when that changes later", async () => {
    at.write(
      "models.yaml",
      `providers: { vendor: { kind: http, description: desc.yaml, key_env: STUDIO_KEY } }\n${model("")}`,
    );
    const description = (post: string) =>
      `describe: x\nbase_url: ${url}\n${bearer}\nsubmit: [{ post: "${post}", body: { p: "{{ prompt }}" } }]\ncheck: { get: /check }\n`;
    at.write("desc.yaml", description("/make"));
    await expectAsked(`http at ${url} with the key in $STUDIO_KEY`);
    expect((await run(at, ["trust", "--yes"], { env })).code).toBe(0);
    expect((await run(at, ["run", "set.csv", "--yes"], { env })).code).toBe(0);
    expect(asked).toEqual([`POST /make Bearer ${key}`]);
    asked = [];
    at.write("desc.yaml", description("http://localhost:9/steal"));
    await expectAsked("http://localhost:9");
  });

  test("addresses within templates", async () => {
    const post = `"{% if true %}${url}/steal{% endif %}"`;
    at.write(
      "models.yaml",
      `providers: { vendor: { kind: http, key_env: STUDIO_KEY, ${bearer} } }\n${model(`    submit: { post: ${post}, body: { p: "{{ prompt }}" } }\n`)}`,
    );
    await expectAsked(`http at ${url} with the key in $STUDIO_KEY`);
  });

  test("hosts that get the key, and hosts that inputs may be read from", async () => {
    at.write(
      "models.yaml",
      `inputs: { allow: [intranet.example] }
providers: { vendor: { kind: openai, base_url: "${url}", hosts: [else.example], key_env: STUDIO_KEY } }
models: [{ key: pic, provider: vendor, category: image, credits: 1, request: { model: x } }]
`,
    );
    await expectAsked(`openai at ${url} and else.example with the key in $STUDIO_KEY`);
    await expectAsked("inputs.allow: intranet.example");
  });

  test("a browser of its own", async () => {
    at.write("evil.sh", "#!/bin/sh\ntouch ran\n");
    chmodSync(join(at.folder, "evil.sh"), 0o755);
    at.write("page.html", "<p>{{ prompt }}</p>");
    at.write(
      "models.yaml",
      `providers: { vendor: { kind: template, browser: ./evil.sh } }
models: [{ key: pic, provider: vendor, category: image, credits: 1, template: page.html, width: 10, height: 10 }]
`,
    );
    await expectAsked("browser of provider vendor: ./evil.sh");
    expect(existsSync(join(at.folder, "ran"))).toBe(false);
  });
});

test("an address that a job puts together gets no request", async () => {
  at.write(
    "models.yaml",
    `providers: { vendor: { kind: http, key_env: STUDIO_KEY, ${bearer} } }
${model(`    params: { port: ["${new URL(url).port}"] }\n    submit: { post: "http://127.0.0.1:{{ port }}/steal", body: { p: "{{ prompt }}" } }\n`)}`,
  );
  await run(at, ["trust", "--yes"], { env });
  const ended = await run(at, ["run", "set.csv", "--yes"], { env });
  expect(ended.code).toBe(5);
  expect(ended.stdout).toContain(`the request would go to ${url}`);
  expect(asked).toEqual([]);
});

test("a key of the folder that becomes a link to one elsewhere is asked about again", async () => {
  const provider = (name: string, where: string) =>
    `${name}: { kind: http, base_url: "${url}", ${where}, ${bearer} }`;
  const submit = `submit: { post: /make, body: { p: "{{ prompt }}" } }`;
  const models = ["one", "two"].map(
    (name) =>
      `  - { key: ${name}, provider: ${name}, category: image, credits: 1, outputs: "data[].b64_json", ${submit} }\n`,
  );
  at.write(
    "models.yaml",
    `providers:\n  ${provider("one", "key_env: FOLDERS_KEY")}\n  ${provider("two", "key_file: demo.key")}\nmodels:\n${models.join("")}`,
  );
  at.write(".env", "FOLDERS_KEY=demo\n");
  at.write("demo.key", "demo\n");
  expect((await run(at, ["trust", "--yes"])).code).toBe(0);
  expect((await run(at, ["models"])).code).toBe(0);
  at.write("../mine/.env", "FOLDERS_KEY=users-own\n");
  at.write("../mine/secret", "users-own\n");
  for (const [name, target] of [
    [".env", "../mine/.env"],
    ["demo.key", "../mine/secret"],
  ] as const) {
    rmSync(join(at.folder, name));
    symlinkSync(target, join(at.folder, name));
  }
  const refused = await run(at, ["models"]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("with the key in $FOLDERS_KEY");
  expect(refused.stderr).toMatch(/with the key in \/\S+\/mine\/secret/);
});

test("a service that runs does not use a changed file before the user agrees, and then does", async () => {
  at.write(
    "banner.svg",
    `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>{{ prompt }}</text></svg>`,
  );
  const file = (more: string) =>
    `models:\n  - { key: pic, provider: { kind: template }, category: image, credits: 1, template: banner.svg }\n${more}`;
  at.write("models.yaml", file(""));
  const serving = started(at, ["serve"], { serves: true });
  await serving.prints(/ {2}page: /);
  const program = `  - { key: draw, provider: { kind: command }, category: image, credits: 1, command: [draw-it, --, "{{ prompt }}"] }\n`;
  at.write("models.yaml", file(program));
  await serving.prints(
    /has changed, and you have not agreed to this on this machine: command of model draw: draw-it/,
  );
  const listed = async () => {
    const { stdout } = await run(at, ["models", "--json"]);
    return stdout.includes('"draw"') ? { found: stdout } : null;
  };
  expect((await run(at, ["trust", "--yes"])).code).toBe(0);
  await eventually(listed);
  serving.interrupt();
  expect((await serving.ended).code).toBe(0);
});

describe("the state of a service that came with the folder", () => {
  const harmless = () => writeTemplateModel(at);
  const state = () => join(at.folder, ".bulkgen", "service", "state.db");
  /** As somebody else on another machine. */
  const elsewhere = () => ({
    env: { XDG_STATE_HOME: join(at.root, "elsewhere"), XDG_DATA_HOME: join(at.root, "elsewhere") },
  });

  /** Leaves a job of a program that this user never saw, as a process that was killed does. */
  async function withForeignJob(): Promise<void> {
    harmless();
    const ran = await run(at, ["run", "set.csv", "--yes"], elsewhere());
    expect(ran.code, ran.stderr).toBe(0);
    const db = openSqlite(state());
    const provider = JSON.parse(
      (db.prepare("select settings from jobs").get() as { settings: string }).settings,
    );
    db.prepare("update jobs set stage = 'queued', ended_at = null, settings = ?, model = ?").run(
      JSON.stringify({ ...provider, kind: "command" }),
      JSON.stringify({
        key: "pic",
        name: "pic",
        category: "image",
        input: "text",
        details: { command: ["sh", "-c", `touch ${join(at.folder, "ran")}`] },
      }),
    );
    db.close();
  }

  test("does nothing before the user agrees", async () => {
    await withForeignJob();
    for (const args of [
      ["models"],
      ["plan", "set.csv"],
      ["run", "set.csv", "--yes"],
      ["serve"],
      ["account"],
    ]) {
      const { code, stderr } = await run(at, args);
      expect([args, code]).toEqual([args, 2]);
      expect(stderr).toContain(`command of model pic: sh -c 'touch ${join(at.folder, "ran")}'`);
    }
    expect(existsSync(join(at.folder, "ran"))).toBe(false);
    const { stdout } = await run(at, ["trust", "--yes"]);
    expect(stdout).toContain('with 1 key ("this workspace") and 1 unfinished job');
    expect(stdout).toContain("agreed to 2 values");
    expect((await run(at, ["models"])).code).toBe(0);
  });

  test("admits nobody's key before the user agrees; one's own keys need no question", async () => {
    harmless();
    expect((await run(at, ["serve", "keys", "create", "anna"], elsewhere())).code).toBe(0);
    const refused = await run(at, ["serve"]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('with 1 key ("anna")');
    rmSync(join(at.folder, ".bulkgen"), { recursive: true });
    expect((await run(at, ["serve", "keys", "create", "anna"])).code).toBe(0);
    const serving = started(at, ["serve"], { serves: true });
    await serving.prints(/ {2}page: /);
    serving.interrupt();
    expect((await serving.ended).code).toBe(0);
  });

  test("is new as long as nothing is in it: the process that made it may have been killed", async () => {
    harmless();
    at.write(".bulkgen/service/.keep", "");
    const killed = new SqliteState(state(), { durable: true });
    new Journal(killed);
    killed.close();
    expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(0);
    rmSync(join(at.folder, ".bulkgen", "service"), { recursive: true });
    at.write(".bulkgen/service/state.db", "");
    expect((await run(at, ["serve", "keys", "create", "anna"])).code).toBe(0);
    expect((await run(at, ["models"])).code).toBe(0);
  });

  test("is nobody else's business on this machine, whichever command makes it", async () => {
    harmless();
    const elsewhere = join(at.root, "books");
    await run(at, ["models"]);
    await run(at, ["serve", "keys", "create", "anna", "--state", elsewhere]);
    expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(0);
    for (const folder of [elsewhere, join(at.folder, ".bulkgen", "service")]) {
      expect(statSync(folder).mode & 0o777).toBe(0o700);
      expect(statSync(join(folder, "state.db")).mode & 0o777).toBe(0o600);
    }
  });

  test.each([
    ["insert into settings values ('signing secret', 'theirs')", "service state:"],
    ["alter table settings add column more text", "service state:"],
    ["create table jobs (task_id text)", "cannot be used as the state of a service"],
  ])("is somebody else's with anything in it: %s", async (sql, said) => {
    harmless();
    at.write(".bulkgen/service/.keep", "");
    const theirs = new SqliteState(state());
    theirs.db.exec(sql);
    theirs.close();
    for (const args of [["models"], ["serve"], ["trust", "--yes"]]) {
      const { code, stdout, stderr } = await run(at, args);
      const isAsked = args[0] === "trust" && said === "service state:";
      expect([args, code, stdout + stderr]).toEqual([args, isAsked ? 0 : 2, expect.stringContaining(said)]);
    }
  });

  test("removes and reads nothing outside of its folder, whatever its ids are", async () => {
    await withForeignJob();
    at.write("../photos/mine.png", "mine");
    const db = openSqlite(state());
    db.pragma("foreign_keys = off");
    const id = "../../../../photos";
    for (const [table, column] of [
      ["tasks", "id"],
      ["jobs", "task_id"],
    ])
      db.prepare(`update ${table} set ${column} = ?`).run(id);
    db.close();
    await run(at, ["trust", "--yes"]);
    await run(at, ["models"]);
    expect(readFileSync(join(at.root, "photos", "mine.png"), "utf8")).toBe("mine");
  });

  test("is not that of another folder by a link", async () => {
    harmless();
    const other = newPlace();
    cpSync(at.folder, other.folder, { recursive: true });
    expect((await run(other, ["run", "set.csv", "--yes"])).code).toBe(0);
    expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(0);
    rmSync(join(at.folder, ".bulkgen", "service"), { recursive: true });
    symlinkSync(join(other.folder, ".bulkgen", "service"), join(at.folder, ".bulkgen", "service"));
    for (const args of [
      ["models"],
      ["run", "set.csv", "--yes"],
      ["serve"],
      ["serve", "keys", "create", "eve"],
    ]) {
      const { code, stderr } = await run(at, args);
      expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining("is reached by a link out of")]);
    }
  });

  test("has no trigger, and no copy of it counts as agreed to", async () => {
    harmless();
    expect((await run(at, ["run", "set.csv", "--yes"], elsewhere())).code).toBe(0);
    cpSync(state(), join(at.root, "theirs.db"));
    expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(2);
    expect((await run(at, ["trust", "--yes"])).code).toBe(0);
    expect((await run(at, ["models"])).code).toBe(0);
    cpSync(join(at.root, "theirs.db"), state());
    rmSync(`${state()}-wal`, { force: true });
    const again = await run(at, ["models"]);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("service state:")]);
    const db = openSqlite(state());
    db.exec("create trigger evil after insert on jobs begin update jobs set stage = 'queued'; end");
    db.close();
    const refused = await run(at, ["models"]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("it has a trigger or a view");
  });

  test("says not where the service is, so that nothing goes to an address in it", async () => {
    harmless();
    expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(0);
    const other = started(at, ["serve"], { serves: true });
    await other.prints(/ {2}page: /);
    at.write(".bulkgen/service/address.json", JSON.stringify({ url, pid: 1 }));
    at.write("more.csv", "id,prompt,model\nb,a boat,pic\n");
    expect((await run(at, ["run", "more.csv", "--yes"])).code).toBe(0);
    expect(asked).toEqual([]);
    other.interrupt();
    expect((await other.ended).code).toBe(0);
  });

  test.each(["inputs", "outputs", "jobs", "uploads"])(
    "reaches nothing by a link in place of %s",
    async (name) => {
      harmless();
      at.write("../photos/mine.png", "mine");
      at.write(".bulkgen/service/.keep", "");
      symlinkSync("../../../photos", join(at.folder, ".bulkgen", "service", name));
      const files = new JobFiles({ folder: join(at.folder, ".bulkgen", "service") } as FilesParts);
      expect(() => files.within(name)).toThrow("a link leads out of the service's folder");
      expect(() => files.within(name, "mine.png")).toThrow("a link leads out of the service's folder");
    },
  );
});

test("what a program is given on its standard input is part of what is agreed to", async () => {
  const file = (stdin: string) =>
    at.write(
      "models.yaml",
      `models: [{ key: pic, provider: { kind: command }, category: image, credits: 1, command: [make, -f, "-", "P={{ prompt }}"], stdin: "${stdin}" }]\n`,
    );
  file("all: one");
  expect((await run(at, ["trust", "--yes"])).stdout).toContain("make -f - 'P={{ prompt }}' <<< 'all: one'");
  expect((await run(at, ["models"])).code).toBe(0);
  file("all: two");
  expect((await run(at, ["models"])).code).toBe(2);
});

test.each([
  ["description", "http://localhost:9"],
  ["key", "mine/secret"],
])("a service that runs sends nothing by a %s that has changed since", async (changed, said) => {
  const provider = `vendor: { kind: http, description: desc.yaml, key_file: demo.key }`;
  at.write("models.yaml", `providers: { ${provider} }\n${model("")}`);
  const description = (post: string) =>
    at.write(
      "desc.yaml",
      `describe: x\nbase_url: ${url}\n${bearer}\nsubmit: [{ post: "${post}", body: { p: "{{ prompt }}" } }]\n`,
    );
  description("/make");
  at.write("demo.key", "demo");
  expect((await run(at, ["trust", "--yes"])).code).toBe(0);
  const created = await run(at, ["serve", "keys", "create", "anna"]);
  const serving = started(at, ["serve"], { serves: true });
  const [, address = ""] = await serving.prints(/served at (\S+)\./);
  const waits = async (note: string) => {
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(address + path, {
        ...init,
        headers: { authorization: `Bearer ${created.stdout.trim()}`, "content-type": "application/json" },
      });
    const answer = await ask("/api/v1/generate", {
      method: "POST",
      body: JSON.stringify({ model: "pic", prompt: "a cup" }),
    });
    const { task_id } = (await answer.json()) as { task_id: string };
    expect(answer.status).toBe(200);
    await eventually(async () => {
      const task = (await (await ask(`/api/v1/task/${task_id}`)).json()) as { note?: string };
      return task.note?.includes(note) ? { task } : null;
    });
  };
  if (changed === "description") description("http://localhost:9/steal");
  else {
    at.write("../mine/secret", "users-own");
    rmSync(join(at.folder, "demo.key"));
    symlinkSync("../mine/secret", join(at.folder, "demo.key"));
  }
  await waits(said);
  expect(asked).toEqual([]);
  serving.interrupt();
  expect((await serving.ended).code).toBe(0);
});

test("the command that a refusal names helps, also for a models file above the folder and a state elsewhere", async () => {
  at.write(
    "../models.yaml",
    'models: [{ key: pic, provider: { kind: command }, category: image, credits: 1, command: [draw, --, "{{ prompt }}"] }]\n',
  );
  at.write("bulkgen.config.yaml", "models: ../models.yaml\n");
  const asksFor = async (args: string[]) => {
    const { code, stderr } = await run(at, args);
    const [, command = ""] = /`bulkgen (trust[^`]*)`/.exec(stderr) ?? [];
    expect([args, code, command]).toEqual([args, 2, expect.stringMatching(/^trust/)]);
    return command.split(" ");
  };
  const first = await asksFor(["models"]);
  expect((await run(at, [...first, "--yes"])).code).toBe(0);
  expect((await run(at, ["models"])).code).toBe(0);
  const elsewhere = { env: { XDG_STATE_HOME: join(at.root, "elsewhere") } };
  const state = ["--state", join(at.root, "state-of-serve")];
  expect((await run(at, ["serve", "keys", "create", "anna", ...state], elsewhere)).code).toBe(0);
  const words = await asksFor(["serve", "../models.yaml", ...state]);
  expect((await run(at, [...words, "--yes"])).code).toBe(0);
  const serving = started(at, ["serve", "../models.yaml", ...state], { serves: true });
  await serving.prints(/ {2}page: /);
  serving.interrupt();
  expect((await serving.ended).code).toBe(0);
});
