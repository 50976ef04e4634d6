import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { endpoints } from "../../src/api/endpoints.js";
import { errorTable } from "../../src/api/errors.js";
import * as records from "../../src/api/records.js";
import { catalogue } from "../../src/sandbox/catalogue/catalogue.js";
import { examples } from "../../src/service/reference/examples.js";
import { openApi } from "../../src/service/reference/openapi.js";
import { operations } from "../../src/service/reference/operations.js";
import { componentSchemas, type SchemaName } from "../../src/service/reference/schemas.js";
import { Caller } from "../sandbox/caller.js";

const reference = { models: [], urlMs: 60 * 60 * 1_000 };
// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes
const document = openApi(reference, "http://127.0.0.1:4010") as any;

describe("the OpenAPI document", () => {
  it("is of version 3.1 and has each endpoint with its method", () => {
    expect(document.openapi).toBe("3.1.0");
    for (const { method, path } of Object.values(endpoints)) {
      const item = document.paths[path.replace(":taskId", "{taskId}")];
      expect(Object.keys(item)).toEqual([method.toLowerCase()]);
    }
  });

  it("names every error of the service's table where it can come", () => {
    for (const { code, status, endpoint } of errorTable) {
      if (endpoint === "all") continue;
      const { method, path } = endpoints[endpoint];
      const operation = document.paths[path.replace(":taskId", "{taskId}")][method.toLowerCase()];
      expect(operation.responses[status].description).toContain(code);
    }
  });

  it("refers to nothing that is not in it", () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)];
    expect(references.length).toBeGreaterThan(8);
    for (const [, name] of references) expect(document.components.schemas).toHaveProperty(name ?? "");
  });

  it("explains every field, and knows the values of the closed ones", () => {
    const { Task, Me, Model } = componentSchemas();
    expect(Task.properties?.["status"]?.enum).toEqual(["processing", "completed", "failed"]);
    expect(Model.properties?.["parameters"]?.items?.$ref).toBe("#/components/schemas/ModelParameter");
    expect(JSON.stringify(Me)).toContain('"enum":["Starter","Pro","Enterprise"]');
    expect(Task.properties?.["output_urls"]?.description).toContain("expire");
  });
});

describe("a typed client", () => {
  it("finds misspelt names and a missing format: no record takes any other field for granted", () => {
    const schemas = componentSchemas();
    for (const [name, schema] of Object.entries(schemas)) {
      expect([name, schema.additionalProperties]).toEqual([name, undefined]);
    }
    expect(schemas.Task.properties?.["input"]).toMatchObject({ type: "object", additionalProperties: {} });
    expect(schemas.Me.properties?.["user"]?.properties?.["id"]?.format).toBe("uuid");
    expect(schemas.GenerateRequest.properties?.["image_url"]?.format).toBe("uri");
    expect(schemas.ModelParameter.required).toEqual(["key", "label", "type", "options", "default"]);
    expect(document.paths["/api/v1/task/{taskId}"].get.parameters[0].schema.format).toBe("uuid");
  });

  it("is told how long to wait, which errors can come, and under which licence", () => {
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path as object));
    for (const { responses, description, tags } of operations) {
      expect(responses[429].headers).toHaveProperty("Retry-After");
      expect(responses).toHaveProperty("500");
      expect(responses).not.toHaveProperty("405");
      expect([description, tags]).toEqual([expect.any(String), [expect.any(String)]]);
    }
    expect(document.paths["/api/v1/me"].get.responses).not.toHaveProperty("403");
    expect(document.info.license).toEqual({ name: "MIT", identifier: "MIT" });
  });

  it("sees examples that are what the service answers", async () => {
    const shown = examples("http://127.0.0.1:4010");
    records.generateRequest.parse(shown.GenerateRequest);
    const caller = await Caller.start();
    const created = (await caller.generate(shown.GenerateRequest)).body;
    caller.clock.advance(60_000);
    const answers = {
      Creation: created,
      Task: (await caller.task(created.task_id)).body,
      Me: (await caller.get("/api/v1/me")).body,
      ModelList: (await caller.get("/api/v1/models")).body,
    };
    for (const [name, answer] of Object.entries(answers)) {
      expect(Object.keys(shown[name as SchemaName] as object)).toEqual(Object.keys(answer));
    }
    expect(shown.Task).toMatchObject({ input: answers.Task.input, status: answers.Task.status });
    await caller.sandbox.close();
  });
});

describe("the text of the document", () => {
  let caller: Caller;
  // biome-ignore lint/suspicious/noExplicitAny: a document of many shapes
  let served: any;

  async function start(options: Parameters<typeof Caller.start>[0] = {}): Promise<void> {
    caller = await Caller.start(options);
    served = await (await fetch(`${caller.sandbox.url}/openapi.json`)).json();
  }
  afterEach(() => caller.sandbox.close());

  const run = async (command: string) => {
    const { stdout } = await promisify(execFile)("sh", ["-c", command]);
    return JSON.parse(stdout);
  };
  const commandsIn = (markdown: string) =>
    [...markdown.matchAll(/```sh\n([\s\S]*?)\n```/g)].map(([, command = ""]) => command);

  it("starts with a command that works as it is pasted, at the address that was asked", async () => {
    await start();
    const [make = "false", get = "false"] = commandsIn(served.info.description);
    const created = await run(make);
    expect(created).toMatchObject({ status: "processing", model: "aurora-image-mini" });
    const setUp = make.split("\n").filter((line) => line.startsWith("export"));
    const task = await run([...setUp, get.replace("TASK_ID", created.task_id)].join("\n"));
    expect(task).toMatchObject({ task_id: created.task_id });
  });

  it("has a command for each operation that works as it is pasted", async () => {
    await start();
    let taskId = "";
    for (const { endpoint } of operations) {
      const { method, path } = endpoints[endpoint];
      const operation = served.paths[path.replace(":taskId", "{taskId}")][method.toLowerCase()];
      const answer = await run((commandsIn(operation.description)[0] ?? "").replace("TASK_ID", taskId));
      taskId = answer.task_id ?? taskId;
      const body = operation.responses["200"].content["application/json"];
      expect(Object.keys(answer)).toEqual(Object.keys(body.example ?? body.examples.completed.value));
    }
  });

  it("tells the limits, every error, how to poll, how to rehearse, and the models", async () => {
    await start();
    const { description } = served.info;
    for (const { code } of errorTable) expect(description).toContain(`| \`${code}\` |`);
    for (const line of ["| Starter | 30 | 1000 |", "| Enterprise | unlimited | unlimited |"])
      expect(description).toContain(line);
    for (const word of ["Retry-After", "[[moderation]]", "METHOD_NOT_ALLOWED", caller.sandbox.key])
      expect(description).toContain(word);
    const task = served.paths["/api/v1/task/{taskId}"].get;
    for (const word of ["10 minutes", "1 hour"]) expect(task.description).toContain(word);
    const shown = Object.values(task.responses["200"].content["application/json"].examples);
    expect(shown.map((each) => (each as { value: { status: string } }).value.status)).toEqual([
      "completed",
      "processing",
      "failed",
    ]);
    const models = served.paths["/api/v1/models"].get.description;
    for (const model of ["atelier-upscale", "reel-perform"]) expect(models).toContain(`| \`${model}\` |`);
    expect(models).toContain("`aspect_ratio`: **`1:1`**, `16:9`");
    expect(served.components.securitySchemes.bearer["x-sandbox-key"]).toBe(caller.sandbox.key);
  });

  it("has names from a model file as text, whatever they hold", async () => {
    const key = "<img src=x onerror=alert(1)> | **bold** `code`";
    const [model] = catalogue;
    if (model === undefined) throw new Error("there are no models");
    await start({ models: [{ ...model, key, parameters: [] }] });
    const { description } = served.paths["/api/v1/models"].get;
    const row = description.split("\n").at(-1);
    expect(row.split("|")).toHaveLength(7);
    expect(row).not.toMatch(/[<`*]/);
  });
});

describe("the page", () => {
  it("is served without a key, with no inline script or style and nothing from elsewhere", async () => {
    const { sandbox } = await Caller.start();
    const page = await fetch(`${sandbox.url}/docs`);
    const policy = page.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
    expect(policy).not.toContain("unsafe");
    const text = await page.text();
    expect(text).not.toMatch(/<script(?![^>]* src=)|<style|https?:\/\/|style="|\[object|undefined/);
    for (const [, part = ""] of text.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)) {
      const { status, headers } = await fetch(sandbox.url + part);
      expect([part, status, headers.get("content-security-policy")]).toEqual([part, 200, policy]);
    }
    expect((await fetch(`${sandbox.url}/docs/assets/nowhere.js`)).status).toBe(404);
    await sandbox.close();
  });

  it("leads to the document where there is no JavaScript", async () => {
    const { sandbox } = await Caller.start();
    const text = await (await fetch(`${sandbox.url}/docs`)).text();
    expect(text).toContain('<a href="/openapi.json">');
    expect(text.length).toBeLessThan(2_000);
    await sandbox.close();
  });
});
