import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { endpoints } from "../../src/api/endpoints.js";
import { errorTable } from "../../src/api/errors.js";
import * as records from "../../src/api/records.js";
import { examples } from "../../src/service/reference/examples.js";
import { openApi } from "../../src/service/reference/openapi.js";
import { componentSchemas, type SchemaName } from "../../src/service/reference/schemas.js";
import { Caller } from "../sandbox/caller.js";

// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes
const document = openApi() as any;

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

describe("the reference", () => {
  it("is served without a key, with no script and nothing from elsewhere", async () => {
    const { sandbox } = await Caller.start();
    const served = await fetch(`${sandbox.url}/openapi.json`);
    expect(await served.json()).toEqual(document);
    const page = await fetch(`${sandbox.url}/docs`);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    const text = await page.text();
    for (const word of ["/api/v1/generate", "TASK_NOT_FOUND", "requests_count", "atelier-upscale", "10000"]) {
      expect(text).toContain(word);
    }
    expect(text.replaceAll(sandbox.url, "")).not.toMatch(/<script|https?:\/\/|style="|\[object|undefined/);
    expect((await fetch(`${sandbox.url}/docs/style.css`)).headers.get("content-type")).toContain("text/css");
    await sandbox.close();
  });

  it("has every field, one anchor for each link, and says how to poll and what an error looks like", async () => {
    const { sandbox } = await Caller.start();
    const text = await (await fetch(`${sandbox.url}/docs`)).text();
    for (const field of ["input", "user.email", "subscription.billing_interval", "output_urls"]) {
      expect(text).toContain(`<code>${field}</code>`);
    }
    const anchors = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(anchors).size).toBe(anchors.length);
    for (const [, target] of text.matchAll(/href="#([^"]+)"/g)) expect(anchors).toContain(target);
    expect(text.indexOf('id="models"')).toBeLessThan(text.indexOf("atelier-upscale"));
    for (const word of [
      "10 minutes",
      "Retry-After",
      "1 hour",
      "[[moderation]]",
      "INVALID_MODEL&quot;",
      "reel-perform",
    ]) {
      expect(text).toContain(word);
    }
    await sandbox.close();
  });

  it("starts with a command that works as it is pasted", async () => {
    const { sandbox } = await Caller.start();
    const text = await (await fetch(`${sandbox.url}/docs`)).text();
    const command = /<pre>(export [^<]*)<\/pre>/
      .exec(text)?.[1]
      ?.replaceAll("&quot;", '"')
      .replaceAll("&#39;", "'");
    const { stdout } = await promisify(execFile)("sh", ["-c", command ?? "false"]);
    expect(JSON.parse(stdout)).toMatchObject({ status: "processing", model: "aurora-image-mini" });
    await sandbox.close();
  });
});
