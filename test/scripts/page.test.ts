import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const folder = "dist/page";
const textOf = (path: string) => readFileSync(join(folder, path), "utf8");

describe("the built pages", () => {
  test("the gallery is one script and one style, which load nothing", () => {
    expect(readdirSync(join(folder, "gallery")).sort()).toEqual(["NOTICES.txt", "gallery.css", "gallery.js"]);
    // They are written into a page, where a script and a style end at their closing tags.
    expect(textOf("gallery/gallery.js").match(/\bimport\b|\bexport *[{*]|<\/script|<!--/g)).toBeNull();
    expect(textOf("gallery/gallery.css").match(/@import|url\(|<\/style/g)).toBeNull();
  });

  test.each([
    ["gallery", ["preact", "pretty-bytes"]],
    ["dashboard", ["preact", "pretty-bytes", "uplot"]],
  ])("%s names each package that is in it", (page, names) => {
    const notices = textOf(`${page}/NOTICES.txt`);
    for (const name of names) {
      const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
      expect(notices).toContain(`${name} ${version} (${license})`);
    }
  });

  test("a package that is itself made of others is named with their notices", () => {
    const notices = textOf("reference/NOTICES.txt");
    for (const file of ["LICENSE", "NOTICE", "swagger-ui-es-bundle.js.LICENSE.txt"])
      expect(notices).toContain(readFileSync(`node_modules/swagger-ui-dist/${file}`, "utf8").trim());
  });

  test("gallery and dashboard are drawn with the same colours, by day and by night", () => {
    const colours = (style: string) => style.match(/--(ground|ink|accent):[^;}]+/g);
    const assets = readdirSync(join(folder, "dashboard/assets"));
    const dashboard = assets
      .filter((name) => /^index.*\.css$/.test(name))
      .map((name) => textOf(`dashboard/assets/${name}`));
    expect(colours(dashboard.join(""))).toHaveLength(6);
    expect(colours(textOf("gallery/gallery.css"))).toEqual(colours(dashboard.join("")));
  });
});
