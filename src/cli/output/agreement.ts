import { fingerprint } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import { terminalText } from "../../text/terminal.js";
import { agree, type FolderValue, notAgreed, shownFolderValue, unagreed, useKey } from "../../trust/trust.js";
import type { Workspace } from "../../workspace/workspace.js";
import { addressToAgree, type ServiceSettings, serviceSettings } from "../settings/env.js";
import { confirmed } from "./question.js";

/**
 * Asks on a terminal about the values of a folder that this user has not agreed to, each shown in full. Throws EarlyExit
 * without a terminal, which names the command that agrees, and for a no.
 */
export async function agreeToValues(
  values: readonly FolderValue[],
  { root, sharedFolder }: Pick<Workspace, "root" | "sharedFolder">,
  machine: Machine,
  command = "bulkgen trust",
): Promise<void> {
  const asked = notAgreed(sharedFolder, root, values);
  if (asked.length === 0) return;
  if (!machine.stdin.isTTY) throw unagreed(root, asked, command);
  if (!(await askAbout(asked, root, machine)))
    throw new EarlyExit(
      "usage",
      "not agreed; nothing was sent. Remove what you do not want from the folder's files.",
    );
  agree(sharedFolder, root, asked, machine.clock.now());
}

/** Shows the values, and asks for a yes on the terminal. */
export async function askAbout(
  values: readonly FolderValue[],
  root: string,
  machine: Machine,
): Promise<boolean> {
  const { stderr } = machine;
  stderr.write(
    `${terminalText(root)} may come from somebody else. It sets what you have not agreed to on this machine:\n`,
  );
  for (const value of values) stderr.write(`  ${shownFolderValue(value)}\n`);
  const question = values.length === 1 ? "Agree to it?" : `Agree to these ${values.length}?`;
  return confirmed({}, machine, machine.interrupt(), { would: "", question, done: "sent" });
}

/**
 * Asks on a terminal whether the address of the service may get the key, if somebody else may have set it, or if the key was
 * used elsewhere until now. What is missing or wrong is reported when the command connects.
 */
export async function agreeToAddress(
  flags: Parameters<typeof serviceSettings>[0],
  workspace: Pick<Workspace, "root" | "sharedFolder">,
  machine: Machine,
): Promise<void> {
  const { root, sharedFolder } = workspace;
  let settings: ServiceSettings;
  let asked: FolderValue[];
  try {
    settings = serviceSettings(flags, root, machine);
    asked = addressToAgree(settings, workspace);
  } catch (error) {
    if (error instanceof EarlyExit) return;
    throw error;
  }
  const [value] = asked;
  if (value === undefined || settings.key === null) return;
  if (!(await askAbout(asked, root, machine)))
    throw new EarlyExit("usage", "not agreed; nothing was sent. Set BULKGEN_BASE_URL to your own service.");
  agree(sharedFolder, root, asked, machine.clock.now());
  useKey(sharedFolder, fingerprint(settings.key.value.trim()), value.value);
}
