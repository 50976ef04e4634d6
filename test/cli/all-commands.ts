import type { CommandDefinition } from "../../src/cli/command-list.js";

/** Every command, also those below others, with its path. */
export function allCommands(
  commands: readonly CommandDefinition[],
  above: readonly string[] = [],
): [string[], CommandDefinition][] {
  return commands.flatMap((command) => {
    const path = [...above, command.name];
    return [
      [path, command] as [string[], CommandDefinition],
      ...allCommands(command.subcommands ?? [], path),
    ];
  });
}
