import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Document, parseDocument, stringify, visit } from "yaml";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import type { StarterName } from "../../../options/setup.js";
import { packageFile } from "../../../package-file.js";
import { type Workflow, WorkflowMistake, workflowIn } from "../../../providers/comfyui/graph.js";
import { ComfyMachine } from "../../../providers/comfyui/machine.js";
import {
  type InspectedWorkflow,
  inspectWorkflow,
  type ObjectInfo,
} from "../../../providers/comfyui/workflow.js";
import { openSender } from "../../../providers/send.js";
import { leaves } from "../../../text/within.js";
import { checkedProxies } from "../../../workspace/connection.js";
import { firstJob } from "../../../workspace/starter.js";
import { fileTrouble } from "../../settings/file-trouble.js";

/** The files of a first workspace with models of its own: those of `examples/models`, or what a workflow of ComfyUI gives. */

export const modelsName = "models.yaml";

export interface ModelsStarter {
  /** Texts by their names below the workspace. */
  files: Record<string, string>;
  /** What people should know, each in a line. */
  notes: string[];
}

/** The example of a kind of provider, at another address if one is given. */
export function exampleStarter(
  name: Exclude<StarterName, "comfyui">,
  address: string | undefined,
): ModelsStarter {
  const folder = packageFile(`examples/models/${name}`);
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .toSorted((one, other) => Number(other === modelsName) - Number(one === modelsName));
  const files = Object.fromEntries(names.map((each) => [each, readFileSync(join(folder, each), "utf8")]));
  const text = files[modelsName] ?? "";
  if (address !== undefined) {
    const document = parseDocument(text);
    document.setIn(["providers", name, "base_url"], address);
    files[modelsName] = document.toString({ lineWidth: 0, flowCollectionPadding: true });
  }
  return { files: withSchema(files), notes: [] };
}

const defaultMachine = "http://127.0.0.1:8188";

/**
 * A model of a workflow. ComfyUI is asked which values its nodes take; if it does not answer, the notes say so. Throws EarlyExit
 * for a file that is no workflow.
 */
export async function workflowStarter(
  { file, address = defaultMachine }: { file: string; address: string | undefined },
  folder: string,
  { cwd, clock, env, interrupt }: Machine,
): Promise<ModelsStarter> {
  const path = resolve(cwd, file);
  const { text, workflow } = readWorkflow(path, file);
  const notes: string[] = [];
  const sender = openSender({ clock, key: () => null, proxies: checkedProxies(env) });
  const machine = new ComfyMachine(address, sender, () => ({}));
  const info = await machine.objectInfo(interrupt()).catch((error: Error) => {
    notes.push(
      `ComfyUI does not answer at ${address} (${error.message}), so models.yaml has no lists of the values it takes, such as its checkpoints`,
    );
    return {} as ObjectInfo;
  });
  const inspected = inspectWorkflow(workflow, info);
  notes.push(...inspected.notes);
  const isInside = !leaves(folder, path);
  const name = isInside ? relative(folder, path) : `flows/${basename(path)}`;
  const files = {
    [modelsName]: modelsText(inspected, name, address),
    [firstJob]: sheetOf(inspected),
    ...(isInside ? {} : { [name]: text }),
  };
  if (inspected.model.input !== "text")
    notes.push(`the sheet names ${inputName(inspected)} as its input: put one beside the sheet`);
  return { files: withSchema(files), notes };
}

function readWorkflow(path: string, name: string): { text: string; workflow: Workflow } {
  try {
    const text = readFileSync(path, "utf8");
    return { text, workflow: workflowIn(text, name) };
  } catch (error) {
    const why = error instanceof WorkflowMistake ? error.message : fileTrouble(error, path);
    throw new EarlyExit("usage", `--workflow: ${why}. Nothing was created.`);
  }
}

function modelsText({ found, model }: InspectedWorkflow, workflow: string, address: string): string {
  const params = Object.fromEntries(
    Object.entries(model.params).map(([role, type]) => {
      if (typeof type === "string") return [role, type];
      // What the workflow was saved with, rather than the first of the list.
      const saved = String(found[role as keyof typeof found]?.[0]?.value);
      return [role, type.includes(saved) ? { options: type, default: saved } : type];
    }),
  );
  const { key, category, input, bind } = model;
  const written = {
    providers: { comfyui: { kind: "comfyui", base_url: address, concurrency: 1 } },
    models: [{ key, provider: "comfyui", category, input, credits: 0, workflow, bind, params }],
  };
  const document = parseDocument(stringify(written));
  listsInOneLine(document);
  return `# A workflow of ComfyUI. bind says which input of which node takes what; all others stay as the workflow was saved.
# Several machines are one provider: base_url: [${address}, ...].
${document.toString({ lineWidth: 0, flowCollectionPadding: true })}`;
}

function listsInOneLine(document: Document): void {
  visit(document, {
    Seq(key, node) {
      if (
        key !== null &&
        node.items.every((item) => Object.hasOwn(Object(item), "value") && !("items" in Object(item)))
      )
        node.flow = true;
    },
  });
}

function inputName({ model }: InspectedWorkflow): string {
  return model.input === "video" ? "clip.mp4" : "picture.png";
}

function sheetOf(inspected: InspectedWorkflow): string {
  const { key, input } = inspected.model;
  const prompt = '"A stoneware teapot on a dark oak table, steam in low sun"';
  const columns: [string, string][] = [
    ["id", "first"],
    ["model", key],
    ...(input === "text" || input === "text+image" ? ([["prompt", prompt]] as [string, string][]) : []),
    ...(input === "text"
      ? []
      : ([[input === "video" ? "video_url" : "image_url", inputName(inspected)]] as [string, string][])),
  ];
  return `${columns.map(([name]) => name).join(",")}\n${columns.map(([, value]) => value).join(",")}\n`;
}

/** The line by which editors find the schema, if this installation has the file. */
function withSchema(files: Record<string, string>): Record<string, string> {
  const schema = packageFile("dist/json-schemas/models-file.json");
  const text = files[modelsName];
  if (text === undefined || !existsSync(schema)) return files;
  return { ...files, [modelsName]: `# yaml-language-server: $schema=${pathToFileURL(schema).href}\n${text}` };
}
