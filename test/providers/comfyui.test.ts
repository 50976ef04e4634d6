import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { comfyuiKind } from "../../src/providers/comfyui/kind.js";
import type {
  Accepted,
  Done,
  Json,
  ModelSettings,
  ProviderJob,
  Running,
} from "../../src/providers/provider.js";
import { ComfyUi, pixel } from "../upstreams/comfyui.js";
import {
  afterwards,
  freshFolder,
  jobOf,
  mistakesOf,
  modelOf,
  openKind,
  type PlaceParts,
  sentNow,
  unhurried,
} from "./job.js";

const bind = {
  prompt: "6.text",
  negative: "7.text",
  seed: "3.seed",
  steps: "3.steps",
  sampler: "3.sampler_name",
};

/** A folder with the workflows of the tests. */
function flows(): string {
  const folder = freshFolder();
  for (const name of ["text-to-image", "image-to-image", "editor-format", "flux"])
    copyFileSync(new URL(`workflows/${name}.json`, import.meta.url), join(folder, `${name}.json`));
  return folder;
}

async function machine(): Promise<ComfyUi> {
  const upstream = await new ComfyUi().listen();
  afterwards(() => upstream.stop());
  return upstream;
}

function provider(machines: readonly ComfyUi[], parts: PlaceParts = {}) {
  return openKind(comfyuiKind, {
    addresses: machines.map(({ address }) => address),
    folder: flows(),
    ...parts,
  });
}

const model = modelOf({ workflow: "text-to-image.json", bind });
const jobFor = (parts: Partial<ProviderJob> = {}, of: ModelSettings = model) => jobOf(of, parts);

async function submitted(house: ReturnType<typeof provider>, job: ProviderJob): Promise<Json> {
  return ((await house.submit(job, unhurried)) as Accepted).resume;
}

async function bytesOf(answer: Done | Running | undefined): Promise<Buffer[]> {
  const outputs = (answer as Done).outputs as { url: string; headers?: Record<string, string> }[];
  return Promise.all(
    outputs.map(async ({ url, headers = {} }) =>
      Buffer.from(await (await fetch(url, { headers })).arrayBuffer()),
    ),
  );
}

test("a job is sent under its own id with its prompt, its params and a seed, and its picture is fetched", async () => {
  const upstream = await machine();
  const house = provider([upstream]);
  const job = jobFor({ prompt: 'a "kite"; $(rm -rf /)\n{{ prompt }} <script>', params: { steps: "30" } });
  const accepted = (await house.submit(job, unhurried)) as Accepted;
  expect(accepted).toEqual({ ref: job.id, resume: { address: upstream.address, id: job.id } });
  expect(upstream.ledger).toHaveLength(1);
  const [{ id, client, workflow } = { id: "", client: "", workflow: {} }] = upstream.ledger;
  expect({ id, client }).toEqual({ id: job.id, client: job.id });
  expect(workflow["6"]?.inputs["text"]).toBe(job.prompt);
  // What has no value stays as it was saved.
  expect(workflow["7"]?.inputs["text"]).toBe("text, watermark");
  expect(workflow["3"]?.inputs).toMatchObject({ steps: 30, cfg: 8, sampler_name: "euler" });
  expect(await bytesOf(await house.poll?.(accepted.resume, unhurried))).toEqual([pixel]);
});

test("without a value the seed comes from the job's id: another for each job, the same for a repeated one", async () => {
  const upstream = await machine();
  const house = provider([upstream]);
  const job = jobFor();
  for (const each of [job, job, jobFor(), jobFor({ params: { seed: "42" } })])
    await house.submit(each, unhurried);
  const seeds = upstream.ledger.map(({ workflow }) => workflow["3"]?.inputs["seed"]);
  expect(seeds[0]).toBe(seeds[1]);
  expect(new Set(seeds).size).toBe(3);
  expect(seeds[3]).toBe(42);
  expect(Number.isSafeInteger(seeds[0])).toBe(true);
});

test("an input picture is uploaded before the job, to the same machine", async () => {
  const upstream = await machine();
  const house = provider([upstream]);
  const path = join(freshFolder(), "kite.jpg");
  writeFileSync(path, "bytes of a picture");
  const picture = modelOf(
    { workflow: "image-to-image.json", bind: { ...bind, image: "10.image" } },
    { input: "text+image" },
  );
  const job = jobFor({ media: { image: { path, type: "image/jpeg", address: null } } }, picture);
  await house.submit(job, unhurried);
  const name = `bulkgen-${job.id}-image.jpg`;
  expect(upstream.uploads.get(name)?.toString()).toBe("bytes of a picture");
  expect(upstream.ledger[0]?.workflow["10"]?.inputs["image"]).toBe(name);
});

test("the machine with the fewest jobs gets a job, and the job stays with it", async () => {
  const machines = [await machine(), await machine(), await machine()];
  for (const each of machines) each.holds = true;
  const house = provider(machines);
  const jobs = [jobFor(), jobFor(), jobFor(), jobFor()];
  const resumes = await Promise.all(jobs.map((job) => submitted(house, job)));
  const addresses = resumes.map((resume) => (resume as { address: string }).address);
  expect(new Set(addresses.slice(0, 3)).size).toBe(3);
  expect(addresses[3]).toBe(addresses[0]);
  expect(await house.poll?.(resumes[3] as Json, unhurried)).toEqual({
    running: true,
    note: "2nd of 2 in the queue",
  });
});

test("a machine that is gone is left out, and the job's note says so", async () => {
  const [gone, there] = [await machine(), await machine()];
  const house = provider([gone, there]);
  await gone.stop();
  there.holds = true;
  const resume = await submitted(house, jobFor());
  expect(await house.poll?.(resume, unhurried)).toEqual({
    running: true,
    note: "1st of 1 in the queue; 1 of 2 machines could not be reached",
  });
  await there.stop();
  await expect(house.submit(jobFor(), unhurried)).rejects.toMatchObject({
    name: "JobLater",
    scope: "provider",
    message: expect.stringMatching(/^no machine with ComfyUI answers: .* ECONNREFUSED/),
  });
});

test("a job is followed from the queue to its end", async () => {
  const upstream = await machine();
  upstream.holds = true;
  const house = provider([upstream]);
  const jobs = [jobFor(), jobFor(), jobFor()];
  const resumes: Json[] = [];
  for (const job of jobs) resumes.push(await submitted(house, job));
  const note = async (index: number) => {
    const answer = await house.poll?.(resumes[index] as Json, unhurried);
    return "outputs" in (answer as Done) ? "done" : (answer as Running).note;
  };
  expect([await note(0), await note(2)]).toEqual(["1st of 3 in the queue", "3rd of 3 in the queue"]);
  upstream.start();
  expect([await note(0), await note(2)]).toEqual(["it is being made", "2nd of 2 in the queue"]);
  upstream.finish();
  expect(await note(0)).toBe("done");
});

test("a lost answer is found by the job's id, and the job is not made twice", async () => {
  const [first, second] = [await machine(), await machine()];
  const house = provider([first, second]);
  for (const holds of [true, false]) {
    first.holds = holds;
    first.trouble["POST /prompt"] = "drop";
    const job = jobFor();
    await expect(house.submit(job, unhurried)).rejects.not.toMatchObject({
      name: expect.stringMatching(/JobLater|JobRefused/),
    });
    delete first.trouble["POST /prompt"];
    expect(await house.find?.(job, unhurried, sentNow)).toEqual({
      ref: job.id,
      resume: { address: first.address, id: job.id },
    });
    if (holds) {
      first.start();
      expect(await house.find?.(job, unhurried, sentNow)).not.toBeNull();
      first.finish();
    }
  }
  expect(first.ledger.map(({ id }) => id)).toHaveLength(2);
  expect(second.ledger).toEqual([]);
});

test("a job that no machine has was never sent; a machine that does not answer may have it", async () => {
  const [first, second] = [await machine(), await machine()];
  const house = provider([first, second]);
  const { id } = jobFor();
  expect(await house.find?.(jobFor({ id }), unhurried, sentNow)).toBeNull();
  for (const trouble of [503, "empty", "html", "drop"] as const) {
    second.trouble["GET /history"] = trouble;
    await expect(house.find?.(jobFor({ id }), unhurried, sentNow)).rejects.toThrow(
      "1 of 2 machines did not say",
    );
  }
  delete second.trouble["GET /history"];
  await second.stop();
  await expect(house.find?.(jobFor({ id }), unhurried, sentNow)).rejects.toThrow(
    /^1 of 2 machines did not say whether they have the job: .* ECONNREFUSED/,
  );
  // The other one has it for sure.
  first.holds = true;
  await house.submit(jobFor({ id }), unhurried);
  expect(await house.find?.(jobFor({ id }), unhurried, sentNow)).toMatchObject({ ref: id });
});

test("versions that give ids of their own are found by the client's id while a job waits, and polled by theirs", async () => {
  const upstream = await machine();
  upstream.ignoresIds = true;
  upstream.holds = true;
  const house = provider([upstream]);
  const job = jobFor();
  const accepted = (await house.submit(job, unhurried)) as Accepted;
  expect(accepted.ref).not.toBe(job.id);
  expect(await house.find?.(job, unhurried, sentNow)).not.toBeNull();
  upstream.start();
  upstream.finish();
  expect(await house.poll?.(accepted.resume, unhurried)).toHaveProperty("outputs");
});

test.each([503, 500, "empty", "html", "drop"] as const)(
  "nobody knows whether a job was accepted when the answer is %s",
  async (trouble) => {
    const upstream = await machine();
    upstream.trouble["POST /prompt"] = trouble;
    const error = await provider([upstream])
      .submit(jobFor(), unhurried)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).name).not.toMatch(/JobLater|JobRefused/);
  },
);

test("an aborted submit leaves open what became of the job", async () => {
  const upstream = await machine();
  upstream.trouble["POST /prompt"] = "hang";
  const controller = new AbortController();
  const submit = provider([upstream]).submit(jobFor(), controller.signal);
  setTimeout(() => controller.abort(), 50);
  await expect(submit).rejects.not.toMatchObject({ name: expect.stringMatching(/JobLater|JobRefused/) });
});

test("what goes wrong before the job is sent only delays it", async () => {
  const upstream = await machine();
  const house = provider([upstream]);
  upstream.trouble["GET /queue"] = 503;
  await expect(house.submit(jobFor(), unhurried)).rejects.toMatchObject({
    name: "JobLater",
    scope: "provider",
  });
  delete upstream.trouble["GET /queue"];
  const path = join(freshFolder(), "kite.png");
  writeFileSync(path, pixel);
  const picture = modelOf({ workflow: "image-to-image.json", bind: { ...bind, image: "10.image" } });
  const job = jobFor({ media: { image: { path, type: "image/png", address: null } } }, picture);
  upstream.trouble["POST /upload"] = "drop";
  await expect(house.submit(job, unhurried)).rejects.toMatchObject({ name: "JobLater" });
  upstream.trouble["POST /upload"] = 413;
  await expect(house.submit(job, unhurried)).rejects.toMatchObject({ name: "JobRefused", kind: "input" });
  expect(upstream.ledger).toEqual([]);
});

test.each([
  [{ steps: "0" }, "node 3 (KSampler): Value 0 smaller than min of 1: steps"],
  [{ sampler: "magic" }, "node 3 (KSampler): Value not in list: sampler_name: 'magic' not in"],
])("a workflow that ComfyUI refuses with %j fails with its words", async (params, words) => {
  const upstream = await machine();
  await expect(provider([upstream]).submit(jobFor({ params }), unhurried)).rejects.toMatchObject({
    name: "JobRefused",
    kind: "parameter",
    billed: false,
    message: expect.stringContaining(words),
  });
});

test("a number that is none is refused before anything is sent", async () => {
  const upstream = await machine();
  await expect(
    provider([upstream]).submit(jobFor({ params: { steps: "many" } }), unhurried),
  ).rejects.toMatchObject({
    kind: "parameter",
    message: 'steps has to be a number, but it is "many"',
  });
});

test.each([401, 404])("a %s says that there is no ComfyUI, or not for us", async (status) => {
  const upstream = await machine();
  upstream.trouble["POST /prompt"] = status;
  await expect(provider([upstream]).submit(jobFor(), unhurried)).rejects.toMatchObject({
    name: "JobRefused",
    message: `ComfyUI answered ${status}: is base_url its address, and the key good?`,
  });
});

test("an error of a node fails the job without paths of the machine", async () => {
  const upstream = await machine();
  upstream.fails =
    "Error while reading /mnt/disk/models/loras/house.safetensors: CUDA out of memory\nTraceback";
  const house = provider([upstream]);
  await expect(house.poll?.(await submitted(house, jobFor()), unhurried)).rejects.toMatchObject({
    name: "JobRefused",
    kind: "provider",
    message:
      "ComfyUI stopped at node 9 (SaveImage): Error while reading house.safetensors: CUDA out of memory",
  });
});

test.each([503, "empty", "html", "drop"] as const)("%s while polling is no verdict", async (trouble) => {
  const upstream = await machine();
  const house = provider([upstream]);
  const resume = await submitted(house, jobFor());
  upstream.trouble["GET /history"] = trouble;
  const error = await house.poll?.(resume, unhurried).catch((reason: unknown) => reason);
  expect((error as Error).name).not.toMatch(/JobLater|JobRefused/);
  delete upstream.trouble["GET /history"];
  expect(await house.poll?.(resume, unhurried)).toHaveProperty("outputs");
});

test("a machine that is gone while polling is no verdict; one that came back without the job is, when it says so three times", async () => {
  const upstream = await machine();
  upstream.holds = true;
  const house = provider([upstream]);
  let resume = await submitted(house, jobFor());
  await upstream.stop();
  await expect(house.poll?.(resume, unhurried)).rejects.not.toMatchObject({ name: "JobRefused" });
  await upstream.listen();
  for (const _ of [1, 2]) {
    const answer = (await house.poll?.(resume, unhurried)) as Running;
    expect(answer.note).toBe("ComfyUI does not know the job at the moment");
    resume = answer.resume as Json;
  }
  await expect(house.poll?.(resume, unhurried)).rejects.toMatchObject({
    name: "JobRefused",
    billed: false,
    message:
      "ComfyUI does not know the job any more: it was restarted, or the job was removed from its queue",
  });
});

test("a job that is there again was not lost", async () => {
  const upstream = await machine();
  upstream.holds = true;
  const house = provider([upstream]);
  const resume = { ...((await submitted(house, jobFor())) as object), missing: 2 };
  const answer = (await house.poll?.(resume, unhurried)) as Running;
  expect(answer.resume).not.toHaveProperty("missing");
});

test("a job is cancelled in the queue or while it runs, and no other is", async () => {
  const upstream = await machine();
  upstream.holds = true;
  const house = provider([upstream]);
  const resumes: Json[] = [];
  for (let count = 0; count < 3; count++) resumes.push(await submitted(house, jobFor()));
  upstream.start();
  expect(await house.cancel?.(resumes[1] as Json, unhurried)).toEqual({ billed: false });
  expect(await house.poll?.(resumes[0] as Json, unhurried)).toMatchObject({ note: "it is being made" });
  expect(await house.poll?.(resumes[2] as Json, unhurried)).toMatchObject({ note: "1st of 1 in the queue" });
  await house.cancel?.(resumes[0] as Json, unhurried);
  await expect(house.poll?.(resumes[0] as Json, unhurried)).rejects.toMatchObject({
    name: "JobRefused",
    message: "the job was stopped in ComfyUI",
  });
});

test("headers with the key go with every request, and with the address of a result", async () => {
  const upstream = await machine();
  const house = provider([upstream], { headers: { authorization: "Bearer {{ key }}" }, key: () => "k$&1" });
  const resume = await submitted(house, jobFor());
  expect(upstream.headers["authorization"]).toBe("Bearer k$&1");
  expect(resume).not.toContain("k$&1");
  const done = (await house.poll?.(resume, unhurried)) as Done;
  expect(done.outputs).toEqual([
    {
      url: expect.stringContaining("/view?filename=picture_00001_.png&subfolder=house&type=output"),
      headers: { authorization: "Bearer k$&1" },
    },
  ]);
});

test("a check says which machine does not answer, and which nodes a workflow misses", async () => {
  const [first, second] = [await machine(), await machine()];
  const house = provider([first, second]);
  expect(await house.check?.(unhurried, [model])).toBeNull();
  const flux = modelOf({ workflow: "flux.json", bind: { prompt: "30.value" } }, { key: "flux" });
  const { FluxGuidance: _, ...others } = second.nodes;
  Object.assign(second, { nodes: others });
  expect(await house.check?.(unhurried, [model, flux])).toBe(
    `${second.address} has no node FluxGuidance, which flux needs: install it with ComfyUI-Manager`,
  );
  await second.stop();
  expect(await house.check?.(unhurried, [model])).toMatch(
    new RegExp(`^${second.address} is no ComfyUI that answers: .* ECONNREFUSED`),
  );
});

test("mistakes of a model are found in its workflow", () => {
  const folder = flows();
  const mistakes = (details: object, params: string[] = [], input: ModelSettings["input"] = "text") =>
    mistakesOf(comfyuiKind, modelOf(details as never, { input }), folder, params);
  expect(mistakes({ workflow: "text-to-image.json", bind: { prompt: "6.text", seed: "3.seed" } })).toEqual(
    [],
  );
  expect(mistakes({ workflow: "none.json", bind: {} })).toEqual(["workflow: there is no file none.json"]);
  expect(mistakes({ workflow: "editor-format.json", bind: {} })).toEqual([
    'workflow: editor-format.json is in the format of ComfyUI\'s editor, which ComfyUI does not run: save it with Workflow → Export (API), in older versions "Save (API Format)"',
  ]);
  expect(
    mistakes(
      {
        workflow: "text-to-image.json",
        bind: { prompt: "6.txt", seed: "33.seed", stepz: "3.steps", cfg: ["3.cfg", "3.model"] },
      },
      ["cfg", "steps"],
    ),
  ).toEqual([
    "params.steps: is not in bind, so the workflow would not get it; expected an input of the workflow under bind.steps",
    "bind.prompt: node 6 (CLIPTextEncode) has no input txt. Did you mean text?",
    "bind.seed: the workflow has no node 33. It has 3 (KSampler), 4 (CheckpointLoaderSimple), 5 (EmptyLatentImage), 6 (CLIPTextEncode), 7 (CLIPTextEncode), 8 (VAEDecode), 9 (SaveImage)",
    "bind.stepz: is no param of this model. Did you mean steps?",
    "bind.cfg.1: 3.model is linked to node 4 (CheckpointLoaderSimple), so a value would cut the link; bind an input of that node",
  ]);
  expect(
    mistakes({ workflow: "text-to-image.json", bind: { seed: "KSampler.seed" } }, [], "text+image"),
  ).toEqual([
    "bind: does not say which input of the workflow takes the prompt, such as prompt: 3.seed",
    "bind: does not say which input of the workflow takes the image, such as image: 3.seed",
    "bind.seed: the workflow has no node KSampler. Did you mean 3.seed?",
  ]);
});
