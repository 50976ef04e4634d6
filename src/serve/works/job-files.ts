import { existsSync } from "node:fs";
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { mediaFields } from "../../api/inputs.js";
import type { MediaFile, MediaName } from "../../providers/provider.js";
import type { Proxies } from "../../proxy/variables.js";
import type { WorldResponse } from "../../service/answers/answers.js";
import type { StoredFile } from "../../service/answers/reply.js";
import type { TaskRecord } from "../../service/state/state.js";
import { leavesReally } from "../../text/inside.js";
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
    return this.within("jobs", taskId);
  }

  /** Makes the folder of a job, or empties what an earlier try has left in it. */
  async emptyJobFolder(taskId: string): Promise<void> {
    const folder = this.jobFolder(taskId);
    const isNew = (await mkdir(folder, { recursive: true })) !== undefined;
    if (isNew) return;
    await removeFolder(folder);
    await mkdir(folder);
  }

  /** Removes what a job no longer needs: its folder, and the inputs that were fetched for it. */
  async removeJobFolder(taskId: string): Promise<void> {
    await removeFolder(this.jobFolder(taskId));
    for (const field of mediaFields) await removeFolder(this.inputFile(taskId, field));
  }

  private inputFile(taskId: string, field: string): string {
    return this.within("inputs", `${taskId}-${field}`);
  }

  /** Brings the inputs of a task onto this disk. */
  async inputs(task: TaskRecord, signal: AbortSignal): Promise<Partial<Record<MediaName, MediaFile>>> {
    const media: Partial<Record<MediaName, MediaFile>> = {};
    for (const field of mediaFields) {
      const address = task.input[field];
      if (address === undefined) continue;
      const name = field.replace("_url", "") as MediaName;
      const place = {
        file: this.inputFile(task.id, field),
        own: this.parts.own(task.accountId),
        allowedHosts: this.parts.allowedHosts(),
        proxies: this.parts.proxies,
      };
      media[name] = await bringInput(name, address, place, signal);
    }
    return media;
  }

  outputPlace({ taskId, model: { category } }: JobRecord, number: number): OutputPlace {
    const { proxies } = this.parts;
    return { folder: this.within("outputs", taskId), number, category, proxies };
  }

  outputPath(task: TaskRecord, number: number): string {
    return this.within("outputs", task.id, `${number}.${task.outputs[number - 1]}`);
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

  /** A path below the service's folder. The database may have come with it: a name in it that would lead elsewhere is none. */
  within(...names: string[]): string {
    for (const name of names)
      if (!/^\w[\w.-]*$/.test(name))
        throw new Error(`the service's state names a file ${JSON.stringify(name)}`);
    const path = join(this.parts.folder, ...names);
    if (leavesReally(this.parts.folder, path))
      throw new Error(`a link leads out of the service's folder: ${path}`);
    return path;
  }

  /** Removes the files of tasks that ended before `before` (UTC ms), and inputs as old. */
  async clean(before: number): Promise<void> {
    const { journal, commit } = this.parts;
    for (const taskId of journal.endedBefore(before, 100)) {
      await removeFolder(this.within("outputs", taskId));
      await commit(() => journal.markCleaned(taskId));
    }
    for (const id of journal.uploadsBefore(before)) {
      await removeFolder(this.within("uploads", id));
      await commit(() => journal.removeUpload(id));
    }
    const inputs = this.within("inputs");
    for (const name of existsSync(inputs) ? await readdir(inputs) : []) {
      const path = this.within("inputs", name);
      const found = await stat(path).catch(() => null);
      if (found && found.mtimeMs < before) await removeFolder(path);
    }
  }
}
