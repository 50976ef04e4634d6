import { readFile } from "node:fs/promises";
import {
  JobRefused,
  type JsonObject,
  type MediaFile,
  type MediaName,
  type ProviderJob,
} from "../provider.js";
import { fill, isFile, type TemplateValues } from "./template.js";

/** The values that templates may name. Files are read only if a template wants their bytes. */
export async function namesOf(job: ProviderJob, wanted: ReadonlySet<string>): Promise<TemplateValues> {
  const names: Record<string, string> = {
    ...job.params,
    prompt: job.prompt,
    id: job.id,
    category: job.model.category,
  };
  for (const [name, file] of Object.entries(job.media) as [MediaName, MediaFile][]) {
    names[`${name}_type`] = file.type;
    const needsBytes = wanted.has(`${name}_base64`) || (wanted.has(name) && file.address === null);
    const base64 = needsBytes ? (await bytesOf(name, file)).toString("base64") : "";
    names[`${name}_base64`] = base64;
    names[name] = file.address ?? (base64 === "" ? "" : `data:${file.type};base64,${base64}`);
  }
  return Object.fromEntries(Object.entries(names).filter(([, value]) => value !== ""));
}

async function bytesOf(name: MediaName, file: MediaFile): Promise<Buffer> {
  try {
    return await readFile(file.path);
  } catch (error) {
    throw new JobRefused(
      "input",
      `the ${name} cannot be read (${(error as NodeJS.ErrnoException).code})`,
      false,
    );
  }
}

export async function formOf(
  sent: JsonObject,
  names: TemplateValues,
  media: ProviderJob["media"],
): Promise<{ body: Uint8Array; type: string }> {
  const form = new FormData();
  for (const [field, value] of Object.entries(sent)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (isFile(one)) {
        const name = one.file as MediaName;
        const file = media[name];
        if (file === undefined) continue;
        const bytes = await bytesOf(name, file);
        form.append(
          field,
          new Blob([new Uint8Array(bytes)], { type: file.type }),
          `${name}.${endingOf(file.type)}`,
        );
        continue;
      }
      const filled = fill(one, names);
      if (filled === undefined || filled === null) continue;
      form.append(field, typeof filled === "object" ? JSON.stringify(filled) : String(filled));
    }
  }
  const encoded = new Response(form);
  const type = encoded.headers.get("content-type") ?? "multipart/form-data";
  return { body: new Uint8Array(await encoded.arrayBuffer()), type };
}

/** Some vendors look at the ending of a file's name rather than at its type. */
function endingOf(type: string): string {
  const [, name = "bin"] = type.split(/[/;]/);
  return (
    ({ jpeg: "jpg", mpeg: "mp3", "svg+xml": "svg", quicktime: "mov" } as Record<string, string>)[name] ?? name
  );
}
