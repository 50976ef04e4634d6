import { existsSync } from "node:fs";
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { mediaFields } from "../../api/inputs.js";
import type { MediaFile, MediaName } from "../../providers/provider.js";
import type { Proxies } from "../../proxy/variables.js";
import type { WorldResponse } from "../../service/answers/answers.js";
import type { StoredFile } from "../../service/answers/reply.js";
import type { TaskRecord } from "../../service/state/state.js";
import { bringInput, type OwnFile } from "./inputs.js";
import type { JobRecord, Journal } from "./journal.js";
import { contentTypeOf, type OutputPlace, removeFolder } from "./outputs.js";

export interface FilesParts {
  journal: Journal;
  /** The folder for files of jobs, outputs and inputs. */
  folder: string;
  allowedHosts: () => readonly string[];
  proxies: Proxies | null;
  /** A file of this service by its address, for a task of this account. */
  own: (accountId: string) => OwnFile;
  /** Does the work in a transaction, and resolves when it is committed. */
  commit: (work: () => void) => Promise<void>;
}

/** Where the files of jobs are: what goes in, what a provider works with, and what comes out. */
export class JobFiles {
  constructor(private readonly parts: FilesParts) {}

  /** The folder that a provider may use for a job. */
  jobFolder(taskId: string): string {
    return join(this.parts.folder, "jobs", taskId);
  }

  /** Makes the folder of a job, or empties what an earlier try has left in it. */
  async emptyJobFolder(taskId: string): Promise<void> {
    const folder = this.jobFolder(taskId);
    const isNew = (await mkdir(folder, { recursive: true })) !== undefined;
    if (isNew) return;
    await removeFolder(folder);
    await mkdir(folder);
  }

  removeJobFolder(taskId: string): Promise<void> {
    return removeFolder(this.jobFolder(taskId));
  }

  /** Brings the inputs of a task onto this disk. */
  async inputs(task: TaskRecord, signal: AbortSignal): Promise<Partial<Record<MediaName, MediaFile>>> {
    const media: Partial<Record<MediaName, MediaFile>> = {};
    for (const field of mediaFields) {
      const address = task.input[field];
      if (address === undefined) continue;
      const name = field.replace("_url", "") as MediaName;
      const place = {
        folder: join(this.parts.folder, "inputs"),
        own: this.parts.own(task.accountId),
        allowedHosts: this.parts.allowedHosts(),
        proxies: this.parts.proxies,
      };
      media[name] = await bringInput(name, address, place, signal);
    }
    return media;
  }

  outputPlace({ taskId, model: { category } }: JobRecord, number: number): OutputPlace {
    const { folder, proxies } = this.parts;
    return { folder: join(folder, "outputs", taskId), number, category, proxies };
  }

  outputPath(task: TaskRecord, number: number): string {
    return join(this.parts.folder, "outputs", task.id, `${number}.${task.outputs[number - 1]}`);
  }

  /** One output, or the answer that says why it is not there. */
  async output(task: TaskRecord, number: number): Promise<StoredFile | WorldResponse> {
    const path = this.outputPath(task, number);
    const found = await stat(path).catch(() => null);
    if (found === null)
      return {
        status: 410,
        headers: {},
        body: { error: { code: "FILE_GONE", message: "This file has been cleaned up." } },
      };
    // A file that is finished never changes.
    const etag = `"${task.id}-${number}-${found.size}"`;
    return { path, size: found.size, contentType: contentTypeOf(path), etag };
  }

  /** Removes the files of tasks that ended before `before` (UTC ms), and inputs as old. */
  async clean(before: number): Promise<void> {
    const { journal, folder, commit } = this.parts;
    for (const taskId of journal.endedBefore(before, 100)) {
      await removeFolder(join(folder, "outputs", taskId));
      await commit(() => journal.markCleaned(taskId));
    }
    for (const id of journal.uploadsBefore(before)) {
      await removeFolder(join(folder, "uploads", id));
      await commit(() => journal.removeUpload(id));
    }
    const inputs = join(folder, "inputs");
    for (const name of existsSync(inputs) ? await readdir(inputs) : []) {
      const path = join(inputs, name);
      const found = await stat(path).catch(() => null);
      if (found && found.mtimeMs < before) await removeFolder(path);
    }
  }
}
