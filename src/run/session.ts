import { Gate } from "./gate/gate.js";
import type { RunPorts, RunSettings } from "./ports.js";

/** One execution of a run. Nothing in here is needed to resume. */
export interface Session {
  readonly ports: RunPorts;
  readonly settings: RunSettings;
  readonly gate: Gate;
}

export function openSession(ports: RunPorts, settings: RunSettings): Session {
  return { ports, settings, gate: new Gate(ports, settings) };
}
