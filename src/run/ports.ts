import type { SaveRequest, SaveResult } from "../archive/save.js";
import type { WakeSignal } from "../clock.js";
import type { Item, SavedFile } from "../core/ports/store.js";
import type { Replacements } from "./arrange.js";
import { Chains } from "./chains.js";
import { Gate } from "./gate/gate.js";
import type { GatePorts, GateSettings } from "./gate/ports.js";
import { Publishing, type PublishPorts } from "./publishing.js";
import type { Receipts } from "./receipts/receipts.js";

/** Where a run meets the world. */
export interface RunPorts extends GatePorts {
  /** Of the key. */
  fingerprint: string;
  /** The workspace's name among those of the account. */
  workspace: string;
  receipts: Receipts;
  save(request: SaveRequest, signal: AbortSignal): Promise<SaveResult>;
  /**
   * The number of downloads that other processes do at once, if downloads are handed out; rings the bell when it
   * changes.
   */
  offered?(): number;
  /** Told of each file that was archived. */
  archived?(item: Item, number: number, file: SavedFile): void;
  /** Resolves when whoever was told of files has done with them. */
  handled?(): Promise<void>;
  /** Files that make way for what their rows ask for now. */
  replacements: Replacements;
  /** Ends the sleep of the loop. */
  bell: WakeSignal;
  /** How local inputs are published; null if the service accepts their paths, as the sandbox does. */
  publish: PublishPorts | null;
  /** Whether there is a file at this path. */
  exists(path: string): Promise<boolean>;
}

export interface RunSettings extends GateSettings {
  /** POSTs that may be in flight at once. */
  lanes: number;
  /**
   * Use only as many lanes as are needed to submit everything soon, because requests in flight during a crash are in
   * doubt.
   */
  savesLanes: boolean;
  polls: number;
  /**
   * Submit in the manifest's order, because the credits do not cover all items and the plan said how far they reach.
   */
  inOrder: boolean;
}

/** One execution of a run. A resume needs nothing of this state. */
export interface Session {
  readonly ports: RunPorts;
  readonly settings: RunSettings;
  readonly gate: Gate;
  readonly chains: Chains;
  readonly publishing: Publishing;
}

export function openSession(ports: RunPorts, settings: RunSettings): Session {
  const gate = new Gate(ports, settings);
  const publishing = new Publishing(ports, ports.publish);
  return { ports, settings, gate, chains: new Chains(ports, settings.run.id, gate, publishing), publishing };
}
