import { defaultRunOptions, nothingToSubmit, type RunOptions } from "../core/next/options.js";
import { nameOf } from "../options/definition.js";
import { runFlags } from "../options/run.js";
import { shellWord } from "../text/shell.js";

/** The options of a run that are not the defaults, as flags: `--max-credits 60`. With `shown`, values as people see them. */
export function changedFlags(options: RunOptions, shown: (value: string) => string = String): string[] {
  // Nobody chose the initial options of a rebuilt run.
  const usual: Partial<RunOptions> = options.rebuilt === true ? nothingToSubmit : defaultRunOptions;
  const given: string[] = [];
  const switches: string[] = [];
  for (const [name, { kept, value }] of Object.entries(runFlags)) {
    if (kept === undefined) continue;
    const [set, unset] = [options[kept.as], usual[kept.as]];
    const texts = set == null || set === false ? [] : kept.texts(set);
    if (value === null && texts.length > 0) switches.push(`--${nameOf(name)}`);
    else if (unset == null || kept.texts(unset).join() !== texts.join())
      given.push(...texts.map((text) => `--${nameOf(name)} ${shellWord(shown(text))}`));
  }
  return [...given, ...switches];
}
