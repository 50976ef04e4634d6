import { z } from "zod";
import { exitCodes } from "../core/exit.js";
import { itemStates } from "../core/item.js";
import { approvals } from "../core/ports/store.js";

/** The values that documents have in common, each with its unit in the description. */

/** An amount of credits. The service's prices may have decimals. */
export function credits(what: string) {
  return z.number().describe(`${what}, in credits`);
}

/** An instant. */
export function time(what: string) {
  return z.iso.datetime().describe(`${what}; ISO 8601, UTC`);
}

/** How many there are of something. */
export function count(what: string) {
  return z.int().nonnegative().describe(what);
}

export function bytes(what: string) {
  return z.int().nonnegative().describe(`${what}, in bytes`);
}

export function milliseconds(what: string) {
  return z.number().nonnegative().describe(`${what}, in milliseconds`);
}

export function text(what: string) {
  return z.string().describe(what);
}

export function flag(what: string) {
  return z.boolean().describe(what);
}

export const runNumber = z.int().positive().describe("the run's number in its workspace");
export const job = text("the job's name");
export const rowId = text("the row's id: that of the sheet, else made from the item's key");
export const rowNumber = z
  .int()
  .nonnegative()
  .describe("the row's number as a spreadsheet counts: the header is row 1");
export const itemKey = text("the item's key: the same as long as nothing is changed that it is made of");
export const sandbox = flag("a rehearsal in the sandbox, which costs nothing");
export const workspace = text("the workspace's folder; absolute");
export const sha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe("the SHA-256 of the file, hexadecimal");
export const nextStep = z
  .string()
  .nullable()
  .describe("what to do now, as a sentence that names the command; null if nothing is left to do");

export const exit = z.int().describe("the exit code; docs/reference.md lists them");
export const exitName = z.enum(exitCodes.map(({ name }) => name)).describe("the name of the exit code");

export const itemState = z.enum(itemStates).describe("the item's state; docs/reference.md lists them");
export const counts = z.record(z.enum(itemStates), count("items in this state")).describe("items by state");

export const params = z.record(z.string(), z.string()).describe("its params, as text");

export const outputNumber = z.int().positive().describe("number of the output within its task, from 1");
export const approval = z
  .enum(approvals)
  .nullable()
  .describe("what a person has decided about its files; null if nobody has to");
