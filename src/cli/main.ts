#!/usr/bin/env node
import { Command } from "commander";
import { ownVersion } from "../job/version.js";
import { ended } from "./ending.js";

/** What each command's file gives, in the order of the help. */
const commands: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  init: async () => (await import("./init.js")).defineInit,
  plan: async () => (await import("./plan.js")).definePlan,
  run: async () => (await import("./run.js")).defineRun,
  resume: async () => (await import("./resume.js")).defineResume,
  status: async () => (await import("./status.js")).defineStatus,
  pause: async () => (await import("./pause.js")).definePause,
  cancel: async () => (await import("./cancel.js")).defineCancel,
  redo: async () => (await import("./redo.js")).defineRedo,
  export: async () => (await import("./export.js")).defineExport,
  retry: async () => (await import("./retry.js")).defineRetry,
  resolve: async () => (await import("./resolve.js")).defineResolve,
  verify: async () => (await import("./verify.js")).defineVerify,
  gallery: async () => (await import("./gallery.js")).defineGallery,
  find: async () => (await import("./find.js")).defineFind,
  adopt: async () => (await import("./adopt.js")).defineAdopt,
  models: async () => (await import("./models.js")).defineModels,
  account: async () => (await import("./account.js")).defineAccount,
  doctor: async () => (await import("./doctor.js")).defineDoctor,
  schedule: async () => (await import("./schedule.js")).defineSchedule,
  sandbox: async () => (await import("./sandbox.js")).defineSandbox,
};

/**
 * The command line. Each command is a file that names its options here and loads the rooms it needs only when it is
 * called; a line that begins with a command loads that one alone. So `--help` and `status` start fast.
 */
async function program(first: string | undefined): Promise<Command> {
  const root = new Command("bulkgen")
    .description("Bulk generation of images, video and audio from a spreadsheet.")
    .version(ownVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .showHelpAfterError("(add --help for the options)")
    .exitOverride();
  const called = Object.entries(commands).filter(([name]) => name === first);
  const needed = called.length > 0 ? called : Object.entries(commands);
  for (const define of await Promise.all(needed.map(([, load]) => load()))) define(root);
  for (const command of root.commands) command.exitOverride();
  root.hook("preAction", (_, command) => fillIn(command));
  return root;
}

/** What no flag says, the environment and the settings files of the place say. */
async function fillIn(command: Command): Promise<void> {
  // Commands without a workspace have nothing that a file could say.
  if (!command.options.some((option) => option.name() === "workspace")) return;
  const { findWorkspace } = await import("../job/workspace.js");
  const { workspace: named } = command.opts<{ workspace?: string }>();
  const manifest = command.args[command.registeredArguments.findIndex((each) => each.name() === "manifest")];
  const { root } = findWorkspace({
    cwd: process.cwd(),
    sandbox: false,
    env: process.env,
    ...(named === undefined ? {} : { named }),
    ...(manifest === undefined ? {} : { manifest }),
  });
  const { applySettings, configFiles } = await import("./settings.js");
  applySettings(command, await configFiles(root, process.env), process.env);
}

// A reader that closes the pipe early (`bulkgen models | head`) is no error, and a run goes on without its reader. It
// goes on without its log too, which may lie on the very disk that is full.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
process.stderr.on("error", () => {});

await ended(async () => (await program(process.argv[2])).parseAsync());
