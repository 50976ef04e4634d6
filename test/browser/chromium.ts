import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const names = ["chromium", "chromium-browser", "google-chrome"];

/** Starts the machine's own Chromium, or the one that CHROMIUM names. */
export function startChromium(): Promise<Browser> {
  const args = [
    "--no-sandbox",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
  ];
  return chromium.launch({ executablePath: executable(), args });
}

function executable(): string {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const found = folders.flatMap((folder) => names.map((name) => join(folder, name))).find(existsSync);
  const path = process.env["CHROMIUM"] ?? found;
  if (path === undefined)
    throw new Error("there is no chromium on the PATH: install it, or name it in CHROMIUM");
  return path;
}
