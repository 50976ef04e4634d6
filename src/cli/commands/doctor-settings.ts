import { isKeyForm } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import type { Workspace } from "../../job/workspace/workspace.js";
import { type Check, fine, problem, warning } from "../../report/doctor.js";
import type { SharedFlags } from "../flags/shared.js";
import { address, shapeOf } from "../settings/connect.js";
import {
  envFile,
  foreignAddress,
  inheritedEnvironment,
  openToOthers,
  type ServiceSettings,
  type Setting,
  serviceSettings,
} from "../settings/env.js";

const expectedUrl = "the service's address, such as https://service.example";
const expectedKey = "svc_ and 32 letters or digits";

/** Address and key as they are set, without asking anybody. A key is never shown. */
export function settingChecks(flags: SharedFlags, { root }: Workspace): Check[] {
  const file = envFile(root);
  let settings: ServiceSettings;
  try {
    settings = serviceSettings(flags, root, inheritedEnvironment());
  } catch (error) {
    const todo = "make the file readable";
    return [problem("settings", { expected: "files that can be read", got: foreseen(error), todo })];
  }
  const open = openToOthers(file);
  const mode = { expected: "a file that only you may read", got: open ?? "", todo: `chmod 600 ${file}` };
  const todo = (name: string) => `set ${name} in the environment or in ${file}, or add --sandbox`;
  return [
    ...(open === null ? [] : [warning(".env", mode)]),
    baseUrlCheck(settings, root, todo("BULKGEN_BASE_URL")),
    keyCheck(settings.key, todo("BULKGEN_API_KEY")),
  ];
}

function baseUrlCheck(settings: ServiceSettings, root: string, todo: string): Check {
  const setting = settings.baseUrl;
  if (!setting?.value) return problem("base URL", { expected: expectedUrl, got: "nothing", todo });
  try {
    const { baseUrl } = address(setting.value);
    const foreign = foreignAddress(settings, baseUrl, root);
    const expected = "an address and a key from the same place";
    if (foreign)
      return warning("base URL", { expected, got: foreign, todo: `see that ${baseUrl} is your service` });
    return fine("base URL", expectedUrl, `${baseUrl} (from ${setting.from})`);
  } catch (error) {
    return problem("base URL", {
      expected: expectedUrl,
      got: `${foreseen(error)} (from ${setting.from})`,
      todo,
    });
  }
}

function keyCheck(setting: Setting | null, todo: string): Check {
  if (!setting?.value) return problem("key form", { expected: expectedKey, got: "nothing", todo });
  const { value, from } = setting;
  if (isKeyForm(value)) return fine("key form", expectedKey, `as expected (from ${from})`);
  const got = `${shapeOf(value)} (from ${from})`;
  return problem("key form", { expected: expectedKey, got, todo: "copy the key again, whole" }, "key");
}

function foreseen(error: unknown): string {
  if (error instanceof EarlyExit) return error.message;
  throw error;
}
