import { expect, test } from "vitest";
import { type CommandDefinition, commandList } from "../../src/cli/command-list.js";
import { fromHere } from "../../src/cli/settings/workspace.js";
import type { Machine } from "../../src/machine.js";
import { newPlace } from "../e2e/command.js";

const { folder } = newPlace();
const machine = { cwd: folder, env: {} } as Machine;

/** Every command that does something, with its flags. */
function commandsOf(
  list: readonly CommandDefinition[],
  before = "",
): (readonly [name: string, definition: CommandDefinition])[] {
  return list.flatMap((command) => {
    const name = `${before}${command.name}`;
    const own = command.load === undefined ? [] : [[name, command] as const];
    return [...own, ...commandsOf(command.subcommands ?? [], `${name} `)];
  });
}

test.each(commandsOf(commandList))(
  "a message of a rehearsal names `bulkgen %s` with --sandbox if it takes that flag",
  (name, { flags = {} }) => {
    const told = fromHere(`Type \`bulkgen ${name}\` now.`, { root: folder }, true, machine);
    const isOwn = ["init", "sandbox", "schedule", "trust"].includes(name.split(" ")[0] ?? "");
    const flag = "sandbox" in flags && !isOwn ? " --sandbox" : "";
    expect(told).toBe(`Type \`bulkgen ${name}${flag}\` now.`);
  },
);
