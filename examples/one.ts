import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readIndex, run, type ServiceAddress } from "bulkgen";

/**
 * Makes one picture for at most `maxCredits`, and returns the path of its file. Call it again with the same picture, also
 * after a crash: it returns the same file, and pays nothing more.
 */
export async function makeOne(
  workspace: string,
  picture: { id: string; model: string; prompt: string },
  service: ServiceAddress,
  maxCredits: number,
): Promise<string> {
  const manifest = join(workspace, `${picture.id}.json`);
  await writeFile(manifest, JSON.stringify([picture]));
  const settings = { workspace, job: picture.id, service, maxCredits, ifLocked: "wait" } as const;
  for await (const event of run(manifest, settings)) {
    if (event.event !== "run_finished") continue;
    if (event.exitName !== "done") throw new Error(`${event.exitName}: ${event.nextStep}`);
    const files = await readIndex(event.folder);
    const made = files.find(({ model, prompt }) => model === picture.model && prompt === picture.prompt);
    if (made) return join(event.folder, made.file);
  }
  throw new Error("the run made no file");
}
