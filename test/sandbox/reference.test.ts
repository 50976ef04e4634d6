import { describe, expect, it } from "vitest";
import { endpoints } from "../../src/api/endpoints.js";
import { errorTable } from "../../src/api/errors.js";
import { openApi } from "../../src/sandbox/reference/openapi.js";
import { componentSchemas } from "../../src/sandbox/reference/schemas.js";
import { Caller } from "./caller.js";

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
    expect(text).not.toMatch(/<script|https?:\/\/|style="|\[object|undefined/);
    expect((await fetch(`${sandbox.url}/docs/style.css`)).headers.get("content-type")).toContain("text/css");
    await sandbox.close();
  });
});
