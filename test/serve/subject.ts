import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import { catalogue } from "../../src/sandbox/catalogue/catalogue.js";
import type { SandboxModel } from "../../src/sandbox/catalogue/model.js";
import { kinds } from "../../src/serve/kinds.js";
import { serveModels } from "../../src/serve/serve.js";
import { systemRandom } from "../../src/system.js";
import { ManualClock } from "../manual-clock.js";
import type { Subject } from "../sandbox/suite/subject.js";
import { byHttp, furnished } from "../sandbox/suite/subjects.js";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { png } from "../upstreams/upstream.js";

/** A file that begins as a film does. */
const film = Buffer.from("\0\0\0\x18ftypisom\0\0\x02\0isommp42", "latin1");

/**
 * A served models file that offers what the sandbox does, held against the page like that: pictures from an upstream, films
 * from a program.
 */
export async function servedModels(): Promise<Subject> {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-suite-"));
  const upstream = await new OpenAiUpstream().start();
  const file = join(folder, "models.yaml");
  writeFileSync(join(folder, "film.mp4"), film);
  writeFileSync(file, JSON.stringify(modelsFile(upstream)));
  const clock = new ManualClock();
  const running = await serveModels({
    clock,
    random: systemRandom,
    folder: join(folder, "state"),
    file,
    kinds,
    env: { PATH: process.env["PATH"], KEY: upstream.key },
    onNote: () => {},
  });
  const { service, url } = running;
  const hands = furnished(service.state, clock);
  const subject = byHttp(url, hands, clock);
  const uploaded = async (bytes: Buffer, type: string): Promise<string> => {
    const headers = { authorization: `Bearer ${subject.key}`, "content-type": type };
    const body = new Uint8Array(bytes);
    const answer = await fetch(`${url}/api/v1/inputs`, { method: "PUT", headers, body });
    return ((await answer.json()) as { url: string }).url;
  };
  const [picture, video] = [await uploaded(png, "image/png"), await uploaded(film, "video/mp4")];
  return {
    ...subject,
    hands: {
      ...hands,
      failing: ["A forbidden fox"],
      inputs: { image_url: picture, video_url: video, audio_url: picture },
    },
    async wait(ms) {
      clock.advance(ms);
      // Whoever does the jobs takes real time.
      while (service.journal.open().length > 0) {
        await rest(1);
        clock.advance(10);
      }
    },
    async close() {
      await running.close();
      await upstream.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** The sandbox's catalogue as a models file; every YAML reader reads JSON. */
function modelsFile(upstream: OpenAiUpstream): object {
  const vendor = { kind: "openai", base_url: `${upstream.url}/v1`, key_env: "KEY" };
  return { providers: { vendor, programs: { kind: "command" } }, models: catalogue.map(modelOf) };
}

function modelOf({ key, name, category, inputType, credits, parameters }: SandboxModel): object {
  const params = parameters.map(({ key: param, label, type, options, default: preset }) => [
    param,
    { type, label, options: options.map(({ value }) => value), default: preset },
  ]);
  const common = { key, name, category, input: inputType, credits, params: Object.fromEntries(params) };
  if (category === "audio")
    return { ...common, provider: "vendor", request: { model: "tts", voice: "nova" } };
  if (category === "image" && inputType !== "video")
    return { ...common, provider: "vendor", request: { model: "gpt-image-2" } };
  // The program is told everything, as a models file demands, and makes the same of it.
  const inputs = inputType.replace("text", "prompt").split("+");
  const values = ["folder", "out", ...inputs, ...parameters.map((each) => each.key)];
  const told = values.map((value) => `{{ ${value} }}`);
  return {
    ...common,
    provider: "programs",
    command: ["sh", "-c", 'cp "$1/film.mp4" "$2.mp4"', "--", ...told],
  };
}
