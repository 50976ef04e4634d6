#!/usr/bin/env node
import { Command } from "commander";
import { ownVersion } from "../job/version.js";
import { defineAccount } from "./account.js";
import { defineAdopt } from "./adopt.js";
import { defineCancel } from "./cancel.js";
import { defineDoctor } from "./doctor.js";
import { ended } from "./ending.js";
import { defineExport } from "./export.js";
import { defineFind } from "./find.js";
import { defineGallery } from "./gallery.js";
import { defineInit } from "./init.js";
import { defineModels } from "./models.js";
import { definePause } from "./pause.js";
import { definePlan } from "./plan.js";
import { defineRedo } from "./redo.js";
import { defineResolve } from "./resolve.js";
import { defineResume } from "./resume.js";
import { defineRetry } from "./retry.js";
import { defineRun } from "./run.js";
import { defineSandbox } from "./sandbox.js";
import { defineSchedule } from "./schedule.js";
import { defineStatus } from "./status.js";
import { defineVerify } from "./verify.js";

/**
 * The command line. Each command is a file that names its options here and loads the rooms it needs only when it is
 * called, so that `--help` and `status` start fast.
 */
function program(): Command {
  const root = new Command("bulkgen")
    .description("Bulk generation of images, video and audio from a spreadsheet.")
    .version(ownVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .showHelpAfterError("(add --help for the options)")
    .exitOverride();
  for (const define of [
    defineInit,
    definePlan,
    defineRun,
    defineResume,
    defineStatus,
    definePause,
    defineCancel,
    defineRedo,
    defineExport,
    defineRetry,
    defineResolve,
    defineVerify,
    defineGallery,
    defineFind,
    defineAdopt,
    defineModels,
    defineAccount,
    defineDoctor,
    defineSchedule,
    defineSandbox,
  ]) {
    define(root);
  }
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

await ended(() => program().parseAsync());
