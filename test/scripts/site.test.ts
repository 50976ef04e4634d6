import { posix } from "node:path";
import { describe, expect, test } from "vitest";
import { pages } from "../../scripts/readme-sections.mjs";
import { anchorOf, siteOf } from "../../scripts/site.mjs";

/** The site as `npm run site` writes it. */
const site = siteOf(".");
const html = [...site].flatMap(([path, content]): [string, string][] =>
  path.endsWith(".html") && typeof content === "string" ? [[path, content]] : [],
);

/** The values of an attribute in a page, as a browser reads them. */
function valuesOf(page: string, attribute: string): string[] {
  const pattern = new RegExp(`<[a-z][^>]* ${attribute}="([^"]*)"`, "g");
  return [...page.matchAll(pattern)].map(([, value = ""]) => value.replaceAll("&amp;", "&"));
}

test("the site has every page of docs/, and begins at index.html", () => {
  const own = pages().filter((page) => page.startsWith("docs/") && !page.endsWith("README.md"));
  for (const page of own)
    expect([...site.keys()]).toContain(page.replace("docs/", "").replace(/md$/, "html"));
  expect(site.get("index.html")).toContain("<h1");
});

describe.each(html)("%s", (path, page) => {
  test("has links and pictures only of what is in the site, down to the headings", () => {
    const targets = [...valuesOf(page, "href"), ...valuesOf(page, "src")];
    const dead = targets.filter(
      (target) => !/^(https|mailto):/.test(target) && !leadsSomewhere(path, target),
    );
    expect(dead).toEqual([]);
  });

  test("loads nothing from elsewhere, and says so to the browser", () => {
    expect(valuesOf(page, "src").filter((source) => /^[a-z]+:/.test(source))).toEqual([]);
    expect(page).not.toContain("<script");
    expect(page).toContain(`content="default-src 'none'; style-src 'self'; img-src 'self'"`);
  });

  test("has a title, one first heading and each id once", () => {
    expect(page).toMatch(/<title>[^<]+<\/title>/);
    expect(page.match(/<h1/g)).toHaveLength(1);
    const ids = valuesOf(page, "id");
    expect(ids.length).toBe(new Set(ids).size);
  });
});

function leadsSomewhere(from: string, target: string): boolean {
  const [file = "", anchor] = target.split("#");
  const path = file === "" ? from : posix.join(posix.dirname(from), file);
  const content = site.get(path);
  if (content === undefined) return false;
  return anchor === undefined || valuesOf(String(content), "id").includes(decodeURIComponent(anchor));
}

test.each([
  ["Check a machine: `bulkgen doctor`", "check-a-machine-bulkgen-doctor"],
  ["An item's states", "an-items-states"],
  ["What happens when…", "what-happens-when"],
  ["P13 · Files", "p13--files"],
])("the anchor of %s is the one that GitHub makes", (heading, anchor) => {
  expect(anchorOf(heading)).toBe(anchor);
});
