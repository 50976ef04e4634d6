import { resolve } from "node:path";
import { z } from "zod";
import type { PlanName } from "../api/plans.js";
import type { Host } from "../machine.js";
import type { FaultPlanSettings } from "../sandbox/faults/plan.js";
import type { SandboxOptions } from "../sandbox/sandbox.js";
import type { SwitchSettings } from "../service/state/switches.js";
import type { ServiceAddress } from "./service.js";
import { checkSandboxSettings } from "./settings.js";

export interface SandboxSettings {
  /** The default account's plan, which sets its limits; `Pro` by default. */
  plan?: PlanName;
  /** Its balance in credits; 500 by default. */
  credits?: number;
  /** How long every task takes, in ms, instead of each model's own duration. */
  taskMs?: { min: number; max: number };
  /** Requests may name local files below this folder as inputs; none by default. */
  inputs?: string;
  /** Faults to inject: rules such as `{ fault: "lost-reply", on: ["generate"], at: [1] }`. */
  faults?: FaultPlanSettings;
  /** Behaviour that the service's documentation leaves open. */
  switches?: SwitchSettings;
  /** 0 by default: any free port. */
  port?: number;
  /**
   * A SQLite file that keeps the state of the sandbox. By default the state is in memory: the user and the tasks are gone
   * when the sandbox closes, and a workspace that was used with it refuses the next sandbox. So give each sandbox a new
   * workspace, such as a temporary folder.
   */
  state?: string;
}

/** The local service, running in this process. It is a ServiceAddress: pass it as `service`. */
export interface LocalSandbox extends ServiceAddress {
  sandbox: true;
  /** The link to its dashboard, which grants access. */
  dashboard: string;
  /** Stops the sandbox. Requests without an answer are cut off. */
  close(): Promise<void>;
}

/** Rejects if the port is taken or the state cannot be used, and with RangeError for a setting that has no meaning. */
export async function startSandbox(
  { clock, random, cwd }: Host,
  given: SandboxSettings,
): Promise<LocalSandbox> {
  checkSandboxSettings(given);
  const { inputs, state, ...settings } = given;
  // What paints and films is loaded only by those who rehearse.
  const { serveSandbox } = await import("../sandbox/serve.js");
  const options: SandboxOptions = {
    clock,
    random,
    file: state === undefined ? ":memory:" : resolve(cwd, state),
    ...settings,
    ...(inputs === undefined ? {} : { inputRoot: resolve(cwd, inputs) }),
  };
  const { url, key, dashboard, close } = await serveSandbox(options).catch(inWords);
  return { baseUrl: url, apiKey: key, sandbox: true, dashboard, close };
}

/** An invalid fault or switch, in a readable form. */
function inWords(error: unknown): never {
  throw error instanceof z.ZodError ? new RangeError(z.prettifyError(error), { cause: error }) : error;
}
