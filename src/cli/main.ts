#!/usr/bin/env node
import { Command } from "commander";
import { ownVersion } from "../package-file.js";
import { ended } from "./output/ending.js";

/** What each command's file gives, in the order of the help. */
const commands: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  init: async () => (await import("./commands/init.js")).defineInit,
  plan: async () => (await import("./commands/plan.js")).definePlan,
  run: async () => (await import("./commands/run.js")).defineRun,
  resume: async () => (await import("./commands/resume.js")).defineResume,
  status: async () => (await import("./commands/status.js")).defineStatus,
  pause: async () => (await import("./commands/pause.js")).definePause,
  cancel: async () => (await import("./commands/pause.js")).defineCancel,
  redo: async () => (await import("./commands/redo.js")).defineRedo,
  export: async () => (await import("./commands/export.js")).defineExport,
  retry: async () => (await import("./commands/retry.js")).defineRetry,
  resolve: async () => (await import("./commands/resolve.js")).defineResolve,
  verify: async () => (await import("./commands/verify.js")).defineVerify,
  gallery: async () => (await import("./commands/gallery.js")).defineGallery,
  find: async () => (await import("./commands/find.js")).defineFind,
  adopt: async () => (await import("./commands/adopt.js")).defineAdopt,
  models: async () => (await import("./commands/models.js")).defineModels,
  account: async () => (await import("./commands/account.js")).defineAccount,
  doctor: async () => (await import("./commands/doctor.js")).defineDoctor,
  schedule: async () => (await import("./commands/schedule/schedule.js")).defineSchedule,
  sandbox: async () => (await import("./commands/sandbox/sandbox.js")).defineSandbox,
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
  const { findWorkspace } = await import("../job/workspace/workspace.js");
  const { workspace: named } = command.opts<{ workspace?: string }>();
  const manifest = command.args[command.registeredArguments.findIndex((each) => each.name() === "manifest")];
  const { root } = findWorkspace({
    cwd: process.cwd(),
    sandbox: false,
    env: process.env,
    ...(named === undefined ? {} : { named }),
    ...(manifest === undefined ? {} : { manifest }),
  });
  const { applySettings, configFiles } = await import("./settings/settings.js");
  applySettings(command, await configFiles(root, process.env), process.env);
}

// A reader that closes the pipe early (`bulkgen models | head`) is no error, and a run goes on without its reader. It
// goes on without its log too, which may lie on the very disk that is full.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
process.stderr.on("error", () => {});

await ended(async () => (await program(process.argv[2])).parseAsync());
