import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import type { Json } from "../provider.js";

/** A workflow in the format that ComfyUI runs: nodes by their id, whose inputs are values or links to other nodes. */

export interface WorkflowNode {
  class_type: string;
  inputs: Record<string, Json>;
  _meta?: { title?: string | undefined } | undefined;
}

export type Workflow = Record<string, WorkflowNode>;

/** A link to an output of another node: its id, and which of its outputs. */
export type Link = [string, number];

/** Thrown if a file is no workflow that ComfyUI runs; the message is one sentence for people. */
export class WorkflowMistake extends Error {
  override readonly name = "WorkflowMistake";
}

const node = z.looseObject({
  class_type: z.string().min(1),
  inputs: z.record(z.string(), z.json()).default({}),
  _meta: z.looseObject({ title: z.string().optional() }).optional(),
});

const workflowBytesMax = 16 * 1024 * 1024;

/** Reads a workflow; `name` is relative to `folder` or absolute. Throws WorkflowMistake. */
export function workflowFile(folder: string, name: string): Workflow {
  const path = resolve(folder, name);
  let text: string;
  try {
    const facts = statSync(path);
    if (!facts.isFile()) throw new WorkflowMistake(`${name} is not a file`);
    if (facts.size > workflowBytesMax) throw new WorkflowMistake(`${name} is too large for a workflow`);
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof WorkflowMistake) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new WorkflowMistake(
      code === "ENOENT" ? `there is no file ${name}` : `${name} cannot be read (${code})`,
    );
  }
  return workflowIn(text, name);
}

/** Reads the text of a workflow. Throws WorkflowMistake. */
export function workflowIn(text: string, name: string): Workflow {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new WorkflowMistake(`${name} is not JSON: ${(error as Error).message}`);
  }
  const { nodes, links } = Object(value) as { nodes?: unknown; links?: unknown };
  if (Array.isArray(nodes) && (Array.isArray(links) || links === undefined))
    throw new WorkflowMistake(
      `${name} is in the format of ComfyUI's editor, which ComfyUI does not run: save it with Workflow → Export (API), in older versions "Save (API Format)"`,
    );
  const read = z.record(z.string(), node).safeParse(value);
  if (!read.success || Object.keys(read.data).length === 0)
    throw new WorkflowMistake(
      `${name} is not a workflow of ComfyUI: expected nodes with class_type and inputs, as Workflow → Export (API) saves them`,
    );
  return read.data as Workflow;
}

export function isLink(value: Json | undefined): value is Link {
  return (
    Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && typeof value[1] === "number"
  );
}

/** `6.text` is the input `text` of node 6. Ids of nodes have no dots, names of inputs may. */
export function targetOf(written: string): { id: string; input: string } | null {
  const dot = written.indexOf(".");
  if (dot < 1 || dot === written.length - 1) return null;
  return { id: written.slice(0, dot), input: written.slice(dot + 1) };
}
