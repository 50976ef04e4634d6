import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { commandList } from "../../src/cli/command-list.js";
import { manPages } from "../../src/cli/man.js";
import { topics } from "../../src/cli/topics.js";
import { nameOf } from "../../src/options/definition.js";
import { newPlace, run } from "../e2e/command.js";
import { allCommands } from "./all-commands.js";

const at = newPlace();

test.each(topics.map(({ name }) => name))(
  "bulkgen help %s fits a screen, and what it names exists",
  async (name) => {
    const { code, stdout } = await run(at, ["help", name]);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(32);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(78);
    const flags = allCommands(commandList).flatMap(([, { flags: own = {} }]) => Object.keys(own).map(nameOf));
    for (const [, flag] of stdout.matchAll(/--([a-z][a-z-]+)/g)) expect(flags).toContain(flag);
    const names = commandList.map((each) => each.name);
    for (const [, command] of stdout.matchAll(/`(?:bulkgen )?([a-z]+)[ `]/g))
      expect(names).toContain(command);
  },
);

test("the program's help lists the topics, and an unknown one is told the nearest", async () => {
  const { stdout } = await run(at, ["--help"]);
  expect(stdout).toContain("Topics (bulkgen help <topic>):");
  for (const { name, describe } of topics)
    expect(stdout).toMatch(new RegExp(`\\n  ${name} +${describe.split(" ")[0]}`));
  expect((await run(at, ["help", "quotas"])).stderr).toContain("Did you mean quota?");
});

test("the job file in the topic about manifests can be planned", async () => {
  const text = topics.find(({ name }) => name === "manifests")?.text() ?? "";
  const yaml = text.split("\n").filter((line, _, all) => {
    const [from, until] = [
      all.findIndex((each) => each.includes("name: autumn")),
      all.findIndex((each) => each.includes('"@picture"')),
    ];
    const index = all.indexOf(line);
    return index >= from && index <= until;
  });
  at.write("autumn.yaml", yaml.map((line) => line.slice(2)).join("\n"));
  at.write("products.csv", "id,product\ncup,a cup\n");
  const { code, stdout, stderr } = await run(at, ["plan", "autumn.yaml", "--sandbox", "--json"]);
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ problems: [], states: { new: 4 } });
});

test("there is a manual page for the program, each command and each topic, and none of their texts is taken for roff", () => {
  const pages = manPages(commandList, "1.2.3");
  const commands = allCommands(commandList).map(([path]) => `bulkgen-${path.join("-")}.1`);
  expect([...pages.keys()].toSorted()).toEqual(
    ["bulkgen.1", ...commands, ...topics.map(({ name }) => `bulkgen-${name}.7`)].toSorted(),
  );
  // npm links none for `man` that package.json does not name.
  const { man } = JSON.parse(readFileSync("package.json", "utf8"));
  expect(man).toEqual([...pages.keys()].toSorted().map((file) => `./dist/man/${file}`));
  const requests = /^\.(TH|SH|TP|B|nf|fi)( |$)/;
  for (const [file, text] of pages)
    for (const line of text.split("\n")) {
      if (line.startsWith(".")) expect([file, line]).toEqual([file, expect.stringMatching(requests)]);
      expect(line.startsWith("'")).toBe(false);
    }
  expect(pages.get("bulkgen-run.1")).toContain('.B "\\-\\-max\\-credits <n>"');
  expect(pages.get("bulkgen-run.1")).toContain('.TH "BULKGEN\\-RUN" 1 "" "bulkgen 1.2.3" "bulkgen"');
});
