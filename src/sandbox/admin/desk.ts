import type { Clock, Random } from "../../clock.js";
import { ensureDefaultAccount } from "../state/default-account.js";
import { SqliteState } from "../state/sqlite-state.js";

/** What accounts are administered with: the state that a sandbox is served from, by this process or another. */
export interface Desk {
  state: SqliteState;
  clock: Clock;
  random: Random;
}

export interface DeskOptions {
  /** The SQLite file of the sandbox's state; made, with its first account, when it is not there. */
  file: string;
  clock: Clock;
  random: Random;
}

/**
 * Opens a state file for administration. The service reads accounts and keys with each request, so a sandbox that
 * serves the same file at the time goes by what is changed here from its next request on.
 */
export function openDesk({ file, clock, random }: DeskOptions): Desk & { close(): void } {
  const state = new SqliteState(file);
  ensureDefaultAccount(state, random, clock.now(), { plan: undefined, credits: undefined });
  return { state, clock, random, close: () => state.close() };
}

/** Something that an administrator asked for and cannot have; the message says what was expected and what was got. */
export class AdminProblem extends Error {
  override readonly name = "AdminProblem";
}
