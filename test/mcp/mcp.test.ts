import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { expect, test } from "vitest";
import { agentServer, shortened } from "../../src/mcp/server.js";
import { tools } from "../../src/mcp/tools.js";
import { afterThisFile } from "../after-file.js";
import { main, newPlace, type Place, started, startProcess } from "../e2e/command.js";
import { type Scripted, type ScriptedService, startService } from "../e2e/service.js";
import { ManualClock } from "../manual-clock.js";
import { greeting } from "./greeting.js";

interface Result {
  structuredContent: { command: string; exit: number | null; document: never; message: string };
  isError?: boolean;
}

/** An agent that speaks the protocol over the two streams, one line a message. Its commands run in this process. */
interface Agent {
  place: Place;
  service: ScriptedService;
  /** Of the server, for its patience. */
  clock: ManualClock;
  instructions: string;
  ask(method: string, params?: unknown): Promise<never>;
  call(tool: string, given?: unknown): Promise<Result>;
}

async function agent(options: Parameters<typeof startService>[0] = {}): Promise<Agent> {
  const service = await startService(options);
  const place = newPlace();
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const clock = new ManualClock();
  const running = new Set<Promise<unknown>>();
  const server = agentServer({
    root: place.folder,
    sandbox: false,
    clock,
    version: "1.2.3",
    launch(words) {
      const command = started(place, [...words], service);
      const ended = command.ended.then(({ code }) => code);
      running.add(ended);
      return { stdout: command.stdout, stderr: command.stderr, ended };
    },
  });
  await server.connect(new StdioServerTransport(stdin, stdout));
  afterThisFile(async () => {
    await Promise.allSettled(running);
    await server.close();
  });
  const waiting = new Map<number, (answer: { result?: unknown; error?: { message: string } }) => void>();
  let rest = "";
  stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const answer = JSON.parse(line);
      waiting.get(answer.id)?.(answer);
    }
  });
  let last = 0;
  const send = (message: object) => void stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const ask: Agent["ask"] = (method, params = {}) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, ({ result, error }) =>
        error ? reject(new Error(error.message)) : resolve(result as never),
      );
      send({ id, method, params });
    });
  const { instructions } = (await ask("initialize", greeting)) as { instructions: string };
  send({ method: "notifications/initialized" });
  const call: Agent["call"] = (name, given = {}) => ask("tools/call", { name, arguments: given });
  return { place, service, clock, instructions, ask, call };
}

function sheet(place: Place, name = "demo.csv"): void {
  writeFileSync(join(place.folder, name), "id,prompt,model\na,a cup,plain-image\nb,a bowl,plain-image\n");
}

test("commands use the database that the server was started with", async () => {
  const place = newPlace();
  const words = [main, "mcp", "--database-url", "postgres://nobody@127.0.0.1:9/none"];
  const serving = startProcess(process.execPath, words, { cwd: place.folder, env: place.env }, "pipe");
  const send = (message: object) => serving.type(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  send({ id: 1, method: "initialize", params: greeting });
  await serving.prints(/"id":1/);
  send({ method: "notifications/initialized" });
  send({ id: 2, method: "tools/call", params: { name: "status", arguments: {} } });
  await serving.prints(/127\.0\.0\.1:9/);
  serving.signal("SIGTERM");
  expect((await serving.ended).code).toBe(0);
});

test("tools have names, schemas and hints; what spends demands a cap", async () => {
  const { ask } = await agent();
  const { tools: listed } = (await ask("tools/list")) as {
    tools: { name: string; inputSchema: { required?: string[] }; annotations: { readOnlyHint: boolean } }[];
  };
  expect(listed.map(({ name }) => name)).toEqual(tools.map(({ name }) => name));
  const demanding = listed.filter(({ inputSchema }) => inputSchema.required?.includes("max_credits"));
  expect(demanding.map(({ name }) => name)).toEqual(["run", "resume"]);
  const looking = listed.filter(({ annotations }) => annotations.readOnlyHint).map(({ name }) => name);
  expect(looking).toEqual(["models", "account", "plan", "status", "runs", "find", "final_set"]);
});

test("an agent is told what to do about a command that no tool runs, such as approve", async () => {
  expect((await agent()).instructions).toContain("if there is none, tell the user the command to type");
});

test("an agent plans, runs within its cap, and finds the files", async () => {
  const { place, service, call } = await agent();
  sheet(place);
  const planned = await call("plan", { manifest: "demo.csv" });
  expect(planned.structuredContent).toMatchObject({ exit: 0, document: { money: { needed: 4 } } });
  expect(service.count("POST generate")).toBe(0);
  const ran = await call("run", { manifest: "demo.csv", max_credits: 4 });
  expect(ran.structuredContent).toMatchObject({ exit: 0, document: { run: 1 } });
  expect(ran.structuredContent.command).toBe(
    "bulkgen run PATH --max-price=4 --max-credits=4 --json".replace("PATH", join(place.folder, "demo.csv")),
  );
  expect(service.count("POST generate")).toBe(2);
  expect((await call("find", { text: "cup" })).structuredContent.document).toHaveLength(1);
  expect((await call("status")).structuredContent.document).toMatchObject({ run: 1 });
});

test("the server goes on, whatever the service answers to its tools", async () => {
  const page = "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>";
  const attacks: [string, Exclude<Scripted, string>, string, number][] = [
    ["GET models", { json: { models: [null, { model_key: "odd", parameters: 7 }] } }, "models", 0],
    ["GET models", { text: page }, "models", 4],
    ["GET me", { json: { user: [], credits: null, subscription: 7, api_key: "x" } }, "account", 0],
    ["GET me", { status: 403, text: page }, "account", 3],
    ["POST generate", { status: 422, json: { detail: [{ loc: ["prompt"], msg: "too long" }] } }, "run", 5],
    ["POST generate", { status: 403, text: page }, "run", 5],
    ["GET task", { json: { status: "expired", completed_at: "2026-01-01T00:00:00Z", error: {} } }, "run", 10],
  ];
  const { place, service, call } = await agent();
  for (const [at, [attacked, answer, tool, exit]] of attacks.entries()) {
    service.script(({ what }) => (what === attacked ? answer : "serve"));
    sheet(place, `set-${at}.csv`);
    const ran = await call(tool, tool === "run" ? { manifest: `set-${at}.csv`, max_credits: 4 } : {});
    expect(ran.structuredContent, attacked).toMatchObject({ exit });
    expect(ran.structuredContent.message).not.toMatch(/undefined|NaN|\[object/);
  }
  service.script(() => "serve");
  expect((await call("status")).structuredContent).toMatchObject({ exit: 0 });
});

test("P6: a run spends no more than its cap, and one without a cap is not even begun", async () => {
  const { place, service, call } = await agent();
  sheet(place);
  const open = await call("run", { manifest: "demo.csv" });
  expect(open.isError).toBe(true);
  expect(JSON.stringify(open)).toContain("max_credits");
  const again = await call("resolve", { items: ["a"], action: "resubmit" });
  expect(again).toMatchObject({
    isError: true,
    structuredContent: { message: expect.stringContaining("max_price") },
  });
  expect(service.count("POST generate")).toBe(0);
  const dear = await call("run", { manifest: "demo.csv", max_credits: 3 });
  expect(dear).toMatchObject({ isError: false, structuredContent: { exit: 6, document: { run: 1 } } });
  expect(service.count("POST generate")).toBe(1);
});

test.each([
  ["adopt", "--adopt=t1"],
  ["refetch", "--refetch"],
])("P6: %s continues the run, and agrees to no price but max_price for its planned items", (action, flag) => {
  const resolve = tools.find(({ name }) => name === "resolve");
  const asked = { items: ["a"], action, task: "t1" };
  expect(resolve?.words(asked)).toEqual(["resolve", "a", flag, "--max-price=0"]);
  expect(resolve?.words({ ...asked, max_price: 5 })).toEqual(["resolve", "a", flag, "--max-price=5"]);
});

test("a field that a tool does not have is refused: more would be made than was meant", async () => {
  const { place, service, call } = await agent();
  sheet(place);
  const ran = await call("run", { manifest: "demo.csv", max_credits: 4, rows: "2" });
  expect(ran.isError).toBe(true);
  expect(JSON.stringify(ran)).toContain('Unrecognized key: \\"rows\\"');
  expect(service.count("POST generate")).toBe(0);
});

test("params may be numbers and booleans, as a sheet in JSON has them", async () => {
  const { place, call } = await agent();
  sheet(place);
  const { structuredContent } = await call("plan", {
    manifest: "demo.csv",
    params: { seed: 5, hd: true, size: "4:3" },
  });
  expect(structuredContent.command).toContain("--param=seed=5 --param=hd=true --param=size=4:3");
});

test("a plan is answered without its items, which are as many as the sheet has rows", async () => {
  const { place, call } = await agent();
  sheet(place);
  const { document } = (await call("plan", { manifest: "demo.csv" })).structuredContent;
  expect(document).toMatchObject({ states: { new: 2 }, money: { needed: 4 } });
  expect(document).not.toHaveProperty("items");
});

test("long lists are cut, which the message says: a sheet with many problems must not fill an agent's context", async () => {
  const { place, call } = await agent();
  const rows = Array.from({ length: 60 }, (_, row) => `r${row},a cup,no-model-${row}\n`);
  writeFileSync(join(place.folder, "bad.csv"), `id,prompt,model\n${rows.join("")}`);
  const { structuredContent } = await call("plan", { manifest: "bad.csv" });
  const { problems } = structuredContent.document as { problems: { place: { row: number } }[] };
  expect(problems.map(({ place: { row } }) => row)).toEqual(Array.from({ length: 50 }, (_, row) => row + 2));
  expect(structuredContent.message).toBe("document has only the first 50 of 60 problems");
});

test("of a long list of runs the newest are kept", () => {
  const runs = Array.from({ length: 52 }, (_, run) => ({ run: run + 1 }));
  const { document, cuts } = shortened({ workspace: "w", runs }, { newestLast: true });
  expect(document).toEqual({ workspace: "w", runs: runs.slice(2) });
  expect(cuts).toEqual(["document has only the last 50 of 52 runs"]);
  expect(shortened(runs, {})).toEqual({
    document: runs.slice(0, 50),
    cuts: ["document has only the first 50 of 52 entries"],
  });
  expect(shortened(runs, { whole: true })).toEqual({ document: runs, cuts: [] });
});

test("words that look like flags, and files that are not in the workspace, reach no command", async () => {
  const { place, call } = await agent();
  mkdirSync(join(place.root, "elsewhere"), { recursive: true });
  sheet(place, "../elsewhere/secret.csv");
  sheet(place, "..draft.csv");
  expect((await call("plan", { manifest: "..draft.csv" })).isError).toBe(false);
  symlinkSync(join(place.root, "elsewhere", "secret.csv"), join(place.folder, "link.csv"));
  for (const [job, rows] of [
    ["out.yaml", "../elsewhere/secret.csv"],
    ["linked.json", "link.csv"],
    ["own.yaml", "..draft.csv"],
  ] as const)
    writeFileSync(join(place.folder, job), JSON.stringify({ name: "job", rows }));
  expect((await call("plan", { manifest: "own.yaml" })).isError).toBe(false);
  for (const manifest of [
    "../elsewhere/secret.csv",
    join(place.root, "elsewhere", "secret.csv"),
    "link.csv",
    "../elsewhere",
    "../elsewhere/*.jpg",
    "none.csv",
  ]) {
    const { isError, structuredContent } = await call("plan", { manifest });
    expect([manifest, isError, structuredContent.command]).toEqual([manifest, true, ""]);
  }
  for (const manifest of ["out.yaml", "linked.json"])
    expect(await call("plan", { manifest })).toMatchObject({
      isError: true,
      structuredContent: { message: expect.stringContaining("it lies outside the manifest's folder") },
    });
  expect((await call("plan", { manifest: "" })).isError).toBe(true);
  const flag = await call("find", { text: "--workspace=/" });
  expect(flag.isError).toBe(true);
});

test("a workspace without a run is told in words, not by an empty answer", async () => {
  const { call } = await agent();
  for (const tool of ["status", "runs"]) {
    const { isError, structuredContent } = await call(tool);
    expect([isError, structuredContent.exit]).toEqual([false, 0]);
    expect(structuredContent.message).toMatch(/^no runs in .* yet\./);
  }
});

test("a run that takes long is answered while it is still running, and status follows it", async () => {
  let answerAll = () => {};
  const answered = new Promise<void>((resolve) => {
    answerAll = resolve;
  });
  const { place, service, clock, call } = await agent();
  service.script(async () => {
    await answered;
    return "serve" as const;
  });
  sheet(place);
  const asked = call("run", { manifest: "demo.csv", max_credits: 4 });
  await service.wasAsked("GET me", 1);
  clock.advance(20_000);
  const answer = await asked;
  expect(answer.structuredContent).toMatchObject({ exit: null, document: null });
  expect(answer.structuredContent.message).toMatch(/^The command is still running; follow it with status/);
  answerAll();
});

test("docs/agents.md lists the tools, and which of them spend", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/agents.md"), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` \| .* \| (.*) ?\|$/gm)].map(([, name, spends]) => [
    name,
    spends?.trim() !== "",
  ]);
  expect(rows).toEqual(tools.map(({ name, takesLong }) => [name, takesLong === true]));
});
